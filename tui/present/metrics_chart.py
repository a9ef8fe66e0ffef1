"""Charts of the metrics, readable without colour and in plain ASCII."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Final

from textual.content import Content

from core.base.formatting import format_count
from core.base.text import visible_line
from core.metrics.sections import Figure, Kind, Row, value_text
from core.records.patterns import Maturity
from tui.present.document import MIN_CELLS
from tui.present.glyphs import ASCII, STATE_STYLES, Glyphs

AXIS_CELLS: Final = 7  # Cells of the labels on the left and the axis.
MIN_CHART: Final = 4  # Minimum lines of a chart over weeks, including the week labels.
PLOT_LINES: Final = 5  # Minimum lines of the plot for a legend.
MAX_WEEK: Final = 9
_FILLS: Final = "█▓▒░▚◦"
_ASCII_FILLS: Final = "#=+.%:"
_STYLES: Final = {
    "worked": "$success",
    "failed": "$error",
    "no result": "$warning",
    "injected, no result": "$quiet",
    **{state.value: STATE_STYLES[state] for state in Maturity},
}
"""Styles of parts; a change has the style of the new state, other parts the accent."""


def fill(figure: Figure, part: int, glyphs: Glyphs) -> str:
    """Return the fill character of a part; in ASCII that of a state is its glyph."""
    if glyphs is not ASCII:
        return _FILLS[part % len(_FILLS)]
    states = {state.value: glyphs[state.value] for state in Maturity}
    return states.get(figure.parts[part]) or _ASCII_FILLS[part % len(_ASCII_FILLS)]


def style(figure: Figure, part: int) -> str:
    return _STYLES.get(figure.parts[part].rpartition(" to ")[2], _STYLES.get(figure.parts[part], "$accent"))


def legend(figure: Figure, width: int, glyphs: Glyphs) -> list[Content]:
    """Return the legend: fill character, name and sum of each part."""
    lines = [Content("")]
    for n, part in enumerate(figure.parts):
        count = sum(row.values[n] for row in figure.rows if row.values)
        sign = (fill(figure, n, glyphs), style(figure, n))
        item = Content.assemble(sign, f" {part} ", (value_text(figure, count), "$quiet"))
        if lines[-1] and lines[-1].cell_length + item.cell_length + 3 > width:
            lines.append(Content(""))
        lines[-1] = Content.assemble(lines[-1], "   " if lines[-1] else "", item)
    return lines


def bar_cell(figure: Figure, row: Row, width: int, glyphs: Glyphs) -> Content:
    """Return the bar of a row, on a scale shared by all rows."""
    if figure.kind is Kind.SPANS:
        if not row.values:
            return Content("")
        top = 1.0 if figure.percent else max(max(other.high or 0.0, *other.values) for other in figure.rows) or 1.0
        return _track((row.low or 0.0) / top, row.values[0] / top, (row.high or 0.0) / top, width, glyphs)
    if figure.kind is Kind.CURVE:
        share = row.values[0] if row.values else 0.0
        return Content.styled(fill(figure, 0, glyphs) * _cells([share * width])[0], style(figure, 0))
    scale = max((sum(other.values) for other in figure.rows), default=0.0) or 1.0
    sizes = _cells([value / scale * width for value in row.values])
    return Content.assemble(*((fill(figure, n, glyphs) * size, style(figure, n)) for n, size in enumerate(sizes)))


def interval_cell(row: Row, width: int, glyphs: Glyphs) -> Content:
    """Return the interval of a rate on a scale 0..1."""
    if row.low is None or row.high is None or not row.values:
        return Content("")
    return _track(row.low, row.values[0], row.high, width, glyphs)


def _track(low: float, value: float, high: float, width: int, glyphs: Glyphs) -> Content:
    first, at, last = (round(share * (width - 1)) for share in (low, value, high))
    return Content.assemble(
        (glyphs.line * first, "$rule"),
        (glyphs.range * (at - first), "$accent"),
        (glyphs.point, "$accent bold"),
        (glyphs.range * (last - at), "$accent"),
        (glyphs.line * (width - 1 - last), "$rule"),
    )


def _cells(sizes: Sequence[float]) -> list[int]:
    """Round the parts of a bar to whole cells; each part above 0 gets at least one."""
    cells, done, drawn = [], 0.0, 0
    for size in sizes:
        done += size
        count = max(round(done) - drawn, 1 if size else 0)
        cells.append(count)
        drawn += count
    while drawn > max(round(done), sum(1 for size in sizes if size)):
        largest = cells.index(max(cells))
        cells[largest] -= 1
        drawn -= 1
    return cells


def week_chart(
    figure: Figure, width: int, height: int, glyphs: Glyphs, cursor: int | None = None, *, small: bool = False
) -> list[Content]:
    """Return a chart over weeks: `height` lines with axis, labels and legend.

    If `width` is too small, the weeks furthest from now are dropped. The row `cursor` is marked below the chart. A
    `small` chart shows only the sum of each week, without a legend.
    """
    room = width - AXIS_CELLS
    if room < MIN_CELLS or not figure.rows or height < MIN_CHART:
        return []
    shift = max(len(figure.rows) - room, 0) if figure.rows[-1].week is not None else 0
    rows = figure.rows[shift : shift + room]
    head = legend(figure, width, glyphs) if len(figure.parts) > 1 and not small else []
    if height - 1 - len(head) < PLOT_LINES:
        head = []
    lines = max(height - 1 - len(head), 1)
    step = min(room // len(rows), MAX_WEEK)
    top = 1.0 if figure.percent else nice_top(max(sum(row.values) for row in figure.rows))
    draw = _point if figure.kind is Kind.CURVE else _sum if small else _column
    columns = [draw(figure, row, top, lines, step, glyphs) for row in rows]
    plot = [
        Content.assemble(_axis(figure, top, line, lines, glyphs), *(column[line] for column in columns))
        for line in range(lines)
    ]
    at = None if cursor is None else cursor - shift
    return [*head, *plot, _week_labels(rows, step, at, glyphs)]


def _axis(figure: Figure, top: float, line: int, lines: int, glyphs: Glyphs) -> Content:
    middle = (lines - 1) // 2
    share = {0: 1.0, middle: 1 - middle / max(lines - 1, 1), lines - 1: 0.0}.get(line)
    label = ""
    if share is not None and (figure.percent or (top * share).is_integer()) and (line in (0, lines - 1) or lines % 2):
        label = value_text(figure, top * share)
        label = label if len(label) < AXIS_CELLS else format_count(round(top * share))
    plain = "|" if glyphs is ASCII else "┤" if label else "│"
    return Content.styled(f"{label:>{AXIS_CELLS - 1}}{plain}", "$quiet")


def _column(figure: Figure, row: Row, top: float, lines: int, step: int, glyphs: Glyphs) -> list[Content]:
    """Return the column of a week from the top down, `step` cells with a gap."""
    sizes = _cells([value / top * lines for value in row.values])
    wide = max(step - 1, 1)
    pad = " " * (step - wide)
    cells = [
        Content.assemble((fill(figure, n, glyphs) * wide, style(figure, n)), pad)
        for n, size in enumerate(sizes)
        for _ in range(size)
    ]
    return [Content(" " * step)] * (lines - len(cells)) + cells[::-1][-lines:]


def _sum(figure: Figure, row: Row, top: float, lines: int, step: int, glyphs: Glyphs) -> list[Content]:
    """Return the sum of one week as a column, in eighths of a line except in ASCII."""
    wide = max(step - 1, 1)
    steps = glyphs.full if glyphs is ASCII else glyphs.sparks
    eighths = max(round(sum(row.values) / top * lines * len(steps)), 1 if any(row.values) else 0)
    column = []
    for line in range(lines - 1, -1, -1):
        level = min(max(eighths - line * len(steps), 0), len(steps))
        mark = steps[level - 1] * wide if level else " " * wide
        column.append(Content.assemble((mark, "$accent"), " " * (step - wide)))
    return column


def _point(figure: Figure, row: Row, top: float, lines: int, step: int, glyphs: Glyphs) -> list[Content]:
    """Return a week as a point with its interval or a stem; blank without a rate."""
    blank = Content(" " * step)
    if not row.values:
        return [blank] * lines
    left = " " * ((step - 1) // 2)
    right = " " * (step - 1 - len(left))
    whisker, high_end, low_end = "||'" if glyphs is ASCII else "│┬┴"
    has_interval = row.low is not None and row.high is not None
    at = _line_of(row.values[0], lines)
    point = "*"
    if glyphs is not ASCII:
        at, half = divmod(_line_of(row.values[0], 2 * lines), 2)
        point = "▄" if half else "▀"
    first = _line_of(row.high, lines) if row.high is not None else at
    last = _line_of(row.low, lines) if row.low is not None else lines - 1
    column = []
    for line in range(lines):
        if line == at:
            mark = (point, "$accent bold")
        elif not first <= line <= last:
            column.append(blank)
            continue
        elif has_interval and line == first:
            mark = (high_end if glyphs is not ASCII else "-", "$secondary")
        elif has_interval and line == last:
            mark = (low_end if glyphs is not ASCII else "-", "$secondary")
        else:
            mark = (whisker, "$secondary" if has_interval else "$rule")
        column.append(Content.assemble(left, mark, right))
    return column


def _line_of(rate: float, lines: int) -> int:
    return round((1 - min(max(rate, 0.0), 1.0)) * (lines - 1))


def _week_labels(rows: Sequence[Row], step: int, cursor: int | None, glyphs: Glyphs) -> Content:
    """Return the line of week labels; the selected week is placed first."""
    width = step * len(rows)
    taken: list[tuple[int, int, Content]] = []

    def place(n: int, text: Content) -> None:
        start = min(n * step, max(width - text.cell_length, 0))
        end = start + text.cell_length
        if all(end < other or start > stop for other, stop, _ in taken):
            taken.append((start, end, text))

    if cursor is not None and 0 <= cursor < len(rows):
        mark = "^" if glyphs is ASCII else "▲"
        place(cursor, Content.styled(f"{mark} {visible_line(rows[cursor].label)}", "$accent bold"))
    last_words = [row.label.rpartition(" ")[2] for row in rows]
    years = [word if len(word) == 4 and word.isdecimal() else "" for word in last_words]
    for n, row in enumerate(rows):
        label = row.label.removesuffix(years[n]) if n and years[n] == years[n - 1] else row.label
        place(n, Content.styled(visible_line(label.rstrip()), "$quiet"))
    line = Content(" " * AXIS_CELLS)
    for start, _end, text in sorted(taken, key=lambda one: one[0]):
        line = Content.assemble(line.pad_right(AXIS_CELLS + start - line.cell_length), text)
    return line


def nice_top(value: float) -> float:
    """Return the smallest round number >= `value` whose half is round too."""
    if value <= 1:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    steps = (2, 4, 6, 8, 10) if unit == 1 else (1, 2, 3, 4, 5, 6, 8, 10)
    return next(unit * step for step in steps if unit * step >= value)
