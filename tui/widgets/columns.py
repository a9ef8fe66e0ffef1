"""Columns of a table, and which of them fit into its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Align = Literal["left", "right"]

LEAST_FLEX: Final = 10  # minimum cells of a flexible column, even if columns that always stay do not fit
ALWAYS: Final = 9  # priority of a column that is never dropped


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


def fit_columns(columns: Sequence[Column], room: int) -> tuple[tuple[Column, int], ...]:
    """Return the columns that fit into `room` cells, each with its width."""
    fitting = list(columns)
    while len(fitting) > 1 and sum(column.width + 1 for column in fitting) - 1 > room:
        lowest = min(fitting, key=lambda column: column.keep)
        if lowest.keep >= ALWAYS:
            break
        fitting.remove(lowest)
    return tuple(zip(fitting, _widths(fitting, room), strict=True))


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """Distribute `room` cells over the columns, with a gap of one cell between columns."""
    widths = [column.width for column in columns]
    left = room - (sum(widths) + len(widths) - 1)
    for n, column in enumerate(columns):
        if left < 0 and column.flex:
            widths[n] = max(column.width + left, min(column.width, LEAST_FLEX))
            left += column.width - widths[n]
        elif (more := column.best - column.width) > 0 and left > 0 and (column.flex or more <= left):
            widths[n] += min(more, left)
            left -= min(more, left)
    shares = sum(column.flex for column in columns)
    spare = max(left, 0)
    return [
        width + (spare * column.flex // shares if shares else 0) for width, column in zip(widths, columns, strict=True)
    ]
