"""Details of the groups of Memory: escalations, retries with reflections, root causes and fixes."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.debug_memory.index import CAUSE, FixResults
from core.documents.debug_sessions import escalation_line, results_text
from core.episodes.loop_links import Coverage
from core.episodes.success_metrics import AttemptGroup, Improvement
from core.records.debug_sessions import DebugSession, Lesson
from core.state.project_state import ProjectState
from tui.present.document import document_lines, hanging, heading, inline
from tui.present.glyphs import Glyphs
from tui.present.memory import path_end
from tui.present.numbers import ago, interval_bar, percent

MAX_LOOPS: Final = 6
INTERVAL_CELLS: Final = 11
MAX_CAUSES: Final = 12
MAX_TEMPLATES: Final = 20
MAX_BAR_CELLS: Final = 40
_NAME_CELLS: Final = 24
_COUNT_CELLS: Final = 40
"""Cells of the session count and the fix results of a root cause."""


def escalation_lines(view: ProjectState, glyphs: Glyphs, width: int) -> list[Content]:
    """Return each escalation: file, age, reason, and the last run."""
    lines = [Content.styled("Needs a human: the agents of these sessions are blocked.", "bold")]
    for one in view.escalations():
        lines += [
            Content(""),
            Content.assemble(
                (path_end(one.session.file_path or one.session.id), "$secondary"),
                (f"   {ago(one.at, view.now)}", "$warning"),
            ),
            *hanging(Content("  "), Content(visible_line(one.reason, 1000)), width),
            *_last_run(one.session, view, glyphs, width),
        ]
        if one.call is not None:
            lines += document_lines([escalation_line(one.call)], view.now, glyphs, width)
    return lines


def _last_run(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int) -> list[Content]:
    """Return the number of runs, the last result and its root cause."""
    if not session.executions:
        return []
    last = session.executions[-1]
    runs = Content.styled(f"{plural(len(session.executions), 'run')}, last  ", "$quiet")
    lines = hanging(Content("  "), Content.assemble(runs, inline(results_text(last.results), view.now, glyphs)), width)
    if last.analysis is not None and last.analysis.root_cause:
        cause = Content.assemble(
            (f"{visible_line(last.analysis.category, 60)}  ", "$warning"),
            (visible_line(last.analysis.root_cause, 1000), "$quiet"),
        )
        lines += hanging(Content("  "), cause, width)
    return lines


def improvement_lines(found: Improvement, glyphs: Glyphs) -> list[Content]:
    """Return whether retries with reflections succeed more often."""
    lines = [Content.styled("Do reflections help retries?", "bold")]
    for label, group in (
        ("first attempts", found.first),
        ("retries with reflections", found.reflected),
        ("retries without", found.unreflected),
    ):
        lines.append(_group_line(label, group, glyphs))
    for label, comparison in (
        ("without reflections", found.against_unreflected),
        ("first attempts", found.against_first),
    ):
        if comparison.having.attempts:
            style = "" if comparison.is_conclusive else "$quiet"
            lines.append(Content.assemble((f"  compared with {label}: ", "$quiet"), (comparison.verdict, style)))
    if found.open or found.unclear:
        left = (
            f"{plural(len(found.open), 'open attempt')} and {len(found.unclear):,} without a clear outcome not counted"
        )
        lines.append(Content.styled(f"  {left}", "$quiet"))
    return lines


def without_tasks(covered: Coverage) -> list[Content]:
    """Return an introduction where no task is recorded: the purpose, and the loops without a task."""
    about = "A task records each attempt: its plan, its outcome, and the lessons from it."
    begin = "Create one from a loop: ralphdeck task init --loop LOOP"
    return [Content.styled(about, "$quiet"), Content.styled(begin, "$quiet"), *coverage_lines(covered)]


def coverage_lines(covered: Coverage) -> list[Content]:
    """Return how many loops have a task here, and which have none."""
    if not covered.loops:
        return []
    lines = heading("Loops with a task", percent(covered.share))
    lines.append(Content(f"  {len(covered.tracked):,} of {plural(covered.loops, 'loop')}"))
    for label, ids in (("only in the cross-task memory", covered.remembered), ("missing", covered.missing)):
        if ids:
            more = f", and {len(ids) - MAX_LOOPS:,} more" if len(ids) > MAX_LOOPS else ""
            named = ", ".join(visible_line(loop_id, 80) for loop_id in ids[:MAX_LOOPS])
            lines.append(Content.styled(f"  {label}, {len(ids):,}: {named}{more}", "$quiet"))
    return lines


def _group_line(label: str, group: AttemptGroup, glyphs: Glyphs) -> Content:
    if not group.attempts:
        return Content.assemble(f"  {label:<26}", ("none yet", "$quiet"))
    return Content.assemble(
        f"  {label:<26}",
        f"{percent(group.rate):>6}  ",
        (interval_bar(group.low, group.high, group.rate, INTERVAL_CELLS, glyphs), "$secondary"),
        (f"  {group.successes:,} of {group.attempts:,}", "$quiet"),
    )


def cause_lines(view: ProjectState, glyphs: Glyphs, width: int) -> list[Content]:
    """Return the most frequent root causes as bars, with the success of their fixes."""
    index = view.debug
    counts = sorted(
        ((len(ids), cause) for cause, ids in index.keys[CAUSE].items() if cause), key=lambda one: (-one[0], one[1])
    )
    lines = [Content.styled("Most frequent root causes", "bold")]
    if not counts:
        lines.append(Content.styled("No session records a root cause category.", "$quiet"))
    room = max(min(width - _NAME_CELLS - _COUNT_CELLS, MAX_BAR_CELLS), 1)
    for count, cause in counts[:MAX_CAUSES]:
        name = visible_line(cause, _NAME_CELLS)
        described = ", ".join(filter(None, (plural(count, "session"), index.fix_results.of_cause(cause).text)))
        drawn = glyphs.full * max(round(room * count / counts[0][0]), 1)
        lines.append(Content.assemble(f"{name:<{_NAME_CELLS}} ", (drawn, "$accent"), (f" {described}", "$quiet")))
    return lines


def template_lines(view: ProjectState, width: int) -> list[Content]:
    """Return each fix template once, the most effective first."""
    results = view.debug.fix_results
    found: dict[tuple[str, str], Lesson] = {}
    for session in view.debug.sessions.values():
        for lesson in session.lessons:
            known = found.get((lesson.category, lesson.fix_template))
            if lesson.fix_template and (
                known is None or _effectiveness(known, results) < _effectiveness(lesson, results)
            ):
                found[lesson.category, lesson.fix_template] = lesson
    if not found:
        return []
    lines = heading("Fix templates", "success rate over all sessions")
    best = sorted(found.values(), key=lambda one: (-_effectiveness(one, results), one.category, one.fix_template))
    for lesson in best[:MAX_TEMPLATES]:
        held = results.of_pattern(lesson.category, lesson.pattern)
        template = Content.assemble(
            visible_line(lesson.fix_template, 300),
            (f"   {visible_line(lesson.category or lesson.pattern, 60)}", "$quiet"),
            (f"   {held.text or 'claimed'}", "$quiet"),
        )
        lines += hanging(
            Content.styled(f"{percent(results.effectiveness(lesson)):>6}  ", "$secondary"), template, width
        )
    return lines


def _effectiveness(lesson: Lesson, results: FixResults) -> float:
    rate = results.effectiveness(lesson)
    return -1.0 if rate is None else rate
