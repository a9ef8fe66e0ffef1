"""Files of the user outside of projects: names, the version of the code that wrote them, and the user's own state.

The state is a file with tables of documents that no project has a say in (docs/file-formats.md#own-state). This module
reads and replaces it without TinyDB, whose import takes about 10 ms, for the hooks of agents and the first frame of the
dashboard. Everything else uses `core.storage.user_store`.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from core.base.errors import BadInput, Unwritable
from core.config.user_folders import cache_folder, config_folder, state_folder
from core.storage.append_log import append_bytes, sync_folder
from core.storage.file_access import make_draft_path, open_regular, remove_drafts

_CORE: Final = Path(__file__).parents[1]


def project_key(project: Path) -> str:
    """Return the name of the files of a project in the folders of the user."""
    return hashlib.sha256(str(project.resolve()).encode(errors="surrogateescape")).hexdigest()[:24]


def cache_path(project: Path, ending: str) -> Path:
    """Return the cache file of a project with this ending, in the user's cache folder."""
    return cache_folder() / f"{project_key(project)}.{ending}"


def team_file() -> Path:
    """Return the file with the projects that the user has joined to a team; see `core.team.consent`."""
    return config_folder() / "team.json"


def index_file(project: Path) -> Path:
    """Return the file of the index of a project; see `core.index`."""
    return cache_path(project, "index")


def code_digest(packages: Iterable[str]) -> bytes:
    """Return a digest that changes with the installed code of these packages of `core`."""
    digest = hashlib.sha256()
    folders = [str(_CORE / name) for name in packages]
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


def code_version(packages: Iterable[str]) -> int:
    """Return `code_digest` as a version number of a database, 31 bits."""
    return int.from_bytes(code_digest(packages)[:4]) >> 1


MAX_BYTES: Final = 8 << 20  # maximum size of the file
SETTINGS: Final = "settings"  # {name, value} of the dashboard, for all projects
PROJECTS: Final = "projects"  # {project, values} of the dashboard, the project used last at the end
VIEWS: Final = "views"  # saved views, the oldest first
VISITS: Final = "visits"  # {project, last_seen, last_visit}: ISO-8601 times of dashboard sessions

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


def state_file() -> Path:
    return state_folder() / "state.json"


def read_tables(path: Path) -> UserTables:
    """Read the file; a missing one has no tables. Raises Unwritable if it cannot be read."""
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
    """Write `tables` and what `before` has besides, at once and durably; the caller holds the lock.

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
    draft = make_draft_path(path)
    try:
        remove_drafts(path.parent)
        handle = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            append_bytes(handle, data)
        finally:
            os.close(handle)
        if before.damage or len(others) < len(before.others):
            _set_aside(path, before.damage)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
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
