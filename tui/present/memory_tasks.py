"""Details of tasks and attempts: blocks and charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural
from core.documents import loops, tasks
from core.documents.document import Block, Moment, Section, Text, fields, items, line, section
from core.documents.reflections import head, template
from core.documents.signs import attempt_sign, task_sign
from tui.present.chart import Run, line_chart
from tui.present.document import Drawable, heading
from tui.present.glyphs import Glyphs, draw

if TYPE_CHECKING:
    from core.documents.tasks import ConditionOf
    from core.episodes.attempt_state import AttemptCondition
    from core.episodes.history import AttemptDetail
    from core.records.episodes import Attempt, Task
    from core.records.loops import Loop
    from core.records.reflections import Reflection
    from core.state.project_state import ProjectState

CHART_LINES: Final = {36: 9, 22: 7, 12: 5, 0: 3}
"""Height of a chart by the minimum height of its pane; odd, so that 50 % has a line."""
MAX_CHART_CELLS: Final = 110
SHORT: Final = 12  # Height of a pane below which nothing is separated by empty lines.
_ROOMY: Final = 18  # Minimum height of a pane for a full chart of an attempt.
TALL: Final = 32  # Minimum height of a pane for an overview that includes the other tabs.
MAX_ATTEMPTS: Final = 20
MAX_LEARNINGS: Final = 12
MAX_ACTIONS: Final = 40
_FEW_ACTIONS: Final = 8
_LOADING: Final = line(("loading…", "quiet"))


def chart_lines(height: int) -> int:
    """Return the number of lines of a chart in a pane of `height` lines."""
    return next(lines for least, lines in CHART_LINES.items() if height >= least)


def task_overview(
    task: Task, attempts: Sequence[Attempt], condition: ConditionOf, glyphs: Glyphs, width: int, height: int = SHORT
) -> Iterable[Drawable]:
    """Describe the task, with a chart of its quality and its attempts."""
    sign = task_sign(task, condition(attempts[-1]).state if attempts else None)
    differs = task.raw_status and task.raw_status.lower() != sign.text
    yield line((task.description or "no description", "strong"))
    yield line(
        sign,
        (f"  (file: {task.raw_status})", "quiet") if differs else None,
        *_dated("created", task.created_at),
        *_dated("ended", task.completed_at),
        (f"   by {task.agent}", "quiet") if task.agent else None,
    )
    if not attempts:
        yield line("")
        yield line((f"No attempts yet: ralphdeck task start {task.id}", "quiet"))
        return
    runs = []
    for attempt in attempts:
        if attempt.quality:
            glyph = draw(attempt_sign(attempt, condition(attempt)), glyphs)[:1]
            label = Content.assemble((f"{attempt.number} ", "$secondary"), glyph)
            runs.append(Run([entry.quality for entry in attempt.quality], label))
    chart = line_chart(runs, min(width, MAX_CHART_CELLS), chart_lines(height), glyphs)
    if chart:
        retries = line(*tasks.retry_text(attempts))
        parts: list[Drawable] = [*chart, retries] if height < SHORT else [*heading("Quality"), retries, *chart]
        yield from parts
    yield line("")
    yield from tasks.attempt_table(attempts, condition, MAX_ATTEMPTS)
    if (left := len(attempts) - MAX_ATTEMPTS) > 0:
        yield line((f"      {plural(left, 'earlier attempt')} not shown", "quiet"))


def _dated(word: str, at: datetime | None) -> Text:
    return ((f"   {word} ", "quiet"), Moment(at)) if at else ()


def task_notes(task: Task, reflections: Sequence[Reflection], *, beside: bool) -> Iterable[Block]:
    """Describe lessons and completion criteria; `beside`: in a pane of its own."""
    known = [one for one in reflections if one.text]
    rows: list[Text] = []
    for one in known[:MAX_LEARNINGS]:
        number = (f"{one.attempt if one.attempt is not None else '':>4}  ", "name")
        rows.append((number, ("draft  " if one.draft else "", "warning"), one.text))
    yield from section("Lessons so far", items("", rows), plural(len(known), "reflection"))
    if beside and not rows:
        yield _no_reflection("task")
    if about := list(fields(*tasks.about_rows(task))):
        yield line("")
        yield from about


def loop_tab(loop: Loop | None, how: str, view: ProjectState) -> Iterable[Block]:
    """Describe the loop that belongs to a task, and `how` it was found."""
    if loop is None:
        return [line(("No known loop belongs to this task; its metadata can name one as loop_id.", "quiet"))]
    return [line((f"This loop, because {how}.", "quiet")), *loops.overview(view, loop, None)]


def reflection_blocks(reflections: Sequence[Reflection], *, of_task: bool) -> Iterable[Block]:
    """Describe reflections on an attempt or a task, newest first."""
    for n, one in enumerate(reflections):
        if n:
            yield line("")
        yield head(one, f"attempt {one.attempt}" if of_task and one.attempt is not None else "")
        yield from template(one)
    if not reflections:
        yield _no_reflection("task" if of_task else "attempt")


def _no_reflection(noun: str) -> Block:
    return line((f"No reflection on this {noun} yet: ralphdeck task reflect", "quiet"))


def attempt_overview(
    attempt: Attempt, task: Task, condition: AttemptCondition, glyphs: Glyphs, width: int, height: int = SHORT
) -> Iterable[Drawable]:
    """Describe outcome, plan, facts, quality, and what worked."""
    facts: Iterable[Drawable] = tasks.attempt_facts(attempt, task)
    chart: Iterable[Drawable] = quality_lines(attempt, glyphs, width, height)
    yield tasks.attempt_head(attempt, condition)
    for part in (chart, facts) if height < SHORT else (facts, chart):
        yield from part
    yield from tasks.attempt_notes(attempt)


def quality_lines(attempt: Attempt, glyphs: Glyphs, width: int, height: int = SHORT) -> list[Content]:
    """Return a chart of the quality by iteration, and its changes, or []."""
    if not attempt.quality:
        return []
    ticks = [str(place if one.iteration is None else one.iteration) for place, one in enumerate(attempt.quality, 1)]
    run = Run([entry.quality for entry in attempt.quality], Content(""), ticks=ticks)
    is_roomy = height >= _ROOMY
    lines = heading("Quality", "by iteration") if is_roomy else []
    lines += line_chart([run], min(width, MAX_CHART_CELLS), chart_lines(height if is_roomy else 0), glyphs)
    styles = {1: "$success", -1: "$error", 0: "$quiet"}
    changes = [(one.change, one.delta or 0) for one in attempt.quality if one.change]
    if changes:
        parts = [(f" {change}", styles[(delta > 0) - (delta < 0)]) for change, delta in changes]
        row = Content.assemble(("change ", "$quiet"), *parts, (" points", "$quiet"))
        lines.append(row.truncate(width, ellipsis=True))
    return lines


def plan(attempt: Attempt, detail: AttemptDetail | None) -> Iterable[Block]:
    """Describe the recorded plan and its steps."""
    if detail is None:
        return [_LOADING]
    blocks = [*([] if detail.plan_text else fields(("Plan", attempt.plan))), *tasks.plan_blocks(attempt, detail)]
    return blocks or [line(("No plan recorded for this attempt.", "quiet"))]


def last_actions(detail: AttemptDetail | None, key: str, limit: int = MAX_ACTIONS) -> Iterable[Block]:
    """Describe the newest actions, newest first; `key` plays them."""
    if detail is None:
        return [_LOADING]
    count, errors = len(detail.actions), len(detail.actions.errors)
    if not count:
        return [line(("No action recorded in this attempt.", "quiet"))]
    first = line(f"{plural(count, 'action')}, {plural(errors, 'error')}", (f"   {key}: replay", "quiet"))
    return [first, *(line(*tasks.action_text(action)) for action in reversed(detail.actions[-limit:]))]


def overview_end(detail: AttemptDetail | None, reflections: Sequence[Reflection] | None, key: str) -> Iterable[Block]:
    """Describe the reflections (omitted if None), then the last actions."""
    if reflections is not None:
        yield Section("Reflections", tuple(reflection_blocks(reflections, of_task=False)))
    yield Section("Last actions", tuple(last_actions(detail, key, _FEW_ACTIONS)))
