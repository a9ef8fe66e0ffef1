"""Documents, headings, times, bars and line charts (values 0..1) as styled text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from textual.content import Content

from core.base.formatting import format_age, format_decimal
from core.base.text import plural, visible, visible_line
from core.show.pages import document as doc
from tui.kit.looks import ASCII, Cells, Glyphs, draw, style_of

MIN_CELLS: Final = 20  # Minimum cells of the text beside a label; below that the pane wraps it.
UNBROKEN: Final = 1_000_000  # A width that is never reached: the pane wraps the lines.
MAX_CHARS: Final = 2000
MAX_CODE: Final = 64_000
MAX_CODE_LINES: Final = 200
BAR_CELLS: Final = 10  # Cells of the bar of one value.
_BAR_CELLS: Final = 15
_DIFF_STYLES: Final = {"+": "$success", "-": "$error", "@": "$secondary"}
_MAX_CELL: Final = 36  # Cells of a table column; longer cells push the following ones to the right.
_LAST_CELLS: Final = 40  # Minimum cells of the last column of a table.
_BELOW_CELLS: Final = 6  # Indent of a last column below its row.
_LABEL_CELLS: Final = 18  # Maximum width of the labels to which values are aligned.


Drawable = doc.Block | Content  # A block, or a line that is already drawn.


def document_lines(blocks: Iterable[Drawable], now: datetime, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """Lay out blocks in `width` cells, or without line breaks for `UNBROKEN`."""
    lines: list[Content] = []
    for block in blocks:
        match block:
            case Content():
                lines.append(block)
            case doc.Line():
                lines += hanging(Content(" " * block.indent), inline(block.parts, now, glyphs), width)
            case doc.Fields():
                lines += _fields(block, now, glyphs, width)
            case doc.Items():
                lines += _items(block, now, glyphs, width)
            case doc.Code():
                lines += _code(block, width)
            case doc.Passage():
                lines += _passage(block, width)
            case doc.Table():
                lines += _table(block, now, glyphs, width)
            case doc.Section():
                lines += heading(visible_line(block.title, MAX_CHARS), block.note)
                lines += document_lines(block.blocks, now, glyphs, width)
    return lines


def inline(parts: doc.Text, now: datetime, glyphs: Glyphs) -> Content:
    """Draw the parts of one line, with untrusted text made safe to print."""
    return Content.assemble(*(_part(part, now, glyphs) for part in parts))


def draw_cells(cells: Mapping[str, doc.Text], now: datetime, glyphs: Glyphs) -> Cells:
    """Draw the cells of a row."""
    return {
        id: _part(*parts, now, glyphs) if len(parts) == 1 else inline(parts, now, glyphs) for id, parts in cells.items()
    }


def _part(part: doc.Part, now: datetime, glyphs: Glyphs) -> Content:
    match part:
        case str():
            return Content(visible_line(part.replace("→", glyphs.arrow), MAX_CHARS))
        case doc.Sign():
            return draw(part, glyphs)
        case doc.Moment():
            text = _age(part.at, now) if part.is_age else moment_text(part.at, now)
            return Content.styled(text, style_of(part.style))
        case doc.Interval():
            return Content.styled(interval_bar(part.low, part.high, part.rate, _BAR_CELLS, glyphs), "$quiet")
        case doc.Bar():
            return Content.styled(bar(part.value, part.most, BAR_CELLS, glyphs), "$accent" if part.value else "$quiet")
        case doc.Sparkline():
            return Content.styled(sparkline(part.values, part.cells, glyphs), "$secondary")
    text, style = part
    return Content.styled(visible_line(text, MAX_CHARS), style_of(style))


def _age(moment: datetime | None, now: datetime) -> str:
    """Return an age; a time more than a day in the future is written in full."""
    if moment is None or moment - now < timedelta(days=1):
        return format_age(moment, now)
    return f"in {plural(round((moment - now) / timedelta(days=1)), 'day')}"


def _fields(block: doc.Fields, now: datetime, glyphs: Glyphs, width: int) -> list[Content]:
    cells = min(max(len(label) for label, _ in block.rows), _LABEL_CELLS) + 2 if width < UNBROKEN else 0
    lines: list[Content] = []
    for label, parts in block.rows:
        name = visible_line(label, 60)
        text = f"{'':{block.indent}}{f'{name:<{cells - 2}}  ' if cells else f'{name}: '}"
        lines += hanging(Content.styled(text, "$quiet"), inline(parts, now, glyphs), width)
    return lines


def _items(block: doc.Items, now: datetime, glyphs: Glyphs, width: int) -> list[Content]:
    lines = [Content.styled(f"{visible_line(block.label, 100)}:", "$quiet")] if block.label else []
    for n, parts in enumerate(block.items, 1):
        bullet = draw(block.bullet, glyphs) if block.bullet else Content(f"{n}." if block.is_numbered else "-")
        lines += hanging(Content.assemble("  ", bullet, " "), inline(parts, now, glyphs), width)
    return lines


def _code(block: doc.Code, width: int) -> list[Content]:
    lines = [Content.styled(f"{visible_line(block.label, 100)}:", "$quiet")] if block.label else []
    pad = Content(" " * (block.indent or 2))
    for row in code_rows(block.text):
        if block.language:
            style = _DIFF_STYLES.get(row[:1], "$quiet") if block.language == "diff" else "$secondary"
            lines.append(Content.assemble(pad, (row, style)))
        else:
            lines += hanging(pad, Content(row), width)
    return lines


def _passage(block: doc.Passage, width: int) -> list[Content]:
    lines = [Content.assemble((f"{block.label}:", "bold"), (f" {block.question}" if block.question else "", "$quiet"))]
    pad = Content("  ")
    for row in code_rows(block.text) if block.text else ():
        lines += hanging(pad, Content(row), width)
    for n, item in enumerate(block.items, 1):
        lines += hanging(Content(f"  {n}. "), Content(visible_line(item, MAX_CHARS)), width)
    return lines


def code_rows(text: str) -> list[str]:
    """Split text into at most `MAX_CODE_LINES` safe lines and a note on the rest."""
    rows = visible(text, MAX_CODE).strip("\n").split("\n")
    left = len(rows) - MAX_CODE_LINES
    return [*rows[:MAX_CODE_LINES], *([f"and {plural(left, 'line')} more"] if left > 0 else [])]


def _table(block: doc.Table, now: datetime, glyphs: Glyphs, width: int) -> list[Content]:
    """Lay out a table; if it is too wide, drop columns and move the last one down."""
    titles = [Content.styled(title.replace("→", glyphs.arrow), "$quiet") for title in block.titles]
    rows = [[inline(cell, now, glyphs) for cell in row] for row in block.rows]
    used = [n for n in range(len(titles) - 1) if any(row[n] for row in (titles, *rows))]
    widths = {n: min(max(row[n].cell_length for row in (titles, *rows)), _MAX_CELL) for n in used}
    for n in block.expendable:
        if sum(widths.values()) + 2 * len(widths) + _LAST_CELLS <= width:
            break
        widths.pop(n, None)
    lines: list[Content] = []
    for row in (titles, *rows) if any(block.titles) else rows:
        cells: list[Content | str] = []
        for n, size in widths.items():
            room = max(size - row[n].cell_length, 0)
            cells += [row[n].pad_left(room) if n in block.right else row[n].pad_right(room), "  "]
        start = Content.assemble(*cells)
        if row[-1].cell_length > width - start.cell_length < _LAST_CELLS:
            lines += [start.rstrip(), *hanging(Content(" " * _BELOW_CELLS), row[-1], width)]
        else:
            lines += hanging(start, row[-1], width)
    return lines


def heading(text: str, note: str = "") -> list[Content]:
    """Return an empty line and a heading."""
    return [Content(""), Content.assemble((text, "bold"), (f"   {note}" if note else "", "$quiet"))]


def labelled(label: str, text: str) -> Content:
    """Return a label and a text, which may be untrusted."""
    return Content.assemble((f"{label}: ", "$quiet"), visible_line(text, 2000))


def hanging(label: Content, text: Content, width: int) -> list[Content]:
    """Return text after a label, wrapped and indented to the width of the label."""
    indent = label.cell_length
    room = max(width - indent, MIN_CELLS)
    lines: list[Content] = []
    for part in text.split("\n", allow_blank=True):
        lines += part.wrap(room) if part.cell_length > room else [part]
    first, *others = lines or [Content("")]
    return [Content.assemble(label, first), *(line.pad_left(indent) for line in others)]


# Times and numbers


def moment_text(moment: datetime | None, now: datetime) -> str:
    """Return a local timestamp: `today 14:05`, `3 May 14:05`, `3 May 2025`."""
    if moment is None:
        return "—"
    local = to_local(moment)
    if now - timedelta(days=1) < moment <= now and local.date() == now.astimezone().date():
        return f"today {local:%H:%M}"
    return f"{local.day} {local:%b %H:%M}" if abs((now - moment).days) < 300 else f"{local.day} {local:%b %Y}"


def to_local(moment: datetime) -> datetime:
    """Convert to local time; a time that would overflow stays unchanged."""
    try:
        return moment.astimezone()
    except (OverflowError, ValueError, OSError):
        return moment


def bar(done: float, total: float | None, width: int, glyphs: Glyphs) -> str:
    """Return a progress bar of `width` cells; it is empty without a total."""
    filled = min(width, max(0, round(width * done / total))) if total and total > 0 else 0
    return glyphs.full * filled + glyphs.empty * (width - filled)


def sparkline(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """Return the last `width` values 0..1 as one character each."""
    top = len(glyphs.sparks) - 1
    return "".join(glyphs.sparks[min(top, max(0, round(value * top)))] for value in values[-width:])


def interval_bar(low: float, high: float, rate: float | None, width: int, glyphs: Glyphs) -> str:
    """Return an interval 0..1 with a cross at the rate: `0.78 ┄┄━╋━ 0.99`."""
    cells = [glyphs.line] * width
    for n in range(int(low * (width - 1) + 0.5), int(high * (width - 1) + 0.5) + 1):
        cells[n] = glyphs.range
    if rate is not None:
        cells[min(width - 1, int(rate * (width - 1) + 0.5))] = glyphs.point
    return f"{format_decimal(low)} {''.join(cells)} {format_decimal(high)}"


AXIS_CELLS: Final = 6  # Cells of the labels on the left and the axis.
MIN_RUN_CELLS: Final = 3  # Minimum cells of a run; the oldest runs are dropped if there is too little room.
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
    runs = runs[-max((room + 1) // (MIN_RUN_CELLS + 1), 1) :]
    if not runs or room < MIN_RUN_CELLS:
        return []
    widest = (max((run.count - 1) * MAX_STEP + 1, run.label.cell_length, MIN_RUN_CELLS) for run in runs)
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
    spare = room - (len(counts) - 1) - MIN_RUN_CELLS * len(counts)
    total = sum(counts)
    start = done = 0
    for count in counts:
        before, done = done, done + count
        cells = MIN_RUN_CELLS + spare * done // total - spare * before // total
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
