"""The links that were followed, for `back`, and the state of each list before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class ListState:
    """The state of a list.

    Attributes:
        filter: The text of its filter.
        key: Of the row under the cursor; None in an empty list.
        tab: Of the details.
        whole: Whether the details fill the screen.
        marked: Keys of the selected rows.
        grouped: Whether rows are grouped, if the list can.
    """

    filter: str = ""
    key: str | None = None
    tab: str = ""
    whole: bool = False
    marked: frozenset[str] = frozenset()
    grouped: bool = False


@dataclass(eq=False, slots=True)
class FollowedLink:
    """A followed link; the target list shows its effect until the user leaves.

    Attributes:
        start: The source screen.
        place: The target screen.
        restorer: Restores the overlay on the source screen; None if there was none.
        before: The target list before the link; None until it is shown.
        led: The target list right after the link.
    """

    start: str
    place: str
    restorer: Callable[[], Screen[None]] | None = None
    before: ListState | None = None
    led: ListState | None = None
