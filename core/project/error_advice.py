"""Effects of debug failure, success, escalation (docs/task-memory.md#hooks).

`on_failure` collects and renders known fixes for new errors, for commands, agents' hooks and the MCP server. An agent
reads the result, so every text in it is one line of limited length that cannot pass for a heading or a conversation
role (docs/safety.md). `on_success` writes the uses of patterns to the event log and the registry, and the lessons to
the session's file. `on_escalation` writes the context of the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import Conflict, Refused, Unwritable
from core.base.prompt_text import NO_BLOCKS, Blocks, escape_inline, escape_quoted
from core.base.scanning.verdict import (
    find_combined_harm,
    find_completed_harm,
    find_harm_when_cut,
    render_if_safe,
    withhold_combined_harm,
)
from core.base.text import safe_matcher
from core.decisions.case import Decided
from core.decisions.commands import Extract
from core.decisions.use_counts import CountResult
from core.index.project_state import ledger_error
from core.learning.evidence import round_half_up
from core.learning.maturity import Assessment
from core.questions.extraction.material import Materials
from core.questions.extraction.recorded_work import is_error_of
from core.records.debug_sessions import PASSED, DebugSession, Failure, Lesson
from core.records.events import Event, event_id
from core.records.extractions import Extraction
from core.records.patterns import Pattern, PatternType
from core.retrieval.relevance import FOUND_IN, list_places, matches_failure, measure_relevance
from core.retrieval.rendering import join_parts, render_patterns
from core.retrieval.task import analyse_task
from core.tasks.debug_index import ANY_FILE, FixTemplate, fix_key, report_fix_templates
from core.tasks.error_messages import generalize_message
from core.tasks.escalations import preserve_context
from core.tasks.known_fixes import (
    KnownFix,
    LessonUpdate,
    check_success,
    collect_lessons,
    find_known_fixes,
    parse_error,
    write_lessons,
)

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.project.project import Project

MAX_PATTERNS: Final = 5  # patterns of the registry that are offered
MAX_TEMPLATES: Final = 5
MAX_FAILED: Final = 3  # fixes of one session that did not help, besides the offered one
MAX_ERRORS: Final = 10  # distinct errors that are looked up
MAX_NAMED: Final = 20  # maximum number of errors, with different names in their messages, that patterns are tested with
TITLE: Final = "## Known Fixes"
SIMILAR: Final = "### Similar Past Issues"
SAME_TYPE: Final = "### Other Messages, Same Error Type"
FAILED_TITLE: Final = "## Did Not Help"
INTRODUCTION: Final = "From earlier debug sessions about similar errors:"
_VERDICTS: Final = {True: "verified", None: "not verified"}


class Advice(Struct, frozen=True, kw_only=True):
    """Known fixes, fix templates and patterns for some errors."""

    errors: tuple[Failure, ...]  # the distinct errors, with the type and file from their messages
    fixes: tuple[KnownFix, ...] = ()
    failed: tuple[KnownFix, ...] = ()  # those that did not help
    with_failed: bool = True  # whether the text lists fixes that did not help
    templates: tuple[FixTemplate, ...] = ()  # fix templates for the root causes of these sessions
    patterns: tuple[tuple[Pattern, Assessment], ...] = ()  # those whose signature matches a message, best first
    blocks: Blocks = NO_BLOCKS  # all of it as texts for an agent
    text: str = ""  # the same with fences; "" if nothing is known


def on_failure(
    state: ProjectState,
    *errors: Failure,
    file_pattern: str = ANY_FILE,
    session: DebugSession | None = None,
    most: int | None = None,
    only_same: bool = False,
) -> Advice:
    """Find known fixes, fix templates and error patterns for new errors.

    Each error has a type, a message, and the file if known. A missing type is read from a message such as `TypeError: x
    is null`; without a type only messages are compared. Only failures in files that match `file_pattern` (syntax of
    LIKE in SQLite) count. `session` is the ID of the session with these errors; its own fixes are not offered. `most`
    is for a short answer to an agent: the maximum number of fixes and of patterns, without fix templates and without
    fixes that did not help. `only_same` leaves out the fixes of errors that are only similar, sessions that know only
    the error, and patterns without a trigger. The fix of an attempt from which a pattern was extracted is never
    offered: the pattern is, unless a review decides against it.

    Raises BadInput if the file pattern is too long, and Refused if the decisions cannot be read, because the patterns
    in quarantine are then unknown.
    """
    if ledger_error(state):
        raise Refused(f"no fixes are offered because the decisions cannot be read: {ledger_error(state)}")
    parsed = tuple({(one.error_type, one.message, one.file): one for one in map(parse_error, errors)}.values())
    alike = {(one.error_type, generalize_message(one.message), one.file): one for one in reversed(parsed)}
    found = tuple(reversed(alike.values()))[:MAX_ERRORS]
    matches = tuple(
        fix
        for fix in find_known_fixes(state.debug, found, file_pattern, session)
        if not _has_pattern(state, fix) and (not only_same or (fix.is_same_error and fix.has_advice))
    )
    fixes = tuple(fix for fix in matches if fix.worked is not False)
    failed = tuple(fix for fix in matches if fix.worked is False)
    run = session.newest_failing if session is not None else None
    own = [run.analysis.category] if run is not None and run.analysis is not None else []
    categories = dict.fromkeys([*own, *(name for name, _ in Counter(fix.category for fix in matches).most_common())])
    listed = {fix_key(fix.fix) for fix in matches}
    templates = tuple(
        template
        for category in categories
        if category
        for template in report_fix_templates(state.debug, category)
        if not template.is_doubtful and fix_key(template.fix_template) not in listed
    )[:MAX_TEMPLATES]
    patterns = {
        pattern.id: (pattern, assessed)
        for error in parsed[:MAX_NAMED]
        for pattern, assessed in _match(state, error, only_triggers=only_same)
    }
    best = sorted(patterns.values(), key=lambda item: (-item[1].score, item[0].id))[:MAX_PATTERNS]
    advice = Advice(errors=found, fixes=fixes, failed=failed, templates=templates, patterns=tuple(best))
    if most is not None:
        advice = replace(
            advice, fixes=fixes[:most], failed=(), with_failed=False, templates=(), patterns=advice.patterns[:most]
        )
    blocks = _render(advice, state)
    return replace(advice, blocks=blocks, text=blocks.fenced(blocks.choose_token()))


def hold_out(state: ProjectState, advice: Advice, held_out: Collection[str]) -> Advice:
    """Return the advice without the `held_out` patterns and fixes of their errors."""
    patterns = [pattern for pattern, _ in advice.patterns if pattern.id in held_out]
    if not patterns:
        return advice
    fixes = tuple(fix for fix in advice.fixes if not any(is_error_of(one, fix.failure) for one in patterns))
    kept = tuple(item for item in advice.patterns if item[0].id not in held_out)
    advice = replace(advice, fixes=fixes, patterns=kept)
    blocks = _render(advice, state)
    return replace(advice, blocks=blocks, text=blocks.fenced(blocks.choose_token()))


def _has_pattern(state: ProjectState, fix: KnownFix) -> bool:
    """Return whether a pattern was extracted from the work of a fix, for its error."""
    session, tasks = fix.session, state.snapshot.tasks
    if not session.attempt_id:
        return False
    task = tasks.get(session.task_id)
    names = {session.attempt_id, session.task_id, session.id, task.loop_id if task is not None else ""} - {""}
    message = f"{fix.failure.error_type}: {fix.failure.message}"
    index, patterns = state.index, state.snapshot.patterns
    lists = (index.terms.get(FOUND_IN, name) for name in names)
    ids = (index.ids[row] for rows in lists if rows is not None for row in rows.tolist())
    return any(safe_matcher(patterns[id].error_pattern).matches(message) for id in ids)


def _match(state: ProjectState, error: Failure, *, only_triggers: bool) -> list[tuple[Pattern, Assessment]]:
    """Return the injectable error patterns that match the message, best first.

    A pattern without a trigger matches the message that it was made from, unless `only_triggers`.
    """
    patterns, board, settings = state.snapshot.patterns, state.board, state.settings.injection
    places = " ".join(list_places(error))
    text = f"{error.error_type}: {error.message}" if error.error_type else error.message
    if not error.message or not (settings.enabled and settings.include_error_patterns):
        return []
    found = measure_relevance(analyse_task(f"{text}\n{places}"), state.index, patterns, defers_regexes=True)
    items = []
    for row in found.rows.tolist():
        pattern = patterns.get(state.index.ids[row])
        if pattern is None or pattern.type is not PatternType.ERROR or pattern.id not in board:
            continue
        matches = matches_failure(pattern, error) if only_triggers else is_error_of(pattern, error)
        assessment = board.assessment(pattern.id)
        if matches and assessment.injectable and not state.has_low_rate(pattern.id):
            items.append((pattern, assessment))
    return sorted(items, key=lambda item: (-item[1].score, item[0].id))[:MAX_PATTERNS]


def _render(advice: Advice, state: ProjectState) -> Blocks:
    limit, orders = state.settings.injection.max_field_chars, state.settings.scan.holds_other_texts
    blocks = []
    for heading, is_similar in ((SIMILAR, True), (SAME_TYPE, False)):
        if fixes := [fix for fix in advice.fixes if fix.is_similar is is_similar]:
            blocks.append(_section(heading, [_fix_lines(fix, limit, orders) for fix in fixes]))
    if advice.templates:
        blocks.append(_section("### Fix Templates", [_template_lines(one, limit, orders) for one in advice.templates]))
    parts = [TITLE, INTRODUCTION, *blocks] if blocks else []
    if advice.with_failed and (tried := _failed_items(advice, limit, orders)):
        parts += [_section(f"{FAILED_TITLE}\n\n{INTRODUCTION}", tried)]
    text = "\n\n".join(parts) + "\n"
    fixes_text = withhold_combined_harm(text, orders=orders) if parts else ""
    items: list[tuple[Pattern, Assessment]] = []
    chosen = NO_BLOCKS
    for item in advice.patterns:
        more = [*items, item]
        longer = render_patterns(more, state.settings.injection)
        stops = state.board.stops_orders(item[0].id)
        is_harmful = find_harm_when_cut(item[0], limit, orders=stops) or find_combined_harm(
            longer.fenced(), (one for one, _ in more), orders=stops
        )
        is_harmful = is_harmful or find_completed_harm(fixes_text, longer.approved, orders=stops)
        if not (is_harmful or find_completed_harm(longer.unreviewed, fixes_text, orders=stops)):
            items, chosen = more, longer
    return Blocks(chosen.approved, join_parts(fixes_text, chosen.unreviewed))


def _section(heading: str, items: Sequence[list[str]]) -> str:
    lines = [heading]
    for number, (head, *rest) in enumerate(items, 1):
        lines += ["", f"{number}. {head}", *(f"   - {line}" for line in rest)]
    return "\n".join(lines)


def _failed_items(advice: Advice, limit: int, orders: bool) -> list[list[str]]:
    """Return the fixes that did not help, each once, with the error and the session."""
    tried: dict[str, tuple[str, KnownFix]] = {}
    for fix in (*advice.failed, *advice.fixes):
        own = (fix.fix,) if fix.worked is False else ()
        for text in (*own, *fix.failed[:MAX_FAILED]):
            tried.setdefault(fix_key(text), (text, fix))
    helped = {fix_key(fix.fix) for fix in advice.fixes if fix.worked}
    shown = partial(escape_inline, limit=limit)
    items = []
    for key, (text, fix) in tried.items():
        if key and key not in helped:
            failure = fix.failure
            error = f"{failure.error_type}: {failure.message}" if failure.error_type else failure.message
            quoted = render_if_safe(error, partial(escape_quoted, limit=limit), happened=True, orders=orders)
            session = render_if_safe(fix.session.id, shown, orders=orders)
            items.append([render_if_safe(text, shown, orders=orders), f"Error: {quoted}", f"Session: {session}"])
    return items


def _fix_lines(fix: KnownFix, limit: int, orders: bool) -> list[str]:
    failure = fix.failure
    withhold = partial(render_if_safe, orders=orders)
    shown = partial(escape_inline, limit=limit)
    file = withhold(failure.file or fix.session.file_path, shown, happened=True)
    name = withhold(failure.error_type or "Error", partial(_bold, limit=limit), happened=True)
    lines = [name + (f" in {file}" if file else "")]
    if failure.message:
        lines.append(f"Error: {withhold(failure.message, partial(escape_quoted, limit=limit), happened=True)}")
    if fix.cause:
        lines.append(f"Cause: {withhold(fix.cause, shown, happened=True)}")
    if fix.fix:
        overall = f"; {fix.results.text} over all sessions" if fix.results.known > 1 else ""
        lines.append(f"Fix: {withhold(fix.fix, shown)} ({_VERDICTS[fix.worked or None]}{overall})")
    elif fix.strategy:
        lines.append(f"Strategy: {withhold(fix.strategy, shown)}")
    others = f", the best match of {fix.times:,} with the same fix" if fix.times > 1 else ""
    return [*lines, f"Session: {withhold(fix.session.id, shown)}{others}"]


def _bold(text: str, limit: int) -> str:
    # A single asterisk or backslash at either end would end the bold text.
    escaped = text.replace("\\", "\\\\").replace("*", "\\*")
    return f"**{escape_inline(escaped, limit)}**"


def _template_lines(template: FixTemplate, limit: int, orders: bool) -> list[str]:
    withhold = partial(render_if_safe, orders=orders)
    works = template.fixes.text or f"recorded to work in {round_half_up(max(template.recorded) * 100)} %"
    lines = [f"{withhold(template.pattern, partial(_bold, limit=limit))} ({works})"]
    if template.fix_template:
        lines.append(f"Template: {withhold(template.fix_template, partial(escape_inline, limit=limit))}")
    return lines


class SuccessResult(Struct, frozen=True, kw_only=True):
    """Changes that `on_success` made or would make."""

    session_id: str
    file: str
    work_id: str  # the loop or attempt for which the uses of patterns are recorded
    applied: tuple[str, ...]  # IDs of the patterns that helped
    learned: LessonUpdate
    counted: tuple[CountResult, ...] = ()  # changes of the records of these patterns
    extraction: Extraction | None = None  # patterns that the session offers; None if extraction is disabled
    decided: Decided | None = None  # the decision that added them to the registry; None if there was nothing new
    warnings: tuple[str, ...] = ()  # steps that failed, one line each


def on_success(
    project: Project, session_id: str, applied: Sequence[str] = (), *, dry_run: bool = False
) -> SuccessResult:
    """Record which patterns helped, write lessons, and extract patterns.

    New patterns are added to the registry and get a review question. A second call changes nothing. `applied` has the
    IDs of the registry patterns that helped. With `dry_run`, nothing is written, and the result is what would be done.

    Raises UnknownRecord if the session or a pattern does not exist, Refused if the session did not succeed, and
    Unwritable if the event log cannot be written. In each case nothing is done.
    """
    state = project.view
    session = state.debug_session(session_id)
    check_success(session)
    patterns = tuple(dict.fromkeys(state.pattern(id).id for id in applied))
    work_id = _work_id(state, session)
    found = collect_lessons(session, state.debug)
    counted: list[CountResult] = []
    warnings: list[str] = []
    if patterns and not dry_run:
        now = project.now()
        uses = (
            Event(
                id=event_id(now),
                at=now,
                kind="applied",
                pattern_id=id,
                loop_id=work_id,
                success=True,
                iteration=session.iteration,
                by=project.by,
                agent=project.agent or session.agent,
            )
            for id in patterns
        )
        project.record(*uses, counted=counted, warnings=warnings)
    learned = _write_lessons(project, session, found, dry_run=dry_run)
    if not dry_run:
        project.apply((project.project.project / session.file,))
    result = SuccessResult(
        session_id=session.id,
        file=session.file,
        work_id=work_id,
        applied=patterns,
        learned=learned,
        counted=tuple(counted),
        warnings=tuple(warnings),
    )
    return _extract(project, result, dry_run=dry_run)


def _write_lessons(project: Project, session: DebugSession, found: Sequence[Lesson], *, dry_run: bool) -> LessonUpdate:
    try:
        return write_lessons(project.project, session, found, project.settings.watch.retry_seconds, dry_run=dry_run)
    except (Conflict, Unwritable) as error:
        return LessonUpdate(lessons=tuple(found), problem=str(error))


def write_task_lessons(project: Project, task_id: str) -> None:
    """Write the lessons of sessions made from the successful attempts at a task."""
    for session in list(project.view.snapshot.debug_sessions.values()):
        if session.task_id == task_id and session.attempt_id and session.status == PASSED:
            lessons = collect_lessons(session, project.view.debug)
            if _write_lessons(project, session, lessons, dry_run=False).changed:
                project.apply((project.project.project / session.file,))


def _extract(project: Project, result: SuccessResult, *, dry_run: bool) -> SuccessResult:
    try:
        extraction = project.extraction(result.session_id)
    except Refused as error:
        return replace(result, warnings=(*result.warnings, str(error)))
    if dry_run or not (extraction.new or extraction.merges):
        return replace(result, extraction=extraction)
    try:
        decided = project.decide(
            Extract(result.session_id, unattended=True, reason=f"from debug session {result.session_id}")
        )
    except Refused as error:
        # Of two concurrent calls the later one finds that the earlier one has added the patterns.
        extraction = project.extraction(result.session_id)
        remaining = (str(error),) if extraction.new or extraction.merges else ()
        return replace(result, extraction=extraction, warnings=(*result.warnings, *remaining))
    return replace(result, extraction=extraction, decided=decided)


def _work_id(state: ProjectState, session: DebugSession) -> str:
    loop = state.snapshot.find_loop(session.loop_id)
    if loop is not None:
        return loop.id
    tasks = {session.task_id, session.loop_id} - {""}
    attempts = (one for one in state.snapshot.attempts.values() if one.task_id in tasks)
    newest = max(attempts, key=lambda one: one.number, default=None)
    return newest.id if newest is not None else session.loop_id or session.id


class EscalationCall(Struct, frozen=True, kw_only=True):
    """Call for human help, and the file with the preserved context of the session."""

    session_id: str
    file: Path


def on_escalation(project: Project, session_id: str, *, reason: str = "") -> EscalationCall:
    """Preserve the context of a session and add a review question about it.

    Each call writes its own file. If the last escalation of the session was acknowledged, the question is asked again.
    Raises UnknownRecord if the session does not exist, Refused if it has too many calls, Unwritable if the context
    cannot be written.
    """
    session = project.view.debug_session(session_id)
    snapshot = project.view.snapshot
    loop = snapshot.find_loop(session.loop_id)
    material = (
        Materials(project.project, snapshot, project.adapters.details).read(loop.id) if loop is not None else None
    )
    file = preserve_context(
        project.project, snapshot, session, material, now=project.now(), by=project.by, reason=reason
    )
    project.apply((file,))
    return EscalationCall(session_id=session.id, file=file)
