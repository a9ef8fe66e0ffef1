"""User's files outside of projects: names, version of their writer, own state.

The state is a file with tables of documents that no project has a say in (docs/file-formats.md#own-state). Queries and
transactions use TinyDB over a storage that is atomic and locked: TinyDB's own storages rewrite the file in place, so
that a kill loses all of it, and two processes lose each other's changes.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from core.base.errors import BadInput, Unwritable
from core.base.formatting import LAST_SEEN, LAST_VISIT
from core.base.paths import cache_folder, config_folder, state_folder
from core.files.append_log import sync_folder
from core.files.atomic_write import put
from core.files.file_access import file_lock, open_regular
from core.records.times import newest, parse_time

if TYPE_CHECKING:
    from tinydb import TinyDB
    from tinydb.table import Table


_CORE: Final = Path(__file__).parents[1]


def project_key(project: Path) -> str:
    """Return the name of the files of a project in the folders of the user."""
    return hashlib.sha256(str(project.resolve()).encode(errors="surrogateescape")).hexdigest()[:24]


def cache_path(project: Path, ending: str) -> Path:
    """Return a project's cache file with this ending, in the user's cache folder."""
    return cache_folder() / f"{project_key(project)}.{ending}"


def team_file() -> Path:
    """Return the file of projects joined to a team; see `core.team.connection`."""
    return config_folder() / "team.json"


def index_file(project: Path) -> Path:
    """Return the file of the index of a project; see `core.index`."""
    return cache_path(project, "index")


def code_digest(rooms: Iterable[str]) -> bytes:
    """Return a digest that changes with the installed code of these rooms of `core`."""
    digest = hashlib.sha256()
    folders = [str(_CORE / name) for name in rooms]
    while folders:
        with os.scandir(folders.pop(0)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name == "__pycache__":
                    continue
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    status = entry.stat()
                    digest.update(f"{entry.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.digest()


def code_version(rooms: Iterable[str]) -> int:
    """Return `code_digest` as a version number of a database, 31 bits."""
    return int.from_bytes(code_digest(rooms)[:4]) >> 1


MAX_BYTES: Final = 8 << 20  # maximum size of the file
SETTINGS: Final = "settings"  # {name, value} of the dashboard, for all projects
PROJECTS: Final = "projects"  # {project, values} of the dashboard, the project used last at the end
VIEWS: Final = "views"  # saved views, the oldest first
VISITS: Final = "visits"  # {project, last_seen, last_visit, since}: ISO-8601 times of dashboard sessions
SINCE: Final = "since"  # name of the time at which the visit before the newest one ended
NEVER: Final = "never"  # its value if there was none
CONTINUED: Final = timedelta(minutes=30)  # a visit that begins so soon after another one continues it

Documents = dict[Annotated[str, Meta(pattern=r"\A[0-9]{1,18}\Z")], dict[str, Any]]


class UserTables(Struct, frozen=True, kw_only=True):
    """Content of the file: documents by table and number.

    `others` has the JSON of values that are not tables, such as those of a later version. `damage` says why the whole
    file could not be parsed, "" if it could.
    """

    tables: dict[str, Documents] = {}
    others: dict[str, msgspec.Raw] = {}
    damage: str = ""

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the documents of a table, in the order of their insertion."""
        return list(self.tables.get(table, {}).values())


def end_of_visit(visit: Mapping[str, Any]) -> datetime | None:
    """Return when the dashboard was last closed or open, by a document of `VISITS`."""
    return newest(*(parse_time(visit.get(name)) for name in (LAST_VISIT, LAST_SEEN)))


def find_last_visit(visit: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the end of the visit before the one going on or beginning now, or None."""
    ended = end_of_visit(visit)
    is_continued = ended is not None and now - ended < CONTINUED
    return parse_time(visit[SINCE]) if is_continued and visit.get(SINCE) else ended


def state_file() -> Path:
    return state_folder() / "state.json"


def read_tables(path: Path) -> UserTables:
    """Read the file; a missing one has no tables. Raises Unwritable if unreadable."""
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return UserTables()
    except OSError as error:
        raise Unwritable(f"cannot read {path}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        return UserTables(damage=f"it has more than {MAX_BYTES:,} bytes")
    try:
        values = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return UserTables(damage=f"it cannot be parsed ({error})")
    tables: dict[str, Documents] = {}
    others: dict[str, msgspec.Raw] = {}
    for name, value in values.items():
        try:
            tables[name] = msgspec.json.decode(value, type=Documents)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            others[name] = value
    return UserTables(tables=tables, others=others)


def replace_tables(path: Path, before: UserTables, tables: dict[str, Documents]) -> None:
    """Write `tables` and the rest of `before`, at once, durably; needs the lock.

    A damaged file, or one with other values under the name of a table that is written, is moved aside first. Raises
    BadInput if a text is not valid Unicode or the file would be too large, Unwritable if disk or permissions prevent
    writing; the file is then unchanged.
    """
    others = {name: value for name, value in before.others.items() if name not in tables}
    try:
        data = msgspec.json.encode({**others, **tables}) + b"\n"
    except UnicodeEncodeError:
        raise BadInput(f"a text is not valid Unicode, so {path} cannot store it") from None
    if len(data) > MAX_BYTES:
        raise BadInput(f"{path} would have more than {MAX_BYTES:,} bytes")
    try:
        if before.damage or len(others) < len(before.others):
            _set_aside(path, before.damage)
        put(path, data, mode=0o600)
        sync_folder(path.parent)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}") from None


def _set_aside(path: Path, damage: str) -> None:
    """Give the present content a second name that is not in use."""
    for number in itertools.count(1):
        aside = path.with_name(f"{path.name}.damaged-{number}")
        try:
            # A link instead of a rename: a kill before the new version appears leaves the file in its place.
            os.link(path, aside)
        except FileExistsError:
            continue
        import logging  # takes 2 ms to import; this is rare

        logging.getLogger(__name__).warning(
            "moved %s to %s: %s", path, aside, damage or "a value has the name of a table"
        )
        return


def damaged_files(path: Path) -> list[Path]:
    """Return the damaged versions of the file that were moved aside, oldest first."""
    found = path.parent.glob(f"{path.name}.damaged-*")
    return sorted(found, key=lambda one: (len(one.name), one.name))


class UserStore:
    """Tables in one user file; objects, threads and processes may share the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def table(self, name: str) -> Table:
        """Return a table as it is now, for queries; it is empty if it does not exist.

        Raises Unwritable if the file cannot be read, and RuntimeError if the table is changed: that needs a
        transaction.
        """
        return _open(_Snapshot(read_tables(self.path).tables, is_writable=False)).table(name)

    @contextmanager
    def transaction(self) -> Iterator[TinyDB]:
        """Lock and read the file; write all changes at the end, none after an error.

        Cannot be nested. Raises Unwritable if the file cannot be locked, read or written, and BadInput if a text is not
        valid Unicode or the file would be too large.
        """
        _make_private(self.path.parent)
        with file_lock(self.path.with_name(f"{self.path.name}.lock")):
            before = read_tables(self.path)
            snapshot = _Snapshot(before.tables, is_writable=True)
            yield _open(snapshot)
            if snapshot.is_changed:
                replace_tables(self.path, before, snapshot.tables)


class _Snapshot:
    """The tables of one moment, in memory; a storage of TinyDB."""

    def __init__(self, tables: dict[str, Documents], *, is_writable: bool) -> None:
        self.tables = tables
        self.is_changed = False
        self._is_writable = is_writable

    def read(self) -> dict[str, Documents]:
        return self.tables

    def write(self, data: dict[str, dict[str, Any]]) -> None:
        if not self._is_writable:
            raise RuntimeError("change tables in UserStore.transaction")
        self.tables = data
        self.is_changed = True


def _open(snapshot: _Snapshot) -> TinyDB:
    from tinydb import TinyDB  # takes about 10 ms, which hooks and the first frame of the dashboard do not need

    return TinyDB(storage=lambda: snapshot)


def _make_private(folder: Path) -> None:
    """Make a folder that only the user can enter."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise Unwritable(f"cannot make {folder} private: {error.strerror}") from None
