"""Check whether the process of a loop runs (docs/file-formats.md#liveness)."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from core.records.loops import Liveness, LoopStatus, StateSource
from core.records.times import minute_of

ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)  # Start time of a process on systems that do not report it.
MAX_PID: Final = 2**22  # Largest pid on Linux; other systems use smaller ones.
_MAX_COMMAND: Final = 4096  # Bytes of a command line that are read.
SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "busybox"})
RUNTIMES: Final = frozenset({"node", "bun", "python3", "python"})
LOST_AFTER: Final = timedelta(days=3)  # without activity and without a process, a loop that says it runs has ended
_START_TOLERANCE: Final = timedelta(seconds=2)
"""Tolerance for rounded boot times and clock ticks, and for clock adjustments."""


class Processes(Protocol):
    """Access to the processes of a system."""

    def started_at(self, pid: int) -> datetime | None:
        """Start time in UTC; `ALWAYS` if unknown, None if the process does not run."""

    def find(self, program: str, folder: Path) -> int | None:
        """Return the pid of a program or script in a working folder; None if none runs."""


class ProcFiles:
    """Processes listed in `/proc` (Linux); a zombie does not count as running."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root
        self._ticks = os.sysconf("SC_CLK_TCK")

    def started_at(self, pid: int) -> datetime | None:
        fields = self._stat(pid)
        if len(fields) < 20 or fields[0] in (b"Z", b"X") or not fields[19].isdigit():
            return None
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return datetime.fromtimestamp(booted + int(fields[19]) / self._ticks, UTC)

    def find(self, program: str, folder: Path) -> int | None:
        try:
            pids = sorted(int(entry.name) for entry in self._root.iterdir() if entry.name.isdecimal())
            wanted = str(folder.resolve())
        except (OSError, RuntimeError, ValueError):
            return None
        return next((pid for pid in pids if self._runs(pid, program) and self._folder(pid) == wanted), None)

    def words(self, pid: int) -> list[str]:
        """Return the command line of a process; empty if it does not run."""
        try:
            with (self._root / str(pid) / "cmdline").open("rb") as file:
                return file.read(_MAX_COMMAND).decode("utf-8", "replace").split("\0")
        except OSError:
            return []

    def parent(self, pid: int) -> int:
        """Return the pid of the process that started another one; 0 if it does not run."""
        fields = self._stat(pid)
        return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0

    def _stat(self, pid: int) -> list[bytes]:
        """Return `/proc/PID/stat` fields after the name (may have spaces); [] if gone."""
        try:
            line = (self._root / str(pid) / "stat").read_bytes()
        except OSError:
            return []
        return line[line.rfind(b")") + 2 :].split()

    def _runs(self, pid: int, program: str) -> bool:
        words = self.words(pid)
        names = [word.rpartition("/")[2] for word in words if not word.startswith("-") or word is words[0]]
        return names[:1] == [program] or (bool(names) and names[0] in SHELLS | RUNTIMES and program in names[1:2])

    def _folder(self, pid: int) -> str:
        try:
            return str((self._root / str(pid) / "cwd").readlink())
        except OSError:
            return ""


class ProcessSignals:
    """Processes without `/proc`; signal 0 shows that they exist, but not their start."""

    def started_at(self, pid: int) -> datetime | None:
        try:
            os.kill(pid, 0)
        except PermissionError:
            return ALWAYS
        except (OSError, OverflowError):
            return None
        return ALWAYS

    def find(self, program: str, folder: Path) -> int | None:
        return None


def system_processes() -> Processes:
    """Return the access to processes that this machine supports."""
    return ProcFiles() if Path("/proc/self/stat").exists() else ProcessSignals()


@cache
def process_space() -> str:
    """Return where this process's pids are valid: machine, namespace; "" if unknown."""
    try:
        return f"{os.uname().nodename} {Path('/proc/self/ns/pid').readlink()}"
    except (AttributeError, OSError):
        return ""


def is_running(pid: int, started: datetime, processes: Processes) -> bool:
    """Return whether the process with this pid and start runs; pids can be reused."""
    found = processes.started_at(pid) if 0 < pid <= MAX_PID else None
    return found is not None and (ALWAYS in (found, started) or abs(found - started) <= _START_TOLERANCE)


class Moment(Struct, frozen=True, kw_only=True):
    """When loops are looked at, and what their states depend on besides their files.

    `space` is that of the processes (see `process_space`). `has_registry` is True if a registry exists, which should
    list the loops.
    """

    now: datetime
    processes: Processes
    stale_after: timedelta = timedelta(minutes=10)
    space: str = ""
    has_registry: bool = False


class State(Struct, frozen=True):
    """A loop's status, reason in its program's words, and whether and why it runs."""

    status: LoopStatus = LoopStatus.UNKNOWN
    reason: str = ""
    liveness: Liveness = Liveness.UNKNOWN
    why: str = ""
    source: StateSource = StateSource.INFERRED
    pid: int | None = None
    question: str = ""


def check_liveness(
    status: LoopStatus,
    pid: int | None,
    last_activity: datetime | None,
    modified_at: datetime | None,
    moment: Moment,
) -> tuple[Liveness, str]:
    """Return the liveness of a loop and a one-line reason.

    `pid` is the process of the loop itself. Systems reuse pids, so a process that started after the loop's last
    activity is another one, and the loop's process has ended. `modified_at` is the newest mtime of its files, used if
    they contain no time. A loop without a pid is stale if it had no activity for `moment.stale_after`, and one
    that says it runs has ended after `LOST_AFTER`.
    """
    if status is LoopStatus.UNKNOWN:
        return Liveness.UNKNOWN, "its files contain no known status"
    if status.ended:
        return Liveness.ENDED, f"its files report the status {status.value}"
    if status is LoopStatus.PAUSED:
        return Liveness.IDLE, "its files report the status paused"
    if status.active and pid is not None and 0 < pid <= MAX_PID:
        started = moment.processes.started_at(pid)
        if started is None:
            return Liveness.DEAD, f"process {pid} is gone"
        if last_activity is None:
            return Liveness.UNKNOWN, f"process {pid} runs, but its files do not show that it is the loop's"
        if started > last_activity + _START_TOLERANCE:
            return Liveness.DEAD, f"process {pid} is gone; its pid was reused at {started:%Y-%m-%d %H:%M:%S} UTC"
        return Liveness.ALIVE, f"process {pid} runs"
    activity = last_activity or modified_at
    if activity is None:
        return Liveness.UNKNOWN, "no known process and no time in its files"
    since = f"{'last activity' if last_activity else 'files last written'} {minute_of(activity)} UTC"
    if status.active and moment.now - activity > LOST_AFTER:
        return Liveness.ENDED, f"{since}, no known process; how it ended is not recorded"
    if moment.now - activity > moment.stale_after:
        return Liveness.STALE, f"{since}, no known process"
    return Liveness.FRESH, since
