"""Find all record files under `.aiwg` with their stamps."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from core.files.decoded import Problem
from core.files.file_reader import Stamp, stamp_row
from core.sources.record_kinds import FOLDER, HOME_FOLDERS, IGNORED_FOLDERS, NAMED_BY_ID, is_ignored, kind_of

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

_FILE_ENDINGS: Final = (".json", ".jsonl", ".yaml", ".yml", ".log", ".md", ".tmp", ".lock", ".bak")
_ROOTS: Final = ("ralph", "ralph-external")
ROOT_FOLDERS: Final = tuple(f".aiwg/{root}" for root in _ROOTS)
"""Folders below which all record files are."""
_SETTLED_NS: Final = 2_000_000_000  # age from which the times of a folder change with its content: the coarsest clock
_MAX_PARTS: Final = 7  # Maximum number of parts in a path; `.aiwg/ralph/loops/<id>/reflections/<n>.json` has 6.


StampRow = tuple[int, int, int, int]
"""Inode, size, mtime and ctime in ns, as in `Stamp`: comparing 60,000 tuples takes less time than making stamps."""


FolderRow = tuple[str, int, int, int, int, str, str]
"""Path and stamp of a folder, and the names of the folders and of the record files in it, separated by `/`.

The names are valid as long as the folder has this stamp.
"""


def can_contain_records(folder: str) -> bool:
    """Whether a project-relative path may be a folder that contains record files."""
    root, *folders = folder.split("/")
    return (
        root == ".aiwg"
        and len(folders) < _MAX_PARTS - 1
        and (not folders or folders[0] in _ROOTS)
        and not is_ignored((root, *folders))
        and (not folder.endswith(_FILE_ENDINGS) or folder.rpartition("/")[0] in NAMED_BY_ID)
    )


def scan(paths: ProjectPaths, unreadable: dict[str, Problem] | None = None) -> dict[str, Stamp]:
    """Return the stamps of all record files by project-relative path.

    `unreadable` receives the problem of each folder that cannot be listed. Links to files inside `.aiwg` are followed;
    other links and all links to folders but the roots are not.
    """
    return _walk(paths, ROOT_FOLDERS, unreadable)


def newest_states(paths: ProjectPaths, count: int) -> dict[str, Stamp]:
    """Return the state files that changed last, without listing all folders; empty if there are not `count` of them."""
    found: dict[str, Stamp] = {}
    for home in HOME_FOLDERS:
        if _folder_status(paths.project / home) is None:
            continue
        name = "session-state.json" if home.startswith(".aiwg/ralph-external/") else "state.json"
        with contextlib.suppress(OSError), os.scandir(paths.project / home) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = os.lstat(f"{entry.path}/{name}") if entry.is_dir(follow_symlinks=False) else None
                    if status is not None and stat.S_ISREG(status.st_mode):
                        found[f"{home}/{entry.name}/{name}"] = Stamp.of(status)
    newest = sorted(found, key=lambda file: found[file].mtime_ns, reverse=True)[:count]
    return {file: found[file] for file in newest if kind_of(file) is not None} if len(newest) == count else {}


def scan_path(paths: ProjectPaths, relative: str, unreadable: dict[str, Problem] | None = None) -> dict[str, Stamp]:
    """Like `scan`, but only for a changed path and the loop folder that contains it."""
    found: dict[str, Stamp] = {}
    parts = relative.rstrip("/").split("/")
    if parts[0] != ".aiwg" or not {"", ".", ".."}.isdisjoint(parts):
        return found
    if len(parts) == 1:
        return scan(paths, unreadable)
    if parts[1] not in _ROOTS:
        return found
    # As in `scan`, links to folders are not followed; a parent may lead out of the project.
    for depth in range(2, len(parts)):
        folder = "/".join(parts[:depth])
        status = _folder_status(paths.project / folder)
        if status is None or is_ignored(parts[:depth]):
            return found
        if kind_of(f"{folder}/") is FOLDER:
            found[f"{folder}/"] = Stamp.of(status)
    relative = "/".join(parts)
    status = _folder_status(paths.project / relative)
    if status is None:
        if kind_of(relative) is not None and (stamp := _file_stamp(paths, relative)) is not None:
            found[relative] = stamp
    elif not is_ignored(parts):
        if kind_of(f"{relative}/") is FOLDER:
            found[f"{relative}/"] = Stamp.of(status)
        found |= _walk(paths, [relative], unreadable)
    return found


def _walk(paths: ProjectPaths, tops: Iterable[str], unreadable: dict[str, Problem] | None) -> dict[str, Stamp]:
    walk = FolderWalk(paths)
    walk.run(tops)
    if unreadable is not None:
        unreadable.update(walk.unreadable)
    return walk.changed


def _folder_status(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status if stat.S_ISDIR(status.st_mode) else None


def _file_stamp(paths: ProjectPaths, relative: str) -> Stamp | None:
    """Return the stamp of a regular file, or of the target of a link inside `.aiwg`."""
    path = paths.project / relative
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not path.resolve().is_relative_to(paths.aiwg.resolve()):
                return None
            status = path.stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return Stamp.of(status) if stat.S_ISREG(status.st_mode) else None


class FolderWalk:
    """Walks through folders, and compares the files in them with those that are known.

    `files` are known stamps by path, `folders` known listings. `progress` is called for each folder that is listed with
    the number of files found before it. After `run`, `changed` has the files with another stamp or none, `left` the
    known ones that were not found, `unreadable` the problem of each folder that cannot be listed, `listed` the folders
    that were listed and have not changed a moment ago, and `seen` these and those with a known listing.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        files: Mapping[str, StampRow] = MappingProxyType({}),
        folders: Mapping[str, FolderRow] = MappingProxyType({}),
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._paths = paths
        # Strings instead of `Path`: 60,000 objects would take longer than the stat calls.
        self._project = f"{paths.project}/"
        self._folders = folders
        self._progress = progress
        self._found = 0
        self.changed: dict[str, Stamp] = {}
        self.left = dict(files)
        self.unreadable: dict[str, Problem] = {}
        self.listed: dict[str, FolderRow] = {}
        self.seen: set[str] = set()

    def run(self, tops: Iterable[str]) -> None:
        """Walk through folders and all below them. Links to folders are not followed, but for the roots."""
        pending = list(tops)
        while pending:
            folder = pending.pop()
            try:
                path = self._project + folder
                status = os.stat(path) if folder in ROOT_FOLDERS else os.lstat(path)  # noqa: PTH116 (`Path` takes long)
                if not stat.S_ISDIR(status.st_mode):
                    continue
                folders, files = self._names_in(folder, status)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.unreadable[folder] = _unreadable_folder(error)
                continue
            if folder[: folder.rfind("/")] in HOME_FOLDERS:
                own = f"{folder}/"
                if own in self.left or kind_of(own):  # matching takes as long as ten stat calls
                    self._compare(own, stamp_row(status))
            if files:
                for name in files.split("/"):
                    self.check(f"{folder}/{name}")
            if folders:
                pending += [f"{folder}/{name}" for name in folders.split("/")]

    def list_one(self, folder: str) -> None:
        """List a folder alone; raises OSError."""
        self.listed[folder] = self._list(folder, stamp_row(os.lstat(self._project + folder)))

    def _names_in(self, folder: str, status: os.stat_result) -> tuple[str, str]:
        """Return the names of the folders and record files in a folder, which is listed if it changed."""
        known, row = self._folders.get(folder), stamp_row(status)
        if known is not None and known[1:5] == row:
            self.seen.add(folder)
            return known[5:]
        if self._progress is not None:
            self._progress(self._found)
        known = self._list(folder, row)
        # A folder that has just changed may change again within the same tick of the clock.
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
            self.listed[folder] = known
            self.seen.add(folder)
        return known[5:]

    def check(self, file: str) -> None:
        """Compare one file."""
        try:
            status = os.lstat(self._project + file)
        except FileNotFoundError:
            return
        except OSError as error:
            self.unreadable[file.rpartition("/")[0]] = _unreadable_folder(error)
            return
        if stat.S_ISREG(status.st_mode):
            self._compare(file, stamp_row(status))
        elif stat.S_ISLNK(status.st_mode) and (target := _file_stamp(self._paths, file)) is not None:
            self._compare(file, (target.inode, target.size, target.mtime_ns, target.ctime_ns))

    def _compare(self, file: str, row: StampRow) -> None:
        self._found += 1
        if self.left.pop(file, None) != row:
            self.changed[file] = Stamp(*row)

    def _list(self, folder: str, row: StampRow) -> FolderRow:
        folders, files = [], []
        is_deepest, is_named_by_id = folder.count("/") + 2 > _MAX_PARTS, folder in NAMED_BY_ID
        with os.scandir(self._project + folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not is_deepest and (is_named_by_id or entry.name not in IGNORED_FOLDERS):
                        folders.append(entry.name)
                elif kind_of(f"{folder}/{entry.name}") is not None:
                    files.append(entry.name)
        return folder, *row, "/".join(folders), "/".join(files)


def _unreadable_folder(error: OSError) -> Problem:
    reason = error.strerror or type(error).__name__
    return Problem("unreadable", f"is a folder that cannot be read ({reason}); its files are missing here")
