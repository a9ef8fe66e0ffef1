"""The dashboard's share of the user's state, saved views, and states of lists."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from core.base.errors import BadInput, Unwritable
from core.files.user_files import NEVER, PROJECTS, SETTINGS, SINCE, VIEWS, VISITS, find_last_visit, read_tables
from core.records.times import iso
from tui.kit.actions import FORMER_PLACES, PLACES

if TYPE_CHECKING:
    from textual.screen import Screen
    from tinydb import TinyDB

MAX_PROJECTS: Final = 50  # projects that are remembered, those used last


class UserState:
    """Values kept between runs; changes are in memory until `save`. Loss is harmless.

    `path` is the file of the store, `project` the key of the open project. `views` has the documents of the saved
    views, `damage` says why the file could not be read, "" if it could.
    """

    def __init__(self, path: Path, project: str) -> None:
        self.path = path
        # A path with undecodable bytes is not valid Unicode.
        self.project = project.encode(errors="backslashreplace").decode()
        self.views: list[dict[str, Any]] = []
        self.damage = ""
        self._settings: dict[str, str] = {}
        self._here: dict[str, str] = {}
        self._visits: dict[str, str] = {}
        self._new: dict[str, dict[str, str]] = {SETTINGS: {}, PROJECTS: {}, VISITS: {}}  # not saved yet
        self._forgets = False  # whether the saved values of the project are to be discarded

    def load(self) -> None:
        """Read the file, skipping invalid values. Values that are not saved yet are kept."""
        try:
            found = read_tables(self.path)
        except Unwritable as error:
            self.damage = str(error)
            return
        self.damage = f"{self.path} is damaged: {found.damage}" if found.damage else ""
        self.views = found.rows(VIEWS)
        pairs = ((row.get("name"), row.get("value")) for row in found.rows(SETTINGS))
        self._settings = _texts(dict(pair for pair in pairs if isinstance(pair[0], str)))
        self._here = {} if self._forgets else _texts(self._row(found.rows(PROJECTS)).get("values"))
        self._visits = {} if self._forgets else _texts(self._row(found.rows(VISITS)))
        self._settings |= self._new[SETTINGS]
        self._here |= self._new[PROJECTS]
        self._visits |= self._new[VISITS]

    def save(self) -> None:
        """Write what was set since the last save; does nothing if the file is unwritable."""
        try:
            with self.changing() as tables:
                self._write(tables)
        except (Unwritable, BadInput):
            return
        self._new = {name: {} for name in self._new}
        self._forgets = False

    @contextmanager
    def changing(self) -> Iterator[TinyDB]:
        """Change tables of the store in one transaction; see `UserStore.transaction`."""
        from core.files.user_files import UserStore  # loads TinyDB, which the first frame does not need

        with UserStore(self.path).transaction() as tables:
            yield tables
        self.load()

    def get(self, name: str, default: str = "") -> str:
        """Return a value that applies to all projects."""
        return self._settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self._settings[name] = self._new[SETTINGS][name] = value

    def get_here(self, name: str, default: str = "") -> str:
        """Return a value that applies to the open project."""
        return self._here.get(name, default)

    def set_here(self, name: str, value: str) -> None:
        self._here[name] = self._new[PROJECTS][name] = value

    def visit(self, name: str) -> str:
        """Return an ISO-8601 time of a visit to the open project, "" if there was none."""
        return self._visits.get(name, "")

    def set_visit(self, name: str, time: str) -> None:
        self._visits[name] = self._new[VISITS][name] = time

    def begin_visit(self, now: datetime) -> datetime | None:
        """Begin or continue a visit; return when the last one ended, None if never."""
        ended = find_last_visit(self._visits, now)
        self.set_visit(SINCE, iso(ended) or NEVER)
        return ended

    def forget_here(self) -> None:
        """Discard the values and visits of the open project."""
        self._here, self._visits, self._forgets = {}, {}, True
        self._new |= {PROJECTS: {}, VISITS: {}}

    def _row(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return next((row for row in rows if row.get("project") == self.project), {})

    def _write(self, tables: TinyDB) -> None:
        from tinydb import where

        for name, value in self._new[SETTINGS].items():
            tables.table(SETTINGS).upsert({"name": name, "value": value}, where("name") == name)
        here = where("project") == self.project
        for table in (PROJECTS, VISITS):
            saved: Mapping[str, Any] = {} if self._forgets else self._row(tables.table(table).search(here))
            new = self._new[table]
            if not new and not self._forgets:
                continue
            tables.table(table).remove(here)  # inserted again below, so that the last one is the newest
            values = {"values": _texts(saved.get("values")) | new} if table == PROJECTS else {**saved, **new}
            tables.table(table).insert({**values, "project": self.project})
            oldest = [row.doc_id for row in tables.table(table)][:-MAX_PROJECTS]
            tables.table(table).remove(doc_ids=oldest)


def _texts(values: Any) -> dict[str, str]:
    """Return the texts of a mapping, without values of other types."""
    found = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in found if isinstance(value, str)}


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
    """A screen with filter, order and tab under a name unique among the user's views."""

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
    """Return the order of a list as a suffix: ` by score` or `, newest first`."""
    if column in {"newest", "at"}:
        return ", newest first" if descending else ", oldest first"
    return f" by {title}"


def own_views(user_state: UserState) -> tuple[SavedView, ...]:
    """Return the user's valid views, oldest first, those of former screens renamed."""
    views: dict[str, SavedView] = {}
    for document in user_state.views:
        with contextlib.suppress(msgspec.ValidationError):
            view = msgspec.convert({**document, **_renamed(document)}, SavedView)
            views[view.name] = view
    return tuple(views.values())[:MOST_VIEWS]


def _renamed(document: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a view of a former screen that its successor renamed."""
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
