"""Drafts: the next version of a file, beside it until it is complete (docs/reliability.md#replacing-files)."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_DRAFT: Final = re.compile(r"\..+\.tmp-([0-9]{1,10})-[0-9a-f]{8}")  # names made by `make_draft_path`
_MIN_AGE: Final = 60.0  # seconds; a younger draft may be one of a container, whose processes have other IDs


def make_draft_path(path: Path) -> Path:
    """Return a new name beside `path` for its next version; readers ignore `*.tmp-*`."""
    return path.with_name(f".{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")


def remove_drafts(folder: Path) -> None:
    """Remove the drafts in a folder that are older than a minute and whose process no longer runs."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            draft = _DRAFT.fullmatch(entry.name)
            if draft is not None and not is_alive(int(draft[1])):
                _remove_old(entry)


def _remove_old(draft: os.DirEntry[str]) -> None:
    with suppress(OSError):  # a remaining draft does no harm
        status = draft.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _MIN_AGE:
            Path(draft.path).unlink()


def is_alive(pid: int) -> bool:
    """Return whether a process with this ID runs on this machine."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
