"""Layout of documents, headings, times and bars as styled terminal text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from textual.content import Content

from core.base.formatting import format_age, format_decimal
from core.base.text import plural, visible, visible_line
from core.show.pages import document as doc
from tui.kit.glyphs import Cells, Glyphs, draw, style_of

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
