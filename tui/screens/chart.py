"""Line charts of values 0..1 with labelled axes, in Braille dots or plain ASCII."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from textual.content import Content

from tui.kit.glyphs import ASCII, Glyphs

AXIS_CELLS: Final = 6  # Cells of the labels on the left and the axis.
MIN_CELLS: Final = 3  # Minimum cells of a run; the oldest runs are dropped if there is too little room.
MAX_STEP: Final = 10  # Maximum cells between two values; wider charts look flat.
_MIN_POINT_STEP: Final = 3  # Minimum cells between two values for each to be drawn as a point.
_BRAILLE: Final = 0x2800
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a Braille character, by row and column."""


@dataclass(frozen=True, slots=True)
class Run:
    """A line through values 0..1; `places` is the expected number of values.

    `label` is already safe to print and is shown below the first value. `ticks` replace it: one below each value that
    has room.
    """

    values: Sequence[float]
    label: Content
    places: int = 0
    ticks: Sequence[str] = ()

    @property
    def count(self) -> int:
        return max(self.places, len(self.values))


@dataclass(frozen=True, slots=True)
class _Canvas:
    """Cells of `fine` (columns, rows) dots each; `points` are marked cells."""

    width: int
    height: int
    fine: tuple[int, int]
    cells: list[list[int]]
    points: set[tuple[int, int]]

    def line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Draw a line; it is two dots thick in Braille."""
        (x, y), (to_x, to_y) = start, end
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(steps + 1):
            column, row = round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps)
            self._dot(column, row)
            if self.fine[1] > 1:
                self._dot(column, min(row + 1, self.height * self.fine[1] - 1))

    def _dot(self, x: int, y: int) -> None:
        columns, rows = self.fine
        self.cells[y // rows][x // columns] |= _DOTS[y % rows][x % columns]


def line_chart(runs: Sequence[Run], width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return a chart of the runs side by side: `height` lines and a line of labels.

    Returns [] without values or room. `width` includes the axis; `height` is odd, for a line at 50 %, and at least 3.
    """
    runs = [run for run in runs if run.values]
    room = width - AXIS_CELLS
    runs = runs[-max((room + 1) // (MIN_CELLS + 1), 1) :]
    if not runs or room < MIN_CELLS:
        return []
    widest = (max((run.count - 1) * MAX_STEP + 1, run.label.cell_length, MIN_CELLS) for run in runs)
    room = min(room, sum(cells + 1 for cells in widest) - 1)
    plain = glyphs is ASCII
    canvas = _Canvas(room, height, (1, 1) if plain else (2, 4), [[0] * room for _ in range(height)], set())
    spans = list(_spans([run.count for run in runs], room))
    for run, (start, cells) in zip(runs, spans, strict=True):
        _draw(canvas, run, start, cells)
    breaks = {start - 1 for start, _ in spans[1:]}
    lines = [_row(canvas, row, breaks, glyphs) for row in range(height)]
    labels = _labels(runs, spans).pad_left(AXIS_CELLS)
    return [*lines, labels] if labels.plain.strip() else lines


def _spans(counts: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Yield first cell and width of each run, in proportion to its number of values."""
    spare = room - (len(counts) - 1) - MIN_CELLS * len(counts)
    total = sum(counts)
    start = done = 0
    for count in counts:
        before, done = done, done + count
        cells = MIN_CELLS + spare * done // total - spare * before // total
        yield start, cells
        start += cells + 1


def _cell(run: Run, number: int, cells: int) -> int:
    return (cells - 1) * number // max(run.count - 1, 1)


def _draw(canvas: _Canvas, run: Run, start: int, cells: int) -> None:
    columns, rows = canvas.fine
    lowest = canvas.height * rows - 1
    marked = (cells - 1) >= _MIN_POINT_STEP * (run.count - 1)
    points = [
        ((start + _cell(run, n, cells)) * columns, round((1 - min(max(value, 0.0), 1.0)) * lowest))
        for n, value in enumerate(run.values)
    ]
    for one, other in pairwise(points):
        canvas.line(one, other)
    for x, y in points if marked else points[:1] if len(points) == 1 else ():
        canvas.points.add((y // rows, x // columns))


def _row(canvas: _Canvas, row: int, breaks: set[int], glyphs: Glyphs) -> Content:
    plain = glyphs is ASCII
    middle = (canvas.height - 1) // 2
    label = {0: "100 %", middle: "50 %", canvas.height - 1: "0 %"}.get(row, "")
    parts: list[tuple[str, str]] = [(f"{label:>5}{'|' if plain else '┤' if label else '│'}", "$quiet")]
    for column, dots in enumerate(canvas.cells[row]):
        if (row, column) in canvas.points:
            parts.append(("o" if plain else glyphs.proven, "$accent bold"))
        elif dots:
            parts.append(("*" if plain else chr(_BRAILLE + dots), "$accent"))
        elif column in breaks:
            parts.append((":" if plain else "┊", "$rule"))
        else:
            parts.append((" ", ""))
    return Content.assemble(*parts)


def _labels(runs: Sequence[Run], spans: Sequence[tuple[int, int]]) -> Content:
    """Return the line of labels and ticks; those without room are left out."""
    line = Content("")
    end = sum(spans[-1])
    for run, (start, cells) in zip(runs, spans, strict=True):
        ticks = [(start + _cell(run, n, cells), Content.styled(tick, "$quiet")) for n, tick in enumerate(run.ticks)]
        for at, label in ticks or [(start, run.label)]:
            free = line.cell_length + (1 if ticks and line else 0)
            at = min(at, end - label.cell_length) if ticks else at
            if free <= at and at + label.cell_length <= min(start + cells + 1, end):
                line = Content.assemble(line.pad_right(at - line.cell_length), label)
    return line
