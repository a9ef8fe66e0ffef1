"""Documents as text on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_decimal, format_percent
from core.base.text import plural, visible
from core.cli.support.output import MIN_ID, Column, day, line, minute, print_table
from core.records.times import minute_of
from core.show.pages import document as doc
from core.show.pages.document import ALWAYS, sign_text
from core.show.pages.reflections import reflection_section

if TYPE_CHECKING:
    from core.records.reflections import Reflection
    from core.show.pages.document import Cells
    from core.show.pages.document import Column as ListColumn

MAX_LINES: Final = 60  # Lines printed of a longer text; `--json` has all of it.
_COLOURS: Final = {
    "strong": "bold",
    "marked": "bold",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "proven": "green",
    "established": "cyan",
    "deprecated": "red",
}
DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


def print_document(document: doc.Document) -> None:
    line((document.title, "bold"))
    print_blocks(document.blocks)


def print_blocks(blocks: Iterable[doc.Block]) -> None:
    """Print blocks; the sections are separated by an empty line."""
    for block in blocks:
        match block:
            case doc.Line():
                line(" " * block.indent, *map(_part, block.parts))
            case doc.Fields():
                for label, parts in block.rows:
                    line(" " * block.indent, f"{label}: ", *map(_part, parts))
            case doc.Items():
                if block.label:
                    line(f"{block.label}:")
                for n, parts in enumerate(block.items, 1):
                    bullet = _part(block.bullet) if block.bullet else f"{n}." if block.is_numbered else "-"
                    line("  ", bullet, " ", *map(_part, parts))
            case doc.Code():
                _print_code(block)
            case doc.Passage():
                _print_passage(block)
            case doc.Table():
                _print_table(block)
            case doc.Section():
                line()
                line(
                    (block.title if block.title.endswith("?") else f"{block.title}:", "bold"),
                    f"  {block.note}" if block.note else "",
                )
                print_blocks(block.blocks)


def print_reflections(reflections: Iterable[Reflection]) -> None:
    """Print reflections as the template of `docs/task-memory.md#reflections`."""
    for section in map(reflection_section, reflections):
        line()
        line((f"## {section.title}", "bold"))
        print_blocks(section.blocks)


def _print_passage(block: doc.Passage) -> None:
    line()
    line((f"**{block.label}**:", "bold"), f" {block.question}" if block.question else "")
    rows = visible(block.text).strip("\n").split("\n") if block.text else []
    for row in rows[:MAX_LINES]:
        line(row)
    if len(rows) > MAX_LINES:
        line(f"and {plural(len(rows) - MAX_LINES, 'line')} more: --json")
    for n, item in enumerate(block.items, 1):
        line(f"{n}. {item}")


def _print_code(block: doc.Code) -> None:
    if block.label:
        line(f"{block.label}:")
    # Secrets that span several lines are only found in the whole text.
    rows = visible(block.text).strip("\n").split("\n")
    for row in rows[:MAX_LINES]:
        line(" " * (block.indent or 2), (row, DIFF_COLOURS.get(row[:1], "") if block.language == "diff" else ""))
    if len(rows) > MAX_LINES:
        line(f"{'':{block.indent or 2}}and {plural(len(rows) - MAX_LINES, 'line')} more: --json")


def _print_table(block: doc.Table) -> None:
    cells = [[_plain(cell) for cell in row] for row in block.rows]
    last = len(block.titles) - 1
    used = [n for n in range(last + 1) if block.titles[n] or any(row[n] for row in cells)]
    if not any(block.titles):
        widths = {n: max(len(row[n]) for row in cells) for n in used}
        for row in cells:
            line("  ".join(f"{row[n]:<{widths[n]}}" for n in used).rstrip())
        return
    columns = [
        Column(
            block.titles[n].upper(),
            itemgetter(position),
            right=n in block.right,
            free=n == last,
            expendable=block.expendable.index(n) + 1 if n in block.expendable else 0,
        )
        for position, n in enumerate(used)
    ]
    print_table(columns, [[row[n] for n in used] for row in cells])


def print_list(columns: Sequence[ListColumn], rows: Iterable[Cells], empty: str = "") -> None:
    """Print a list with headings, or the remark `empty`; an age is printed as a day."""
    texts: dict[str, list[str]] = {column.id: [] for column in columns}
    colours: dict[str, dict[str, str]] = {column.id: {} for column in columns}
    known: dict[str, dict[doc.Text, str]] = {column.id: {} for column in columns}  # most cells equal another one
    count = 0
    for row in rows:
        count += 1
        for id, column_texts in texts.items():
            cell = row.get(id, ())
            if (text := known[id].get(cell)) is None:
                text = known[id][cell] = "".join(map(_cell_text, cell))
                colours[id][text] = next(filter(None, map(_part_colour, cell)), "")
            column_texts.append(text)
    dropped = sorted({column.keep for column in columns if column.keep < ALWAYS})
    print_table(
        [
            Column(
                column.title.upper(),
                texts[column.id].__getitem__,
                right=column.align == "right",
                free=bool(column.flex),
                least=MIN_ID if column.keep_end else 0,
                colours=colours[column.id],
                expendable=dropped.index(column.keep) + 1 if column.keep < ALWAYS else 0,
            )
            for column in columns
        ],
        range(count),
        empty,
    )


def _part_colour(part: doc.Part) -> str:
    """Return the colour of a part that has a text."""
    if isinstance(part, doc.Sign):
        return _colour(part.style) if part.text else ""
    return _colour(part[1]) if isinstance(part, tuple) and part[0] else ""


def _cell_text(part: doc.Part) -> str:
    if isinstance(part, tuple):
        return part[0]
    if isinstance(part, doc.Moment):
        return day(part.at) if part.is_age else minute(part.at)
    return _plain((part,))


def _plain(parts: doc.Text) -> str:
    texts = (_part(part) for part in parts)
    return "".join(text[0] if isinstance(text, tuple) else text for text in texts)


def _part(part: doc.Part) -> str | tuple[str, str]:
    match part:
        case str():
            return part
        case doc.Moment():
            return f"{minute_of(part.at)} UTC" if part.at is not None else "—"
        case doc.Interval():
            return f"({format_decimal(part.low)}–{format_decimal(part.high)})"
        case doc.Bar():
            return ""
        case doc.Sparkline():
            return format_percent(part.values[-1]) if part.values else ""
        case doc.Sign():
            return sign_text(part.text, part.glyph), _colour(part.style)
    text, style = part
    return text, _colour(style)


def _colour(style: str) -> str:
    """Return the colour of a style: that of its last word with a colour."""
    known = [_COLOURS[word] for word in style.split() if word in _COLOURS]
    return next((colour for colour in known if colour != "bold"), known[0] if known else "")
