"""Saved views: named lists, each a screen with filter, order and tab."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from tui.actions import PLACES

if TYPE_CHECKING:
    from tui.state.user_state import UserState

MOST_VIEWS: Final = 100  # maximum number of the user's views
LONGEST_NAME: Final = 60  # characters of a name
LONGEST_FILTER: Final = 300  # characters of a filter, as in the filter line
_KEY: Final = "views"
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
    """Return the user's views, oldest first. Invalid ones are skipped."""
    views: dict[str, SavedView] = {}
    with contextlib.suppress(ValueError, RecursionError, msgspec.ValidationError):
        for one in msgspec.convert(json.loads(user_state.get(_KEY, "[]")), list[Any]):
            with contextlib.suppress(msgspec.ValidationError):
                view = msgspec.convert(one, SavedView)
                views[view.name] = view
    return tuple(views.values())[:MOST_VIEWS]


def save_view(user_state: UserState, view: SavedView) -> bool:
    """Save a view, replacing one of the same name. Return False if there are too many."""
    views = {other.name: other for other in own_views(user_state)}
    if len(views) >= MOST_VIEWS and view.name not in views:
        return False
    _keep(user_state, list((views | {view.name: view}).values()))
    return True


def rename_view(user_state: UserState, name: str, other: str) -> bool:
    """Rename a view. Return False if the new name is already used."""
    views = own_views(user_state)
    if other != name and any(view.name == other for view in views):
        return False
    _keep(user_state, [replace(view, name=other) if view.name == name else view for view in views])
    return True


def delete_view(user_state: UserState, name: str) -> None:
    _keep(user_state, [view for view in own_views(user_state) if view.name != name])


def _keep(user_state: UserState, views: Sequence[SavedView]) -> None:
    user_state.set(_KEY, json.dumps([asdict(view) for view in views]))
