"""What is known of one debug session, as paragraphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from textual.content import Content

from core.base.text import plural, visible, visible_line
from core.debug_memory.escalation_status import escalation_reason, find_escalation
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix, Results
from core.state.project_state import ProjectState
from tui.present.glyphs import Glyphs, result_mark
from tui.present.layout import UNBROKEN, bullets, hanging, heading
from tui.present.memory import call_line, session_mark
from tui.present.numbers import ago, duration, moment_text, percent

MOST_TEXT_LINES: Final = 200
"""Lines of a stack trace, a diff or a file that are shown."""
MOST_TRACE: Final = 20_000
MOST_DIFF: Final = 64_000
MOST_CODE: Final = 64_000
"""Characters of any of them that are looked at."""
_PLAIN: Final = 3
"""What of an environment tells what it is without its name: runtime, version, framework."""
_HASH: Final = 13
"""Of a hash as many characters as tell it from the others of a session, and the sign that there are more."""
_DIFF_STYLES: Final = {"+": "$success", "-": "$error", "@": "$secondary"}
_INDENT: Final = " " * 14
"""Before what stands beside a label."""


def session_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """Its executions one after the other: results, what failed, why, and what was changed against it.

    Args:
        width: Cells there are.
    """
    lines = _head_lines(session, view, glyphs)
    homes = dict.fromkeys(filter(None, (session.loop_id, session.task_id)))
    if homes:
        lines.append(Content.styled("of " + ", ".join(visible_line(home, 100) for home in homes), "$quiet"))
    if not session.executions:
        lines += [Content(""), Content.styled("Nothing has been run in this session yet.", "$quiet")]
    befores = (None, *session.executions)  # longer by one, also where nothing has been run
    runs = zip(session.executions, befores, session.verdicts, strict=False)
    for number, (execution, before, held) in enumerate(runs, 1):
        lines += _execution_lines(execution, before, held, number, view, glyphs, width)
    return lines


def tried_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """What was tried, run by run: the result, the cause that was seen, and what came of the change."""
    lines = _head_lines(session, view, glyphs)
    for number, (execution, held) in enumerate(zip(session.executions, session.verdicts, strict=True), 1):
        lines += [Content(""), _run_line(execution, number, view, glyphs)]
        if execution.analysis is not None:
            lines += _cause_lines(execution.analysis, width)
        if execution.fix is not None:
            lines += _fix_lines(replace(execution.fix, diff=""), held, glyphs, width)
    return lines


def failing_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """What failed in the last run in which anything did, in full, and why; then what the session learned."""
    execution = session.newest_failing
    if execution is None:
        lines = [Content.styled("No run tells what failed.", "$quiet")]
    else:
        failures = [line for failure in execution.failures for line in _failure_lines(failure, glyphs, width)]
        lines = failures + (_analysis_lines(execution.analysis, width) if execution.analysis is not None else [])
    return [*lines, Content(""), *learned_lines(session, view, glyphs, width)]


def _head_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """What was worked on, how it stands, and why a person should look."""
    now = view.now
    changed = session.changed_at
    waiting, call = find_escalation(session, view.snapshot), view.snapshot.escalations.get(session.id)
    lines = [
        Content.styled(visible_line(session.file_path or session.id, 500), "bold"),
        Content.assemble(
            session_mark(session, glyphs, escalated=waiting is not None),
            (f"   began {moment_text(session.created_at, now)}" if session.created_at else "", "$quiet"),
            (f"   changed {ago(changed, now)}" if changed else "", "$quiet"),
            (f"   by {visible_line(session.agent, 60)}" if session.agent else "", "$quiet"),
            (f"   iteration {session.iteration}" if session.iteration is not None else "", "$quiet"),
        ),
    ]
    if waiting is not None:
        reason = visible_line(escalation_reason(session, call), 1000)
        lines.append(Content.assemble(("Wants a person: ", "$warning bold"), reason))
    if call is not None:
        lines.append(call_line(call, now))
    return lines


def _run_line(execution: Execution, number: int, view: ProjectState, glyphs: Glyphs) -> Content:
    label = execution.attempt if execution.attempt is not None else number
    return Content.assemble(
        (f"Run {label}", "bold"),
        "   ",
        results_line(execution.results, glyphs),
        (f"   {moment_text(execution.at, view.now)}" if execution.at else "", "$quiet"),
    )


def _execution_lines(
    execution: Execution,
    before: Execution | None,
    held: bool | None,
    number: int,
    view: ProjectState,
    glyphs: Glyphs,
    width: int,
) -> list[Content]:
    environment = " ".join(visible_line(value, 40) for _, value in execution.environment[:_PLAIN])
    run = _run_line(execution, number, view, glyphs)
    lines = [Content(""), Content.assemble(run, (f"   {environment}" if environment else "", "$quiet"))]
    more = [f"{visible_line(name, 60)} {visible_line(value, 200)}" for name, value in execution.environment[_PLAIN:]]
    more += [f"code {visible_line(execution.code_hash, _HASH)}"] if execution.code_hash else []
    if more:
        same = execution.code_hash and before is not None and before.code_hash == execution.code_hash
        told = Content.assemble((", ".join(more), "$quiet"), (" as in the run before" if same else "", "$warning"))
        lines += _told("with", told, width)
    code_lines = _text_lines(execution.code, MOST_CODE)
    lines += [Content.styled(f"{_INDENT}{line}", "$quiet") for line in _bounded(code_lines)]
    for failure in execution.failures:
        lines += _failure_lines(failure, glyphs, width)
    if execution.analysis is not None:
        lines += _analysis_lines(execution.analysis, width)
    if execution.fix is not None:
        lines += _fix_lines(execution.fix, held, glyphs, width)
    return lines


def results_line(results: Results | None, glyphs: Glyphs) -> Content:
    """How many tests passed and failed, and how much of the code they reached."""
    if results is None:
        return Content.styled("no result", "$quiet")
    counts = []
    if results.passed is not None:
        counts.append(
            f"{results.passed:,}" + (f" of {results.total:,}" if results.total is not None else "") + " passed"
        )
    errors = "error" if results.errors == 1 else "errors"
    for count, word in ((results.failed, "failed"), (results.errors, errors), (results.skipped, "skipped")):
        if count:
            counts.append(f"{count:,} {word}")
    return Content.assemble(
        result_mark(results.green, glyphs),
        " ",
        ", ".join(counts) or "no counts",
        (f"   coverage {percent(results.coverage)}" if results.coverage is not None else "", "$secondary"),
        (f"   took {duration(results.duration_ms / 1000)}" if results.duration_ms is not None else "", "$quiet"),
    )


def _failure_lines(failure: Failure, glyphs: Glyphs, width: int) -> list[Content]:
    """Type, message and place of a failure; then what was expected, and the trace."""
    lines = [
        Content.assemble(
            (f"  {glyphs.failed} ", "$error"),
            (visible_line(failure.error_type, 80), "$error"),
            ("  " if failure.error_type else "", ""),
            visible_line(failure.message, 2000) or ("" if failure.error_type else "a failure without a message"),
        )
    ]
    place = visible_line(failure.file, 300) + (f":{failure.line}" if failure.line is not None else "")
    where = [f"in {visible_line(failure.function, 100)}" if failure.function else "", place]
    test = visible_line(failure.test_name, 300)
    if failure.test_file:
        test += f"  ({visible_line(failure.test_file, 300)}{f':{failure.test_line}' if failure.test_line else ''})"
    if any(where):
        lines += _told("place", Content("  ".join(filter(None, reversed(where)))), width)
    if test:
        lines += _told("test", Content(test), width)
    for label, text in (("expected", failure.expected), ("actual", failure.actual)):
        if text:
            lines += _told(label, Content(visible_line(text, 1000)), width)
    trace = _bounded(_text_lines(failure.stack_trace, MOST_TRACE))
    return lines + [Content.styled(f"{_INDENT}{line}", "$quiet") for line in trace]


def _told(label: str, text: Content, width: int) -> list[Content]:
    """A label in a column of its own, and displayable text beside it."""
    return hanging(Content.styled(f"    {label:<{len(_INDENT) - 4}}", "$quiet"), text, width)


def _cause_lines(analysis: Analysis, width: int) -> list[Content]:
    if not (analysis.root_cause or analysis.category):
        return []
    category = visible_line(analysis.category, 60)
    sure = f"   {percent(analysis.confidence)} sure" if analysis.confidence is not None else ""
    cause = Content.assemble(
        (f"{category}  " if category else "", "$warning"), visible_line(analysis.root_cause, 2000), (sure, "$quiet")
    )
    return _told("cause", cause, width)


def _analysis_lines(analysis: Analysis, width: int) -> list[Content]:
    lines = _cause_lines(analysis, width)
    if analysis.strategy:
        lines += _told("strategy", Content(visible_line(analysis.strategy, 2000)), width)
    for related in analysis.related:
        lines += _told("related", Content.styled(visible_line(related, 300), "$quiet"), width)
    for past in analysis.similar:
        words = "  ".join(visible_line(word, 300) for word in (past.session_id, past.file, past.resolution) if word)
        lines += _told("similar", Content.styled(words, "$quiet"), width)
    return lines


def _fix_lines(fix: Fix, held: bool | None, glyphs: Glyphs, width: int) -> list[Content]:
    what = Content.assemble(
        _result(fix.verified, held, glyphs),
        f"  {visible_line(fix.description, 2000)}",
        (f"   {visible_line(fix.diff_summary, 80)}" if fix.diff_summary else "", "$quiet"),
    )
    lines = _told("fix", what, width)
    if fix.files:
        lines += _told("", Content.styled(visible_line(", ".join(fix.files), 1000), "$quiet"), width)
    if fix.diff:
        lines += [line.pad_left(len(_INDENT)) for line in diff_lines(_text_lines(fix.diff, MOST_DIFF))]
    return lines


def _text_lines(text: str, most: int) -> list[str]:
    return visible(text, most).strip("\n").split("\n") if text else []


def _bounded(lines: Sequence[str]) -> list[str]:
    """The first lines of a text, and how many more there are."""
    more = len(lines) - MOST_TEXT_LINES
    return [*lines[:MOST_TEXT_LINES], *([f"and {plural(more, 'line')} more"] if more > 0 else [])]


def _result(verified: bool | None, held: bool | None, glyphs: Glyphs) -> Content:
    """Glyph and word for the result of a fix: as verified, else as the runs after it show."""
    if held is None:
        return Content.styled(f"{glyphs.waiting} not verified", "$quiet")
    if held:
        return Content.styled(f"{glyphs.done} {'verified' if verified else 'helped, not verified'}", "$success")
    return Content.styled(f"{glyphs.failed} did not help", "$error")


def diff_lines(lines: Sequence[str]) -> list[Content]:
    """Lines of a diff, displayable already: coloured by their signs, which stay."""
    return [Content.styled(line, _DIFF_STYLES.get(line[:1], "$quiet")) for line in _bounded(lines)]


def learned_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """What the session learned: patterns with their templates, what came again, what is still wrong, what to do."""
    lines: list[Content] = []
    if session.lessons:
        lines += heading("Patterns")
        for lesson in session.lessons:
            held = view.debug.fix_results.of_pattern(lesson.category, lesson.pattern).text
            claimed = f"claimed {percent(lesson.effectiveness)}" if lesson.effectiveness is not None else ""
            works = "".join(f"   {text}" for text in (held, claimed) if text)
            lines.append(
                Content.assemble(
                    f"  {visible_line(lesson.pattern, 200)}",
                    (f"   {visible_line(lesson.category, 60)}" if lesson.category else "", "$warning"),
                    (f"   seen {plural(lesson.frequency, 'time')}" if lesson.frequency is not None else "", "$quiet"),
                    (works, "$secondary"),
                )
            )
            if lesson.fix_template:
                lines.append(Content.assemble(("    fix  ", "$quiet"), visible_line(lesson.fix_template, 1000)))
    if session.recurring:
        lines += heading("Came again")
        for recurring in session.recurring:
            resolution = visible_line(recurring.resolution.replace("_", " "), 30)
            times = f"   {plural(recurring.occurrences, 'time')}" if recurring.occurrences is not None else ""
            lines.append(
                Content.assemble(
                    f"  {visible_line(recurring.test, 300)}",
                    (times, "$quiet"),
                    (f"   {resolution}", "$secondary"),
                    (f"   {visible_line(recurring.notes, 500)}" if recurring.notes else "", "$quiet"),
                )
            )
    if session.issues:
        lines += heading("Quality of the code")
        for issue in session.issues:
            mark = glyphs.done if issue.addressed else glyphs.full
            lines.append(
                Content.assemble(
                    (f"  {mark} ", "$success" if issue.addressed else "$quiet"),
                    (f"{visible_line(issue.severity, 20)}  " if issue.severity else "", "$warning"),
                    visible_line(issue.issue, 500),
                    (f"   {visible_line(issue.location, 200)}" if issue.location else "", "$quiet"),
                )
            )
    if session.recommendations:
        lines += [*heading("Recommended"), *bullets(glyphs.arrow, "$accent", session.recommendations, width)]
    return lines[1:] or [Content.styled("This session has written down nothing that it learned.", "$quiet")]
