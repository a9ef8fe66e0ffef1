"""The links that were followed, for `back`, and the state of each list before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class ListState:
    """The state of a list."""

    filter: str = ""
    key: str | None = None  # of the row under the cursor; None in an empty list
    tab: str = ""  # of the details
    whole: bool = False  # whether the details fill the screen
    marked: frozenset[str] = frozenset()  # keys of the selected rows
    grouped: bool = False  # whether rows are grouped, if the list can


@dataclass(eq=False, slots=True)
class FollowedLink:
    """A followed link; the target list shows its effect until the user leaves."""

    start: str  # the source screen
    place: str  # the target screen
    restorer: Callable[[], Screen[None]] | None = None  # makes the overlay on the source screen again, if there was one
    before: ListState | None = None  # the target list before the link; None until it is shown
    led: ListState | None = None  # the target list right after the link
