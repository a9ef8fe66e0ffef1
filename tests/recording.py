"""`python -m tests.recording [--commands] PROJECT`: record ralphdeck in a large project, into `docs/images/`.

Without an option, `reopening` records how the dashboard reopens the project. With `--commands`, `commands` records a
shell in which the dashboard is opened, patterns are listed, and a hook answers a prompt.

`NAME.cast` is the terminal's output with its times, in version 2 of asciinema's format (`asciinema play FILE`).
`NAME.svg` shows the screen at each step.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tests.e2e.terminal import Terminal, dashboard, environment

FOLDER: Final = Path(__file__).parents[1] / "docs/images"
SIZE: Final = (120, 16)
_SHELL_SIZE: Final = (120, 26)
SIGHTS: Final = {"first frame": "Loops", "rows of the last run": "as of", "all files checked": "⟳"}
"""Texts on the screen that are waited for, in this order, by caption of the frame."""
PROMPT: Final = "Fix the deadlock in the payment webhook migration, TypeError: Cannot cache order of null"
COMMANDS: Final = (
    ("patterns are listed", "time ralphdeck pattern list | head -8"),
    ("a hook answers a prompt", "time ralphdeck hook --agent claude < prompt.json | head -c 700 | fold -w 118"),
)
"""Command lines of the shell, by caption of the frame."""
_SHELL: Final = "shell$"
_RESET: Final = r"\[\e[m\]"  # at the end of the prompt: `Terminal` draws up to the last control sequence
_TIMED: Final = "seconds on the clock"


class Recorded(Terminal):
    """A terminal that notes when each piece of output came, in seconds since the start."""

    def __init__(self, command: Sequence[str], env: dict[str, str], size: tuple[int, int]) -> None:
        self.begun = time.monotonic()
        self.pieces: list[tuple[float, bytes]] = []
        super().__init__(command, env, size)

    def read(self, seconds: float) -> bool:
        before = len(self.raw)
        came = super().read(seconds)
        if came:
            self.pieces.append((time.monotonic() - self.begun, bytes(self.raw[before:])))
        return came

    def frame(self, caption: str, begun: float = 0.0) -> Panel:
        """The screen now, with the seconds since `begun` at its last output."""
        title = f"{self.pieces[-1][0] - begun:.2f} s: {caption}"
        self.settles(0.1)
        return Panel(Text(self.draw(), no_wrap=True), title=title, expand=False, padding=0)

    def has_timed(self, number: int) -> bool:
        """Return whether the shell has timed that number of commands."""
        return self.screen.text.count(_TIMED) == number

    def enter(self, line: str) -> float:
        """Type a command line; returns when it was entered, in seconds since the start."""
        self.press(*line)
        entered = time.monotonic() - self.begun
        self.write(b"\r")
        return entered


def cast(pieces: list[tuple[float, bytes]], size: tuple[int, int]) -> str:
    """Output with its times as an asciicast, version 2."""
    decode = getincrementaldecoder("utf-8")().decode  # a piece may end within a character
    header = {"version": 2, "width": size[0], "height": size[1]}
    lines = [header, *([round(seconds, 4), "o", decode(data)] for seconds, data in pieces)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def reopened(terminal: Recorded) -> Iterator[Panel]:
    """Frames of a dashboard that is opened."""
    for caption, sight in SIGHTS.items():
        terminal.sees(sight)
        yield terminal.frame(caption)
    terminal.settles(1)


def ran(terminal: Recorded) -> Iterator[Panel]:
    """Frames of a shell in which the dashboard and commands are run."""
    terminal.sees(_SHELL)
    entered = terminal.enter("ralphdeck")
    terminal.sees(SIGHTS["all files checked"])
    yield terminal.frame("all files checked", entered)
    terminal.press("q")
    terminal.sees(_SHELL)
    for number, (caption, line) in enumerate(COMMANDS, 1):
        entered = terminal.enter(line)
        terminal.until(partial(terminal.has_timed, number), caption)
        yield terminal.frame(caption, entered)


def open_once(project: Path, env: dict[str, str]) -> None:
    """Open the project and wait until all is checked, so that it is known."""
    with Terminal(dashboard(project), env, SIZE) as terminal:
        terminal.sees(SIGHTS["all files checked"])
        terminal.settles(2)
        terminal.press("q")
        terminal.end()


def shell_environment(project: Path, home: Path, env: dict[str, str]) -> dict[str, str]:
    """An environment for a shell in `home` with the program, and files: its start file, and the event of a hook."""
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": os.urandom(8).hex(),
        "cwd": str(project),
        "prompt": PROMPT,
    }
    (home / "prompt.json").write_text(json.dumps(event))
    (home / "bashrc").write_text(f"PS1='{_SHELL} {_RESET}'\nTIMEFORMAT=$'\\n%R {_TIMED}'\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return {**env, "PATH": path, "RALPHDECK_PROJECT": str(project)}


def record(project: Path, home: Path, *, commands: bool) -> None:
    """Write both files of a recording; `home` is the home folder of its user."""
    env = environment(home)
    open_once(project, env)
    console = Console(record=True, file=StringIO(), width=SIZE[0] + 2)
    if commands:
        name, frames, size = "commands", ran, _SHELL_SIZE
        shell = f"cd {shlex.quote(str(home))}; exec bash --noediting --rcfile bashrc"
        command, env = ["bash", "-c", shell], shell_environment(project, home, env)
    else:
        name, frames, size = "reopening", reopened, SIZE
        command = dashboard(project)
    with Recorded(command, env, size) as terminal:
        for frame in frames(terminal):
            console.print(frame)
        (FOLDER / f"{name}.cast").write_text(cast(terminal.pieces, size), encoding="utf-8")
    console.save_svg(str(FOLDER / f"{name}.svg"), title=f"{name}: {project.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.recording", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("project", type=Path, metavar="PROJECT")
    parser.add_argument("--commands", action="store_true", help="record a shell instead of the dashboard")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record(options.project.resolve(), Path(folder), commands=options.commands)
