"""What is known of one task or attempt, as paragraphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from textual.content import Content

from core.base.text import plural, visible, visible_line
from core.episodes.attempt_state import AttemptCondition, AttemptState
from core.episodes.history import AttemptDetail
from core.records.episodes import Action, Attempt, Task
from core.records.loops import Loop
from core.records.reflections import Reflection
from core.state.project_state import ProjectState
from tui.present import loops
from tui.present.chart import Run, line_chart
from tui.present.glyphs import Glyphs, result_mark
from tui.present.layout import bullets, hanging, heading, labelled
from tui.present.memory import attempt_mark, task_mark
from tui.present.memory_tree import final_quality
from tui.present.numbers import ago, duration, moment_text, percent
from tui.present.reflections import DRAFT, kind_word, told_parts

CHART_LINES: Final = {36: 9, 22: 7, 12: 5, 0: 3}
"""Lines of a chart by the least lines of its pane; odd, so that 50 % has one."""
WIDEST_CHART: Final = 110
SHORT: Final = 12
"""Lines of a pane below which nothing is set apart by empty lines."""
_ROOMY: Final = 18
"""Lines of a pane from which the chart of an attempt is as high as that of a task, with words above it."""
TALL: Final = 32
"""Lines of a pane from which the overview of an attempt takes in what else stands in tabs of its own."""
_PLAN_CELLS: Final = 28
"""Cells from which a plan stands in the row of its attempt instead of below it."""
MOST_ATTEMPTS: Final = 20
"""Attempts that the overview of a task lists, the newest ones."""
MAX_LEARNINGS: Final = 12
MOST_ACTIONS: Final = 40
"""Actions that an attempt's details list, the last ones."""
_FEW_ACTIONS: Final = 8
"""The same in its overview."""
_UNTOLD: Final = "—"

ConditionOf = Callable[[Attempt], AttemptCondition]


def chart_lines(height: int) -> int:
    """Lines of a chart in a pane of so many."""
    return next(lines for least, lines in CHART_LINES.items() if height >= least)


# Tasks


def task_lines(
    task: Task,
    attempts: Sequence[Attempt],
    condition: ConditionOf,
    view: ProjectState,
    glyphs: Glyphs,
    width: int,
    height: int = SHORT,
) -> list[Content]:
    """What it is about, how good its attempts were, and each of them.

    Args:
        attempts: All, by number.
        width, height: Cells and lines there are.
    """
    now = view.now
    mark = task_mark(task, condition(attempts[-1]).state if attempts else None, glyphs)
    lines = [
        Content.styled(visible_line(task.description or "no description", 2000), "bold"),
        *_flowing(
            (
                Content.assemble(mark, (_says_otherwise(task, mark.plain[2:]), "$quiet")),
                _fact(f"created {moment_text(task.created_at, now)}" if task.created_at else ""),
                _fact(f"ended {moment_text(task.completed_at, now)}" if task.completed_at else ""),
                _fact(f"by {visible_line(task.agent, 60)}" if task.agent else ""),
            ),
            width,
        ),
    ]
    if not attempts:
        start = f"ralphdeck task start {visible_line(task.id, 60)}"
        return [*lines, Content(""), Content.styled(f"nobody has tried it yet:  {start}", "$quiet")]
    chart = _task_chart(attempts, condition, glyphs, width, height)
    return [*lines, *chart, *_attempt_table(attempts, condition, glyphs, width)]


def task_below(task: Task, reflections: Sequence[Reflection], width: int, *, tried: bool) -> list[Content]:
    """What stands below the attempts at a task: what was learned from them, and when it is done."""
    about = _about_lines(task)
    return [*(_learned_lines(reflections, width) if tried else []), *([Content(""), *about] if about else [])]


def _about_lines(task: Task) -> list[Content]:
    """When it is done, and what it is put to."""
    about = (("Done when", task.criteria), ("Tags", ", ".join(task.tags)), ("Related", ", ".join(task.related)))
    return [labelled(label, text) for label, text in about if text]


def task_beside(task: Task, reflections: Sequence[Reflection], width: int) -> list[Content]:
    """What stands beside the attempts at a task: what was learned from them, and when it is done."""
    learned = _learned_lines(reflections, width)[1:] or [_nothing_learned(of_task=True)]
    about = _about_lines(task)
    return [*learned, Content(""), *about] if about else learned


def _fact(text: str) -> Content:
    return Content.styled(text, "$quiet")


def _flowing(parts: Sequence[Content], width: int) -> list[Content]:
    """Parts beside each other, on as few lines as they need; none is broken in two."""
    lines: list[Content] = []
    for part in filter(None, parts):
        if lines and lines[-1].cell_length + 3 + part.cell_length <= width:
            lines[-1] = Content.assemble(lines[-1], "   ", part)
        else:
            lines.append(part)
    return lines


def _says_otherwise(task: Task, shown: str) -> str:
    word = task.raw_status
    return f"  (file says {visible_line(word, 30)})" if word and word.lower() != shown else ""


_COUNTS: Final = (("quality", 8, 0), ("errors", 8, 1), ("took", 8, 2), ("actions", 9, 3), ("iterations", 12, 4))
"""Columns of the table of attempts: title, cells, and how soon each is left out."""


def _attempt_table(attempts: Sequence[Attempt], condition: ConditionOf, glyphs: Glyphs, width: int) -> list[Content]:
    """A row each, as many columns as there is room for; the plan beside or below it."""
    shown = attempts[-MOST_ATTEMPTS:]
    before = len(attempts) - len(shown)
    marks = [attempt_mark(attempt, condition(attempt), glyphs) for attempt in shown]
    outcome = max(len("outcome"), *(mark.cell_length for mark in marks))
    counts = sorted(_COUNTS, key=lambda one: one[2])
    while counts and 6 + outcome + sum(cells for _, cells, _ in counts) > width:
        counts.pop()
    used = 6 + outcome + sum(cells for _, cells, _ in counts)
    beside = width - used >= _PLAN_CELLS
    titles = "".join(f"{title:>{cells}}" for title, cells, _ in counts)
    head = f"{'':>6}{'outcome':<{outcome}}{titles}{'  plan' if beside else ''}"
    lines = [Content(""), Content.styled(head, "$quiet").truncate(width)]
    for attempt, mark in zip(shown, marks, strict=True):
        told = _counted(attempt)
        row = Content.assemble(
            (f"{attempt.number:>4}  ", "$secondary"),
            mark.pad_right(outcome - mark.cell_length),
            *(
                (f"{told[title]:>{cells}}", "$error" if title == "errors" and attempt.errors else "")
                for title, cells, _ in counts
            ),
        )
        plan = Content.styled(visible_line(attempt.plan, 200), "$quiet")
        if beside:
            lines += hanging(row.pad_right(2), plan, width)
        else:
            lines += [row.truncate(width, ellipsis=True), *(hanging(Content(" " * 6), plan, width) if plan else [])]
    if before:
        lines.append(Content.styled(f"      and {plural(before, 'attempt')} before these", "$quiet"))
    return lines


def _counted(attempt: Attempt) -> dict[str, str]:
    """What is known of an attempt in numbers, by the title of its column."""
    return {
        "quality": percent(final_quality(attempt)),
        "iterations": _count(attempt.iterations),
        "actions": _count(attempt.actions),
        "errors": _count(attempt.errors),
        "took": _took(attempt),
    }


def _count(count: int | None) -> str:
    return _UNTOLD if count is None else f"{count:,}"


def _took(attempt: Attempt) -> str:
    end = attempt.ended_at or attempt.last_action_at
    if attempt.started_at is None or end is None:
        return _UNTOLD
    return duration((end - attempt.started_at).total_seconds())


def _task_chart(
    attempts: Sequence[Attempt], condition: ConditionOf, glyphs: Glyphs, width: int, height: int
) -> list[Content]:
    """How good the attempts were, iteration by iteration, and whether each came further than the one before."""
    runs = [
        Run(
            [entry.quality for entry in attempt.quality],
            Content.assemble(
                (f"{attempt.number} ", "$secondary"), attempt_mark(attempt, condition(attempt), glyphs)[:1]
            ),
        )
        for attempt in attempts
        if attempt.quality
    ]
    chart = line_chart(runs, min(width, WIDEST_CHART), chart_lines(height), glyphs)
    if not chart:
        return []
    retries = _retries(attempts, glyphs)
    if height < SHORT:
        return [*chart, *retries]
    return [
        Content(""),
        Content.assemble(("Quality", "bold"), *(part for one in retries for part in ("   ", one))),
        *chart,
    ]


def _retries(attempts: Sequence[Attempt], glyphs: Glyphs) -> list[Content]:
    """Whether each attempt came further than the one before it."""
    known = [quality for quality in map(final_quality, attempts) if quality is not None]
    if len(known) < 2:
        return []
    better = sum(later > earlier for earlier, later in pairwise(known))
    worse = sum(later < earlier for earlier, later in pairwise(known))
    retries = len(known) - 1
    each = "each retry did" if retries > 1 else "the retry did"
    steps = f" {glyphs.arrow} ".join(percent(quality) for quality in known[-6:])
    if better == retries:
        return [Content.assemble((f"{each} better: ", "$success"), steps)]
    if worse == retries:
        return [Content.assemble((f"{each} worse: ", "$error"), steps)]
    text = f"{better} of {plural(retries, 'retry', 'retries')} did better: "
    return [Content.assemble((text, "$quiet"), steps)]


def _learned_lines(reflections: Sequence[Reflection], width: int) -> list[Content]:
    """What the newest reflections come to, each after the number of its attempt."""
    told = [one for one in reflections if one.text]
    if not told:
        return []
    lines = heading("Learned so far", plural(len(told), "reflection"))
    for reflection in told[:MAX_LEARNINGS]:
        label = Content.assemble(
            (f"{reflection.attempt if reflection.attempt is not None else '':>4}  ", "$secondary"),
            ("draft  " if reflection.draft else "", "$warning"),
        )
        lines += hanging(label, Content(visible_line(reflection.text, 500)), width)
    return lines


def loop_tab(loop: Loop | None, how: str, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """The loop that a task records, and how one knows.

    Args:
        how: In words of our own.
    """
    if loop is None:
        return [
            Content.styled("No loop is known that this task records; its metadata may name one as loop_id.", "$quiet")
        ]
    return [Content.styled(f"This loop, because {how}.", "$quiet"), *loops.now_lines(loop, None, view, glyphs)]


# Reflections


def reflection_lines(reflections: Sequence[Reflection], view: ProjectState, *, of_task: bool) -> list[Content]:
    """What was written after an attempt, or after all attempts at a task, newest first."""
    if not reflections:
        return [_nothing_learned(of_task=of_task)]
    lines: list[Content] = []
    for reflection in reflections:
        lines += [Content("")] if lines else []
        where = f"attempt {reflection.attempt}   " if of_task and reflection.attempt is not None else ""
        lines.append(
            Content.assemble(
                (where, "$secondary"),
                (kind_word(reflection), "bold $secondary"),
                (f"   {DRAFT}" if reflection.draft else "", "$warning"),
                (f"   {ago(reflection.at, view.now)}" if reflection.at else "", "$quiet"),
            )
        )
        for label, text in told_parts(reflection):
            lines += [Content.styled(label, "$quiet"), Content(f"  {visible_line(text, 4000)}")]
        if reflection.actions:
            lines.append(Content.styled("Action items", "$quiet"))
            lines += [Content(f"  - {visible_line(action, 1000)}") for action in reflection.actions]
    return lines


def _nothing_learned(*, of_task: bool) -> Content:
    whose = "this task" if of_task else "this attempt"
    return Content.styled(f"Nobody has reflected on {whose} yet:  ralphdeck task reflect", "$quiet")


# Attempts


def attempt_lines(
    attempt: Attempt,
    task: Task,
    condition: AttemptCondition,
    view: ProjectState,
    glyphs: Glyphs,
    width: int,
    height: int = SHORT,
) -> list[Content]:
    """What was tried, how it came out, how good it was by iteration, what worked and what did not.

    Args:
        width, height: Cells and lines there are.
    """
    quality = final_quality(attempt)
    ended = condition.state is AttemptState.ENDED
    lines = [
        *_flowing(
            (
                Content.styled(f"Attempt {attempt.number}", "bold"),
                attempt_mark(attempt, condition, glyphs),
                _fact("" if ended else visible_line(condition.reason, 200)),
                Content(f"quality {percent(quality)}" if quality is not None else ""),
                _fact(f"done {percent(attempt.completion)}" if attempt.completion is not None else ""),
            ),
            width,
        ),
    ]
    told = [
        *_said("at", task.description or task.id, width),
        *_said("plan", attempt.plan, width),
        *_said("because", attempt.reason, width),
        *_flowing([_fact(text) for text in _facts(attempt, view)], width),
    ]
    chart = quality_lines(attempt, glyphs, width, height)
    lines += [*chart, *told] if height < SHORT else [*told, *chart]
    for title, texts, style in (
        ("What worked", attempt.worked, "$success"),
        ("What didn't work", attempt.failed, "$error"),
        ("Suggestions for next time", attempt.suggestions, "$accent"),
    ):
        if texts:
            mark = {"$success": glyphs.done, "$error": glyphs.failed}.get(style, glyphs.arrow)
            lines += [*heading(title), *bullets(mark, style, texts, width)]
    return lines


def attempt_reflected(reflections: Sequence[Reflection], view: ProjectState) -> list[Content]:
    """The reflections on an attempt, below it."""
    return [*heading("Reflections"), *reflection_lines(reflections, view, of_task=False)]


def done_last(detail: AttemptDetail | None, key: str, glyphs: Glyphs) -> list[Content]:
    """The last few actions of an attempt, below it; see `last_actions`."""
    return [*heading("Done last"), *last_actions(detail, key, glyphs, _FEW_ACTIONS)]


def _said(label: str, text: str, width: int) -> list[Content]:
    """A quiet label in a column of its own, and untrusted text beside it; nothing without text."""
    if not text:
        return []
    return hanging(Content.styled(f"{label:<9}", "$quiet"), Content(visible_line(text, 2000)), width)


def _facts(attempt: Attempt, view: ProjectState) -> list[str]:
    """Its times, and its counts."""
    now = view.now
    facts = (
        f"started {moment_text(attempt.started_at, now)}" if attempt.started_at else "",
        f"ended {moment_text(attempt.ended_at, now)}" if attempt.ended_at else "",
        f"{'for' if attempt.is_open else 'took'} {_took(attempt)}" if _took(attempt) != _UNTOLD else "",
        plural(attempt.iterations, "iteration") if attempt.iterations is not None else "",
        plural(attempt.actions, "action") if attempt.actions is not None else "",
        plural(attempt.errors, "error") if attempt.errors else "",
        f"by {visible_line(attempt.agent, 60)}" if attempt.agent else "",
    )
    return [fact for fact in facts if fact]


def quality_lines(attempt: Attempt, glyphs: Glyphs, width: int, height: int = SHORT) -> list[Content]:
    """How good an attempt was by iteration, as a line; nothing where that is not told."""
    if not attempt.quality:
        return []
    numbers = [str(place if one.iteration is None else one.iteration) for place, one in enumerate(attempt.quality, 1)]
    run = Run([entry.quality for entry in attempt.quality], Content(""), ticks=numbers)
    changes = _quality_changes(attempt, width)
    if height >= _ROOMY:
        chart = line_chart([run], min(width, WIDEST_CHART), chart_lines(height), glyphs)
        return [*heading("Quality", "by iteration"), *chart, *changes]
    return [*line_chart([run], min(width, WIDEST_CHART), chart_lines(0), glyphs), *changes]


def _quality_changes(attempt: Attempt, width: int) -> list[Content]:
    """The change from each iteration to the next in percentage points, on one line; nothing for a single value."""
    changed = [one for one in attempt.quality if one.change]
    if not changed:
        return []
    parts: list[Content | str | tuple[str, str]] = [("change ", "$quiet")]
    for one in changed:
        style = "$success" if (one.delta or 0) > 0 else "$error" if (one.delta or 0) < 0 else "$quiet"
        parts.append((f" {one.change}", style))
    return [Content.assemble(*parts, (" points", "$quiet")).truncate(width, ellipsis=True)]


def milestone_lines(detail: AttemptDetail | None, view: ProjectState) -> list[Content]:
    """What was reached in an attempt, with its details; nothing without any."""
    if detail is None or not detail.milestones:
        return []
    lines = heading("Milestones")
    for one in detail.milestones:
        lines.append(
            Content.assemble(
                (f"  {moment_text(one.at, view.now)}  " if one.at else "  ", "$quiet"), visible_line(one.event, 400)
            )
        )
        if one.details:
            lines.append(Content.styled(f"    {visible_line(one.details, 2000)}", "$quiet"))
    return lines


def plan_lines(attempt: Attempt, detail: AttemptDetail | None) -> list[Content]:
    """The plan as it was written, with its steps where the plan itself has none."""
    if detail is None:
        return [Content.styled("reading…", "$quiet")]
    lines = [Content(line) for line in visible(detail.plan_text).split("\n")] if detail.plan_text else []
    if not lines and attempt.plan:
        lines = [Content(visible_line(attempt.plan, 4000))]
    if detail.steps and not detail.plan_text:
        lines += [Content(f"  {number}. {visible_line(step, 1000)}") for number, step in enumerate(detail.steps, 1)]
    return lines or [Content.styled("No plan was written for this attempt.", "$quiet")]


def last_actions(detail: AttemptDetail | None, key: str, glyphs: Glyphs, most: int = MOST_ACTIONS) -> list[Content]:
    """What was done last, newest first, errors marked.

    Args:
        key: That plays them all.
        most: So many of them.
    """
    if detail is None:
        return [Content.styled("reading…", "$quiet")]
    count = len(detail.actions)
    if not count:
        return [Content.styled("No action was written down in this attempt.", "$quiet")]
    shown = detail.actions[-most:]
    lines = [
        Content.assemble(
            f"{plural(count, 'action')}, {plural(len(detail.actions.errors), 'error')}",
            (f"   {key} plays them", "$quiet"),
        )
    ]
    return lines + [action_line(action, glyphs) for action in reversed(shown)]


def action_line(action: Action, glyphs: Glyphs) -> Content:
    """Number, mark, tool and what it was used on, on one line; an error after it."""
    success = False if action.has_failed else action.success
    return Content.assemble(
        (f"{action.number:>5} ", "$quiet"),
        result_mark(success, glyphs),
        (f" {visible_line(action.tool or action.type or 'action', 20):<8}", "bold" if action.has_failed else ""),
        f" {visible_line(action.about, 200)}",
        (f"   {visible_line(action.error, 300)}" if action.has_failed else "", "$error"),
    )
