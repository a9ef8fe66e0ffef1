"""Sections of the metrics: rows of numbers, and tiles that show a whole section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from rich.cells import cell_len
from textual.content import Content

from core.base.formatting import format_decimal, format_percent
from core.base.text import visible_line
from core.metrics.sections import Figure, Kind, Row, value_text
from core.records.patterns import Maturity
from tui.present.glyphs import STATE_SHORT, Cells, Glyphs
from tui.present.metrics_chart import bar_cell, fill, interval_cell, legend, week_chart

RANGE_NAMES: Final[Mapping[int, str]] = {4: "4 weeks", 12: "12 weeks", 52: "1 year"}
TILE_LINES: Final = 8  # Minimum lines of a tile over weeks: title, takeaway, five lines of plot, week labels.
TILE_COLUMNS: Final = 4
TILE_ROWS: Final = 2
TILE_GAP: Final = 3
NOT_DRAWN: Final = "Not enough data for a chart yet."
MAX_BARS: Final = 4
MAX_LABEL_CELLS: Final = 34
_NUMBER_CELLS: Final = 6


def over_weeks(figure: Figure) -> bool:
    return figure.kind in (Kind.COLUMNS, Kind.CURVE)


def label_cells(figure: Figure) -> int:
    widest = max((cell_len(visible_line(row.label)) for row in figure.rows), default=0)
    return min(max(widest, len(figure.about)), MAX_LABEL_CELLS)


class Title(Enum):
    """Length of column headings; `MARK` is a fill character that needs a legend."""

    WHOLE = 0
    SHORT = 1
    MARK = 2


def part_title(figure: Figure, part: int, glyphs: Glyphs, form: Title) -> str:
    """Return the heading of a part; with several parts also its fill character."""
    name = figure.parts[part]
    if form is Title.MARK and over_weeks(figure) and len(figure.parts) > 1:
        return fill(figure, part, glyphs)
    if form is not Title.WHOLE:
        for state in Maturity:
            name = name.replace(state.value, STATE_SHORT[state]).replace(" to ", "-")
    return f"{fill(figure, part, glyphs)} {name}" if len(figure.parts) > 1 else name


def row_cells(figure: Figure, row: Row, bar_width: int, glyphs: Glyphs) -> Cells:
    """Return the cells of a row: label, bar, values, interval, and cases."""
    reach = ""
    if row.low is not None and row.high is not None:
        low, high = (format_decimal(end) if figure.percent else value_text(figure, end) for end in (row.low, row.high))
        reach = f"{low}–{high}"
    cells = {
        "label": Content(visible_line(row.label)),
        "count": Content.styled(f"{row.count:,}", "$quiet"),
        "reach": Content.styled(reach, "$quiet"),
        "extra": Content(visible_line(row.extra)),
    }
    if figure.kind is Kind.CURVE and figure.reach:
        cells["bar"] = interval_cell(row, bar_width, glyphs)
    else:
        cells["bar"] = bar_cell(figure, row, bar_width, glyphs)
    for n, value in enumerate(row.values):
        cells[f"part{n}"] = Content.styled(value_text(figure, value), "$foreground" if value else "$quiet")
    if not row.values:
        cells["part0"] = Content.styled("too few" if figure.kind is Kind.SPANS else "no data", "$quiet")
    return cells


def takeaway(figure: Figure) -> Content:
    return Content.styled(visible_line(figure.takeaway), "bold" if figure.rows else "$quiet")


def range_note(weeks: int, keys: tuple[str, str]) -> Content:
    """Return the time ranges, the selected one highlighted, between their two keys."""
    parts: list[Content | tuple[str, str]] = [(keys[0], "$accent"), (" ", "")]
    for number, name in RANGE_NAMES.items():
        parts += [(name, "bold $accent underline" if number == weeks else "$quiet"), (" ", "")]
    return Content.assemble(*parts, (keys[1], "$accent"))


def tiles(figures: Sequence[Figure], width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return as many tiles as fit, one below the other."""
    shown = fitting(figures, height)
    spare = height + 1 - sum(_least(figure) + 1 for figure in shown)
    growing = [figure for figure in shown if over_weeks(figure) and figure.rows]
    lines: list[Content] = []
    for figure in shown:
        more = 0
        if figure in growing:
            at = growing.index(figure)
            more = spare * (at + 1) // len(growing) - spare * at // len(growing)
        lines += [*tile(figure, width, _least(figure) + more, glyphs), Content("")]
    return lines[:-1]


def grid(figures: Sequence[Figure], width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return a grid of equal tiles in `height` lines; [] if not even one row fits."""
    rows = min((height + 1) // (TILE_LINES + 1), TILE_ROWS)
    if not rows:
        return []
    cells, high = (width - TILE_GAP * (TILE_COLUMNS - 1)) // TILE_COLUMNS, (height + 1) // rows - 1
    lines: list[Content] = []
    for row in range(rows):
        shown = figures[row * TILE_COLUMNS : (row + 1) * TILE_COLUMNS]
        drawn = [tile(figure, cells, high, glyphs) for figure in shown]
        for parts in zip(*drawn, strict=True):
            lines.append(Content(" " * TILE_GAP).join(part.pad_right(cells - part.cell_length) for part in parts))
        lines.append(Content(""))
    return lines[:-1]


def is_drawable(figure: Figure) -> bool:
    """Whether a section has data for a chart; intervals without width are not enough."""
    return figure.kind is not Kind.SPANS or any((row.high or 0.0) > (row.low or 0.0) for row in figure.rows)


def _picture_lines(figure: Figure) -> int:
    if not figure.rows or not is_drawable(figure):
        return 1
    return TILE_LINES - 2 if over_weeks(figure) else min(len(figure.rows), 2) + (len(figure.parts) > 1)


def _wrapped(text: str, style: str, width: int, most: int) -> list[Content]:
    """Wrap untrusted text to 1..`most` lines; cut text ends with an ellipsis."""
    lines = Content.styled(visible_line(text), style).wrap(width)
    most = max(most, 1)
    if len(lines) <= most:
        return list(lines)
    last = Content(lines[most - 1].plain.rstrip()).truncate(width - 1)
    return [*lines[: most - 1], Content.styled(f"{last.plain.rstrip()}…", style)]


def fitting(figures: Sequence[Figure], height: int) -> list[Figure]:
    shown: list[Figure] = []
    for figure in figures:
        if sum(_least(other) + 1 for other in (*shown, figure)) - 1 <= height:
            shown.append(figure)
    return shown


def _least(figure: Figure) -> int:
    if over_weeks(figure) and figure.rows:
        return TILE_LINES
    several = 1 if len(figure.parts) > 1 and figure.rows else 0
    return 2 + max(min(len(figure.rows), MAX_BARS) + several, 1)


def tile(figure: Figure, width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return a section in `height` lines: at least 3, or `TILE_LINES` over weeks."""
    lines = [
        Content.styled(figure.title, "bold $secondary"),
        *_wrapped(figure.takeaway, "" if figure.rows else "$quiet", width, height - 1 - _picture_lines(figure)),
    ]
    room = height - len(lines)
    if over_weeks(figure) and figure.rows:
        lines += week_chart(figure, width, room, glyphs, small=True)
    elif figure.rows and is_drawable(figure):
        label = min(label_cells(figure), width // 3)
        several = legend(figure, width, glyphs) if len(figure.parts) > 1 else []
        bars = width - label - _NUMBER_CELLS - 2
        for row in figure.rows[: max(room - len(several), 1)]:
            name = Content(visible_line(row.label)).truncate(label, ellipsis=True)
            name = name.pad_right(label - name.cell_length)
            rate = format_percent(sum(row.values)) if row.values else "—"
            number = rate if figure.percent else value_text(figure, sum(row.values))
            drawn = bar_cell(figure, row, bars, glyphs)
            drawn = drawn.pad_right(bars - drawn.cell_length)
            lines.append(Content.assemble(name, " ", drawn, " ", (f"{number:>{_NUMBER_CELLS}}", "$quiet")))
        lines += several
    else:
        lines += _wrapped(figure.missing or NOT_DRAWN, "$quiet", width, room)
    return [*lines, *[Content("")] * (height - len(lines))]
