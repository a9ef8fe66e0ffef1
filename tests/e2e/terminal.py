"""A program in a pseudo-terminal: send keys, read raw bytes and the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.e2e.stream import Screen, feed

ROOT: Final = Path(__file__).parents[2]
TIMEOUT_SECONDS: Final = 60.0
"""Seconds until a wait fails, long enough for a loaded machine."""
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment without the variables of the user who runs the tests; the user has the name that it contains."""
    settings = home / "config" / "ralphdeck" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[decisions]\nnames = ["{more.get("RALPHDECK_USER", "ana")}"]\n')
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONPATH": str(ROOT),
        "RALPHDECK_USER": "ana",
        "RALPHDECK_SEMANTIC": "off",
        "RALPHDECK_TRUSTED_PATHS": "/",
        **more,
    }


class Terminal:
    """Runs a program until it ends or the block ends.

    Args:
        command: Its argument list.
        env: Its whole environment.
        size: Columns and rows.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], size: tuple[int, int] = (120, 40)) -> None:
        self.raw = bytearray()
        self.screen = Screen(*size)
        self._drawn = 0
        self._code: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # the child
            try:
                os.chdir(ROOT)
                os.execvpe(command[0], list(command), dict(env))
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.modes = self._modes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    # Output

    def _modes(self) -> list[Any]:
        return termios.tcgetattr(self.fd)

    @property
    def is_cooked(self) -> bool:
        """Whether the line discipline is as before the program started."""
        return self._modes() == self.modes

    def read(self, seconds: float) -> bool:
        """Read output for `seconds`; False if there was none."""
        # Not `select`, which accepts no handle above 1023: a process that runs many tests has more.
        ready = select.poll()
        ready.register(self.fd, select.POLLIN)
        if not ready.poll(seconds * 1000):
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # the program has closed the terminal
            return False
        self.raw += data
        return bool(data)

    def draw(self) -> str:
        """The screen now. An incomplete sequence at the end is not drawn yet."""
        self._drawn += feed(self.screen, bytes(self.raw[self._drawn :]))
        return self.screen.text

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Read until a condition is true; the screen is drawn before each check."""
        start = time.monotonic()
        self.draw()
        while not condition():
            if time.monotonic() - start > TIMEOUT_SECONDS:
                raise AssertionError(f"timed out waiting for {what}:\n{self.draw()}\n{bytes(self.raw[-400:])!r}")
            self.read(0.05)
            self.draw()

    def sees(self, *texts: str) -> None:
        """Read until all texts are on screen."""
        self.until(lambda: all(text in self.screen.text for text in texts), f"{texts}")

    def settles(self, seconds: float = 0.4) -> None:
        """Read until there was no output for `seconds`; clocks on screen tick once a second."""
        start = time.monotonic()
        while self.read(seconds):
            if time.monotonic() - start > TIMEOUT_SECONDS:
                raise AssertionError("the screen does not come to rest")
        self.draw()

    # Input

    def write(self, data: bytes) -> None:
        """Send bytes unchanged."""
        while data:
            data = data[os.write(self.fd, data[:512]) :]
            self.read(0)

    def press(self, *keys: str) -> None:
        """Send keys one by one; keys without a character have names."""
        for key in keys:
            self.write(_KEYS.get(key, key).encode())
            self.settles(0.06)

    def paste(self, text: str) -> None:
        """Paste as terminals with bracketed paste do."""
        self.write(b"\x1b[200~" + text.encode("utf-8", "replace") + b"\x1b[201~")

    def click(self, x: int, y: int) -> None:
        """Click with the left button on a cell, from 0."""
        self.write(f"\x1b[<35;{x + 1};{y + 1}M\x1b[<0;{x + 1};{y + 1}M\x1b[<0;{x + 1};{y + 1}m".encode())

    # Ending

    def end(self) -> int:
        """Read until the program has ended; returns its exit code, -N for a signal."""
        start = time.monotonic()
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - start > TIMEOUT_SECONDS:
                raise AssertionError(f"does not end:\n{self.draw()}\n{bytes(self.raw[-400:])!r}")
            self.read(0.05)
        while self.read(0):
            pass
        self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def stopped(self) -> None:
        """Wait until the program is stopped by a signal."""
        start = time.monotonic()
        while time.monotonic() - start < TIMEOUT_SECONDS:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                while self.read(0):
                    pass
                return
            self.read(0.05)
        raise AssertionError("does not stop")


_KEYS: Final = {
    "enter": "\r",
    "escape": "\x1b[27u",
    "tab": "\t",
    "down": "\x1b[B",
    "up": "\x1b[A",
    "end": "\x1b[F",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "ctrl+c": "\x03",
}


def python(*arguments: str) -> list[str]:
    """A command that runs this Python."""
    return [sys.executable, *arguments]


def dashboard(project: Path) -> list[str]:
    """The command line of the dashboard on a project."""
    return python("-m", "tui", str(project))
