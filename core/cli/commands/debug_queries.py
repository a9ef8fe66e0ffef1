"""`ralphdeck debug similar`, `templates`, `escalations` and `report_causes`: the queries of (4)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from core.cli.commands.debug import cause_word, tell_sessions
from core.cli.json.debug import cause_json, recurrence_json, template_json
from core.cli.json.shapes import json_help
from core.cli.render.output import Column, end, findings_json, minute, percent, print_json, print_table, remark
from core.cli.support.as_of import PastMoment
from core.cli.support.options import Count, Fraction, reading_options
from core.cli.support.project import open_deck
from core.debug_memory.effectiveness import FixCounts
from core.debug_memory.escalation_status import EscalatedSession
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
from core.debug_memory.reports import MIN_RUNS, report_fix_templates, report_recurring_failures
from core.debug_memory.reports import report_causes as root_causes
from core.state.findings import all_findings

MOST_NAMES: Final = 12
"""Words that are named where a query's own is not among them."""
_NAME: Final = 60


@click.command(epilog=json_help("debug similar"))
@click.argument("error_type", metavar="ERROR_TYPE")
@click.option(
    "--file",
    "file_pattern",
    default=ANY_FILE,
    metavar="LIKE",
    help="Only failures in such files: % any text, _ any character, A-Z as a-z.",
)
@click.option("--limit", type=Count(), default=MAX_SIMILAR, show_default=True, metavar="N", help="At most so many.")
@reading_options
def similar(error_type: str, file_pattern: str, limit: int, as_json: bool, strict: bool) -> None:
    """List the sessions in which an error of this type came up, whatever its case, newest first
    (find_similar_failures).

    \b
    Examples:
      ralphdeck debug similar TypeError
      ralphdeck debug similar TypeError --file "src/auth/%" --json
    """
    view = open_deck().view
    names = matching_spellings(view.debug.keys[ERROR_TYPE], error_type) or [error_type]
    told = {session.id: session for name in names for session in view.debug.find_similar(name, file_pattern, limit)}
    found = sorted(told.values(), key=newest_first)[:limit]
    if not as_json:
        _remark_known(names[0], view.debug.keys[ERROR_TYPE], "error types")
    tell_sessions(view, found, as_json=as_json, strict=strict)


@click.command(epilog=json_help("debug templates"))
@click.argument("category", metavar="CATEGORY")
@click.option(
    "--min-effectiveness",
    type=Fraction(),
    default=MIN_EFFECTIVENESS,
    show_default=True,
    help="Only templates that are said to work more often than that.",
)
@reading_options
def templates(category: str, min_effectiveness: float, as_json: bool, strict: bool) -> None:
    """List the fix templates for a root cause (get_fix_templates).

    WORKS is how often fixes held, counted over all sessions with the problem, failed ones included (HELD, with its
    90 % interval); where no result is known, what the newest session claims. --min-effectiveness compares with what
    sessions claim.

    \b
    Examples:
      ralphdeck debug templates null_undefined_access
      ralphdeck debug templates race_condition --min-effectiveness 0.5 --json
    """
    view = open_deck().view
    level = view.settings.interval_level
    found = report_fix_templates(view.debug, cause_word(category), min_effectiveness)
    if as_json:
        document = {"templates": [template_json(one, level) for one in found]}
        print_json({**document, "findings": findings_json(all_findings(view))})
    else:
        columns = (
            Column("PATTERN"),
            Column("WORKS", right=True),
            Column("HELD", right=True),
            Column("INTERVAL"),
            Column("SESSIONS", right=True),
            Column("TEMPLATE", free=True),
        )
        rows = (
            (
                one.pattern,
                percent(one.effectiveness),
                *_held(one.fixes, level),
                str(len(one.sessions)),
                one.fix_template,
            )
            for one in found
        )
        print_table(columns, rows)
        if not found:
            _remark_known(cause_word(category), view.debug.keys[CATEGORY], "categories of patterns")
            remark("no fix templates")
    end(all_findings(view), strict=strict)


def _remark_known(word: str, known: Postings, what: str) -> None:
    """Where no session has such a word: those that there are, most frequent first."""
    names = sorted(filter(None, known), key=lambda name: (-len(known[name]), name))
    if names and word not in known:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        remark(f"known {what}: {', '.join(name[:_NAME] for name in names[:MOST_NAMES])}{more}")


def _held(held: FixCounts, level: float) -> tuple[str, str]:
    low, high = held.interval(level)
    return (f"{held.passed}/{held.known}", f"{low:.2f}-{high:.2f}") if held.known else ("", "")


@click.command(epilog=json_help("debug escalations"))
@click.option(
    "--since",
    type=PastMoment(end_of_day=False),
    help="Only sessions escalated after this time, such as 2026-02-01 or 7d.",
)
@reading_options
def escalations(since: datetime | None, as_json: bool, strict: bool) -> None:
    """List the sessions that were escalated to a person, newest first (recent_escalations): by their status, or by
    debug escalate, until somebody answers in Review.

    \b
    Example:
      ralphdeck debug escalations --since 7d
    """
    view = open_deck().view
    found = view.escalations(since)
    if as_json:
        tell_sessions(view, [one.session for one in found], as_json=True, strict=strict)
        return
    columns = (
        Column("SESSION"),
        Column("SINCE"),
        Column("BY"),
        Column("REASON", free=True),
        Column("CONTEXT", free=True),
        Column("FILE", free=True),
    )
    print_table(columns, map(_escalation_cells, found))
    if not found:
        remark("no debug sessions")
    end(all_findings(view), strict=strict)


def _escalation_cells(one: EscalatedSession) -> tuple[str, ...]:
    by, context = (one.call.by, one.call.file) if one.call is not None else ("", "")
    return one.session.id, minute(one.at), by, one.reason, context, one.session.file_path


@click.command(epilog=json_help("debug causes"))
@click.option(
    "--least",
    type=Count(),
    default=MIN_RUNS,
    show_default=True,
    help="Tests that failed, or are said to have failed, so often.",
)
@reading_options
def causes(least: int, as_json: bool, strict: bool) -> None:
    """List the most frequent root causes over all sessions, and the tests that fail again and again.

    PASSED and FAILED are the sessions with such a cause that ended so; FIXES HELD is of the fixes of which it is
    known. RUNS are the runs on record in which a test failed. SAID is how often sessions say that it did, which may
    count runs that nobody kept, or be wrong: a test with fewer RUNS than --least is listed for what is SAID alone,
    below the others. NOW is what came of it.

    \b
    Example:
      ralphdeck debug causes
    """
    view = open_deck().view
    level = view.settings.interval_level
    found, again = root_causes(view.debug), report_recurring_failures(view.debug, least)
    if as_json:
        print_json(
            {
                "causes": [cause_json(cause, level) for cause in found],
                "recurring": [recurrence_json(one) for one in again],
                "findings": findings_json(all_findings(view)),
            }
        )
        end(all_findings(view), strict=strict)
        return
    columns = (
        Column("ROOT CAUSE"),
        Column("SESSIONS", right=True),
        Column("PASSED", right=True),
        Column("FAILED", right=True),
        Column("FIXES HELD", right=True),
        Column("INTERVAL"),
        Column("WORKS", right=True),
    )
    rows = (
        (
            cause.category or "not named",
            str(cause.sessions),
            str(cause.passing),
            str(cause.failing),
            *_held(cause.fixes, level),
            percent(cause.fixes.rate),
        )
        for cause in found
    )
    print_table(columns, rows)
    print_table(
        (Column("FAILS AGAIN", free=True), Column("RUNS", right=True), Column("SAID", right=True), Column("NOW")),
        ((one.test, str(one.runs), str(one.recorded or ""), one.resolution.replace("_", " ")) for one in again),
    )
    if not (found or again):
        remark("no root causes")
    end(all_findings(view), strict=strict)
