"""The dashboard in a pseudo-terminal, and the time at which output arrives."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.bench.measured import Measured, resident_mb

_ROOT: Final = Path(__file__).parents[2]
ROW_IDS: Final = ("pat-error-", "pat-success-", "pat-anti-", "tmpl-")
LOADED: Final = "live ⟳"
"""Shown at the top when everything is loaded."""
_ROWS: Final = 50
_COLUMNS: Final = 200


class Screen:
    """The dashboard on a project at 200x50; a context manager that ends it. `begun` is its start by `perf_counter`."""

    def __init__(self, project: Path, *, command: Sequence[str] = ()) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, *(command or ("-m", "tui", "--project", str(project)))],
            cwd=_ROOT,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        os.close(side)

    @classmethod
    def of_code(cls, code: str) -> Self:
        """Another terminal program, as Python code."""
        return cls(_ROOT, command=("-c", code))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        deadline = time.perf_counter() + 10
        while self._process.poll() is None and time.perf_counter() < deadline:
            self._read(0.05)  # the process cannot end while its last output is unread
        self._process.kill()
        self._process.wait()
        os.close(self._main)

    def wait_for(self, *texts: str, seconds: float = 60) -> float:
        """Wait until one of `texts` is printed in one piece and style; returns the time by `time.perf_counter`."""
        tail = b""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            tail += self._read(0.05)
            if any(text.encode() in tail for text in texts):
                return time.perf_counter()
            tail = tail[-100:]
        raise TimeoutError(f"{' or '.join(texts)} did not appear on the screen")

    def show_now(self) -> float:
        """Wait for the first lines of the Now screen; returns their time by `time.perf_counter`."""
        return self.wait_for("Task ")

    def show_loops(self) -> float:
        """Open the Loops screen; returns the time of the first rows by `time.perf_counter`."""
        self.wait_for("Loops")
        self.press("4")
        return self.wait_for("Task ")

    def show_patterns(self) -> float:
        """Open the Patterns screen; returns the time of the first rows by `time.perf_counter`."""
        self.press("3")
        return self.wait_for(*ROW_IDS)

    def wait_until_loaded(self) -> float:
        """Wait until all files are read and checked; returns the time by `time.perf_counter`."""
        return self.wait_for(LOADED, seconds=300)

    def wait_for_paint(self, seconds: float = 10) -> float:
        """Wait for any output; returns its time by `time.perf_counter`."""
        if not self._read(seconds):
            raise TimeoutError("nothing was painted")
        return time.perf_counter()

    def settle(self, quiet: float = 0.1, at_most: float = 5) -> None:
        """Wait until there was no output for `quiet` seconds, at most `at_most`: clocks on the screen tick."""
        deadline = time.perf_counter() + at_most
        while self._read(quiet) and time.perf_counter() < deadline:
            pass

    def calm(self, at_most: float = 120, *, times: int = 3) -> None:
        """Wait until the dashboard is idle for that number of times 2 s in a row: searches pause between steps."""
        deadline = time.perf_counter() + at_most
        in_a_row = 0
        while in_a_row < times and time.perf_counter() < deadline:
            in_a_row = in_a_row + 1 if self.processor_share(2) < 0.05 else 0

    def press(self, keys: str) -> float:
        """Type keys; returns the time by `time.perf_counter`."""
        os.write(self._main, keys.encode())
        return time.perf_counter()

    def processor_share(self, seconds: float) -> float:
        """Share of one core used during `seconds`, 0..1."""
        begin, used = time.perf_counter(), self.processor_seconds()
        while time.perf_counter() - begin < seconds:
            self._read(0.2)
        return (self.processor_seconds() - used) / (time.perf_counter() - begin)

    def resident_mb(self) -> float:
        """Resident size of the dashboard and of the processes that it has started."""
        return sum(resident_mb(one) for one in (self._process.pid, *self._children()))

    def own_memory(self) -> Measured:
        """Resident size of the dashboard without the processes that it has started; in the note its peak."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines())
        resident, peak = (int(status[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
        return Measured(resident, "MB", note=f"peak {peak:.0f}")

    def processor_seconds(self) -> float:
        """Processor time of the dashboard and of the processes that it has started."""
        return sum(map(_processor_seconds, (self._process.pid, *self._children())))

    def _children(self) -> list[int]:
        found = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        return [int(pid) for file in found for pid in file.read_text().split()]

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._main], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self._main, 1 << 16)
        except OSError:  # the other side is closed
            return b""


def _processor_seconds(process: int) -> float:
    """Processor time of a process and of its ended children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
