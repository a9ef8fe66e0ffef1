"""Facts about loops from single files (docs/file-formats.md#loops)."""

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
"""Sources that only add details to loops found in other sources."""
REGISTRIES: Final = frozenset({REGISTRY, EXTERNAL_REGISTRY})
ARCHIVES: Final = frozenset({ARCHIVE, EXTERNAL_ARCHIVE})

_HOMES: Final = {
    ".aiwg/ralph/loops": LOOPS,
    ".aiwg/ralph/archive": ARCHIVE,
    ".aiwg/ralph-external/loops": EXTERNAL,
    ".aiwg/ralph-external/archive": EXTERNAL_ARCHIVE,
}
HOME_FOLDERS: Final = frozenset(_HOMES)  # Folders that contain one subfolder per loop.


class LoopFact(LoopValues, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The information about a loop in one file, registry entry or loop folder.

    `source` is the kind of file. Facts from `DETAILS` add details to a loop, but do not show that one exists, unless
    they are in the loop's directory. `file` and `directory` are project-relative; the path of a folder ends in `/`.

    `loop_id` is the name of the loop's directory, otherwise the ID in the file, otherwise the stem of the file's name.
    "" means the registry itself, which exists even without entries. `inner_id` is the ID in the file if it differs.

    `status` is `unknown` if the file has no known status; `raw_status` is the word in the file. `modified_at` is the
    file's mtime, None for registry entries. `last_activity_at` is the newest time of an update, iteration, heartbeat,
    start or end in the file. `pid` is the process of the loop itself; `launcher_pid` is only used for joining.
    `quality` is 0..1 per iteration, in order. `duration_ms` comes from analytics, or from the loop itself. `crashes` is
    the number of entries in its crash log, and `crashed_at` the time of the newest.
    """

    source: str
    file: str
    loop_id: str = ""
    inner_id: str = ""
    last_activity_at: datetime | None = None
    launcher_pid: int | None = None
    crashed_at: datetime | None = None


def loop_directory(file: str) -> str:
    """Return the loop directory that contains a project-relative path, or ""."""
    parts = file.split("/", 4)
    return "/".join(parts[:4]) if len(parts) > 3 and parts[3] and "/".join(parts[:3]) in _HOMES else ""


def loop_home(directory: str) -> str:
    """Source of a loop directory: LOOPS, ARCHIVE, EXTERNAL or EXTERNAL_ARCHIVE."""
    return _HOMES.get(directory.rpartition("/")[0], "")


def directory_fact(directory: str, modified_at: datetime | None = None) -> LoopFact | None:
    """Return the fact that a loop directory exists; None for any other path."""
    directory = directory.rstrip("/")
    if loop_directory(directory) != directory or not directory:
        return None
    name = directory.rpartition("/")[2]
    return LoopFact(source=DIRECTORY, file=f"{directory}/", loop_id=name, directory=directory, modified_at=modified_at)


def newest(*times: datetime | None) -> datetime | None:
    """Return the latest time; None if all are None."""
    known = [time for time in times if time is not None]  # a list is twice as fast as a generator, for each loop
    return max(known) if known else None
