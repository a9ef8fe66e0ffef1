"""Terminal driver that tolerates invalid input and a closed terminal."""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import select
import sys
import threading
from time import monotonic
from typing import IO, Any, Final

from textual.constants import ESCAPE_DELAY

from tui.kit.textual_private import HookedDriver, XTermParser

_TICK_SECONDS: Final = 0.1
_PENDING_SECONDS: Final = max(1.0, 2 * ESCAPE_DELAY)  # how long after the last key the parser may wait for more
_MAX_READ: Final = 4096


class ResilientDriver(HookedDriver):
    """Skips bytes that are not UTF-8, and ends cleanly when the terminal closes.

    Textual's driver ends the app on the first invalid byte of a paste. When the terminal closes, its writer thread
    dies, and the app waits for that thread forever.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.file = _Terminal(self.file)
        self.exit_event: _SelectableEvent = _SelectableEvent()
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
        """Read keys until the app ends. Textual's thread wakes up ten times a second, which takes 0.1 % of a core."""
        parser = XTermParser(self.is_debugged)
        decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        read_at = -math.inf
        while not self.exit_event.is_set():
            is_quiet = monotonic() - read_at > _PENDING_SECONDS
            ready, _, _ = select.select([self.fileno, self.exit_event], [], [], None if is_quiet else _TICK_SECONDS)
            if self.fileno in ready:
                data = os.read(self.fileno, _MAX_READ)
                if not data:  # the terminal is closed, which `is_closed` reports
                    self.exit_event.wait()
                    break
                read_at = monotonic()
                for message in parser.feed(text) if (text := decode(data)) else ():
                    self.process_message(message)
            for message in parser.tick():  # a lone Esc is reported after some time
                self.process_message(message)


class _SelectableEvent(threading.Event):
    """Event for which `select` can wait."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        if not self.is_set():
            super().set()
            os.write(self._writer, b".")

    def clear(self) -> None:
        if self.is_set():
            super().clear()
            os.read(self._reader, 1)


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
