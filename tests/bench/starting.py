"""Complete runs of the command line, including the start of the process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.measured import Measured, processor_seconds
from tests.bench.place import Place

ROOT: Final = Path(__file__).parents[2]
_RUNS: Final = 7
_SLOWEST: Final = 5
_LIST: Final = """
from core.cli.command_table import SECTIONS, GroupPlace
for commands in SECTIONS.values():
    for name, place in commands.items():
        print(*[f"{name} {one}" for one in place.commands] if isinstance(place, GroupPlace) else [name], sep="\\n")
"""


def python(_place: Place) -> Measured:
    return _run("-c", "pass")


def version(_place: Place) -> Measured:
    return _run("-m", "tui", "--version")


def help_of_all(_place: Place) -> Measured:
    return _run("-m", "tui", "--help")


def help_of_one(_place: Place) -> Measured:
    """The slowest of all commands: one run of each, then several of the slowest ones."""
    listed = subprocess.run([sys.executable, "-c", _LIST], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [*listed.stdout.splitlines(), "dashboard", "demo", "serve"]
    once = {name: _run("-m", "tui", *name.split(), "--help", runs=1).cpu or 0.0 for name in names}
    found = {
        name: _run("-m", "tui", *name.split(), "--help") for name in sorted(names, key=once.__getitem__)[-_SLOWEST:]
    }
    slowest = max(found, key=lambda name: found[name].cpu or 0.0)
    return Measured(found[slowest].value, cpu=found[slowest].cpu, note=f"slowest of {len(names)}: {slowest}")


def _run(*arguments: str, runs: int = _RUNS) -> Measured:
    """Median of complete runs of `python ARGUMENTS`."""
    walls, cpus = [], []
    for _ in range(runs):
        begin, cpu = time.perf_counter(), processor_seconds()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        walls.append((time.perf_counter() - begin) * 1000)
        cpus.append((processor_seconds() - cpu) * 1000)
    return Measured(median(walls), cpu=median(cpus))
