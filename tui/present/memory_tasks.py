"""Tasks and attempts as details."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from textual.content import Content

from core.base.text import plural
from core.documents import loops, tasks
from core.documents.document import Block, Moment, Text, fields, items, line, section
from core.documents.reflections import answers, head
from core.documents.signs import attempt_sign, task_sign
from core.documents.tasks import ConditionOf
from core.episodes.attempt_state import AttemptCondition
from core.episodes.history import AttemptDetail
from core.records.episodes import Attempt, Task
from core.records.loops import Loop
from core.records.reflections import Reflection
from core.state.project_state import ProjectState
from tui.present.chart import Run, line_chart
from tui.present.document import document_lines, heading, inline
from tui.present.glyphs import ASCII, Glyphs, draw

CHART_LINES: Final = {36: 9, 22: 7, 12: 5, 0: 3}
"""Height of a chart by the minimum height of its pane; odd, so that 50 % has a line."""
MAX_CHART_CELLS: Final = 110
SHORT: Final = 12
"""Height of a pane below which nothing is separated by empty lines."""
_ROOMY: Final = 18
"""Minimum height of a pane for a full chart of an attempt."""
TALL: Final = 32
"""Minimum height of a pane for an overview that includes the other tabs."""
MAX_ATTEMPTS: Final = 20
MAX_LEARNINGS: Final = 12
MAX_ACTIONS: Final = 40
_FEW_ACTIONS: Final = 8


def chart_lines(height: int) -> int:
    """Return the height of a chart in a pane of `height` lines."""
    return next(lines for least, lines in CHART_LINES.items() if height >= least)


def task_lines(
    task: Task,
    attempts: Sequence[Attempt],
    condition: ConditionOf,
    view: ProjectState,
    glyphs: Glyphs,
    width: int,
    height: int = SHORT,
) -> list[Content]:
    """Return the task, a chart of its quality, and a table of its attempts.

    Args:
        attempts: All, by number.
        width, height: Size of the pane, in cells and lines.
    """
    sign = task_sign(task, condition(attempts[-1]).state if attempts else None)
    differs = task.raw_status and task.raw_status.lower() != sign.text
    blocks: list[Block] = [
        line((task.description or "no description", "strong")),
        line(
            sign,
            (f"  (file: {task.raw_status})", "quiet") if differs else None,
            *_dated("created", task.created_at),
            *_dated("ended", task.completed_at),
            (f"   by {task.agent}", "quiet") if task.agent else None,
        ),
    ]
    if not attempts:
        start = f"No attempts yet: ralphdeck task start {task.id}"
        return document_lines([*blocks, line(""), line((start, "quiet"))], view.now, glyphs, width)
    runs = []
    for attempt in attempts:
        if attempt.quality:
            glyph = draw(attempt_sign(attempt, condition(attempt)), glyphs)[:1]
            label = Content.assemble((f"{attempt.number} ", "$secondary"), glyph)
            runs.append(Run([entry.quality for entry in attempt.quality], label))
    chart = line_chart(runs, min(width, MAX_CHART_CELLS), chart_lines(height), glyphs)
    if chart:
        retries = inline(tasks.retry_text(attempts), view.now, glyphs)
        chart = [*chart, retries] if height < SHORT else [*heading("Quality"), retries, *chart]
    table = tasks.attempt_table(attempts, condition, MAX_ATTEMPTS)
    lines = [*document_lines(blocks, view.now, glyphs, width), *chart, Content("")]
    lines += document_lines(table, view.now, glyphs, width)
    if (left := len(attempts) - MAX_ATTEMPTS) > 0:
        lines.append(Content.styled(f"      {plural(left, 'earlier attempt')} not shown", "$quiet"))
    return lines


def _dated(word: str, at: datetime | None) -> Text:
    return ((f"   {word} ", "quiet"), Moment(at)) if at else ()


def task_notes(
    task: Task, reflections: Sequence[Reflection], view: ProjectState, width: int, *, beside: bool
) -> list[Content]:
    """Return the lessons of all attempts and the completion criteria.

    Args:
        beside: Whether they have a pane of their own, which is never empty.
    """
    known = [one for one in reflections if one.text]
    rows: list[Text] = [
        (
            (f"{one.attempt if one.attempt is not None else '':>4}  ", "name"),
            ("draft  " if one.draft else "", "warning"),
            one.text,
        )
        for one in known[:MAX_LEARNINGS]
    ]
    blocks: list[Block] = [*section("Lessons so far", items("", rows), plural(len(known), "reflection"))]
    if beside and not blocks:
        blocks.append(_no_reflection("task"))
    blocks += [line(""), *about] if (about := list(fields(*tasks.about_rows(task)))) else []
    lines = document_lines(blocks, view.now, ASCII, width)
    return lines[1:] if beside and rows else lines


def loop_tab(loop: Loop | None, how: str, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """Return the loop that belongs to a task, and `how` it was found."""
    if loop is None:
        unknown = "No known loop belongs to this task; its metadata can name one as loop_id."
        blocks: list[Block] = [line((unknown, "quiet"))]
    else:
        blocks = [line((f"This loop, because {how}.", "quiet")), *loops.overview(view, loop, None)]
    return document_lines(blocks, view.now, glyphs)


def reflection_lines(reflections: Sequence[Reflection], view: ProjectState, *, of_task: bool) -> list[Content]:
    """Return the reflections on an attempt, or on all attempts at a task, newest first."""
    if not reflections:
        return document_lines([_no_reflection("task" if of_task else "attempt")], view.now, ASCII)
    blocks: list[Block] = []
    for one in reflections:
        where = f"attempt {one.attempt}" if of_task and one.attempt is not None else ""
        blocks += [*([line("")] if blocks else []), head(one, where), *answers(one)]
    return document_lines(blocks, view.now, ASCII)


def _no_reflection(noun: str) -> Block:
    return line((f"No reflection on this {noun} yet: ralphdeck task reflect", "quiet"))


def attempt_lines(
    attempt: Attempt,
    task: Task,
    condition: AttemptCondition,
    view: ProjectState,
    glyphs: Glyphs,
    width: int,
    height: int = SHORT,
) -> list[Content]:
    """Return the outcome, plan, facts, quality, and what worked and what did not.

    Args:
        width, height: Size of the pane, in cells and lines.
    """
    facts = document_lines(tasks.attempt_facts(attempt, task), view.now, glyphs, width)
    chart = quality_lines(attempt, glyphs, width, height)
    return [
        *document_lines([tasks.attempt_head(attempt, condition)], view.now, glyphs, width),
        *([*chart, *facts] if height < SHORT else [*facts, *chart]),
        *document_lines(tasks.attempt_notes(attempt), view.now, glyphs, width),
    ]


def quality_lines(attempt: Attempt, glyphs: Glyphs, width: int, height: int = SHORT) -> list[Content]:
    """Return the quality by iteration as a chart, and its changes; nothing without values."""
    if not attempt.quality:
        return []
    ticks = [str(place if one.iteration is None else one.iteration) for place, one in enumerate(attempt.quality, 1)]
    run = Run([entry.quality for entry in attempt.quality], Content(""), ticks=ticks)
    is_roomy = height >= _ROOMY
    chart = line_chart([run], min(width, MAX_CHART_CELLS), chart_lines(height if is_roomy else 0), glyphs)
    return [*(heading("Quality", "by iteration") if is_roomy else []), *chart, *_quality_changes(attempt, width)]


def _quality_changes(attempt: Attempt, width: int) -> list[Content]:
    """Return the changes between iterations in percentage points on one line; nothing for one value."""
    changed = [one for one in attempt.quality if one.change]
    styles = {1: "$success", -1: "$error", 0: "$quiet"}
    parts = [(f" {one.change}", styles[((one.delta or 0) > 0) - ((one.delta or 0) < 0)]) for one in changed]
    row = Content.assemble(("change ", "$quiet"), *parts, (" points", "$quiet"))
    return [row.truncate(width, ellipsis=True)] if changed else []


def milestone_lines(detail: AttemptDetail | None, view: ProjectState) -> list[Content]:
    """Return the milestones of an attempt."""
    return document_lines(tasks.milestones(detail.milestones), view.now, ASCII) if detail is not None else []


def plan_lines(attempt: Attempt, detail: AttemptDetail | None, view: ProjectState) -> list[Content]:
    """Return the plan as it was written, and its steps."""
    if detail is None:
        return [Content.styled("loading…", "$quiet")]
    blocks = [*([] if detail.plan_text else fields(("Plan", attempt.plan))), *tasks.plan_blocks(attempt, detail)]
    return document_lines(blocks or [line(("No plan recorded for this attempt.", "quiet"))], view.now, ASCII)


def last_actions(
    detail: AttemptDetail | None, key: str, view: ProjectState, glyphs: Glyphs, limit: int = MAX_ACTIONS
) -> list[Content]:
    """Return the newest actions, newest first; `key` plays them."""
    if detail is None:
        return [Content.styled("loading…", "$quiet")]
    count, errors = len(detail.actions), len(detail.actions.errors)
    if not count:
        return [Content.styled("No action recorded in this attempt.", "$quiet")]
    blocks = [line(f"{plural(count, 'action')}, {plural(errors, 'error')}", (f"   {key}: replay", "quiet"))]
    blocks += [line(*tasks.action_text(action)) for action in reversed(detail.actions[-limit:])]
    return document_lines(blocks, view.now, glyphs)


def overview_end(
    detail: AttemptDetail | None,
    reflections: Sequence[Reflection] | None,
    key: str,
    view: ProjectState,
    glyphs: Glyphs,
) -> list[Content]:
    """Return reflections (unless None) and the last actions, below the overview of an attempt."""
    lines: list[Content] = []
    if reflections is not None:
        lines += [*heading("Reflections"), *reflection_lines(reflections, view, of_task=False)]
    return [*lines, *heading("Last actions"), *last_actions(detail, key, view, glyphs, _FEW_ACTIONS)]
