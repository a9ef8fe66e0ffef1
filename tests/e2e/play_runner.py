"""What the plays of runners share: a runner is a function that writes its files step by step.

The steps take the project, the home folder and a clock, and yield what was written. `play` runs them as a program.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

Clock = Callable[[], datetime]
Steps = Callable[[Path, Path, Clock], Iterator[str]]
WAIT: Final = "read line\n"  # a script that runs until its input ends


def in_place(path: Path, text: str) -> Iterator[str]:
    """Truncate a file and write it in two parts, as shell scripts and agents do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        yield f"torn {path.name}"
        file.write(text[len(text) // 2 :])


def in_place_json(path: Path, value: object) -> Iterator[str]:
    """Write a JSON file in two parts."""
    yield from in_place(path, json.dumps(value, indent=2) + "\n")


def append(path: Path, text: str) -> None:
    """Append whole lines to a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def stamp(at: datetime) -> str:
    """Return a time as JavaScript and shell scripts write it in UTC."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local(at: datetime) -> str:
    """Return a time in the zone of this machine, as the logs of shell scripts have it."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def read_arguments(description: str) -> tuple[Path, Path, float]:
    """Return project, home folder and pause of the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("project", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--pause", type=float, default=1.0)
    given = parser.parse_args()
    return given.project.resolve(), given.home.resolve(), given.pause


def play(description: str, steps: Steps, script: str = "") -> None:
    """Run the steps as a program; `script`, below the project, is a process that runs meanwhile."""
    project, home, pause = read_arguments(description)
    process = None
    if script:
        append(project / script, WAIT)
        process = subprocess.Popen(["sh", script], cwd=project, stdin=subprocess.PIPE)
    try:
        for _ in steps(project, home, lambda: datetime.now(UTC)):
            time.sleep(pause)
    finally:
        if process is not None:
            process.communicate()
