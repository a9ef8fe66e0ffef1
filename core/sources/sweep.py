"""Find all record files under `.aiwg` with their stamps."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.sources.loop_facts import HOME_FOLDERS
from core.sources.record_kinds import FOLDER, IGNORED_FOLDERS, NAMED_BY_ID, is_ignored, kind_of
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths

_FILE_ENDINGS: Final = (".json", ".jsonl", ".yaml", ".yml", ".log", ".md", ".tmp", ".lock", ".bak")
ROOTS: Final = ("ralph", "ralph-external")
_SETTLED_NS: Final = 2_000_000_000  # age from which the times of a folder change with its content: the coarsest clock
MAX_PARTS: Final = 7  # Maximum number of parts in a path; `.aiwg/ralph/loops/<id>/reflections/<n>.json` has 6.


class Listing(Struct, frozen=True, gc=False):
    """What a folder contains, by name. It is valid as long as the folder has this stamp."""

    stamp: Stamp
    folders: tuple[str, ...]
    files: tuple[str, ...]  # those that are record files


def can_contain_records(folder: str) -> bool:
    """Whether a project-relative path may be a folder that contains record files."""
    root, *folders = folder.split("/")
    return (
        root == ".aiwg"
        and len(folders) < MAX_PARTS - 1
        and (not folders or folders[0] in ROOTS)
        and not is_ignored((root, *folders))
        and (not folder.endswith(_FILE_ENDINGS) or folder.rpartition("/")[0] in NAMED_BY_ID)
    )


def scan(
    paths: ProjectPaths,
    unreadable: dict[str, Problem] | None = None,
    listings: dict[str, Listing] | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Stamp]:
    """Return the stamps of all record files by project-relative path.

    Links to files inside `.aiwg` are followed; other links and all links to folders are not. `unreadable` receives the
    problem of each folder that cannot be listed. `listings` are those of the scan before, to list only folders that
    have changed, and are replaced by those of this scan. `progress` is called for each folder with the number of files
    found before it.
    """
    found: dict[str, Stamp] = {}
    listings = {} if listings is None else listings
    before = listings.copy()
    listings.clear()
    for root in ROOTS:
        _scan_folder(
            paths, f".aiwg/{root}", found, {} if unreadable is None else unreadable, before, listings, progress
        )
    return found


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
    if parts[1] not in ROOTS:
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
        if kind_of(relative) is not None and (stamp := file_stamp(paths, relative)) is not None:
            found[relative] = stamp
    elif not is_ignored(parts):
        if kind_of(f"{relative}/") is FOLDER:
            found[f"{relative}/"] = Stamp.of(status)
        _scan_folder(paths, relative, found, {} if unreadable is None else unreadable, {}, {})
    return found


def _folder_status(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status if stat.S_ISDIR(status.st_mode) else None


def file_stamp(paths: ProjectPaths, relative: str) -> Stamp | None:
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


def _scan_folder(
    paths: ProjectPaths,
    top: str,
    found: dict[str, Stamp],
    unreadable: dict[str, Problem],
    before: Mapping[str, Listing],
    listings: dict[str, Listing],
    progress: Callable[[int], None] | None = None,
) -> None:
    # Strings instead of `Path`: 60,000 objects would take longer than the stat calls.
    project = f"{paths.project}/"
    pending = [top]
    while pending:
        folder = pending.pop()
        if progress is not None:
            progress(len(found))
        try:
            status = (paths.project / top).stat() if folder == top else os.lstat(project + folder)
            if not stat.S_ISDIR(status.st_mode):
                continue
            stamp, listing = Stamp.of(status), before.get(folder)
            if listing is None or listing.stamp != stamp:
                is_settled = time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > _SETTLED_NS
                listing = _list_folder(project, folder, stamp)
                if is_settled:
                    listings[folder] = listing
            else:
                listings[folder] = listing
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unreadable[folder] = unreadable_folder(error)
            continue
        if folder != top and folder.rpartition("/")[0] in HOME_FOLDERS and kind_of(f"{folder}/"):
            found[f"{folder}/"] = stamp
        pending += (f"{folder}/{name}" for name in listing.folders)
        for name in listing.files:
            file = f"{folder}/{name}"
            try:
                status = os.lstat(project + file)
            except FileNotFoundError:
                continue
            except OSError as error:
                unreadable[folder] = unreadable_folder(error)
                continue
            if stat.S_ISREG(status.st_mode):
                found[file] = Stamp.of(status)
            elif stat.S_ISLNK(status.st_mode) and (target := file_stamp(paths, file)) is not None:
                found[file] = target


def _list_folder(project: str, folder: str, stamp: Stamp) -> Listing:
    folders: list[str] = []
    files: list[str] = []
    is_deepest, is_named_by_id = folder.count("/") + 2 > MAX_PARTS, folder in NAMED_BY_ID
    with os.scandir(project + folder) as entries:
        for entry in entries:
            name = sys.intern(entry.name)  # the same in the folder of each loop
            if entry.is_dir(follow_symlinks=False):
                if not is_deepest and (is_named_by_id or name not in IGNORED_FOLDERS):
                    folders.append(name)
            elif kind_of(f"{folder}/{name}") is not None:
                files.append(name)
    return Listing(stamp, tuple(folders), tuple(files))


def unreadable_folder(error: OSError) -> Problem:
    reason = error.strerror or type(error).__name__
    return Problem("unreadable", f"is a folder that cannot be read ({reason}); its files are missing here")
