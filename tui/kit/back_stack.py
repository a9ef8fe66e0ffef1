"""The followed links, to which `back` returns, and the state of each list before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class ListState:
    """What a list shows: filter, cursor, tab, selected rows and grouping."""

    filter: str = ""
    key: str | None = None  # key of the row under the cursor; None in an empty list
    tab: str = ""  # tab of the details
    whole: bool = False  # whether the details fill the screen
    marked: frozenset[str] = frozenset()  # keys of the selected rows
    grouping: str = ""  # which of its lists it shows, if it has several


@dataclass(eq=False, slots=True)
class FollowedLink:
    """A followed link, with the state of the target list before and after it."""

    start: str  # the source screen
    place: str  # the target screen
    restorer: Callable[[], Screen[None]] | None = None  # reopens the overlay on the source screen, if there was one
    before: ListState | None = None  # the target list before the link; None until it is shown
    after: ListState | None = None  # the target list right after the link
