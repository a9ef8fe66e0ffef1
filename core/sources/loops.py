"""Loop facts: what one file says about one loop (formats sections 1-3, C6, C13, C28, C29). `joining` makes rows of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from core.records.findings import Finding
from core.records.loops import ExtractedPattern, InjectedUse, Iteration, LoopStatus
from core.sources import dialects
from core.sources.fields import Fields, document

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


class LoopFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one file (or one entry of a registry, or a bare loop directory) says about one loop.

    Attributes:
        source: Kind of file, one of the constants of this module. The first nine are the `sources` of a `Loop`;
            the other four add detail and make no row of their own, unless they lie in a loop's directory.
        file: Project-relative; a bare directory ends in `/`.
        loop_id: The name of the loop's directory, where it lies in one, else the id inside, else the file's stem.
            "" is the registry itself: it exists, even if it lists no loop.
        inner_id: The id inside where it differs.
        directory: Project-relative directory of the loop, or "".
        seen_at: The file's mtime.
        status: Normalised; `unknown` also where the file gives none.
        pid: Of the loop's own process (`currentPid`, external registry); `launcher_pid` only joins (C14).
        told_at: Newest sign of life told inside: update, iteration, heartbeat, start, end.
        crashed_at: Newest entry of a crash log; `crashes` counts its entries.
        quality: 0..1 per iteration in order.
        duration_ms: `total_time_ms` of analytics, or the loop's own total.
    """

    source: str
    file: str
    loop_id: str = ""
    inner_id: str = ""
    directory: str = ""
    seen_at: datetime | None = None
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
    told_at: datetime | None = None
    pid: int | None = None
    launcher_pid: int | None = None
    iterations: tuple[Iteration, ...] = ()
    last_result: str = ""
    learnings: tuple[str, ...] = ()
    injected: tuple[InjectedUse, ...] = ()
    extracted: tuple[ExtractedPattern, ...] = ()
    quality: tuple[float, ...] = ()
    duration_ms: float | None = None
    crashes: int = 0
    crashed_at: datetime | None = None


Facts = tuple[tuple[LoopFact, ...], tuple[Finding, ...]]


def loop_source(file: str) -> str:
    """Which kind of loop file a project-relative path is: a constant of this module, or "" for none."""
    raise NotImplementedError


def read_loops(file: str, value: Any, seen_at: datetime) -> Facts:
    """Facts of a JSON file for which `loop_source` names a kind other than `CRASH_LOG`.

    Args:
        file: Project-relative path with `/`.
        value: The decoded document, of any JSON type.
        seen_at: The file's mtime, UTC.
    """
    raise NotImplementedError


def read_crash_log(file: str, data: bytes, seen_at: datetime) -> Facts:
    """Facts of a `crash.log`."""
    raise NotImplementedError


def directory_fact(directory: str, seen_at: datetime) -> LoopFact | None:
    """The fact that a loop's directory exists, whatever is readable in it; None if the path is no loop directory.

    The scan gives one for each directory in `loops/` and `archive/` of both trees: a loop whose state can't be
    read is still a row.
    """
    raise NotImplementedError
