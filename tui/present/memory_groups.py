"""Details of the groups on the Memory screen: escalations, retries, root causes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.documents.debug_sessions import escalation_line, results_text
from core.documents.document import Block, Line, Moment, line, section
from core.index.debug_sessions import CAUSE
from tui.present.document import Drawable, hanging, heading
from tui.present.memory import path_end
from tui.present.numbers import interval_bar, percent

if TYPE_CHECKING:
    from core.episodes.loop_links import Coverage
    from core.episodes.success_metrics import AttemptGroup, RetryImprovement
    from core.records.debug_sessions import DebugSession, Lesson
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Glyphs

MAX_LOOPS: Final = 6
INTERVAL_CELLS: Final = 11
MAX_CAUSES: Final = 12
MAX_TEMPLATES: Final = 20
MAX_BAR_CELLS: Final = 40
_NAME_CELLS: Final = 24
_COUNT_CELLS: Final = 40  # Cells of the session count and the fix results of a root cause.


def escalations(view: ProjectState) -> Iterable[Block]:
    """Describe each escalation: file, age, reason, and the last run."""
    yield line(("Needs a human: the agents of these sessions are blocked.", "strong"))
    for one in view.escalations():
        path = path_end(one.session.file_path or one.session.id)
        yield line("")
        yield line((path, "name"), ("   ", "warning"), Moment(one.at, "warning", is_age=True))
        yield line(one.reason, indent=2)
        yield from _last_run(one.session)
        if one.call is not None:
            yield escalation_line(one.call)


def _last_run(session: DebugSession) -> Iterable[Line]:
    if not session.executions:
        return
    last = session.executions[-1]
    yield line((f"{plural(len(session.executions), 'run')}, last  ", "quiet"), *results_text(last.results), indent=2)
    if last.analysis is not None and last.analysis.root_cause:
        yield line((f"{last.analysis.category}  ", "warning"), (last.analysis.root_cause, "quiet"), indent=2)


def improvement(found: RetryImprovement, glyphs: Glyphs) -> Iterable[Drawable]:
    """Describe whether retries with reflections succeed more often."""
    yield line(("Do reflections help retries?", "strong"))
    yield _group_line("first attempts", found.first, glyphs)
    yield _group_line("retries with reflections", found.reflected, glyphs)
    yield _group_line("retries without", found.unreflected, glyphs)
    comparisons = {"without reflections": found.against_unreflected, "first attempts": found.against_first}
    for label, comparison in comparisons.items():
        if comparison.having.attempts:
            style = "" if comparison.is_conclusive else "quiet"
            yield line((f"  compared with {label}: ", "quiet"), (comparison.verdict, style))
    if found.open or found.unclear:
        unclear = f"{len(found.unclear):,} without a clear outcome not counted"
        yield line((f"  {plural(len(found.open), 'open attempt')} and {unclear}", "quiet"))


def _group_line(label: str, group: AttemptGroup, glyphs: Glyphs) -> Content:
    if not group.attempts:
        return Content.assemble(f"  {label:<26}", ("none yet", "$quiet"))
    return Content.assemble(
        f"  {label:<26}{percent(group.rate):>6}  ",
        (interval_bar(group.low, group.high, group.rate, INTERVAL_CELLS, glyphs), "$secondary"),
        (f"  {group.successes:,} of {group.attempts:,}", "$quiet"),
    )


def without_tasks(covered: Coverage) -> Iterable[Block]:
    """Explain the purpose of tasks if none is recorded, and list loops without one."""
    yield line(("A task records each attempt: its plan, its outcome, and the lessons from it.", "quiet"))
    yield line(("The sessions of a connected agent become tasks.", "quiet"))
    yield line(("For a loop: ralphdeck task init --loop LOOP", "quiet"))
    yield from coverage(covered)


def coverage(covered: Coverage) -> Iterable[Block]:
    """Describe the number of loops with a task, and list those without one."""
    if not covered.loops:
        return
    lines = [line(f"  {len(covered.tracked):,} of {plural(covered.loops, 'loop')}")]
    for label, ids in (("only in the cross-task memory", covered.remembered), ("missing", covered.missing)):
        if ids:
            more = f", and {len(ids) - MAX_LOOPS:,} more" if len(ids) > MAX_LOOPS else ""
            lines.append(line((f"  {label}, {len(ids):,}: {', '.join(ids[:MAX_LOOPS])}{more}", "quiet")))
    yield from section("Loops with a task", lines, percent(covered.share))


def cause_lines(view: ProjectState, glyphs: Glyphs, width: int) -> list[Content]:
    """Return bars of the most frequent root causes, with the success of their fixes."""
    index = view.debug
    found = [(len(ids), cause) for cause, ids in index.keys[CAUSE].items() if cause]
    counts = sorted(found, key=lambda one: (-one[0], one[1]))
    lines = [Content.styled("Most frequent root causes", "bold")]
    lines += [Content.styled("No session records a root cause category.", "$quiet")] * (not counts)
    room = max(min(width - _NAME_CELLS - _COUNT_CELLS, MAX_BAR_CELLS), 1)
    for count, cause in counts[:MAX_CAUSES]:
        name = visible_line(cause, _NAME_CELLS)
        described = ", ".join(filter(None, (plural(count, "session"), index.fix_results.of_cause(cause).text)))
        drawn = glyphs.full * max(round(room * count / counts[0][0]), 1)
        lines.append(Content.assemble(f"{name:<{_NAME_CELLS}} ", (drawn, "$accent"), (f" {described}", "$quiet")))
    return lines


def template_lines(view: ProjectState, width: int) -> list[Content]:
    """List the distinct fix templates, the most effective first."""
    results = view.debug.fix_results

    def effectiveness(lesson: Lesson) -> float:
        rate = results.effectiveness(lesson)
        return -1.0 if rate is None else rate

    lessons = [one for session in view.debug.sessions.values() for one in session.lessons if one.fix_template]
    lessons.sort(key=lambda one: (-effectiveness(one), one.category, one.fix_template))
    best: dict[tuple[str, str], Lesson] = {}
    for lesson in lessons:
        best.setdefault((lesson.category, lesson.fix_template), lesson)
    lines = heading("Fix templates", "success rate over all sessions") if best else []
    for lesson in list(best.values())[:MAX_TEMPLATES]:
        held = results.of_lesson(lesson).text or "claimed"
        about = (f"   {visible_line(lesson.category or lesson.pattern, 60)}   {held}", "$quiet")
        rate = Content.styled(f"{percent(results.effectiveness(lesson)):>6}  ", "$secondary")
        lines += hanging(rate, Content.assemble(visible_line(lesson.fix_template, 300), about), width)
    return lines
