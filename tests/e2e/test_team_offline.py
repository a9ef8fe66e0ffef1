"""A joined project whose server is dead: what agents wait for contacts nothing, not even this machine."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.bench.command_runs import SAMPLE
from tests.e2e.system_calls import STRACE, traced
from tests.e2e.terminal import ROOT, python
from tests.e2e.test_privacy import private_environment

if STRACE is None and "CI" not in os.environ:
    pytest.skip("strace is not installed", allow_module_level=True)

ID = "6f1c3f0e-8a52-4a8f-9d57-0e6b9c1d2a3b"
URL = "postgresql://ada@127.0.0.1:9/team"


def joined_environment(sample: Path, home: Path) -> dict[str, str]:
    """The environment of a user who has joined the project to a team."""
    folder = home / ".config/ralphdeck"
    folder.mkdir(parents=True)
    joined = {"space": "acme", "source": f"url={URL}", "id": ID, "name": "shop"}
    file = folder / "team.json"
    file.write_text(json.dumps({"projects": {str(sample.resolve()): joined}}))
    file.chmod(0o600)
    return {**private_environment(home), "RALPHDECK_PROJECT": str(sample), "RALPHDECK_TEAM_URL": URL}


def addresses(words: list[str], env: dict[str, str], log: Path, event: dict[str, str] | None = None) -> list[str]:
    """Run a command; returns its calls that name an address of a network."""
    done = subprocess.run(
        traced(python("-m", "tui", *words), log),
        cwd=ROOT,
        env=env,
        input=json.dumps(event or {}),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in log.read_text("utf-8", "replace").splitlines() if "sa_family=AF_INET" in line]


@pytest.mark.parametrize("name", ["UserPromptSubmit", "Stop"])
def test_a_hook_opens_no_connection(name: str, sample: Path, home: Path, tmp_path: Path) -> None:
    env = joined_environment(sample, home)
    event = {"hook_event_name": name, "session_id": "s1", "cwd": str(sample), "prompt": "Fix the null crash"}
    assert addresses(["hook", "--agent", "claude"], env, tmp_path / "calls.log", event) == []


@pytest.mark.parametrize("words", [["loop", "inject", SAMPLE.loop], ["review", "--json"]])
def test_injecting_and_reading_open_no_connection(words: list[str], sample: Path, home: Path, tmp_path: Path) -> None:
    assert addresses(words, joined_environment(sample, home), tmp_path / "calls.log") == []


def test_a_check_of_the_team_does_open_one(sample: Path, home: Path, tmp_path: Path) -> None:
    """Shows that the other tests would see a connection."""
    pytest.importorskip("psycopg")
    env = joined_environment(sample, home)
    assert addresses(["log", "--verify"], env, tmp_path / "calls.log") != []
