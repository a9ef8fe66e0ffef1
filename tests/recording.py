"""`python -m tests.recording PROJECT`: record how the dashboard reopens a project, into `docs/images/`.

`reopening.cast` is the terminal's output with its times, in version 2 of asciinema's format (`asciinema play FILE`).
`reopening.svg` shows the screen at the first frame, with the rows of the last run, and with all files checked.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from codecs import getincrementaldecoder
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tests.e2e.terminal import Terminal, dashboard, environment

FOLDER: Final = Path(__file__).parents[1] / "docs/images"
SIZE: Final = (120, 16)
SIGHTS: Final = {"first frame": "Loops", "rows of the last run": "as of", "all files checked": "⟳"}
"""Texts on the screen that are waited for, in this order, by caption of the frame."""


class Recorded(Terminal):
    """A terminal that notes when each piece of output came, in seconds since the start."""

    def __init__(self, project: Path, home: Path) -> None:
        self.begun = time.monotonic()
        self.pieces: list[tuple[float, bytes]] = []
        super().__init__(dashboard(project), environment(home), SIZE)

    def read(self, seconds: float) -> bool:
        before = len(self.raw)
        came = super().read(seconds)
        if came:
            self.pieces.append((time.monotonic() - self.begun, bytes(self.raw[before:])))
        return came


def cast(pieces: list[tuple[float, bytes]]) -> str:
    """Output with its times as an asciicast, version 2."""
    decode = getincrementaldecoder("utf-8")().decode  # a piece may end within a character
    header = {"version": 2, "width": SIZE[0], "height": SIZE[1]}
    lines = [header, *([round(seconds, 4), "o", decode(data)] for seconds, data in pieces)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def main(project: Path) -> None:
    """Open the project once so that it is known, then record how it is opened again."""
    console = Console(record=True, file=StringIO(), width=SIZE[0] + 2)
    with tempfile.TemporaryDirectory() as folder:
        with Terminal(dashboard(project), environment(Path(folder)), SIZE) as terminal:
            terminal.sees(list(SIGHTS.values())[-1])
            terminal.settles(2)
            terminal.press("q")
            terminal.end()
        with Recorded(project, Path(folder)) as terminal:
            for caption, sight in SIGHTS.items():
                terminal.sees(sight)
                title = f"{terminal.pieces[-1][0]:.2f} s: {caption}"
                terminal.settles(0.1)
                screen = Text(terminal.draw(), no_wrap=True)
                console.print(Panel(screen, title=title, expand=False, padding=0))
            terminal.settles(1)
            (FOLDER / "reopening.cast").write_text(cast(terminal.pieces), encoding="utf-8")
    console.save_svg(str(FOLDER / "reopening.svg"), title=f"reopening {project.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
