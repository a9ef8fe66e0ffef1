"""Metrics as figures: rows of numbers under a heading, with a one-line takeaway.

The screen, the CLI, CSV and Markdown all render these figures.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from core.base.formatting import format_decimal, format_percent


class Kind(Enum):
    """Kind of chart."""

    BARS = "bars"  # one bar per row, its values side by side
    COLUMNS = "columns"  # one column per week, its values stacked
    CURVE = "curve"  # one rate 0..1 per week with its interval; a week without a value is a gap
    SPANS = "spans"  # one value per row with its interval; all rows share a scale


class Goal(Struct, frozen=True):
    """Link of a row: a screen, with a filter of its list or the key of a record."""

    place: str
    filter: str = ""
    key: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """One row.

    `week` is the number of weeks back, 0 for the current one, for a row that links to the patterns used in its week.
    """

    label: str  # name; may be untrusted text
    values: tuple[float, ...]  # one value for each part of the figure; empty if unknown
    low: float | None = None  # ends of the interval that `reach` of the figure names
    high: float | None = None
    count: int = 0
    goal: Goal | None = None
    week: int | None = None


class Figure(Struct, frozen=True, kw_only=True):
    """One section of the metrics."""

    id: str  # name in JSON and CSV
    title: str
    takeaway: str  # result in one line
    kind: Kind
    about: str  # heading of the labels
    parts: tuple[str, ...]  # headings of the values
    rows: tuple[Row, ...] = ()  # rows in order; weeks oldest first
    reach: str = ""  # heading of the interval; "" without one
    note: str = ""  # how to read the figure
    percent: bool = False  # whether values are rates, 0..1
    missing: str = ""  # what the figure needs, if it has no rows

    @property
    def total(self) -> float:
        """Sum of all values."""
        return sum(sum(row.values) for row in self.rows)


MAX_NAMED: Final = 3  # highest number of items that a takeaway names


def value_text(figure: Figure, value: float) -> str:
    """Format a value of a figure."""
    if figure.percent:
        return format_percent(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def reach_text(figure: Figure, row: Row) -> str:
    """Format the interval of a row, `0.23 – 0.91`; "" without one."""
    if row.low is None or row.high is None:
        return ""
    write = format_decimal if figure.percent else (lambda value: value_text(figure, value))
    return f"{write(row.low)} – {write(row.high)}"
