"""Modules that each entry point leaves out, so that it starts fast. The import contracts do not see lazy imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from core.cli.command_table import SECTIONS, GroupPlace
from tests.core.cli.conftest import ROOT
from tui.cli import DashboardProgram

_SCREEN: Final = {"textual", "tui.app"}
_MCP: Final = {"mcp", "pydantic"}
_HEAVY: Final = {"numpy", "sqlite3", "tinydb", "watchdog", "re2", "rapidfuzz"}

FORBIDDEN: Final = {
    "import tui.cli": _SCREEN | _HEAVY | {"msgspec", "yaml", "rich", "tomllib"},  # `--version` and `--help`
    # the answer to the first message of a client of `mcp`, which does not wait for the imports behind it
    "import core.cli.commands.mcp, core.agents.mcp_server.handshake": _SCREEN
    | _HEAVY
    | _MCP
    | {"yaml", "rich", "core.project.project", "core.learning", "core.retrieval", "core.decisions"},
    # the first frame
    "import tui.app, tui.cli.dashboard": _HEAVY
    | {"yaml", "core.project.project", "core.index.project_state", "core.learning.scoreboard", "tui.palette"},
    # the rows of the last run
    "import tui.app, tui.screens.now, core.project.kept_project, core.sources.configuration": _HEAVY - {"sqlite3"}
    | {"yaml", "core.sources.schema", "core.project.project", "core.learning.scoreboard", "core.decisions"},
}
"""Modules that each statement must not import."""


def loaded(statement: str) -> set[str]:
    """Names of the modules that a new process has loaded after a statement."""
    command = [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.splitlines()[-1].split())


def command_lines() -> list[list[str]]:
    found = []
    for commands in [*SECTIONS.values(), *DashboardProgram.extra.values()]:
        for name, place in commands.items():
            found += [[name, one] for one in place.commands] if isinstance(place, GroupPlace) else [[name]]
    return found


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_an_entry_point_leaves_out_what_it_does_not_need(statement: str) -> None:
    assert not loaded(statement) & FORBIDDEN[statement]


def test_no_help_of_a_command_imports_numpy_yaml_mcp_or_the_screen() -> None:
    lines = command_lines()
    calls = [f"run([*{line!r}, '--help'])" for line in lines]
    assert ["task", "log"] in lines and ["dashboard"] in lines and ["mcp"] in lines
    assert not loaded("\n".join(["from tui.cli import run", *calls])) & (_SCREEN | _HEAVY | _MCP | {"yaml"})
