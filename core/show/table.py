"""Columns of a list, and the text of its cells, for every program that draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from core.base.text import end_with_ellipsis, visible_line
from core.show.pages.document import Table, Text
from core.show.pages.markdown import plain_text

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
    """Return the cells of a row as texts by heading, or by ID of a column without a heading."""
    return {column.title or column.id: plain_text(cells[column.id]) for column in columns if column.id in cells}


def list_table(columns: Sequence[Column], rows: Sequence[Cells], ids: Sequence[str]) -> Table:
    """Return these columns of a list as a table of a page; titles are shortened, so that what is beside them fits."""
    titles = {column.id: column.title for column in columns}
    cells = tuple(tuple(_short(row.get(id, ()), id) for id in ids) for row in rows)
    return Table(tuple(titles[id] for id in ids), cells)


def _short(cell: Text, column: str) -> Text:
    if column != "title" or len(text := visible_line(plain_text(cell))) <= MAX_TITLE:
        return cell
    return (end_with_ellipsis(text[: MAX_TITLE - 1]),)
