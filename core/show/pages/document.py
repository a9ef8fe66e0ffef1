"""Blocks of which documents consist, their plain text, and the columns of lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from core.base.formatting import format_decimal, format_percent
from core.base.text import end_with_ellipsis, plural, visible_line
from core.records.times import day_of

_CHARACTERS: Final = {
    "done": "✓",
    "failed": "✗",
    "no_result": "·",
    "dash": "—",
    "arrow": "→",
    "knot": "◆",
    "branch": "├",
    "branch_bar": "│",
    "branch_end": "└",
}


class Sign(Struct, frozen=True):
    """Text with a glyph before it; either may be empty.

    `style` has words separated by spaces: strong, marked, quiet, name, accent, good, bad, warning, strike or a pattern
    state.
    `glyph` is an attribute of `tui.kit.looks.Glyphs`.
    """

    text: str
    style: str = ""
    glyph: str = ""


class Moment(Struct, frozen=True):
    """A timestamp; `is_age` renders the time passed since then on a screen."""

    at: datetime | None
    style: str = "quiet"
    is_age: bool = False


class Interval(Struct, frozen=True):
    """An interval of a rate, 0..1."""

    low: float
    high: float
    rate: float | None = None


class Bar(Struct, frozen=True):
    """A bar of `value` of `most`, drawn only on screens; the numbers are beside it."""

    value: float
    most: float


class Sparkline(Struct, frozen=True):
    """Values 0..1: a screen draws the last `cells`, others print the last as percent."""

    values: tuple[float, ...]
    cells: int


# Plain text, (text, style), or one of the classes above.
Part = str | tuple[str, str] | Sign | Moment | Interval | Bar | Sparkline
Text = tuple[Part, ...]  # One line or paragraph.


class Line(Struct, frozen=True):
    parts: Text
    indent: int = 0


class Fields(Struct, frozen=True):
    rows: tuple[tuple[str, Text], ...]
    indent: int = 0


class Items(Struct, frozen=True):
    """A list below an optional label."""

    label: str
    items: tuple[Text, ...]
    is_numbered: bool = False
    bullet: Sign | None = None


class Code(Struct, frozen=True):
    """Lines shown as they are; language `diff` is coloured, "" is prose."""

    text: str
    label: str = ""
    language: str = "text"
    indent: int = 0


class Passage(Struct, frozen=True):
    """A prose text or numbered items below a label and the question that they answer."""

    label: str
    question: str = ""
    text: str = ""
    items: tuple[str, ...] = ()


class Table(Struct, frozen=True):
    """Rows below column titles; the last column holds free text.

    `right` has the indexes of columns aligned to the right, `expendable` of those dropped for lack of room, in order.
    """

    titles: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    right: tuple[int, ...] = ()
    expendable: tuple[int, ...] = ()


class Section(Struct, frozen=True):
    title: str
    blocks: tuple[Block, ...]
    note: str = ""


Block = Line | Fields | Items | Code | Passage | Table | Section


class Document(Struct, frozen=True):
    title: str
    blocks: tuple[Block, ...]


def line(*parts: Part | None, indent: int = 0) -> Line:
    """Make a line of the parts that are not None or empty."""
    return Line(tuple(part for part in parts if part not in (None, "")), indent)


def fields(*rows: tuple[str, Part | Text | None], indent: int = 0) -> Iterable[Fields]:
    """Make a list with one block of the rows that have a value, or an empty list."""
    empty = (None, "", ())
    known = tuple(
        (label, as_text(value))
        for label, value in rows
        if value not in empty and not (isinstance(value, Moment) and value.at is None)
    )
    return [Fields(known, indent)] if known else []


def items(
    label: str, values: Sequence[Part | Text], *, is_numbered: bool = False, bullet: Sign | None = None
) -> Iterable[Items]:
    return [Items(label, tuple(map(as_text, values)), is_numbered, bullet)] if values else []


def code(label: str, text: str, language: str = "text", indent: int = 0) -> Iterable[Code]:
    return [Code(text, label, language, indent)] if text.strip() else []


def section(title: str, blocks: Iterable[Block], note: str = "") -> Iterable[Section]:
    found = tuple(blocks)
    return [Section(title, found, note)] if found else []


def as_text(value: Part | Text | None) -> Text:
    """Return the value as a tuple of parts; `("text", "style")` is one part."""
    if isinstance(value, tuple) and not (len(value) == 2 and all(isinstance(one, str) for one in value)):
        return value
    return (value,) if value is not None else ()  # type: ignore[return-value]


def limited(values: Sequence[Part | Text], noun: str, limit: int) -> Iterable[Block]:
    """Make a list of the first `limit` values and the number of omitted values."""
    return [*items("", values[:limit]), *more(len(values), noun, limit)]


def more(count: int, noun: str, shown: int) -> Iterable[Line]:
    """Make a line with the number of items omitted from a list, if any."""
    return [line((f"and {plural(count - shown, f'more {noun}')}", "quiet"))] if count > shown else []


def plain_text(parts: Text) -> str:
    """Return the text of parts without styles; a glyph without a text is a character."""
    return "".join(map(part_text, parts))


def part_text(part: Part) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Moment):
        return moment_text(part.at)
    if isinstance(part, Interval):
        return f"{format_decimal(part.low)}–{format_decimal(part.high)}"
    if isinstance(part, Bar):
        return ""
    if isinstance(part, Sparkline):
        return format_percent(part.values[-1]) if part.values else ""
    return part[0] if isinstance(part, tuple) else sign_text(part.text, part.glyph)


def moment_text(at: datetime | None) -> str:
    return f"{day_of(at)} {at:%H:%M:%S} UTC" if at else "—"


def sign_text(text: str, glyph: str) -> str:
    """Return the text of a sign, or a character for its glyph if it has no text."""
    return text or _CHARACTERS.get(glyph, "")


Align = Literal["left", "right"]
ALWAYS: Final = 9  # priority of a column that is never dropped
MAX_TITLE: Final = 50  # characters in a page, which is printed at any width
Cells: TypeAlias = Mapping[str, Text]  # one row: the text of each column, by column ID


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `id` identifies its cells and its sort order."""

    id: str
    title: str
    width: int  # minimum cells
    flex: int = 0  # share of the remaining space; 0 keeps `width`
    align: Align = "left"
    keep: int = ALWAYS  # priority if space is short: low values are dropped first
    keep_end: int = 0  # characters to keep at the end when a cell is cut, for IDs
    best: int = 0  # width that shows all content; used before flexible columns grow
    about: str = ""  # what the column shows, for the help


def list_words(columns: Sequence[Column], cells: Cells) -> dict[str, str]:
    """Return the texts of a row's cells by heading, or by ID without a heading."""
    return {column.title or column.id: plain_text(cells[column.id]) for column in columns if column.id in cells}


def list_table(columns: Sequence[Column], rows: Sequence[Cells], ids: Sequence[str]) -> Table:
    """Return columns of a list as a table, with shortened titles to make room."""
    titles = {column.id: column.title for column in columns}
    cells = tuple(tuple(_short(row.get(id, ()), id) for id in ids) for row in rows)
    return Table(tuple(titles[id] for id in ids), cells)


def _short(cell: Text, column: str) -> Text:
    if column != "title" or len(text := visible_line(plain_text(cell))) <= MAX_TITLE:
        return cell
    return (end_with_ellipsis(text[: MAX_TITLE - 1]),)
