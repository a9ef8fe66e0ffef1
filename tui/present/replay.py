"""An attempt replayed action by action: timeline, list, and details."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.formatting import format_duration
from core.base.text import plural
from core.documents.document import Block, Moment, Section, Sign, code, fields, line, section
from core.documents.tasks import VERDICT_SIGNS, action_text
from tui.present.chart import Run, line_chart
from tui.present.document import Drawable, inline
from tui.present.glyphs import ASCII, Glyphs
from tui.present.memory_tasks import chart_lines, reflection_blocks
from tui.present.numbers import bar, percent, sparkline

if TYPE_CHECKING:
    from core.episodes.history import AttemptDetail
    from core.episodes.replay import ReplayStep
    from core.records.episodes import Action

SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
MAX_PARAM_LINES: Final = 20
_SPARKS: Final = 8
WAIT_CELLS: Final = 5  # Cells of the bar that fills until the next action.
_UNUSED: Final = datetime.min.replace(tzinfo=UTC)  # Placeholder for the current time in texts without timestamps.
_IN_DIFF: Final = frozenset(
    {"old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "oldString", "newString"}
    | {"diff", "patch", "content", "file_text", "contents", "edits"}
)
"""Names of parameters that are not listed, because the diff shows them."""


@dataclass(frozen=True, slots=True)
class Track:
    """A timeline: number of actions, and positions of the failed ones in `errors`.

    `iterations` maps the position of the first action of each iteration to the number of the iteration; it is empty for
    very long attempts.
    """

    count: int = 0
    errors: Sequence[int] = ()
    iterations: Mapping[int, int | None] = field(default_factory=dict)


def timeline(track: Track, position: int, width: int, glyphs: Glyphs) -> tuple[Content, Content]:
    """Return the timeline in `width` cells, and the iteration numbers below it.

    An action takes several cells, or several actions share a cell.
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
    return min(position * width // max(track.count, 1), width - 1)


def _cells_of(track: Track, positions: Sequence[int], width: int) -> Iterable[int]:
    """Return the cells that contain any of these sorted positions."""
    if len(positions) <= width:
        return {cell(track, position, width) for position in positions}
    firsts = [bisect_left(positions, -(-x * track.count // width)) for x in range(width + 1)]
    return [x for x in range(width) if firsts[x] < firsts[x + 1]]


def position_at(track: Track, x: int, width: int) -> int:
    return min(x * track.count // max(width, 1), max(track.count - 1, 0))


def _numbers(track: Track, width: int) -> Content:
    line = ""
    for start, number in sorted(track.iterations.items()):
        label = "" if number is None else f"it {number}" if not line else str(number)
        at = cell(track, start, width)
        if label and len(line) + bool(line) <= at and at + len(label) <= width:
            line = f"{line:<{at}}{label}"
    return Content.styled(line, "$quiet")


def position_line(track: Track, position: int, step: ReplayStep | None) -> Content:
    """Return the number of the action, its iteration, and the time since the start."""
    if not track.count:
        return Content.styled("no action recorded", "$quiet")
    errors = f", {plural(len(track.errors), 'error')}" if track.errors else ""
    total = (f" of {plural(track.count, 'action')}{errors}", "$quiet")
    iteration = f"   iteration {step.action.iteration}" if step and step.action.iteration is not None else ""
    elapsed = f"   after {format_duration(step.elapsed)}" if step and step.elapsed is not None else ""
    return Content.assemble((f"{position + 1:,}", "bold"), total, iteration, (elapsed, "$quiet"))


def playback_state(speed: float, waited: int | None, glyphs: Glyphs, *, playing: bool, follows: bool) -> Content:
    """Return the playback state and speed: following new actions, playing or paused.

    `waited` is the elapsed part of the pause before the next action, 0 to `WAIT_CELLS`; None without a pause.
    """
    if follows:
        state = (f"{glyphs.live} following new actions", "$success")
    elif playing:
        state = (f"{glyphs.play} playing", "$accent bold")
    else:
        state = (f"{glyphs.paused} paused", "$quiet")
    filling = f"  {bar(waited, WAIT_CELLS, WAIT_CELLS, glyphs)}" if playing and waited is not None else ""
    pace = "" if follows else f"  {speed:g}x"
    return Content.assemble(state, (pace, "$foreground" if playing else "$quiet"), (filling, "$accent"))


def first_listed(position: int, count: int, height: int) -> int:
    """Return the first position of a list that has `position` in the middle."""
    return max(min(position - height // 2, count - height), 0)


def list_line(action: Action, width: int, glyphs: Glyphs, *, current: bool) -> Content:
    """Return the row of an action in the list, `width` cells wide."""
    bar = ("▌" if current and glyphs is not ASCII else glyphs.running if current else " ", "$accent")
    text = inline(action_text(action), _UNUSED, glyphs)
    line = Content.assemble(bar, text).truncate(width, ellipsis=True)
    return line.pad_right(max(width - line.cell_length, 0)).stylize("on $panel bold") if current else line


def step_blocks(step: ReplayStep) -> Iterable[Block]:
    """Describe one action: tool, reason, expectation, result, input, diff and output."""
    action, diff, verdict = step.action, step.diff, VERDICT_SIGNS[step.verdict]
    yield line(
        verdict,
        (f"   {action.tool or action.type or 'action'}   ", "strong"),
        Moment(action.at) if action.at is not None else None,
        (f"   next after {format_duration(step.pause)}", "quiet") if step.pause is not None else None,
    )
    inputs = [(f"input {name}", text) for name, text in action.params if not (diff and name in _IN_DIFF)]
    result = Sign(step.real or verdict.text, "", verdict.glyph)
    rows = [("why", action.reasoning), ("expected", action.expected), *inputs]
    short = [row for row in rows if "\n" not in row[1]]
    yield from fields(("result", result if "\n" not in step.real else None), *short)
    for name, text in (*rows, ("result", step.real)):
        if "\n" in text:
            yield from code(name, _head_of(text), "")
    yield from section("Change", code("", "\n".join(diff), "diff"))
    for title, text in (("Error", action.error), ("Output", action.output)):
        if text and text.strip() != step.real:
            yield from section(title, code("", text, ""))


def _head_of(text: str) -> str:
    rows = text.split("\n")
    left = len(rows) - MAX_PARAM_LINES
    return "\n".join([*rows[:MAX_PARAM_LINES], f"… {plural(left, 'more line')}"]) if left > 0 else text


def beside_action(
    detail: AttemptDetail, quality: Sequence[float], glyphs: Glyphs, width: int, height: int
) -> Iterable[Drawable]:
    """Describe `quality`, the values 0..1 up to this action, and the reflections."""
    total = len(detail.attempt.quality)
    yield line(("Quality so far", "strong"), (f"   {percent(quality[-1])}" if quality else "", "quiet"))
    progress = Content.styled(f"{len(quality)} of {plural(total, 'iteration')}", "$quiet")
    chart = line_chart([Run(quality, progress, total)], width, chart_lines(height), glyphs)
    yield from chart or [_unmeasured(total)]
    yield _reflections(detail)


def below_action(detail: AttemptDetail, quality: Sequence[float], glyphs: Glyphs) -> Iterable[Drawable]:
    """Describe the same as `beside_action` in less height: quality on one line."""
    total = len(detail.attempt.quality)
    drawn = _unmeasured(total)
    if quality:
        progress = (f"{len(quality)} of {plural(total, 'iteration')}", "$quiet")
        sparks = (sparkline(quality, _SPARKS, glyphs), "$secondary")
        drawn = Content.assemble(sparks, f" {percent(quality[-1])}   ", progress)
    yield Content("")
    yield Content.assemble(("Quality so far   ", "bold"), drawn)
    yield _reflections(detail)


def _unmeasured(total: int) -> Content:
    return Content.styled("not measured yet" if total else "never measured", "$quiet")


def _reflections(detail: AttemptDetail) -> Block:
    return Section("Reflections on this attempt", tuple(reflection_blocks(detail.reflections, of_task=False)))
