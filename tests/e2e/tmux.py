"""A private tmux server: panes with a shell, read as text."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS

PROMPT: Final = "ready$ "


class Tmux:
    """A server with one window of the given size; `window` adds more.

    Args:
        folder: Folder of its socket.
        env: The whole environment of the shells.
        size: Columns and rows.
    """

    def __init__(self, folder: Path, env: Mapping[str, str], size: tuple[int, int]) -> None:
        self._env = {**env, "TMUX_TMPDIR": str(folder), "PS1": PROMPT}
        self._socket = "deck"  # in a separate folder: the whole path is limited to 107 characters
        columns, rows = size
        self._run("new-session", "-d", "-s", "main", "-n", "first", "-x", str(columns), "-y", str(rows), *self._shell())
        self._run("set-option", "-g", "default-size", f"{columns}x{rows}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("kill-server")

    def _shell(self) -> list[str]:
        return ["-c", str(ROOT), "env", f"PS1={PROMPT}", "sh", "-i"]

    def _run(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", "/dev/null", *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, encoding="utf-8", check=True)
        return done.stdout

    def window(self, name: str) -> None:
        """Open another window with a shell."""
        self._run("new-window", "-d", "-n", name, *self._shell())

    def start(self, command: list[str], window: str = "first") -> None:
        """Type a command at the prompt."""
        self.until(lambda: self.text(window).rstrip().endswith(PROMPT.strip()), "the prompt", window)
        self.keys(shlex.join(command), "Enter", window=window)

    def keys(self, *keys: str, window: str = "first") -> None:
        """Press keys by their tmux names; longer words are typed."""
        for key in keys:
            named = key in {"Enter", "Escape", "Down", "Up", "Tab", "Space"} or key.startswith("C-")
            self._run("send-keys", "-t", f"main:{window}", *([] if named else ["-l"]), "--", key)

    def text(self, window: str = "first") -> str:
        """The text of a window."""
        return self._run("capture-pane", "-p", "-t", f"main:{window}")

    def flag(self, name: str, window: str = "first") -> str:
        """A property of a pane, such as `alternate_on`."""
        return self._run("display-message", "-p", "-t", f"main:{window}", f"#{{{name}}}").strip()

    def until(self, condition: Callable[[], bool], what: str, window: str = "first") -> None:
        """Wait until a condition is true."""
        start = time.monotonic()
        while not condition():
            if time.monotonic() - start > TIMEOUT_SECONDS:
                raise AssertionError(f"timed out waiting for {what}:\n{self.text(window)}")
            time.sleep(0.05)

    def sees(self, *texts: str, window: str = "first") -> None:
        """Wait until a window shows all texts."""
        self.until(lambda: all(text in self.text(window) for text in texts), f"{texts}", window)
