"""`ralphdeck debug show`: one debug session, with every field of (4) that it fills in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from core.base.text import plural, visible, visible_line
from core.cli.render.output import line, minute, percent
from core.debug_memory.escalation_status import find_escalation
from core.records.debug_sessions import ESCALATED, Analysis, DebugSession, Execution, Failure, Fix, Results
from core.records.times import minute_of
from core.review.messages import call_text

if TYPE_CHECKING:
    from core.debug_memory.effectiveness import FixResults
    from core.records.snapshot import Snapshot
    from core.state.project_state import ProjectState

MOST_LINES: Final = 60
"""Lines of a stack trace, a diff or a file that are printed; `--json` has all."""
MOST_SHOWN: Final = 512
"""Characters of an id or a path that are printed."""
_VERIFIED: Final = {True: "verified", False: "did not help", None: "not verified"}
_DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


STATUS_COLOURS: Final = {"passed": "green", "failed": "red", "escalated": "yellow", "in progress": "cyan"}


def print_session(session: DebugSession, view: ProjectState) -> None:
    snapshot = view.snapshot
    status = status_word(session, snapshot) or "unknown"
    path = visible_line(session.file_path, MOST_SHOWN)
    line((visible_line(session.id, MOST_SHOWN), "bold"), "  ", (status, STATUS_COLOURS.get(status, "")), f"  {path}")
    line(f"  {', '.join(_about(session))}")
    line(f"  {session.file}{f' {session.pointer}' if session.pointer else ''}")
    if (call := snapshot.escalations.get(session.id)) is not None:
        line(("escalated ", "bold"), f"{minute_of(call.at)} UTC  {call_text(call)}")
        for known in (call, *reversed(call.earlier)):
            line(f"  context kept in {known.file}")
    for number, (run, held) in enumerate(zip(session.executions, session.verdicts, strict=True), 1):
        _print_run(run, number, held)
    _print_learned(session, view.debug.fix_results)


def _about(session: DebugSession) -> Iterator[str]:
    """When it was worked on, and for what."""
    if session.created_at is not None:
        yield f"began {minute_of(session.created_at)} UTC"
    yield f"changed {minute_of(session.changed_at)} UTC" if session.changed_at is not None else "not dated"
    if session.loop_id:
        yield session.loop_id
    if session.task_id not in ("", session.loop_id):
        yield f"task {session.task_id}"
    if session.iteration is not None:
        yield f"iteration {session.iteration}"
    if session.agent:
        yield f"by {session.agent}"


def _print_run(run: Execution, number: int, held: bool | None) -> None:
    told = ", ".join(_counts(run.results)) if run.results is not None else ""
    at = f"  {minute(run.at)} UTC" if run.at is not None else ""
    label = run.attempt if run.attempt is not None else number
    line(("run ", "bold"), f"{label}{f': {told}' if told else ''}{at}")
    if run.environment:
        line(f"    environment: {', '.join(f'{name} {value}' for name, value in run.environment)}")
    if run.code_hash:
        line(f"    code: {run.code_hash}")
    _print_text(run.code)
    for failure in run.failures:
        _print_failure(failure)
    if run.analysis is not None:
        _print_analysis(run.analysis)
    if run.fix is not None:
        _print_fix(run.fix, held)


def _counts(results: Results) -> Iterator[str]:
    if results.passed is not None:
        yield (
            f"{results.passed} of {results.total} tests pass"
            if results.total is not None
            else (plural(results.passed, "test passes", "tests pass"))
        )
    elif results.total is not None:
        yield plural(results.total, "test")
    if results.failed:
        yield f"{results.failed} failed"
    if results.errors:
        yield plural(results.errors, "error")
    if results.skipped:
        yield f"{results.skipped} skipped"
    if results.coverage is not None:
        yield f"coverage {percent(results.coverage)}"
    if results.duration_ms is not None:
        yield f"took {results.duration_ms / 1000:,.1f} s"


def _print_failure(failure: Failure) -> None:
    where = f"{failure.file}:{failure.line}" if failure.line is not None else failure.file
    if failure.function:
        where += f" in {failure.function}"
    error = f"{failure.error_type}: {failure.message}".strip(": ") or "a failure without a message"
    line(("  ✗ ", "red"), f"{error}  {where}".rstrip())
    place = f"{failure.test_file}:{failure.test_line}" if failure.test_line is not None else failure.test_file
    if failure.test_name or place:
        line(f"      test: {failure.test_name}{f' ({place})' if place else ''}")
    for label, text in (("expected", failure.expected), ("actual", failure.actual)):
        if text:
            line(f"      {label}: {text}")
    _print_text(failure.stack_trace)


def _print_analysis(analysis: Analysis) -> None:
    sure = f" ({percent(analysis.confidence)} sure)" if analysis.confidence is not None else ""
    cause = "  ".join(filter(None, (analysis.category, analysis.root_cause)))
    if cause:
        line(f"    cause: {cause}{sure}")
    if analysis.strategy:
        line(f"    strategy: {analysis.strategy}")
    for related in analysis.related:
        line(f"    related: {related}")
    for past in analysis.similar:
        line(f"    similar: {'  '.join(filter(None, (past.session_id, past.file, past.resolution)))}")


def _print_fix(fix: Fix, held: bool | None) -> None:
    verified = _VERIFIED[fix.verified]
    if fix.verified is None and held is not None:
        verified += ", but it helped" if held else ", and it did not help"
    what = "  ".join(filter(None, (fix.description, fix.diff_summary)))
    line(f"    fix: {what} ({verified})")
    if fix.files:
        line(f"    changed: {', '.join(fix.files)}")
    _print_text(fix.diff, coloured=True)


def _print_text(text: str, *, coloured: bool = False) -> None:
    """Some lines of a longer text; `coloured`: as those of a diff."""
    # Secrets of several lines can only be seen in the whole.
    lines = visible(text).strip("\n").split("\n") if text.strip() else []
    for one in lines[:MOST_LINES]:
        line("        ", (one, _DIFF_COLOURS.get(one[:1], "") if coloured else ""))
    if len(lines) > MOST_LINES:
        line(f"        and {plural(len(lines) - MOST_LINES, 'line')} more: --json")


def _print_learned(session: DebugSession, results: FixResults) -> None:
    for lesson in session.lessons:
        seen = plural(lesson.frequency, "time") if lesson.frequency is not None else ""
        claimed = f"claimed {percent(lesson.effectiveness)}" if lesson.effectiveness is not None else ""
        known = ", ".join(filter(None, (seen, results.of_pattern(lesson.category, lesson.pattern).text, claimed)))
        category = f" [{lesson.category}]" if lesson.category not in ("", lesson.pattern) else ""
        template = f": {lesson.fix_template}" if lesson.fix_template else ""
        line(("learned ", "bold"), f"{lesson.pattern}{category}{f' ({known})' if known else ''}{template}")
    for one in session.recurring:
        times = plural(one.occurrences, "time") if one.occurrences is not None else ""
        told = ", ".join(filter(None, (times, one.resolution.replace("_", " "), one.notes)))
        line(("recurs ", "bold"), f"{one.test}{f': {told}' if told else ''}")
    for issue in session.issues:
        addressed = {True: "addressed", False: "not addressed", None: ""}[issue.addressed]
        told = ", ".join(filter(None, (issue.severity, issue.location, addressed)))
        line(("quality ", "bold"), f"{issue.issue}{f' ({told})' if told else ''}")
    for text in session.recommendations:
        line(("recommended ", "bold"), text)


def status_word(session: DebugSession, snapshot: Snapshot) -> str:
    """The status of a session for people: escalated ones first."""
    return (session.status if find_escalation(session, snapshot) is None else ESCALATED).replace("_", " ")
