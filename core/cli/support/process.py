"""The process of a command: its settings, its end by a signal, and its input."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput
from core.base.text import visible_line

if TYPE_CHECKING:
    from core.project.watch_loop import Daemon


_GARBAGE_THRESHOLD: Final = 200_000
"""Allocations between two garbage collections. With the default of 700, a list of 100,000 patterns spends a fifth of
its time in the collector, although few cycles are created; with 50,000, `loop inject` takes 15 ms longer."""


def prepare_process() -> None:
    """Collect garbage rarely, and give numpy no threads for linear algebra.

    Threads do not help with small products, and cost 0.04 s of processor time.
    """
    gc.set_threshold(_GARBAGE_THRESHOLD)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


_TERMINATED: Final = 128
"""Added to the number of a signal, this is the exit code of a process that it ended."""


def run_until_signal(daemon: Daemon) -> None:
    """Run the daemon until SIGTERM, SIGHUP or SIGINT; exit with the signal's code."""
    caught: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        daemon.stop()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    daemon.run()
    if caught:
        import click  # hooks start without it

        click.get_current_context().exit(_TERMINATED + caught[0])


def read_input(file: Path, most: int) -> bytes:
    """Read a file, or standard input for `-`, of at most `most` bytes.

    Raises BadInput if the path is invalid, or the file is missing, too long or unreadable.
    """
    from core.files.file_reader import Problem, read_file  # `--help` starts without it

    if str(file) == "-":
        data = sys.stdin.buffer.read(most + 1) if sys.stdin is not None else b""
        if len(data) > most:
            raise BadInput(f"standard input is longer than {most:,} bytes")
        return data
    name = visible_line(str(file), 300)
    try:
        path = file.resolve()
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{name} is not a valid path") from None
    read = read_file(path, path.parent, most)
    if read is None:
        raise BadInput(f"{name} does not exist")
    if isinstance(read, Problem):
        raise BadInput(f"{name} {read.message}")
    return read.data


_STDIN: Final = 0
_TIMEOUT_SECONDS: Final = 2.0  # How long to wait for an agent that keeps stdin open and writes nothing.
_MAX_BYTES: Final = 64 << 20  # Longest event; that of a tool includes the file that was written.


def read_stdin(most: int = _MAX_BYTES) -> bytes:
    """Read stdin until its end or timeout; return `most` bytes, none from a terminal."""
    chunks, size = [], 0
    try:
        if os.isatty(_STDIN):
            return b""
        while size < _MAX_BYTES and select.select([_STDIN], [], [], _TIMEOUT_SECONDS)[0]:
            chunk = os.read(_STDIN, 1 << 16)
            if not chunk:
                break
            if size < most:  # the rest is read, too: else the writer of the event gets a broken pipe
                chunks.append(chunk[: most - size])
            size += len(chunk)
    except OSError:  # stdin is closed
        pass
    return b"".join(chunks)
