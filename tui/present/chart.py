"""Values 0..1 drawn as a line, with labelled axes: in dots of Braille, or in plain ASCII."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from tui.present.marks import ASCII, Glyphs

AXIS_CELLS: Final = 6
"""Cells of the labels at the left, with the axis itself."""
LEAST_CELLS: Final = 3
"""Cells that each run gets at least; runs that have no room are left out, the oldest first."""
_BRAILLE: Final = 0x2800
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a Braille character, by row and column."""


@dataclass(frozen=True, slots=True)
class Run:
    """Values that belong together, such as the iterations of one attempt; between two runs the line is broken.

    Attributes:
        values: 0..1, in order.
        label: What stands below its start; displayable as it is.
        places: How many values it will have, where more are to come: the line ends where it is by now.
    """

    values: Sequence[float]
    label: Content
    places: int = 0


@dataclass(frozen=True, slots=True)
class _Canvas:
    """Where dots can be set: `fine` of them a cell in each direction (columns, rows)."""

    width: int
    height: int
    fine: tuple[int, int]
    cells: list[list[int]]

    def line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Set all dots between two of them, these included."""
        (x, y), (to_x, to_y) = start, end
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(steps + 1):
            self._dot(round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps))

    def _dot(self, x: int, y: int) -> None:
        columns, rows = self.fine
        self.cells[y // rows][x // columns] |= _DOTS[y % rows][x % columns]


def line_chart(runs: Sequence[Run], width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """The runs beside each other: `height` lines of chart, then one of labels; nothing where there is no value.

    Args:
        width: Cells there are, axis included.
        height: Lines of the chart: odd, so that 50 % has one, and at least 3.
    """
    runs = [run for run in runs if run.values]
    room = width - AXIS_CELLS
    runs = runs[-max((room + 1) // (LEAST_CELLS + 1), 1) :]
    if not runs or room < LEAST_CELLS:
        return []
    plain = glyphs is ASCII
    canvas = _Canvas(room, height, (1, 1) if plain else (2, 4), [[0] * room for _ in range(height)])
    spans = list(_spans([len(run.values) for run in runs], room))
    for run, (start, cells) in zip(runs, spans, strict=True):
        _draw(canvas, run, start, cells)
    breaks = {start - 1 for start, _ in spans[1:]}
    lines = [_row(canvas, row, breaks, plain=plain) for row in range(height)]
    labels = _labels(runs, spans).pad_left(AXIS_CELLS)
    return [*lines, labels] if labels.plain.strip() else lines


def _spans(counts: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """The first cell and the number of cells of each run: by its count, with a cell between two of them."""
    spare = room - (len(counts) - 1) - LEAST_CELLS * len(counts)
    total = sum(counts)
    start = done = 0
    for count in counts:
        before, done = done, done + count
        cells = LEAST_CELLS + spare * done // total - spare * before // total
        yield start, cells
        start += cells + 1


def _draw(canvas: _Canvas, run: Run, start: int, cells: int) -> None:
    values, last = run.values, max(run.places, len(run.values), 2) - 1
    columns, rows = canvas.fine
    left, width, lowest = start * columns, cells * columns, canvas.height * rows - 1

    def point(n: int) -> tuple[int, int]:
        value = min(max(values[n], 0.0), 1.0)
        return left + round((width - 1) * n / last), round((1 - value) * lowest)

    if len(values) == 1:
        x, y = point(0)
        canvas.line((x, y), (x + columns, y))
    for n in range(len(values) - 1):
        canvas.line(point(n), point(n + 1))


def _row(canvas: _Canvas, row: int, breaks: set[int], *, plain: bool) -> Content:
    middle = (canvas.height - 1) // 2
    label = {0: "100 %", middle: "50 %", canvas.height - 1: "0 %"}.get(row, "")
    parts: list[tuple[str, str]] = [(f"{label:>5}{'|' if plain else '┤' if label else '│'}", "$quiet")]
    for column, dots in enumerate(canvas.cells[row]):
        if dots:
            parts.append(("*" if plain else chr(_BRAILLE + dots), "$accent"))
        elif column in breaks:
            parts.append((":" if plain else "┊", "$rule"))
        else:
            parts.append((" ", ""))
    return Content.assemble(*parts)


def _labels(runs: Sequence[Run], spans: Sequence[tuple[int, int]]) -> Content:
    """Each label below the start of its run, where it has room up to the next one."""
    line = Content("")
    for run, (start, cells) in zip(runs, spans, strict=True):
        if line.cell_length <= start and run.label.cell_length <= cells + 1:
            line = Content.assemble(line.pad_right(start - line.cell_length), run.label)
    return line
