"""Folders below `.aiwg/ralph` that only the user may read (docs/safety.md#private-files).

They contain prompts, plans and actions of agents. `open_regular` and `make_folder` of `core.storage.locks` apply these
rules, so that every write does.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.storage.drafts import make_draft_path, remove_drafts

PRIVATE_FOLDERS: Final = {
    "sessions": "*",
    "tasks": "*",
    "index": "*",
    "debug-memory": "*\n!/patterns/\n!/patterns/**",
}
"""Lines of the `.gitignore` by name of a folder; lessons in `debug-memory/patterns` are shared like other patterns."""
_ROOT: Final = re.compile(rf"(?:.*/)?\.aiwg/ralph/(?P<name>{'|'.join(PRIVATE_FOLDERS)})(?=/|$)", re.DOTALL)
_NOTE: Final = """\
# Written once by ralphdeck: these files are private to this machine. Edit the lines below to share some of them in Git.
{}
"""
_IGNORE_FILE: Final = ".gitignore"
_OTHERS: Final = 0o077  # permissions of the group and of others


def private_root(path: Path) -> Path | None:
    """Return the private folder that contains a path, or is it; None for a path outside of all."""
    found = _ROOT.match(os.fspath(path))
    return Path(found[0]) if found is not None else None


def private_mode(path: Path, mode: int) -> int:
    """Return the permissions for a file or folder: `mode`, in a private folder without those of others."""
    return mode if private_root(path) is None else mode & ~_OTHERS


def secure_folders(folder: Path) -> None:
    """Make existing folders from the private one down to `folder` readable by the user alone, and ignored by Git.

    Does nothing outside of private folders. Raises OSError if the `.gitignore` cannot be written.
    """
    root = private_root(folder)
    if root is None:
        return
    for part in (folder, *folder.parents):
        if not part.is_symlink() and part.is_dir():
            _remove_permissions(part)
            if part == root and not is_ignored(root):
                _write_new(root / _IGNORE_FILE, _NOTE.format(PRIVATE_FOLDERS[root.name]).encode())
        if part == root:
            break


def is_ignored(root: Path) -> bool:
    """Return whether a private folder has a `.gitignore`; one that the user has changed counts, too."""
    return os.path.lexists(root / _IGNORE_FILE)


def _remove_permissions(folder: Path) -> None:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & _OTHERS:
        with suppress(PermissionError):  # it belongs to another user
            folder.chmod(mode & ~_OTHERS)


def secure_file(handle: int, path: Path) -> None:
    """Make an open file in a private folder readable by the user alone."""
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & _OTHERS and private_root(path) is not None:
        with suppress(PermissionError):  # it belongs to another user
            os.fchmod(handle, mode & ~_OTHERS)


def _write_new(path: Path, data: bytes) -> None:
    """Create a file with its content in one step; does nothing if it exists.

    An empty `.gitignore` of a killed process would count as one that the user has emptied.
    """
    draft = make_draft_path(path)
    remove_drafts(path.parent)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, data)
        os.fsync(handle)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(handle)
        draft.unlink()
