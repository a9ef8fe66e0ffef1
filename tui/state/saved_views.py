"""Saved views: a screen with filter, order and tab under a name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

from tui.actions import PLACES
from tui.state.user_state import UserState

MOST_VIEWS: Final = 100
"""Maximum number of the user's views."""
LONGEST_NAME: Final = 60
"""Characters of a name."""
LONGEST_FILTER: Final = 300
"""Characters of a filter, as in the filter line."""
_KEY: Final = "views"


@dataclass(frozen=True, slots=True)
class SavedView:
    """A list to show, under a name.

    Attributes:
        name: Unique among the user's views.
        place: One of `PLACES`.
        filter: As typed.
        sort: Column and direction, as `score down`; "" = unchanged.
        tab: Of the details; "" = unchanged.
    """

    name: str
    place: str
    filter: str = ""
    sort: str = ""
    tab: str = ""


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
    """The order of a list after its name or count, such as ` by score` or `, newest first`."""
    if column in {"newest", "at"}:
        return ", newest first" if descending else ", oldest first"
    return f" by {title}"


def own_views(user_state: UserState) -> tuple[SavedView, ...]:
    """The user's views in the order of saving; invalid ones are skipped."""
    try:
        found = json.loads(user_state.get(_KEY, "[]"))
    except (ValueError, RecursionError):
        return ()
    views = [view for one in found if (view := _read(one)) is not None] if isinstance(found, list) else []
    return tuple({view.name: view for view in views}.values())[:MOST_VIEWS]


def _read(one: object) -> SavedView | None:
    names = {field.name for field in fields(SavedView)}
    if not isinstance(one, dict) or not all(isinstance(one.get(name, ""), str) for name in names):
        return None
    view = SavedView(**{name: one.get(name, "") for name in names})
    fits = 0 < len(view.name) <= LONGEST_NAME and len(view.filter) <= LONGEST_FILTER
    return view if fits and view.place in PLACES else None


def save_view(user_state: UserState, view: SavedView) -> bool:
    """Save a view, replacing one of the same name; False if there is no room."""
    views = {other.name: other for other in own_views(user_state)}
    if len(views) >= MOST_VIEWS and view.name not in views:
        return False
    _keep(user_state, list((views | {view.name: view}).values()))
    return True


def rename_view(user_state: UserState, name: str, other: str) -> bool:
    """Rename a view; False if the name is taken."""
    views = own_views(user_state)
    if other != name and any(view.name == other for view in views):
        return False
    _keep(user_state, [SavedView(**{**asdict(v), "name": other}) if v.name == name else v for v in views])
    return True


def delete_view(user_state: UserState, name: str) -> None:
    _keep(user_state, [view for view in own_views(user_state) if view.name != name])


def _keep(user_state: UserState, views: Sequence[SavedView]) -> None:
    user_state.set(_KEY, json.dumps([asdict(view) for view in views]))
