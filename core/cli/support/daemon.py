"""Run the daemon until a signal ends it."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from core.project.watch_loop import Daemon

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
        click.get_current_context().exit(_TERMINATED + caught[0])
