"""The process of a command: its settings, and its end by a signal."""

from __future__ import annotations

import gc
import os
import signal
from types import FrameType
from typing import TYPE_CHECKING, Final

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
    """Run the daemon until SIGTERM, SIGHUP or SIGINT; then exit with the code of that signal."""
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
