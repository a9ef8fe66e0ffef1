"""The sections of the metrics as text: the list, the rows under a chart, and small pictures of whole sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.content import Content

from core.metrics.figures import Figure, Kind, Row, percent_text, rate_text, value_text
from core.text import visible_line
from tui.present.marks import Cells, Glyphs
from tui.present.metrics_chart import bar_cell, fill, interval_cell, legend, week_chart

RANGE_NAMES: Final[Mapping[int, str]] = {4: "4 weeks", 12: "12 weeks", 52: "1 year"}
TILE_LINES: Final = 6
"""Lines that a tile takes at least: title, takeaway, four lines of picture."""
LABEL_CELLS: Final = 34
"""Cells of a row's label at most."""
_NUMBER_CELLS: Final = 6


def over_weeks(figure: Figure) -> bool:
    """Whether its rows are weeks, so that it has a chart above them."""
    return figure.kind in (Kind.COLUMNS, Kind.CURVE)


def label_cells(figure: Figure) -> int:
    """Cells that the labels of the rows need."""
    return min(max((len(visible_line(row.label)) for row in figure.rows), default=0), LABEL_CELLS)


def part_cells(figure: Figure, part: int) -> int:
    """Cells of the numbers of one part, under its name."""
    return max(len(figure.parts[part]) + 2, _NUMBER_CELLS)


def part_title(figure: Figure, part: int, glyphs: Glyphs) -> str:
    """The heading above the numbers of a part: with the character that it is drawn with, if there are several."""
    return f"{fill(part, glyphs)} {figure.parts[part]}" if len(figure.parts) > 1 else figure.parts[part]


def row_cells(figure: Figure, row: Row, bar_width: int, glyphs: Glyphs) -> Cells:
    """One row: its label, its bar, each value, its interval, and how many cases are behind it."""
    cells = {
        "label": Content(visible_line(row.label)),
        "count": Content.styled(f"{row.count:,}", "$quiet"),
        "reach": _reach(figure, row),
    }
    if figure.kind is Kind.CURVE:
        cells["bar"] = interval_cell(row, bar_width, glyphs)
    elif not over_weeks(figure):
        cells["bar"] = bar_cell(figure, row, bar_width, glyphs)
    for n, value in enumerate(row.values):
        cells[f"part{n}"] = Content.styled(value_text(figure, value), "$foreground" if value else "$quiet")
    if not row.values:
        cells["part0"] = Content.styled("no data", "$quiet")
    return cells


def _reach(figure: Figure, row: Row) -> Content:
    if row.low is None or row.high is None:
        return Content("")
    tell = rate_text if figure.percent else (lambda value: value_text(figure, value))
    return Content.styled(f"{tell(row.low)}–{tell(row.high)}", "$quiet")


def takeaway(figure: Figure) -> Content:
    """What the section says."""
    return Content.styled(visible_line(figure.takeaway), "bold" if figure.rows else "$quiet")


def range_note(weeks: int, keys: tuple[str, str]) -> Content:
    """The ranges that there are, the chosen one lit, between the keys that change it."""
    parts: list[Content | tuple[str, str]] = [(keys[0], "$accent"), (" ", "")]
    for number, name in RANGE_NAMES.items():
        parts += [(name, "bold $accent underline" if number == weeks else "$quiet"), (" ", "")]
    return Content.assemble(*parts, (keys[1], "$accent"))


def tiles(figures: Sequence[Figure], width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Several sections below each other with an empty line between them, as many as have room."""
    count = min(len(figures), (height + 1) // (TILE_LINES + 1))
    if not count:
        return []
    lines: list[Content] = []
    for n, figure in enumerate(figures[:count]):
        room = (height + 1) * (n + 1) // count - (height + 1) * n // count - 1
        lines += [*tile(figure, width, room, glyphs), Content("")]
    return lines[:-1]


def tile(figure: Figure, width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """A whole section, small: exactly `height` lines.

    Args:
        height: At least `TILE_LINES`.
    """
    said = visible_line(figure.takeaway)
    lines = [
        Content.styled(figure.title, "bold $secondary"),
        Content.styled(said, "" if figure.rows else "$quiet").truncate(width, ellipsis=True),
    ]
    room = height - len(lines)
    if over_weeks(figure) and figure.rows:
        lines += week_chart(figure, width, room, glyphs)
    elif figure.rows:
        label = min(label_cells(figure), width // 3)
        several = [legend(figure, width, glyphs)] if len(figure.parts) > 1 and len(figure.rows) < room else []
        bars = width - label - _NUMBER_CELLS - 2
        for row in figure.rows[: room - len(several)]:
            name = Content(visible_line(row.label)).truncate(label, ellipsis=True)
            name = name.pad_right(label - name.cell_length)
            told = percent_text(sum(row.values)) if figure.percent else _number(figure, row)
            drawn = bar_cell(figure, row, bars, glyphs)
            drawn = drawn.pad_right(bars - drawn.cell_length)
            lines.append(Content.assemble(name, " ", drawn, " ", (f"{told:>{_NUMBER_CELLS}}", "$quiet")))
        lines += several
    else:
        lines.append(Content.styled(visible_line(figure.missing), "$quiet").truncate(width, ellipsis=True))
    return [*lines, *[Content("")] * (height - len(lines))]


def _number(figure: Figure, row: Row) -> str:
    return value_text(figure, row.values[0]) if figure.kind is Kind.SPANS else value_text(figure, sum(row.values))
