"""Where links have led from: what `esc` goes back along, and what each place was like before it was led to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class ListState:
    """How somebody has left a list.

    Attributes:
        filter: The text of its filter.
        key: Of the row under the cursor; None in an empty list.
        tab: Of the details.
        whole: Whether the details have the whole screen.
        marked: Keys of the marked rows.
        grouped: Whether it shows groups, where it can.
    """

    filter: str = ""
    key: str | None = None
    tab: str = ""
    whole: bool = False
    marked: frozenset[str] = frozenset()
    grouped: bool = False


@dataclass(eq=False, slots=True)
class FollowedLink:
    """A link that was followed. What it did to the list it led to lasts as long as one stays there.

    Attributes:
        start: The place that it led away from.
        place: The place that it led to.
        again: Makes the screen anew that lay over the start; None if none did, or one that is not come back to.
        before: How the list stood until then; None before it is there.
        led: How the link has left it.
    """

    start: str
    place: str
    again: Callable[[], Screen[None]] | None = None
    before: ListState | None = None
    led: ListState | None = None
