"""What one file contains about a loop; its sources (docs/file-formats.md#loops)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from core.records.loops import LoopValues

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


class LoopFact(LoopValues, frozen=True, kw_only=True, omit_defaults=True):
    """What one file, one registry entry or one loop folder contains about a loop.

    `source` is the kind of file. The first nine above are the `sources` of a `Loop`; the others add details to a loop
    but do not make a row, unless they are in the loop's directory. `file` and `directory` are project-relative; the
    file of a folder is its name with `/`.

    `loop_id` is the name of the loop's directory, else the ID in the file, else the stem of the file's name. "" means
    the registry itself, which exists even without entries. `inner_id` is the ID in the file if it differs.

    `status` is `unknown` also if the file contains none; `raw_status` is its word. `modified_at` is the file's mtime;
    None for registry entries. `last_activity_at` is the newest time of an update, iteration, heartbeat, start or end in
    the file. `pid` is the process of the loop itself; `launcher_pid` is used only for joining. `quality` is 0..1 per
    iteration, in order. `duration_ms` comes from analytics, or from the loop itself. `crashes` is the number of entries
    in its crash log, of which `crashed_at` is the newest.
    """

    source: str
    file: str
    loop_id: str = ""
    inner_id: str = ""
    last_activity_at: datetime | None = None
    launcher_pid: int | None = None
    crashed_at: datetime | None = None


def loop_directory(file: str) -> str:
    """The directory of the loop that contains a project-relative path, or ""."""
    parts = file.split("/", 4)
    return "/".join(parts[:4]) if len(parts) > 3 and parts[3] and "/".join(parts[:3]) in _HOMES else ""


def loop_home(directory: str) -> str:
    """`LOOPS`, `ARCHIVE`, `EXTERNAL` or `EXTERNAL_ARCHIVE` for a loop's directory."""
    return _HOMES.get(directory.rpartition("/")[0], "")


def directory_fact(directory: str, modified_at: datetime | None = None) -> LoopFact | None:
    """The fact that a loop's directory exists; None for any other path."""
    directory = directory.rstrip("/")
    if loop_directory(directory) != directory or not directory:
        return None
    name = directory.rpartition("/")[2]
    return LoopFact(source=DIRECTORY, file=f"{directory}/", loop_id=name, directory=directory, modified_at=modified_at)


def newest(*times: datetime | None) -> datetime | None:
    """The latest of the known times; None without any."""
    return max((time for time in times if time is not None), default=None)
