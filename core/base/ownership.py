"""Whose `.aiwg` is used: one of this user, in no link and on the file system of the project (docs/safety.md#owners)."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path
from typing import Final

TRUSTED_PATHS: Final = "RALPHDECK_TRUSTED_PATHS"
"""Environment variable with folders in which all projects are trusted, separated as in `PATH`."""


def is_in_trusted_path(folder: Path) -> bool:
    """Return whether the user's environment trusts all projects in a folder."""
    return _is_in(str(folder), os.environ.get(TRUSTED_PATHS, ""))


@lru_cache(maxsize=256)
def _is_in(folder: str, trusted: str) -> bool:
    real = Path(os.path.realpath(folder))
    return any(
        real.is_relative_to(os.path.realpath(one)) for one in trusted.split(os.pathsep) if one.startswith(os.sep)
    )


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user or to root, or, under sudo, to the user who called it."""
    owners = {os.geteuid(), 0}
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdigit():
        owners.add(int(caller))
    return status.st_uid in owners


def why_not_used(folder: Path) -> str:
    """Return why the `.aiwg` of a project folder is not used, or "" if it is, or if there is none."""
    aiwg = folder / ".aiwg"
    try:
        status = aiwg.lstat()
        parent = folder.stat()
    except OSError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return f"{aiwg} is a link; make it a folder"
    if is_in_trusted_path(folder):
        return ""
    if not is_own(status):
        return f"{aiwg} belongs to another user; if you trust that user, name the folder in ${TRUSTED_PATHS}"
    if status.st_dev != parent.st_dev:
        return f"{aiwg} is on another file system; if you trust it, name the folder in ${TRUSTED_PATHS}"
    return ""
