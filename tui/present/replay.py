"""An attempt step by step, as text: where one is, what was done and why, what was expected and what came of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from textual.content import Content

from core.base.text import plural, visible, visible_line
from core.episodes.history import AttemptDetail
from core.episodes.replay import ReplayStep, Verdict
from core.records.episodes import Action
from core.state.project_state import ProjectState
from tui.present.chart import Run, line_chart
from tui.present.debug_sessions import diff_lines
from tui.present.glyphs import ASCII, Glyphs
from tui.present.layout import hanging, heading
from tui.present.memory_tasks import action_line, chart_lines, reflection_lines
from tui.present.numbers import bar, duration, moment_text, percent, sparkline

SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""How many times as fast as it was an attempt can be played."""
MOST_TEXT: Final = 64_000
"""Characters of an output or an error that are shown."""
MOST_PARAM_LINES: Final = 20
_LABEL_CELLS: Final = 10
_SPARKS: Final = 8
WAIT_CELLS: Final = 5
"""Cells of the mark that fills until the next action comes."""
_IN_DIFF: Final = frozenset(
    {"old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "oldString", "newString"}
    | {"diff", "patch", "content", "file_text", "contents", "edits"}
)
"""Parameters that a diff shows already."""


@dataclass(frozen=True, slots=True)
class Track:
    """What a timeline is drawn from: positions from 0.

    Attributes:
        count: How many actions there are.
        errors: Those that went wrong.
        iterations: Those that begin one, with its number; none where there are too many actions to look at each.
    """

    count: int = 0
    errors: Sequence[int] = ()
    iterations: Mapping[int, int | None] = field(default_factory=dict)


# The timeline


def timeline(track: Track, position: int, width: int, glyphs: Glyphs) -> tuple[Content, Content]:
    """The actions as a line, errors and iterations marked, and the numbers of the iterations below.

    Args:
        position: Where one is.
        width: Cells there are; each action has several of them, or several actions share one.
    """
    if not track.count or width <= 0:
        return Content(""), Content("")
    plain = glyphs is ASCII
    done, ahead = ("=", "-") if plain else ("━", "─")
    at = cell(track, position, width)
    end = (position + 1) * width // track.count
    cells = [(done, "$accent") if x < end else (ahead, "$quiet") for x in range(width)]
    for start in track.iterations:
        cells[cell(track, start, width)] = ("|" if plain else "┃", "$foreground")
    for x in _cells_of(track, track.errors, width):
        cells[x] = (glyphs.failed, "$error bold")
    mark, style = cells[at]
    cells[at] = (mark if mark == glyphs.failed else glyphs.running, f"{style} reverse")
    return Content.assemble(*cells), _numbers(track, width)


def cell(track: Track, position: int, width: int) -> int:
    """The cell of the timeline in which an action begins."""
    return min(position * width // max(track.count, 1), width - 1)


def _cells_of(track: Track, positions: Sequence[int], width: int) -> Iterable[int]:
    """The cells that any of these positions lies in; where there are more of them than cells, each cell is asked."""
    if len(positions) <= width:
        return {cell(track, position, width) for position in positions}
    firsts = [bisect_left(positions, -(-x * track.count // width)) for x in range(width + 1)]
    return [x for x in range(width) if firsts[x] < firsts[x + 1]]


def position_at(track: Track, x: int, width: int) -> int:
    """The action that a cell of the timeline belongs to."""
    return min(x * track.count // max(width, 1), max(track.count - 1, 0))


def _numbers(track: Track, width: int) -> Content:
    line = ""
    for start, number in sorted(track.iterations.items()):
        label = "" if number is None else f"it {number}" if not line else str(number)
        at = cell(track, start, width)
        if label and len(line) + bool(line) <= at and at + len(label) <= width:
            line = f"{line:<{at}}{label}"
    return Content.styled(line, "$quiet")


# Where one is


def place_line(track: Track, position: int, step: ReplayStep | None) -> Content:
    """Which action of how many, in which iteration, and how long after the start."""
    if not track.count:
        return Content.styled("no action was written down", "$quiet")
    errors = f", {plural(len(track.errors), 'error')}" if track.errors else ""
    parts: list[str | tuple[str, str]] = [
        (f"{position + 1:,}", "bold"),
        (f" of {plural(track.count, 'action')}{errors}", "$quiet"),
    ]
    if step is not None:
        if step.action.iteration is not None:
            parts.append(f"   iteration {step.action.iteration}")
        if step.elapsed is not None:
            parts.append((f"   after {duration(step.elapsed)}", "$quiet"))
    return Content.assemble(*parts)


def pace(speed: float, waited: int | None, glyphs: Glyphs, *, playing: bool, follows: bool) -> Content:
    """Whether it plays, how fast, and whether new actions will be shown as they come.

    Args:
        waited: How much of the wait for the next action is over, of `WAIT_CELLS`; None where none is waited for.
    """
    if follows:
        state = (f"{glyphs.live} follows what is done", "$success")
    elif playing:
        state = (f"{glyphs.play} playing", "$accent bold")
    else:
        state = (f"{glyphs.paused} paused", "$quiet")
    filling = f"  {bar(waited, WAIT_CELLS, WAIT_CELLS, glyphs)}" if playing and waited is not None else ""
    pace = "" if follows else f"  {speed:g}x"
    return Content.assemble(state, (pace, "$foreground" if playing else "$quiet"), (filling, "$accent"))


# The actions around it


def first_listed(position: int, count: int, height: int) -> int:
    """The position of the first action of a list of `height` lines that has the current one about in its middle."""
    return max(min(position - height // 2, count - height), 0)


def listed(action: Action, width: int, glyphs: Glyphs, *, current: bool) -> Content:
    """One action in the list, `width` cells wide."""
    bar = ("▌" if current and glyphs is not ASCII else glyphs.running if current else " ", "$accent")
    line = Content.assemble(bar, action_line(action, glyphs)).truncate(width, ellipsis=True)
    return line.pad_right(max(width - line.cell_length, 0)).stylize("on $panel bold") if current else line


# One action


def step_lines(step: ReplayStep, view: ProjectState, glyphs: Glyphs, width: int) -> list[Content]:
    """One action: what, why, with what, what was expected of it and what came."""
    action = step.action
    after = f"   next after {duration(step.pause)}" if step.pause is not None else ""
    lines = [
        Content.assemble(
            verdict_mark(step.verdict, glyphs),
            (f"   {visible_line(action.tool or action.type or 'action', 60)}", "bold"),
            (f"   {moment_text(action.at, view.now)}" if action.at is not None else "", "$quiet"),
            (after, "$quiet"),
        )
    ]
    for label, text in (("why", action.reasoning), ("expected", step.expected)):
        if text:
            lines += _told(label, Content(visible(text, 4000)), width)
    lines += _told("came", _came(step, glyphs), width)
    diff = step.diff
    lines += _param_lines([(name, value) for name, value in action.params if not (diff and name in _IN_DIFF)], width)
    if diff:
        lines += [*heading("Change"), *diff_lines([visible_line(line, 1000) for line in diff])]
    for title, text in (("Error", action.error), ("Output", action.output)):
        if text and text.strip() != step.real:
            lines += heading(title)
            lines += [Content(line) for line in visible(text, MOST_TEXT).split("\n")]
    return lines


def verdict_mark(verdict: Verdict, glyphs: Glyphs) -> Content:
    """Glyph and word of how an action came out."""
    glyph, style = _verdict(verdict, glyphs)
    return Content.styled(f"{glyph} {verdict.value}", style)


def _verdict(verdict: Verdict, glyphs: Glyphs) -> tuple[str, str]:
    return {
        Verdict.SUCCEEDED: (glyphs.done, "$success"),
        Verdict.FAILED: (glyphs.failed, "$error"),
        Verdict.UNTOLD: (glyphs.unknown, "$quiet"),
    }[verdict]


def _came(step: ReplayStep, glyphs: Glyphs) -> Content:
    """What came of it, with the mark of the verdict."""
    glyph, style = _verdict(step.verdict, glyphs)
    return Content.assemble((f"{glyph} ", style), visible(step.real) if step.real else step.verdict.value)


def _told(label: str, text: Content, width: int) -> list[Content]:
    """A label in a column of its own, and displayable text of one or more lines beside it."""
    return hanging(Content.styled(f"{label:<{_LABEL_CELLS}}", "$quiet"), text, width)


def _param_lines(params: Sequence[tuple[str, str]], width: int) -> list[Content]:
    lines: list[Content] = []
    for number, (name, value) in enumerate(params):
        shown = visible(value, MOST_TEXT).split("\n")
        if len(shown) > MOST_PARAM_LINES:
            more = plural(len(shown) - MOST_PARAM_LINES, "more line")
            shown = [*shown[:MOST_PARAM_LINES], f"… {more}"]
        label = Content.assemble(
            (f"{'' if number else 'with':<{_LABEL_CELLS}}", "$quiet"), (f"{visible_line(name, 40)}  ", "$secondary")
        )
        lines += hanging(label, Content("\n".join(shown)), width)
    return lines


# Beside it


def side_lines(
    detail: AttemptDetail, quality: Sequence[float], view: ProjectState, glyphs: Glyphs, width: int, height: int
) -> list[Content]:
    """How good it was so far, as a line, and what was learned from the whole attempt.

    Args:
        quality: 0..1, of the iterations so far.
        width, height: Cells and lines there are.
    """
    lines = [Content.assemble(("Quality so far", "bold"), (f"   {percent(quality[-1])}" if quality else "", "$quiet"))]
    places = len(detail.attempt.quality)
    chart = line_chart([Run(quality, _so_far(quality, places), places)], width, chart_lines(height), glyphs)
    lines += chart or [_unmeasured(places)]
    return lines + _reflections(detail, view)


def below_lines(detail: AttemptDetail, quality: Sequence[float], view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """The same below an action, where lines are few: quality in one of them."""
    sparks = sparkline(quality, _SPARKS, glyphs)
    places = len(detail.attempt.quality)
    told = (
        Content.assemble((sparks, "$secondary"), f" {percent(quality[-1])}   ", _so_far(quality, places))
        if quality
        else _unmeasured(places)
    )
    return [Content(""), Content.assemble(("Quality so far   ", "bold"), told), *_reflections(detail, view)]


def _so_far(quality: Sequence[float], places: int) -> Content:
    return Content.styled(f"{len(quality)} of {plural(places, 'iteration')}", "$quiet")


def _unmeasured(places: int) -> Content:
    return Content.styled("not measured yet" if places else "never measured", "$quiet")


def _reflections(detail: AttemptDetail, view: ProjectState) -> list[Content]:
    found = reflection_lines(detail.reflections, view, of_task=False)
    return [*heading("Reflections on this attempt"), *found]
