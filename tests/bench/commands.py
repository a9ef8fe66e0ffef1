"""Runs of commands as processes, in a copy of the project of a size."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import lru_cache
from math import nan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.command_runs import CHANGING, NEEDS, arguments
from tests.bench.measured import Measured
from tests.bench.processes import TIMEOUT_SECONDS, Ended, run
from tests.bench.sized import copy_project, preparations, subjects, write_settings

if TYPE_CHECKING:
    from tests.bench.place import Place

FIRST: Final = "pattern list"
_ROOT: Final = Path(__file__).parents[2]
_ENOUGH: Final = 2000  # milliseconds of runs, after which no more follow
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME", "PYTHONDONTWRITEBYTECODE")
_USAGE: Final = 2  # exit code of wrong usage, such as a command that does not exist
_NOTE: Final = 100  # characters of an error in a note
_CLIENT: Final[Sequence[dict[str, object]]] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)
"""What a client sends to `mcp` before it leaves."""


def measure(place: Place, command: str, size: str) -> Measured:
    """Run a command until it has taken 2 s, at most `Sizes.runs` times, or once if it changes the project."""
    copy = copy_of(place.folder, size)
    if needed := NEEDS.get(command):
        copy.prepare(needed)
    most = 1 if command in CHANGING else place.sizes.runs
    runs = [copy.run_command(command)]
    while len(runs) < most and sum(ended.wall for ended in runs) < _ENOUGH:
        runs.append(copy.run_command(command))
    return summary(runs)


def from_nothing(place: Place, size: str) -> Measured:
    """Run the first command in a project of which the program has cached nothing."""
    return summary([copy_of(place.folder, size).first])


@lru_cache(1)
def copy_of(folder: Path, size: str) -> Copy:
    """Copy the project of a size below `folder`, for all rows of a group."""
    return Copy(folder, size)


class Copy:
    """A copy of the project of a size; `first` is the first command in it, with nothing cached."""

    def __init__(self, folder: Path, size: str) -> None:
        self.project = folder / f"copy-{size}"
        self._subjects = subjects(size)
        self._outside = folder / "outside"
        self._has_run: set[str] = set()
        self._environment = _environment(self.project, self._outside)
        copy_project(folder / f"size-{size}", self.project)
        write_settings(Path(os.environ["XDG_CONFIG_HOME"]))
        for words in preparations(size):
            self.run(words)
        shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]), ignore_errors=True)
        self.first = self.run_command(FIRST)

    def prepare(self, command: str) -> None:
        """Run a command, and before it what it needs, unless it was run already."""
        if command not in self._has_run:
            if needed := NEEDS.get(command):
                self.prepare(needed)
            self.run_command(command)

    def run_command(self, command: str, *options: str) -> Ended:
        """Run a command with its arguments in `tests.bench.command_runs`, and options of Python."""
        self._has_run.add(command)
        given = b"".join(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n" for message in _CLIENT)
        return self.run(
            arguments(command, self._subjects, str(self._outside)), given if command == "mcp" else b"", *options
        )

    def run(self, words: Sequence[str], given: bytes = b"", *options: str) -> Ended:
        """Run the program with these arguments, `given` on stdin, and options of Python."""
        return run([sys.executable, *options, "-m", "tui", *words], _ROOT, self._environment, given)


def summary(runs: Sequence[Ended]) -> Measured:
    """Medians of runs; the note has what is unusual about the last one."""
    last = runs[-1]
    if last.code == _USAGE:
        return Measured(nan, note="this revision has no such command or option")
    mark, notes = "", []
    if last.is_late:
        mark = "timeout"
        notes.append(f"ended after {TIMEOUT_SECONDS:.0f} s")
    elif last.code:
        mark = f"exit {last.code}"
        notes.append(" ".join(last.errors.split())[:_NOTE])
    if (background := median(ended.background for ended in runs)) >= 1:
        notes.append(f"then {background:.0f} ms in the background")
    wall, cpu = (median(values) for values in zip(*((ended.wall, ended.cpu) for ended in runs), strict=True))
    return Measured(wall, cpu=cpu, note="; ".join(notes), mark=mark)


def _environment(project: Path, outside: Path) -> dict[str, str]:
    """An environment with the folders of this process, no variables of agents, and the program in the path."""
    program = outside / "bin" / "ralphdeck"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\ncd {shlex.quote(str(_ROOT))} && exec {shlex.quote(sys.executable)} -m tui "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("XDG_")}
    return {
        **kept,
        "PATH": f"{program.parent}{os.pathsep}{kept.get('PATH', '')}",
        "PYTHONPATH": str(_ROOT),  # for processes that don't start in the folder of this revision
        "RALPHDECK_PROJECT": str(project),
        "RALPHDECK_SEMANTIC": "off",
        "RALPHDECK_USER": "bench",
    }
