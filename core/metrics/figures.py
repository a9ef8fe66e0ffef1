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

    Attributes:
        label: Name; may be untrusted text.
        values: One value for each part of the figure; empty if unknown.
        low, high: Ends of the interval that `reach` of the figure names.
        count: Number of cases.
        goal: Link to a screen.
        week: Number of weeks back, 0 for the current week; for a row that links to the patterns used in its week.
    """

    label: str
    values: tuple[float, ...]
    low: float | None = None
    high: float | None = None
    count: int = 0
    goal: Goal | None = None
    week: int | None = None


class Figure(Struct, frozen=True, kw_only=True):
    """One section of the metrics.

    Attributes:
        id: Name in JSON and CSV.
        title: Heading.
        takeaway: Result in one line.
        kind: Kind of chart.
        about: Heading of the labels.
        parts: Headings of the values.
        rows: Rows in order; weeks oldest first.
        reach: Heading of the interval; "" without one.
        note: How to read the figure.
        percent: Whether values are rates, 0..1.
        missing: What the figure needs, if it has no rows.
    """

    id: str
    title: str
    takeaway: str
    kind: Kind
    about: str
    parts: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    reach: str = ""
    note: str = ""
    percent: bool = False
    missing: str = ""

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
