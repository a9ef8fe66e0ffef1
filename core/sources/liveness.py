"""Whether the process behind a loop is still there (formats C18)."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from core.records.loops import Liveness, LoopStatus
from core.records.times import minute_of

ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Start of a process on systems that tell only that it runs."""
MAX_PID: Final = 2**22
"""Largest pid that Linux gives; others give smaller ones."""
_START_TOLERANCE: Final = timedelta(seconds=2)
"""Boot time and clock ticks are rounded, and clocks are set."""


class Processes(Protocol):
    """What the system knows of its processes."""

    def started_at(self, pid: int) -> datetime | None:
        """Start of the running process `pid`, UTC; `ALWAYS` if it only is known to run; None: none runs."""


class ProcFiles:
    """Processes as Linux shows them under `/proc`; a zombie counts as gone."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root
        self._ticks = os.sysconf("SC_CLK_TCK")

    def started_at(self, pid: int) -> datetime | None:
        try:
            line = (self._root / str(pid) / "stat").read_bytes()
        except OSError:
            return None
        fields = line[line.rfind(b")") + 2 :].split()  # the name before it may hold spaces and parentheses
        if len(fields) < 20 or fields[0] in (b"Z", b"X") or not fields[19].isdigit():
            return None
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return datetime.fromtimestamp(booted + int(fields[19]) / self._ticks, UTC)


class Signals:
    """Processes on systems without `/proc`: signal 0 tells whether one is there, nothing tells its start."""

    def started_at(self, pid: int) -> datetime | None:
        try:
            os.kill(pid, 0)
        except PermissionError:
            return ALWAYS
        except (OSError, OverflowError):
            return None
        return ALWAYS


def system_processes() -> Processes:
    """The processes of this machine."""
    return ProcFiles() if Path("/proc/self/stat").exists() else Signals()


def judge(
    status: LoopStatus,
    pid: int | None,
    newest: datetime | None,
    modified_at: datetime | None,
    now: datetime,
    stale_after: timedelta,
    processes: Processes,
) -> tuple[Liveness, str]:
    """Liveness of a loop, and the reason in one line for a person.

    Pids are reused: a running process is the loop's own only if it ran already at the newest time that the
    loop's files tell. A process that started later took over the number, so the loop's own is gone.

    Args:
        status: Normalised status of the files.
        pid: A pid that belongs to the loop itself (its state's `currentPid`, or the external registry's).
        newest: Newest time told inside the loop's files.
        modified_at: Newest mtime of its files, for those that tell no time.
        now: The present, UTC.
        stale_after: Silence that makes a loop without a pid stale.
        processes: Whom to ask.
    """
    if status is LoopStatus.UNKNOWN:
        return Liveness.UNKNOWN, "no file tells a status that is known"
    if status.ended:
        return Liveness.ENDED, f"{status.value} by its files"
    if status is LoopStatus.PAUSED:
        return Liveness.IDLE, "paused by its files"
    if status.active and pid is not None and 0 < pid <= MAX_PID:
        return _by_process(pid, newest, processes)
    return _by_silence(newest, modified_at, now, stale_after)


def _by_process(pid: int, newest: datetime | None, processes: Processes) -> tuple[Liveness, str]:
    started = processes.started_at(pid)
    if started is None:
        return Liveness.DEAD, f"process {pid} is gone"
    if newest is None:
        return Liveness.UNKNOWN, f"process {pid} runs, but no file tells a time to know it by"
    if started > newest + _START_TOLERANCE:
        since = f"{started:%Y-%m-%d %H:%M:%S}"
        return Liveness.DEAD, f"process {pid} is gone; its number went to one that started {since} UTC"
    return Liveness.ALIVE, f"process {pid} runs"


def _by_silence(
    newest: datetime | None, modified_at: datetime | None, now: datetime, stale_after: timedelta
) -> tuple[Liveness, str]:
    sign = newest or modified_at
    if sign is None:
        return Liveness.UNKNOWN, "no process to ask and no time to judge by"
    since = f"{minute_of(sign)} UTC"
    told = f"last sign {since}" if newest else f"files last written {since}"
    if now - sign > stale_after:
        return Liveness.STALE, f"{told}, no process to ask"
    return Liveness.FRESH, told
