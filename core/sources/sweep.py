"""Find all record files under `.aiwg` with their stamps."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.sources.loop_facts import HOME_FOLDERS
from core.sources.record_kinds import FOLDER, IGNORED_FOLDERS, NAMED_BY_ID, is_ignored, kind_of
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths

_FILE_ENDINGS: Final = (".json", ".jsonl", ".yaml", ".yml", ".log", ".md", ".tmp", ".lock", ".bak")
_ROOTS: Final = ("ralph", "ralph-external")
_MAX_PARTS: Final = 7  # Maximum number of parts in a path; `.aiwg/ralph/loops/<id>/reflections/<n>.json` has 6.


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

    Links to files inside `.aiwg` are followed; other links and all links to folders are not. `unreadable` receives the
    problem of each folder that cannot be listed.
    """
    found: dict[str, Stamp] = {}
    for root in _ROOTS:
        _scan_folder(paths, f".aiwg/{root}", found, {} if unreadable is None else unreadable)
    return found


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
        _scan_folder(paths, relative, found, {} if unreadable is None else unreadable)
    return found


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


def _scan_folder(paths: ProjectPaths, top: str, found: dict[str, Stamp], unreadable: dict[str, Problem]) -> None:
    # Strings instead of `Path`: 60,000 objects would take longer than the stat calls.
    project = f"{paths.project}/"
    pending = [top]
    while pending:
        folder = pending.pop()
        is_deepest = folder.count("/") + 2 > _MAX_PARTS
        is_home, is_named_by_id = folder in HOME_FOLDERS, folder in NAMED_BY_ID
        try:
            with os.scandir(project + folder) as scanned:
                entries = list(scanned)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unreadable[folder] = _unreadable_folder(error)
            continue
        for entry in entries:
            relative = f"{folder}/{entry.name}"
            try:
                if entry.is_dir(follow_symlinks=False):
                    if is_deepest or (entry.name in IGNORED_FOLDERS and not is_named_by_id):
                        continue
                    pending.append(relative)
                    if is_home and kind_of(f"{relative}/"):
                        found[f"{relative}/"] = Stamp.of(entry.stat(follow_symlinks=False))
                elif kind_of(relative) is None:
                    continue
                elif entry.is_symlink():
                    if (stamp := _file_stamp(paths, relative)) is not None:
                        found[relative] = stamp
                elif entry.is_file(follow_symlinks=False):
                    found[relative] = Stamp.of(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except OSError as error:
                unreadable[folder] = _unreadable_folder(error)


def _unreadable_folder(error: OSError) -> Problem:
    reason = error.strerror or type(error).__name__
    return Problem("unreadable", f"is a folder that cannot be read ({reason}); its files are missing here")
