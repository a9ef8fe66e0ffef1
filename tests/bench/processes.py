"""Run a program to its end: its output, exit code, time on the clock, and processor time with that of its children."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

TIMEOUT_SECONDS: Final = 60.0
_ADOPT_ORPHANS: Final = 36  # PR_SET_CHILD_SUBREAPER
_FIRST_BYTES: Final = 1 << 20  # of the output that is kept


class Ended(Struct, frozen=True):
    """A program that ended, with times in milliseconds.

    `cpu` is the processor time of the process and of the children that it waited for, `background` that of the
    processes that it left behind. `is_late` means that it was killed after `TIMEOUT_SECONDS`.
    """

    code: int
    wall: float
    cpu: float
    background: float
    output: str
    errors: str
    is_late: bool


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], given: bytes = b"") -> Ended:
    """Run a program in a folder with `given` on stdin, until it and the processes that it has started end."""
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1)
    with tempfile.TemporaryFile() as sent, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        sent.write(given)
        sent.seek(0)
        begin = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=sent,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        cpu, status, is_late = _wait(process.pid)
        wall = (time.perf_counter() - begin) * 1000
        process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen doesn't wait for it again
        background = sum(_wait(pid)[0] for pid in iter(_next_orphan, 0))
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read(_FIRST_BYTES).decode(errors="replace"))
    return Ended(process.returncode, wall, cpu, background, texts[0], texts[1], is_late)


def _wait(pid: int) -> tuple[float, int, bool]:
    """Wait for a child; returns its processor time in ms, its status, and whether it was killed as too late."""
    is_late = threading.Event()

    def kill() -> None:
        is_late.set()
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(pid), signal.SIGKILL)

    timer = threading.Timer(TIMEOUT_SECONDS, kill)
    timer.start()
    _, status, used = os.wait4(pid, 0)
    timer.cancel()
    return (used.ru_utime + used.ru_stime) * 1000, status, is_late.is_set()


def _next_orphan() -> int:
    """PID of a process that a former child left behind, 0 if there is none."""
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # the thread of a timer has ended
            for pid in file.read_text().split():
                return int(pid)
    return 0
