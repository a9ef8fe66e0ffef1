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
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_ROOT: Final = Path(__file__).parents[2]
ROW_IDS: Final = ("pat-error-", "pat-success-", "pat-anti-", "tmpl-")
_ROWS: Final = 40
_COLUMNS: Final = 120


class Screen:
    """The dashboard on a project at 120x40; a context manager that ends it.

    Attributes:
        begun: Start time by `time.perf_counter`.
    """

    def __init__(self, project: Path) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tui", "--project", str(project)],
            cwd=_ROOT,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        os.close(side)

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

    def show_loops(self) -> float:
        """Open the Loops screen; returns the time of the first rows by `time.perf_counter`."""
        self.wait_for("Loops")
        self.press("1")
        return self.wait_for("Task ")

    def show_patterns(self) -> float:
        """Open the Patterns screen; returns the time of the first rows by `time.perf_counter`."""
        self.press("2")
        return self.wait_for(*ROW_IDS)

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

    def calm(self, at_most: float = 120) -> None:
        """Wait until everything is loaded and the dashboard is idle."""
        deadline = time.perf_counter() + at_most
        while self.processor_share(2) > 0.1 and time.perf_counter() < deadline:
            pass

    def press(self, keys: str) -> float:
        """Type keys; returns the time by `time.perf_counter`."""
        os.write(self._main, keys.encode())
        return time.perf_counter()

    def processor_share(self, seconds: float) -> float:
        """Share of one core used during `seconds`, 0..1."""
        begin, used = time.perf_counter(), self._cpu()
        while time.perf_counter() - begin < seconds:
            self._read(0.2)
        return (self._cpu() - used) / (time.perf_counter() - begin)

    def resident_mb(self) -> float:
        """Resident size of the dashboard."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._main], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self._main, 1 << 16)
        except OSError:  # the other side is closed
            return b""
