"""`ralphdeck debug similar`, `templates`, `escalations` and `causes`."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from core.cli.commands.debug import normalize_cause, print_sessions
from core.cli.json import objects
from core.cli.json.debug import fix_template, recurring_test, root_cause, sessions_document
from core.cli.render.output import Column, id_column, minute, percent, print_table, remark, respond
from core.cli.support.as_of import PastMoment
from core.cli.support.options import Count, Fraction, ReadingCommand
from core.cli.support.project import open_project
from core.debug_memory.effectiveness import FixCounts
from core.debug_memory.index import (
    ANY_FILE,
    CATEGORY,
    ERROR_TYPE,
    MAX_SIMILAR,
    MIN_EFFECTIVENESS,
    Postings,
    matching_spellings,
    newest_first,
)
from core.debug_memory.reports import MIN_RUNS, report_causes, report_fix_templates, report_recurring_failures
from core.state.findings import all_findings

MAX_NAMES: Final = 12
"""Known words that are listed if the query has an unknown one."""
_MAX_NAME: Final = 60


@click.command(cls=ReadingCommand)
@click.argument("error_type", metavar="ERROR_TYPE")
@click.option(
    "--file",
    "file_pattern",
    default=ANY_FILE,
    metavar="LIKE",
    help="Only failures in such files: % is any text, _ any character; case is ignored.",
)
@click.option("--limit", type=Count(), default=MAX_SIMILAR, show_default=True, metavar="N", help="At most N sessions.")
def similar(error_type: str, file_pattern: str, limit: int) -> None:
    """List the sessions with an error of this type, in any case, newest first (find_similar_failures).

    \b
    Examples:
      ralphdeck debug similar TypeError
      ralphdeck debug similar TypeError --file "src/auth/%" --json
    """
    state = open_project().view
    names = matching_spellings(state.debug.keys[ERROR_TYPE], error_type) or [error_type]
    found = {one.id: one for name in names for one in state.debug.find_similar(name, file_pattern, limit)}
    _remark_known(names[0], state.debug.keys[ERROR_TYPE], "error types")
    print_sessions(state, sorted(found.values(), key=newest_first)[:limit])


@click.command(cls=ReadingCommand)
@click.argument("category", metavar="CATEGORY")
@click.option(
    "--min-effectiveness",
    type=Fraction(),
    default=MIN_EFFECTIVENESS,
    show_default=True,
    help="Only templates with a reported success rate above this.",
)
def templates(category: str, min_effectiveness: float) -> None:
    """List the fix templates for a root cause (get_fix_templates).

    WORKS is the success rate of the fixes over all sessions with the problem, failed ones included (HELD, with its 90 %
    interval), or the rate that the newest session reports if no result is known. --min-effectiveness filters by the
    rates that sessions report.

    \b
    Examples:
      ralphdeck debug templates null_undefined_access
      ralphdeck debug templates race_condition --min-effectiveness 0.5 --json
    """
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

    def show() -> None:
        if not found:
            _remark_known(normalize_cause(category), state.debug.keys[CATEGORY], "categories of patterns")
        print_table(columns, found, "no fix templates")

    respond(
        lambda: objects.FixTemplateList.of(
            templates=[fix_template(one, level) for one in found], findings=all_findings(state)
        ),
        show,
        all_findings(state),
    )


def _remark_known(word: str, known: Postings, what: str) -> None:
    """Print the known words, most frequent first, if no session has this word."""
    names = sorted(filter(None, known), key=lambda name: (-len(known[name]), name))
    if names and word not in known:
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        remark(f"known {what}: {', '.join(name[:_MAX_NAME] for name in names[:MAX_NAMES])}{more}")


def _held(counts: FixCounts) -> str:
    return f"{counts.passed}/{counts.known}" if counts.known else ""


def _interval(counts: FixCounts, level: float) -> str:
    return "{:.2f}-{:.2f}".format(*counts.interval(level)) if counts.known else ""


@click.command(cls=ReadingCommand)
@click.option(
    "--since",
    type=PastMoment(end_of_day=False),
    help="Only sessions escalated after this time, such as 2026-02-01 or 7d.",
)
def escalations(since: datetime | None) -> None:
    """List the sessions that were escalated to a person, newest first (recent_escalations): by their status, or by
    debug escalate, until a person acknowledges them in Review.

    \b
    Example:
      ralphdeck debug escalations --since 7d
    """
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
    respond(
        lambda: sessions_document([one.session for one in found], state.snapshot, all_findings(state)),
        lambda: print_table(columns, found, "no debug sessions"),
        all_findings(state),
    )


@click.command(cls=ReadingCommand)
@click.option(
    "--min-count",
    "--least",
    "min_count",
    type=Count(),
    default=MIN_RUNS,
    show_default=True,
    help="Minimum number of failures of a test, recorded or reported.",
)
def causes(min_count: int) -> None:
    """List the most frequent root causes over all sessions, and the tests that fail repeatedly.

    PASSED and FAILED are the sessions with this cause by their result; FIXES HELD counts fixes with a known result.
    RUNS are the recorded runs in which a test failed. REPORTED is the number that sessions report, which may include
    unsaved runs or be wrong; tests with too few RUNS are listed last, by this number alone. NOW is the resolution.

    \b
    Example:
      ralphdeck debug causes
    """
    state = open_project().view
    level = state.settings.interval_level
    found, again = report_causes(state.debug), report_recurring_failures(state.debug, min_count)
    cause_columns = (
        Column("ROOT CAUSE", lambda one: one.category or "not named", least=20),
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

    def show() -> None:
        print_table(cause_columns, found)
        print_table(test_columns, again)
        if not (found or again):
            remark("no root causes")

    respond(
        lambda: objects.CauseList.of(
            causes=[root_cause(one, level) for one in found],
            recurring=list(map(recurring_test, again)),
            findings=all_findings(state),
        ),
        show,
        all_findings(state),
    )
