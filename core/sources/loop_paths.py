"""Names of the sources of loops, and the folders that loops live in.

See docs/file-formats.md#loops.
"""

from __future__ import annotations

from typing import Final

LOOPS: Final = "loops"
ARCHIVE: Final = "archive"
REGISTRY: Final = "registry"
CURRENT: Final = "current-loop"
EXTERNAL: Final = "external"
EXTERNAL_ARCHIVE: Final = "external-archive"
EXTERNAL_REGISTRY: Final = "external-registry"
EXTERNAL_STATE: Final = "external-state"
LAUNCHER: Final = "launcher"
HEARTBEAT: Final = "heartbeat"
CRASH_LOG: Final = "crash-log"
ANALYTICS: Final = "analytics"
BEST_OUTPUT: Final = "best-output"
DIRECTORY: Final = "directory"
DETAILS: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT, CRASH_LOG, DIRECTORY})
"""Sources that only add details to a loop known from another source."""
REGISTRIES: Final = frozenset({REGISTRY, EXTERNAL_REGISTRY})
ARCHIVES: Final = frozenset({ARCHIVE, EXTERNAL_ARCHIVE})

_HOMES: Final = {
    ".aiwg/ralph/loops": LOOPS,
    ".aiwg/ralph/archive": ARCHIVE,
    ".aiwg/ralph-external/loops": EXTERNAL,
    ".aiwg/ralph-external/archive": EXTERNAL_ARCHIVE,
}
HOME_FOLDERS: Final = frozenset(_HOMES)
"""Folders with one subfolder per loop."""


def loop_directory(file: str) -> str:
    """The directory of the loop that a project-relative path is in; "" if it is in none."""
    parts = file.split("/", 4)
    return "/".join(parts[:4]) if len(parts) > 3 and parts[3] and "/".join(parts[:3]) in _HOMES else ""


def loop_home(directory: str) -> str:
    """`LOOPS`, `ARCHIVE`, `EXTERNAL` or `EXTERNAL_ARCHIVE` for a result of `loop_directory`; else ""."""
    return _HOMES.get(directory.rpartition("/")[0], "")
