"""Metrics as figures: rows of numbers under a heading, with a one-line takeaway.

The screen, the CLI, CSV and Markdown all render these figures.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from core.base.formatting import decimal_text, percent_text


class Kind(Enum):
    """How a figure is drawn."""

    BARS = "bars"
    """A bar for each row, its values one after the other."""
    COLUMNS = "columns"
    """A column for each row, which is a week; its values one above the other."""
    CURVE = "curve"
    """A rate 0..1 for each row, which is a week, with its interval; a row without value is a gap."""
    SPANS = "spans"
    """A value for each row, with how far it reaches; all rows on one scale."""


class Goal(Struct, frozen=True):
    """Where a row leads on the screen: a place, with a filter on its list or the key of one record."""

    place: str
    filter: str = ""
    key: str = ""


class Row(Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        label: What it is about; may be untrusted text.
        values: One for each part of the figure; empty where nothing is known.
        low, high: Ends of what the value reaches over, as the figure's `reach` says.
        count: How many cases are behind it.
        goal: Where it leads.
        week: Number of the week back that it is of, 0 the running one, for a figure whose rows lead to what was used.
    """

    label: str
    values: tuple[float, ...]
    low: float | None = None
    high: float | None = None
    count: int = 0
    goal: Goal | None = None
    week: int | None = None


class Figure(Struct, frozen=True, kw_only=True):
    """One section.

    Attributes:
        id, title: Its name; a word or two.
        takeaway: What it says, in one line.
        kind: How it is drawn.
        about: What its rows are.
        parts: What each value of a row is.
        rows: In order; of weeks the oldest first.
        reach: What the interval of a row is, "" where it has none.
        note: How to read it.
        percent: Whether values are rates, 0..1.
        missing: What is needed for it to say something, where there is nothing to draw.
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
        """Of all values."""
        return sum(sum(row.values) for row in self.rows)


MOST_NAMED: Final = 3
"""Things that a takeaway names."""


def value_text(figure: Figure, value: float) -> str:
    """A value of a figure as people read it."""
    if figure.percent:
        return percent_text(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def reach_text(figure: Figure, row: Row) -> str:
    """The interval of a row, `0.23 – 0.91`; "" without one."""
    if row.low is None or row.high is None:
        return ""
    tell = decimal_text if figure.percent else (lambda value: value_text(figure, value))
    return f"{tell(row.low)} – {tell(row.high)}"
