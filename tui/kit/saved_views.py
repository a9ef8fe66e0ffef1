"""States of lists: the followed links, to which `back` returns, and saved views under a name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from core.base.errors import BadInput
from core.files.user_files import VIEWS
from tui.kit.actions import FORMER_PLACES, PLACES

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui.kit.user_state import UserState


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


MOST_VIEWS: Final = 100  # maximum number of the user's views
LONGEST_NAME: Final = 60  # characters of a name
LONGEST_FILTER: Final = 300  # characters of a filter, as in the filter line
PlaceName = Annotated[str, Meta(pattern=f"^({'|'.join(PLACES)})$")]  # one of the eight screens


class SavedView(Struct, frozen=True):
    """A screen with filter, order and tab, under a name unique among the user's views."""

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    place: PlaceName
    filter: Annotated[str, Meta(max_length=LONGEST_FILTER)] = ""  # as typed
    sort: str = ""  # column and direction, as `score down`; "" = unchanged
    tab: str = ""  # tab of the details; "" = unchanged


BUILT_IN: Final = (
    SavedView("uncertain and in use", "patterns", "is:injectable low:<50% last:<30d", "uses down", "Evidence"),
    SavedView("promoted by me, contradicted", "patterns", "is:pinned by:me is:contradicted", "last_used down", "Why"),
    SavedView("never used", "patterns", "uses:0 -is:quarantined", "id up"),
    SavedView("new this week", "patterns", "age:<7d", "score down"),
    SavedView("decaying, unused", "patterns", "is:faded -is:pinned", "score down", "Why"),
    SavedView("in quarantine", "patterns", "is:quarantined", "last_used down"),
    SavedView("held for approval", "patterns", "is:held", "last_used down"),
    SavedView("sessions that need you", "loops", "is:stuck", "newest down"),
    SavedView("crashed loops", "loops", "status:crashed", "newest down"),
    SavedView("undone", "log", "verb:undo"),
)
"""Views that most users need."""


def order_text(column: str, title: str, *, descending: bool) -> str:
    """Return the order of a list as a suffix, such as ` by score` or `, newest first`."""
    if column in {"newest", "at"}:
        return ", newest first" if descending else ", oldest first"
    return f" by {title}"


def own_views(user_state: UserState) -> tuple[SavedView, ...]:
    """Return the user's views, oldest first; those of a former screen open its successor. Invalid ones are skipped."""
    views: dict[str, SavedView] = {}
    for document in user_state.views:
        with contextlib.suppress(msgspec.ValidationError):
            view = msgspec.convert({**document, **_renamed(document)}, SavedView)
            views[view.name] = view
    return tuple(views.values())[:MOST_VIEWS]


def _renamed(document: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a view of a former screen that its successor names otherwise."""
    place, text = str(document.get("place")), document.get("filter", "")
    if not isinstance(text, str) or place not in FORMER_PLACES:
        return {}
    return {"place": FORMER_PLACES[place], "filter": re.sub(r"(?<!\S)(-?)kind:", r"\1is:", text)}


def save_view(user_state: UserState, view: SavedView) -> None:
    """Save a view, replacing one of the same name.

    Raises BadInput if there are too many, and Unwritable, as the next two, if the user's state cannot be written.
    """
    from tinydb import where

    with user_state.changing() as tables:
        table = tables.table(VIEWS)
        named = where("name") == view.name
        if len(table) >= MOST_VIEWS and not table.contains(named):
            raise BadInput(f"There are {MOST_VIEWS} views already; delete one first.")
        table.upsert(asdict(view), named)


def rename_view(user_state: UserState, name: str, other: str) -> None:
    """Rename a view. Raises BadInput if the new name is already used."""
    from tinydb import where

    with user_state.changing() as tables:
        table = tables.table(VIEWS)
        if other != name and table.contains(where("name") == other):
            raise BadInput(f"There is already a view named {other!r}.")
        table.update({"name": other}, where("name") == name)


def delete_view(user_state: UserState, name: str) -> None:
    from tinydb import where

    with user_state.changing() as tables:
        tables.table(VIEWS).remove(where("name") == name)
