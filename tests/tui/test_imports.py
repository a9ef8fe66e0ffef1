"""Modules that each entry point leaves out, so that it starts fast. The import contracts do not see lazy imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from core.cli.command_table import COMMANDS, SECTIONS, GroupPlace, Place
from tests.core.cli.conftest import ROOT

_SCREEN: Final = {"textual", "tui.app"}
_HEAVY: Final = {"numpy", "scipy", "sqlite3", "tinydb", "watchdog", "re2", "rapidfuzz"}

FORBIDDEN: Final = {
    "import tui.cli": _SCREEN | _HEAVY | {"msgspec", "yaml", "rich"},  # `--version` and `--help`
    "import core.cli.commands.task_log": _SCREEN | _HEAVY | {"core.project.index", "core.scanning"},
    # the first frame
    "import tui.app, tui.cli.dashboard": _HEAVY
    | {"yaml", "core.project.project", "core.state.project_state", "core.learning.scoreboard", "tui.palette"},
}
"""Modules that each statement must not import."""


def loaded(statement: str) -> set[str]:
    """Names of the modules that a new process has loaded after a statement."""
    command = [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def command_modules() -> set[str]:
    places: list[Place] = []
    for commands in SECTIONS.values():
        for place in commands.values():
            places += place.commands.values() if isinstance(place, GroupPlace) else [place]
    return {place.target.partition(":")[0] for place in places}


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_an_entry_point_leaves_out_what_it_does_not_need(statement: str) -> None:
    assert not loaded(statement) & FORBIDDEN[statement]


def test_the_help_of_commands_imports_no_numpy_and_no_screen() -> None:
    modules = sorted(command_modules())
    found = loaded("\n".join(f"import {COMMANDS}.{name}" for name in modules))
    assert not found & (_SCREEN | {"numpy", "scipy"}), modules
