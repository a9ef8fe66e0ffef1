"""Columns of a table, and which of them fit into its width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from core.show.table import ALWAYS

if TYPE_CHECKING:
    from core.show.table import Column

LEAST_FLEX: Final = 10  # minimum cells of a flexible column, even if columns that always stay do not fit


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
