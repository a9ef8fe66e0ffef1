"""What is known of one task or attempt, as paragraphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from textual.content import Content

from core.episodes.condition import AttemptState, Condition
from core.episodes.history import AttemptDetail
from core.records.episodes import Action, Attempt, Task
from core.records.loops import Loop
from core.records.reflections import Reflection
from core.text import plural, visible, visible_line
from core.view import View
from tui.present import loops
from tui.present.chart import Run, line_chart
from tui.present.layout import bullets, hanging, heading, labelled
from tui.present.marks import Glyphs, result_mark
from tui.present.memory import attempt_mark, task_mark
from tui.present.memory_tree import final_quality
from tui.present.numbers import ago, duration, moment_text, percent
from tui.present.reflections import DRAFT, kind_word, told_parts

CHART_LINES: Final = 5
"""Lines of a chart; odd, so that 50 % has one."""
WIDEST_CHART: Final = 96
MOST_ATTEMPTS: Final = 20
"""Attempts that the overview of a task lists, the newest ones."""
MOST_LEARNINGS: Final = 12
MOST_ACTIONS: Final = 40
"""Actions that an attempt's details list, the last ones."""
_UNTOLD: Final = "—"

ConditionOf = Callable[[Attempt], Condition]


# Tasks


def task_lines(
    task: Task,
    attempts: Sequence[Attempt],
    condition: ConditionOf,
    reflections: Sequence[Reflection],
    view: View,
    glyphs: Glyphs,
    width: int,
) -> list[Content]:
    """What it is about, its attempts, how good they were, and what was learned so far.

    Args:
        attempts: All, by number.
        reflections: Of this task, newest first.
        width: Cells there are.
    """
    now = view.now
    mark = task_mark(task, condition(attempts[-1]).state if attempts else None, glyphs)
    ended = f"   ended {moment_text(task.completed_at, now)}" if task.completed_at else ""
    lines = [
        Content.styled(visible_line(task.description or "no description", 2000), "bold"),
        Content.assemble(
            mark,
            (_says_otherwise(task, mark.plain[2:]), "$quiet"),
            (f"   created {moment_text(task.created_at, now)}{ended}" if task.created_at else ended, "$quiet"),
        ),
    ]
    if attempts:
        lines += _attempt_table(attempts, condition, glyphs, width)
        lines += _task_chart(attempts, condition, glyphs, width)
        lines += _learned(reflections, width)
    else:
        start = f"ralphdeck task start {visible_line(task.id, 60)}"
        lines += [Content(""), Content.styled(f"nobody has tried it yet:  {start}", "$quiet")]
    about = (("Done when", task.criteria), ("Tags", ", ".join(task.tags)), ("Related", ", ".join(task.related)))
    told = [labelled(label, text) for label, text in about if text]
    return [*lines, Content(""), *told] if told else lines


def _says_otherwise(task: Task, shown: str) -> str:
    word = task.raw_status
    return f"  (file says {visible_line(word, 30)})" if word and word.lower() != shown else ""


def _attempt_table(attempts: Sequence[Attempt], condition: ConditionOf, glyphs: Glyphs, width: int) -> list[Content]:
    shown = attempts[-MOST_ATTEMPTS:]
    before = len(attempts) - len(shown)
    head = f"{'':>4}  {'outcome':<17}{'quality':>8}{'iterations':>12}{'actions':>9}{'errors':>8}{'took':>8}  plan"
    lines = [Content(""), Content.styled(head, "$quiet").truncate(width)]
    for attempt in shown:
        mark = attempt_mark(attempt, condition(attempt), glyphs)
        row = Content.assemble(
            (f"{attempt.number:>4}  ", "$secondary"),
            mark.pad_right(17 - mark.cell_length),
            f"{percent(final_quality(attempt)):>8}{_count(attempt.iterations):>12}{_count(attempt.actions):>9}",
            (f"{_count(attempt.errors):>8}", "$error" if attempt.errors else ""),
            f"{_took(attempt):>8}",
            (f"  {visible_line(attempt.plan, 200)}", "$quiet"),
        )
        lines.append(row.truncate(width, ellipsis=True))
    if before:
        lines.append(Content.styled(f"      and {plural(before, 'attempt')} before these", "$quiet"))
    return lines


def _count(count: int | None) -> str:
    return _UNTOLD if count is None else f"{count:,}"


def _took(attempt: Attempt) -> str:
    end = attempt.ended_at or attempt.last_action_at
    if attempt.started_at is None or end is None:
        return _UNTOLD
    return duration((end - attempt.started_at).total_seconds())


def _task_chart(attempts: Sequence[Attempt], condition: ConditionOf, glyphs: Glyphs, width: int) -> list[Content]:
    told = [attempt for attempt in attempts if attempt.quality]
    runs = [
        Run(
            [entry.quality for entry in attempt.quality],
            Content(f"{attempt.number} {attempt_mark(attempt, condition(attempt), glyphs).plain[0]}"),
        )
        for attempt in told
    ]
    chart = line_chart(runs, min(width, WIDEST_CHART), CHART_LINES, glyphs)
    if not chart:
        return []
    iterations = sum(len(run.values) for run in runs)
    note = f"{plural(iterations, 'iteration')} of {plural(len(told), 'attempt')}"
    return [*heading("Quality", note), *chart, *_retries(attempts, glyphs)]


def _retries(attempts: Sequence[Attempt], glyphs: Glyphs) -> list[Content]:
    """Whether each attempt came further than the one before it."""
    known = [quality for quality in map(final_quality, attempts) if quality is not None]
    if len(known) < 2:
        return []
    better = sum(later > earlier for earlier, later in pairwise(known))
    worse = sum(later < earlier for earlier, later in pairwise(known))
    retries = len(known) - 1
    steps = f" {glyphs.arrow} ".join(percent(quality) for quality in known[-6:])
    if better == retries:
        return [Content.assemble(("Each retry did better than the try before it: ", "$success"), steps)]
    if worse == retries:
        return [Content.assemble(("Each retry did worse than the try before it: ", "$error"), steps)]
    text = f"{better} of {plural(retries, 'retry', 'retries')} did better than the try before: "
    return [Content.assemble((text, "$quiet"), steps)]


def _learned(reflections: Sequence[Reflection], width: int) -> list[Content]:
    told = [one for one in reflections if one.text]
    if not told:
        return []
    lines = heading("Learned so far", plural(len(told), "reflection"))
    for reflection in told[:MOST_LEARNINGS]:
        label = Content.assemble(
            (f"{reflection.attempt if reflection.attempt is not None else '':>4}  ", "$secondary"),
            ("draft  " if reflection.draft else "", "$warning"),
        )
        lines += hanging(label, Content(visible_line(reflection.text, 500)), width)
    return lines


def loop_tab(loop: Loop | None, how: str, view: View, glyphs: Glyphs) -> list[Content]:
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


def reflection_lines(reflections: Sequence[Reflection], view: View, *, of_task: bool) -> list[Content]:
    """What was written after an attempt, or after all attempts at a task, newest first."""
    if not reflections:
        whose = "this task" if of_task else "this attempt"
        return [Content.styled(f"Nobody has reflected on {whose} yet:  ralphdeck task reflect", "$quiet")]
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


# Attempts


def attempt_lines(
    attempt: Attempt, task: Task, condition: Condition, view: View, glyphs: Glyphs, width: int
) -> list[Content]:
    """What was tried, how it came out, what worked and what did not, and how good it was by iteration."""
    lines = [
        Content.assemble(
            (f"Attempt {attempt.number}", "bold"), ("  at  ", "$quiet"), visible_line(task.description or task.id, 300)
        ),
        Content.assemble(
            attempt_mark(attempt, condition, glyphs),
            (
                f"   {visible_line(condition.reason, 200)}" if condition.state is not AttemptState.ENDED else "",
                "$quiet",
            ),
            (f"   quality {percent(final_quality(attempt))}" if final_quality(attempt) is not None else ""),
            (f"   done {percent(attempt.completion)}" if attempt.completion is not None else "", "$quiet"),
        ),
        *(Content.styled(line, "$quiet") for line in _facts(attempt, view) if line),
    ]
    if attempt.reason:
        lines.append(labelled("Because", attempt.reason))
    if attempt.plan:
        lines.append(labelled("Plan", attempt.plan))
    for title, texts, style in (
        ("What worked", attempt.worked, "$success"),
        ("What didn't work", attempt.failed, "$error"),
        ("Suggestions for next time", attempt.suggestions, "$accent"),
    ):
        if texts:
            mark = {"$success": glyphs.done, "$error": glyphs.failed}.get(style, glyphs.arrow)
            lines += [*heading(title), *bullets(mark, style, texts, width)]
    return lines + quality_lines(attempt, glyphs, width)


def _facts(attempt: Attempt, view: View) -> tuple[str, str]:
    """Its times, and its counts."""
    now = view.now
    times = (
        f"started {moment_text(attempt.started_at, now)}" if attempt.started_at else "",
        f"ended {moment_text(attempt.ended_at, now)}" if attempt.ended_at else "",
        f"{'for' if attempt.is_open else 'took'} {_took(attempt)}" if _took(attempt) != _UNTOLD else "",
    )
    counts = (
        plural(attempt.iterations, "iteration") if attempt.iterations is not None else "",
        plural(attempt.actions, "action") if attempt.actions is not None else "",
        plural(attempt.errors, "error") if attempt.errors else "",
        f"by {visible_line(attempt.agent, 60)}" if attempt.agent else "",
    )
    return "   ".join(filter(None, times)), "   ".join(filter(None, counts))


def quality_lines(attempt: Attempt, glyphs: Glyphs, width: int) -> list[Content]:
    """How good an attempt was by iteration, as a line; nothing where that is not told."""
    if not attempt.quality:
        return []
    numbers = [entry.iteration for entry in attempt.quality if entry.iteration is not None]
    span = f"iteration {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else "one iteration"
    run = Run([entry.quality for entry in attempt.quality], Content.styled(span, "$quiet"))
    return [*heading("Quality", "by iteration"), *line_chart([run], min(width, WIDEST_CHART), CHART_LINES, glyphs)]


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


def last_actions(detail: AttemptDetail | None, key: str, glyphs: Glyphs) -> list[Content]:
    """What was done last, newest first, errors marked.

    Args:
        key: That plays them all.
    """
    if detail is None:
        return [Content.styled("reading…", "$quiet")]
    count = len(detail.actions)
    if not count:
        return [Content.styled("No action was written down in this attempt.", "$quiet")]
    shown = detail.actions[-MOST_ACTIONS:]
    lines = [
        Content.assemble(
            f"{plural(count, 'action')}, {plural(len(detail.actions.errors), 'error')}",
            (f"   {key} plays them", "$quiet"),
        )
    ]
    return lines + [action_line(action, glyphs) for action in reversed(shown)]


def action_line(action: Action, glyphs: Glyphs) -> Content:
    """Number, mark, tool and what it was used on, on one line; an error after it."""
    success = False if action.went_wrong else action.success
    return Content.assemble(
        (f"{action.number:>5} ", "$quiet"),
        result_mark(success, glyphs),
        (f" {visible_line(action.tool or action.type or 'action', 20):<8}", "bold" if action.went_wrong else ""),
        f" {visible_line(action.about, 200)}",
        (f"   {visible_line(action.error, 300)}" if action.went_wrong else "", "$error"),
    )
