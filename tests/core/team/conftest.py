"""Folders of a user who is not the one who runs the tests, and psql."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.core.team.working_copy import Psql, WorkingCopy
from tests.team_server import PASSWORD, Team, find_program


@pytest.fixture(autouse=True)
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the folders of the user to a new one."""
    folder = tmp_path / "user"
    for variable in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(folder / variable.lower()))
    return folder


@pytest.fixture
def psql(team: Team) -> Psql:
    """Run SQL as a role with its password, over TCP; returns what psql prints, errors included."""

    def run(role: str, *statements: str) -> str:
        program = find_program("psql")
        assert program is not None
        commands = [part for statement in statements for part in ("-c", statement)]
        done = subprocess.run(
            [program, "-X", "-A", "-t", "-q", "-v", "VERBOSITY=terse", team.url(role, host="127.0.0.1"), *commands],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PGPASSWORD": PASSWORD, "PGOPTIONS": "--client-min-messages=error"},
        )
        return done.stdout

    return run


@pytest.fixture
def ada(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "ada", team, "ada")


@pytest.fixture
def rita(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "rita", team, "rita")
