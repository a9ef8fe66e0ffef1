"""Columns of a list, and the text of its cells, for every program that draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from core.documents.document import Text

Align = Literal["left", "right"]
ALWAYS: Final = 9  # priority of a column that is never dropped
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
