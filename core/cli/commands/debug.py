"""`ralphdeck debug list`, `show` and `archive`: query and archive debug memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import UnknownRecord
from core.base.text import plural, visible_line
from core.cli.json import debug as debug_json
from core.cli.support.document import print_document
from core.cli.support.options import (
    COUNT,
    FRACTION,
    DecidingCommand,
    ReadingCommand,
    Words,
    choose_mode,
    filter_argument,
    read_filter,
)
from core.cli.support.output import (
    Column,
    day,
    end,
    format_optional,
    id_column,
    line,
    minute,
    percent,
    print_object,
    print_table,
    remark,
    wants_json,
    warn,
)
from core.cli.support.project import (
    PastMoment,
    chosen_project,
    complete_session,
    decider,
    now,
    open_project,
    read_configuration,
)
from core.records.debug_sessions import ESCALATED, IN_PROGRESS, STATUSES, DebugSession
from core.show.pages.signs import session_status_sign
from core.tasks import debug_index as keys
from core.tasks.debug_index import (
    ANY_FILE,
    MIN_RUNS,
    DebugIndex,
    FixCounts,
    matching_spellings,
    newest_first,
    report_causes,
    report_fix_templates,
    report_recurring_failures,
)

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.tasks.archive import RetentionPeriod, RetentionPlan

MAX_NAMES: Final = 12  # Known words that are listed if the query has an unknown one.
_MAX_NAME: Final = 60
STATUS_COLOURS: Final = {"passed": "green", "failed": "red", "escalated": "yellow", "in progress": "cyan"}


_MODES: Final = {
    "--error-type": "file_pattern limit",
    "--escalated": "since",
    "--causes": "min_count",
    "--templates": "min_effectiveness",
    "--archived": "",
    "": "filter_text status file_pattern category",
}


@click.command("list", cls=ReadingCommand, modes=_MODES)
@filter_argument
@click.option("--status", type=Words([one.replace("_", "-") for one in STATUSES]), help="Only with these states.")
@click.option(
    "--file",
    "file_pattern",
    metavar="LIKE",
    help="Only on these files or failures in them: % is any text, _ a character.",
)
@click.option("--category", metavar="WORD", help="Only with this root cause, such as null_undefined_access.")
@click.option("--error-type", metavar="TYPE", help="Only sessions with an error of this type, ignoring case.")
@click.option(
    "--limit",
    type=COUNT,
    default=keys.MAX_SIMILAR,
    show_default=True,
    metavar="N",
    help="At most N sessions.",
)
@click.option("--escalated", is_flag=True, help="Only sessions that were escalated to a person, with the reason.")
@click.option(
    "--since",
    type=PastMoment(end_of_day=False),
    help="Only after this time, such as 2026-02-01 or 7d.",
)
@click.option("--archived", is_flag=True, help="List the archived sessions, last archived first.")
@click.option("--causes", is_flag=True, help="List the most frequent root causes, and the tests that fail repeatedly.")
@click.option(
    "--min-count",
    type=COUNT,
    default=MIN_RUNS,
    show_default=True,
    help="Minimum number of failures of a test, recorded or reported.",
)
@click.option("--templates", metavar="CATEGORY", help="List the fix templates for a root cause.")
@click.option(
    "--min-effectiveness",
    type=FRACTION,
    default=keys.MIN_EFFECTIVENESS,
    show_default=True,
    help="Only templates with a reported success rate above this.",
)
def list_sessions(
    filter_text: tuple[str, ...],
    status: tuple[str, ...] | None,
    file_pattern: str | None,
    category: str | None,
    error_type: str | None,
    limit: int,
    escalated: bool,
    since: datetime | None,
    archived: bool,
    causes: bool,
    min_count: int,
    templates: str | None,
    min_effectiveness: float,
) -> None:
    """List the debug sessions, newest first.

    FILTER is that of the Loops screen, for debug sessions: words, and fields such as is:open or error:TypeError.

    --escalated: a session is listed if its status is escalated, or if debug record --escalate was called for it and no
    person has acknowledged it in Review.

    --causes: PASSED and FAILED are the numbers of sessions with this cause by result; FIXES HELD counts fixes with a
    known result. RUNS is the number of recorded runs in which a test failed. REPORTED is the number that sessions
    report; it may include unsaved runs or be wrong. Tests with fewer RUNS than --min-count are listed last, sorted by
    REPORTED. NOW is the resolution.

    --templates: WORKS is the success rate of the fixes in all sessions with the problem, including failed sessions.
    HELD shows the counts and the 90 % interval. If no result is known, WORKS is the rate that the newest session
    reports. --min-effectiveness filters by the reported rates.

    \b
    Examples:
      ralphdeck debug list --status escalated
      ralphdeck debug list is:open refunds
      ralphdeck debug list --file "src/auth/%" --category null_undefined_access --json
      ralphdeck debug list --error-type TypeError --file "src/auth/%" --json
      ralphdeck debug list --escalated --since 7d
      ralphdeck debug list --causes
      ralphdeck debug list --templates race_condition --min-effectiveness 0.5 --json
    """
    mode = choose_mode(_MODES)
    if error_type is not None:
        _list_similar(error_type, ANY_FILE if file_pattern is None else file_pattern, limit)
    elif templates is not None:
        _list_templates(templates, min_effectiveness)
    elif mode == "--escalated":
        _list_escalated(since)
    elif mode == "--causes":
        _list_causes(min_count)
    elif mode == "--archived":
        list_archived()
    else:
        _list_sessions(" ".join(filter_text), status, file_pattern, category)


def _list_sessions(
    filter_text: str, status: tuple[str, ...] | None, file_pattern: str | None, category: str | None
) -> None:
    from core.show.work import FIELDS, select_debug_sessions

    query = read_filter(filter_text, FIELDS)
    state = open_project().view
    index = state.debug
    found = set(index.sessions)
    if query.terms:
        found &= {*select_debug_sessions(state.snapshot, query)}
    if status is not None:
        words = {word.replace("-", "_") for word in status}
        escalated = {one.session.id for one in state.escalations()} if ESCALATED in words else set()
        found &= escalated | {one.id for word in words for one in index.find(keys.STATUS, word)}
    if category is not None:
        found &= {one.id for one in index.find(keys.CAUSE, normalize_cause(category))}
    if file_pattern is not None:
        found &= {one.id for one in index.find_in_files(file_pattern)}
    print_sessions(state, sorted(map(index.sessions.__getitem__, found), key=newest_first))


def find_session(state: ProjectState, name: str) -> DebugSession:
    """Find a debug session.

    Raises UnknownRecord unless exactly one session matches; the message names the file of an archived session.
    """
    try:
        return state.debug_session(name)
    except UnknownRecord:
        from core.tasks.archive import DebugArchive

        archived = DebugArchive(chosen_project()).find(name)
        if archived is None or any(id.startswith(name) for id in state.snapshot.debug_sessions):
            raise
        shown, file = visible_line(archived.session.id, 80), visible_line(archived.file, 160)
        hint = f"restore it with: ralphdeck debug archive --restore {shown}"
        raise UnknownRecord(f"debug session {shown!r} is archived in {file}; {hint}") from None


def normalize_cause(category: str) -> str:
    """Normalize a root cause as in the index: `Logic error` to `logic_error`."""
    return category.strip().casefold().replace("-", "_").replace(" ", "_")


def print_sessions(state: ProjectState, found: Sequence[DebugSession]) -> None:
    from core.cli.json.debug import causes_of, failing_tests, session_rows
    from core.index.project_state import all_findings

    def status(session: DebugSession) -> str:
        return session_status_sign(session, state.snapshot).text if session.status else ""

    columns = (
        id_column("SESSION", lambda session: session.id),
        Column("STATUS", status, colours=STATUS_COLOURS),
        Column("CHANGED", lambda session: minute(session.changed_at), expendable=1),
        Column("RUNS", lambda session: str(len(session.executions)), right=True, expendable=3),
        Column("FAILING", lambda session: format_optional(failing_tests(session)), right=True, expendable=2),
        Column("ROOT CAUSE", lambda session: ", ".join(causes_of(session)), free=True, expendable=4),
        Column("FILE", lambda session: session.file_path, free=True),
    )

    if wants_json():
        print_object(debug_json.SessionList, findings=all_findings(state), sessions=session_rows(found, state.snapshot))
    else:
        print_table(columns, found, "no debug sessions")
        if count := sum(one.attempt_id in state.snapshot.attempts for one in found):
            total = plural(len(found), "session")
            remark(f"{count:,} of {total} recorded by hooks for an attempt; Memory shows them in that attempt")
    end(all_findings(state))


@click.command(cls=ReadingCommand)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
def show(session_id: str) -> None:
    """Show a debug session: its runs, failures with their causes, fixes and lessons.

    \b
    Examples:
      ralphdeck debug show dm-001-example
      ralphdeck debug show dm-001-example --json | jq .session.executions
    """
    from core.cli.json.debug import session_details
    from core.index.project_state import all_findings
    from core.show.pages.tasks import session_document

    state = open_project().view
    session = find_session(state, session_id)
    findings = tuple(finding for finding in all_findings(state) if finding.file == session.file)
    level = state.settings.interval_level
    if wants_json():
        print_object(
            debug_json.SessionDocument,
            findings=findings,
            session=session_details(session, state.snapshot, state.debug.fix_results, level),
        )
    else:
        print_document(session_document(state, session))
    end(findings)


def _list_similar(error_type: str, file_pattern: str, limit: int) -> None:
    """List the sessions with an error of this type, newest first."""
    state = open_project().view
    names = matching_spellings(state.debug.values(keys.ERROR_TYPE), error_type) or [error_type]
    found = {one.id: one for name in names for one in state.debug.find_similar(name, file_pattern, limit)}
    _remark_known(state.debug, keys.ERROR_TYPE, names[0], "error types")
    print_sessions(state, sorted(found.values(), key=newest_first)[:limit])


def _list_templates(category: str, min_effectiveness: float) -> None:
    """List the fix templates for a root cause."""
    from core.cli.json.debug import fix_template
    from core.index.project_state import all_findings

    state = open_project().view
    level = state.settings.interval_level
    found = report_fix_templates(state.debug, normalize_cause(category), min_effectiveness)
    columns = (
        Column("PATTERN", lambda one: one.pattern, least=20),
        Column("WORKS", lambda one: percent(one.effectiveness), right=True),
        Column("HELD", lambda one: _held(one.fixes), right=True, expendable=2),
        Column("INTERVAL", lambda one: _interval(one.fixes, level), expendable=1),
        Column("SESSIONS", lambda one: str(len(one.sessions)), right=True, expendable=3),
        Column("TEMPLATE", lambda one: one.fix_template, free=True),
    )

    if wants_json():
        print_object(
            debug_json.FixTemplateList,
            findings=all_findings(state),
            templates=(fix_template(one, level) for one in found),
        )
    else:
        if not found:
            _remark_known(state.debug, keys.CATEGORY, normalize_cause(category), "categories of patterns")
        print_table(columns, found, "no fix templates")
    end(all_findings(state))


def _remark_known(index: DebugIndex, key: str, word: str, what: str) -> None:
    """If no session has this word, print the known words, most frequent first."""
    counts = {name: len(index.find(key, name)) for name in index.values(key) if name}
    names = sorted(counts, key=lambda name: (-counts[name], name))
    if names and word not in counts:
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        remark(f"known {what}: {', '.join(name[:_MAX_NAME] for name in names[:MAX_NAMES])}{more}")


def _held(counts: FixCounts) -> str:
    return f"{counts.passed}/{counts.known}" if counts.known else ""


def _interval(counts: FixCounts, level: float) -> str:
    return "{:.2f}-{:.2f}".format(*counts.interval(level)) if counts.known else ""


def _list_escalated(since: datetime | None) -> None:
    """List the sessions that were escalated to a person, newest first."""
    from core.cli.json.debug import session_rows
    from core.index.project_state import all_findings

    state = open_project().view
    found = state.escalations(since)
    columns = (
        id_column("SESSION", lambda one: one.session.id),
        Column("SINCE", lambda one: minute(one.at)),
        Column("BY", lambda one: one.call.by if one.call is not None else "", expendable=3),
        Column("REASON", lambda one: one.reason, free=True),
        Column("CONTEXT", lambda one: one.call.file if one.call is not None else "", free=True, expendable=1),
        Column("FILE", lambda one: one.session.file_path, free=True, expendable=2),
    )
    if wants_json():
        print_object(
            debug_json.SessionList,
            findings=all_findings(state),
            sessions=session_rows([one.session for one in found], state.snapshot),
        )
    else:
        print_table(columns, found, "no debug sessions")
    end(all_findings(state))


def _list_causes(min_count: int) -> None:
    """List the most frequent root causes, and the tests that fail repeatedly."""
    from core.cli.json.debug import fix_rate
    from core.index.project_state import all_findings

    state = open_project().view
    level = state.settings.interval_level
    found, again = report_causes(state.debug), report_recurring_failures(state.debug, min_count)
    cause_columns = (
        Column("ROOT CAUSE", lambda one: one.category or f"no category: {one.root_cause or 'not recorded'}", least=20),
        Column("SESSIONS", lambda one: str(one.sessions), right=True),
        Column("PASSED", lambda one: str(one.passing), right=True, expendable=2),
        Column("FAILED", lambda one: str(one.failing), right=True, expendable=3),
        Column("FIXES HELD", lambda one: _held(one.fixes), right=True),
        Column("INTERVAL", lambda one: _interval(one.fixes, level), expendable=1),
        Column("WORKS", lambda one: percent(one.fixes.rate), right=True),
    )
    test_columns = (
        Column("FAILS REPEATEDLY", lambda one: one.test, free=True),
        Column("RUNS", lambda one: str(one.runs), right=True),
        Column("REPORTED", lambda one: str(one.recorded or ""), right=True),
        Column("NOW", lambda one: one.resolution.replace("_", " ")),
    )

    if wants_json():
        print_object(
            debug_json.CauseList,
            findings=all_findings(state),
            causes=(debug_json.RootCause.of(one, fixes=fix_rate(one.fixes, level)) for one in found),
            recurring=again,
        )
    else:
        print_table(cause_columns, found)
        print_table(test_columns, again)
        if not (found or again):
            remark("no root causes")
    end(all_findings(state))


@click.command(cls=DecidingCommand)
@click.option("--dry-run", is_flag=True, help="Print when each file expires, and archive nothing.")
@click.option("--restore", metavar="SESSION", help="Restore the file of this session; its retention time starts again.")
def archive(dry_run: bool, restore: str | None) -> None:
    """Archive the debug sessions whose retention time is over.

    The retention time is 30 days after the last change, 60 days if the session has lessons, and 90 days if it was
    escalated (settings `debug_memory`). The longest of these times applies; a session in progress is never archived.
    When all sessions of a file have expired, it is moved to archive/YEAR-MONTH/ of its debug-memory folder. Nothing is
    deleted: --restore moves a file back, and debug list --archived lists them. SESSION is the ID of the session or a
    prefix of it. If several files have the session, the file that was archived last is restored, and the others are
    listed.

    \b
    Examples:
      ralphdeck debug archive --dry-run
      ralphdeck debug archive
      ralphdeck debug archive --restore dm-001-example
    """
    from core.tasks.archive import DebugArchive

    if choose_mode({"--restore": "", "": "dry_run"}):
        _restore(restore or "")
        return
    settings, at = read_configuration().settings.debug_memory, now()
    archive = DebugArchive(chosen_project(), by=decider())
    if dry_run:
        plan = archive.plan(settings)
        files = (debug_json.RetentionFile.of(one, due=one.is_due(at)) for one in plan)
        if wants_json():
            print_object(debug_json.RetentionDocument, plan=files)
        else:
            _print_plan(plan, at)
        return
    moved, warnings = archive.archive_expired(settings, at)
    warn(*warnings)

    if wants_json():
        print_object(debug_json.ArchiveResult, moved=moved, warnings=warnings)
    else:
        for one in moved:
            line(f"archived {plural(len(one.sessions), 'session')}: {one.source} → {one.target}")
        if not moved and not warnings:
            remark("no debug session has expired")
        _remark_partly_due(archive.plan(settings), at)


def _print_plan(plan: Sequence[RetentionPlan], at: datetime) -> None:
    rows = [(one, period) for one in plan for period in one.periods]
    columns = (
        id_column("SESSION", lambda row: row[1].session_id),
        Column("STATUS", lambda row: row[1].status, expendable=1),
        Column("KEPT UNTIL", lambda row: "due" if row[1].is_expired(at) else day(row[1].until) or "always"),
        Column("RULE", lambda row: _rule(row[1]), expendable=2),
        Column("FILE", lambda row: row[0].file, free=True),
    )
    print_table(columns, rows)
    due = sum(one.is_due(at) for one in plan)
    remark(f"{plural(due, 'file')} would be archived" if due else "no debug session has expired")
    _remark_partly_due(plan, at)


def _remark_partly_due(plan: Sequence[RetentionPlan], at: datetime) -> None:
    for one in plan:
        if one.expired(at) and not one.is_due(at):
            count = len(one.expired(at))
            are = "is" if count == 1 else "are"
            remark(f"{one.file} stays: {count} of its {len(one.periods)} sessions {are} due, and files move as a whole")


def _rule(period: RetentionPeriod) -> str:
    from core.tasks.archive import UNDATED

    names = {IN_PROGRESS: "in progress", UNDATED: "not dated"}
    return names.get(period.rule, f"{period.rule} ({plural(period.days or 0, 'day')})")


def list_archived() -> None:
    """List the archived debug sessions, last archived first."""
    from core.tasks.archive import DebugArchive

    found = DebugArchive(chosen_project()).list_sessions()
    columns = (
        id_column("SESSION", lambda item: item.session.id),
        Column("STATUS", lambda item: item.session.status),
        Column("ARCHIVED", lambda item: day(item.at)),
        Column("BY", lambda item: item.by, expendable=1),
        Column("FILE", lambda item: item.file, free=True),
    )
    if wants_json():
        print_object(debug_json.ArchivedSessionList, findings=(), archived=found)
    else:
        print_table(columns, found, "no archived debug sessions")
    end(())


def _restore(session_id: str) -> None:
    """Restore the file of an archived session."""
    from core.tasks.archive import DebugArchive

    restored = DebugArchive(chosen_project(), by=decider()).restore(session_id, now())

    if wants_json():
        print_object(debug_json.RestoreResult, moved=[restored.moved], others=restored.others)
    else:
        line(f"restored {plural(len(restored.moved.sessions), 'session')}: {restored.moved.target}")
        for other in restored.others:
            is_blocked = other in restored.taken
            how = "another file has its place: move it by hand" if is_blocked else "restore again to get that file too"
            remark(f"{visible_line(restored.session_id, 80)} is in {other} too, which stays archived; {how}")
