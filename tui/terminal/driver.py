"""The terminal driver, made to live with what terminals do."""

from __future__ import annotations

import contextlib
import os
import select
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver


class ResilientDriver(LinuxDriver):
    """Passes over bytes that are no UTF-8, and over a terminal that is gone.

    Textual's own driver ends the app on the first odd byte of a paste. When the terminal goes away its writing
    thread dies, and the app waits for that thread for ever instead of ending.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self._file is not None
        self._file: Any = _Terminal(self._file)
        self._suspended = False
        self._was_terminal = os.isatty(self.fileno)

    @property
    def is_gone(self) -> bool:
        """Whether the terminal has gone away. Where no SIGHUP tells, nothing else does: it reads as empty for ever."""
        poll = select.poll()
        poll.register(self.fileno, 0)  # being hung up is told in any case
        return self._was_terminal and bool(poll.poll(0))

    def suspend_application_mode(self) -> None:
        """Hand the terminal over."""
        self._suspended = True
        super().suspend_application_mode()

    def resume_application_mode(self) -> None:
        """Take the terminal back, if it was handed over.

        A terminal that closes sends SIGCONT with its SIGHUP; resuming then would start threads that nobody ends.
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
    """A terminal that may go away: what is written to it then is lost, and nothing else happens."""

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
