"""The facts that one file contains about one loop."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from core.records.loops import ExtractedPattern, Improvement, InjectedUse, Iteration, LoopStatus
from core.sources.loop_paths import DIRECTORY, loop_directory


class LoopFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one file, one registry entry or one loop folder contains about a loop.

    Attributes:
        source: Kind of file, see `core.sources.loop_paths`. The first nine are the `sources` of a `Loop`; the others
            add details to a loop but do not make a row, unless they are in the loop's directory.
        file: Project-relative; that of a folder ends in `/`.
        loop_id: Name of the loop's directory, else the ID in the file, else the stem of its name. "" means the
            registry itself, which exists even without entries.
        inner_id: The ID in the file if it differs.
        directory: Project-relative directory of the loop, or "".
        modified_at: The file's mtime; None for registry entries.
        status: `unknown` also if the file contains none; `raw_status` is its word.
        pid: Process of the loop itself; `launcher_pid` is used only for joining.
        last_activity_at: Newest time of an update, iteration, heartbeat, start or end in the file.
        quality: 0..1 per iteration, in order.
        duration_ms: Total time from analytics, or from the loop itself.
        crashes: Number of entries in its crash log; `crashed_at` is the newest.
    """

    source: str
    file: str
    loop_id: str = ""
    inner_id: str = ""
    directory: str = ""
    modified_at: datetime | None = None
    raw_status: str = ""
    status: LoopStatus = LoopStatus.UNKNOWN
    task: str = ""
    criteria: tuple[str, ...] = ()
    owner: str = ""
    priority: str = ""
    tags: tuple[str, ...] = ()
    iteration: int | None = None
    max_iterations: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None
    last_activity_at: datetime | None = None
    pid: int | None = None
    launcher_pid: int | None = None
    iterations: tuple[Iteration, ...] = ()
    last_result: str = ""
    learnings: tuple[str, ...] = ()
    injected: tuple[InjectedUse, ...] = ()
    extracted: tuple[ExtractedPattern, ...] = ()
    improvement: Improvement | None = None
    quality: tuple[float, ...] = ()
    duration_ms: float | None = None
    crashes: int = 0
    crashed_at: datetime | None = None


def directory_fact(directory: str, modified_at: datetime | None = None) -> LoopFact | None:
    """The fact that a loop's directory exists, so that it is listed without files.

    None if the path is not the directory of a loop.
    """
    directory = directory.rstrip("/")
    if loop_directory(directory) != directory or not directory:
        return None
    name = directory.rpartition("/")[2]
    return LoopFact(source=DIRECTORY, file=f"{directory}/", loop_id=name, directory=directory, modified_at=modified_at)


def newest(*times: datetime | None) -> datetime | None:
    """The latest of the known times; None without any."""
    return max((time for time in times if time is not None), default=None)
