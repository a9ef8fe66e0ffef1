"""The dashboard's share of the user's own state: settings, filters and visits of a project, saved views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import BadInput, Unwritable
from core.files.user_files import NEVER, PROJECTS, SETTINGS, SINCE, VIEWS, VISITS, find_last_visit, read_tables
from core.records.times import iso

if TYPE_CHECKING:
    from tinydb import TinyDB

MAX_PROJECTS: Final = 50  # projects that are remembered, those used last


class UserState:
    """Values that are kept between runs; changes are in memory until `save`. Losing them is harmless.

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
        """Write what was set since the last time; does nothing where the file cannot be written."""
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
        """Begin or continue a visit to the open project; returns when the visit before it ended, None if never."""
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
