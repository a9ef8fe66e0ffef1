"""Terminal driver that tolerates invalid input and a closed terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver


class ResilientDriver(LinuxDriver):
    """Skips bytes that are not UTF-8, and ends cleanly when the terminal closes.

    Textual's driver ends the app on the first invalid byte of a paste. When the terminal closes, its writer thread
    dies, and the app waits for that thread forever.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self._file is not None
        self._file: Any = _Terminal(self._file)
        self._suspended = False
        self._was_terminal = os.isatty(self.fileno)

    @property
    def is_closed(self) -> bool:
        """Return True if the terminal closed without SIGHUP; every read is then empty."""
        poll = select.poll()
        poll.register(self.fileno, 0)  # a hang-up is always reported
        return self._was_terminal and bool(poll.poll(0))

    def suspend_application_mode(self) -> None:
        self._suspended = True
        super().suspend_application_mode()

    def resume_application_mode(self) -> None:
        """Resume after another program has used the terminal.

        A terminal that closes sends SIGCONT with SIGHUP; resuming then would start threads that never end.
        """
        if self._suspended:
            self._suspended = False
            super().resume_application_mode()

    def run_input_thread(self) -> None:
        """Read keys until the app ends."""
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except UnicodeDecodeError:
                continue


class _Terminal:
    """Terminal file that silently discards writes after the terminal has closed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


def flush_output() -> None:
    """Redirect output to /dev/null if the terminal is closed, to keep the exit code."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
