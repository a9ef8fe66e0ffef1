"""The first ten minutes with an agent: init, connect, work, review by keys, and the lesson in the next session."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.desk import AFTER_JUMP
from tests.e2e.simulated_agent import make_code
from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS, environment
from tests.e2e.tmux import Tmux

MOST_SESSIONS = 20
PROMPT = "Fix the failing test of the account title"


def install(folder: Path) -> None:
    """Write the program `ralphdeck`, as an installation does."""
    folder.mkdir()
    program = folder / "ralphdeck"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tui "$@"\n')
    program.chmod(0o755)


class Person:
    """Works in a project with an agent."""

    def __init__(self, project: Path, env: dict[str, str]) -> None:
        self.project = project
        self.env = env

    def run(self, *command: str) -> str:
        """Run a command in the project; returns what it printed."""
        done = subprocess.run(command, cwd=self.project, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def let_agent_work(self, session: str, prompt: str = PROMPT) -> list[dict[str, Any]]:
        """Let the simulated agent fix the test in one session; returns what its hooks answered."""
        command = [sys.executable, "-m", "tests.e2e.simulated_agent", str(self.project)]
        command += ["--session", session, "--prompt", prompt]
        done = subprocess.run(command, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def patterns(self) -> list[dict[str, Any]]:
        """The patterns of the project."""
        found: list[dict[str, Any]] = json.loads(self.run("ralphdeck", "pattern", "list", "--json"))["patterns"]
        return found


def test_a_lesson_of_the_first_session_is_reviewed_and_given_to_the_next_one(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "shop"
    home.mkdir()
    make_code(project)
    install(tmp_path / "bin")
    env = environment(home)
    env["PATH"] = f"{tmp_path / 'bin'}:{env['PATH']}"
    person = Person(project, env)
    person.run("git", "init", "-q", ".")
    assert "Next: ralphdeck connect claude" in person.run("ralphdeck", "init")
    person.run("ralphdeck", "connect", "claude", "--yes")
    assert not any(answer["context"] for answer in person.let_agent_work("first")), "nothing is known yet"

    with Tmux(tmp_path, env, (120, 40)) as tmux:
        tmux.start(["ralphdeck", str(project)])
        tmux.sees("Review·1")  # the extraction runs in the background
        tmux.keys("2")
        tmux.sees("'NoneType' object is not subscriptable", "a yes")
        time.sleep(AFTER_JUMP)
        tmux.keys("a")
        tmux.sees("Done.", "u undo")
        tmux.keys("q")
        tmux.until(lambda: tmux.flag("alternate_on") == "0", "the end")

    (pattern,) = person.patterns()
    contexts = ""
    for number in range(MOST_SESSIONS):  # on a busy machine a hook may reach its deadline
        contexts += "".join(
            answer["context"] for answer in person.let_agent_work(f"later-{number}", f"{PROMPT} {number}")
        )
        if contexts:
            break
    assert "object is not subscriptable" in contexts, "a later session is given the lesson"
    deadline = time.monotonic() + TIMEOUT_SECONDS  # the extraction runs in the background
    while person.patterns()[0]["usage_count"] <= pattern["usage_count"]:
        assert time.monotonic() < deadline, "its outcome counts"
    shown = person.run("ralphdeck", "task", "list")
    assert shown.count("completed") >= 2
    person.run("ralphdeck", "connect", "--check")
    person.run("ralphdeck", "connect", "claude", "--remove", "--yes")
    assert not [name for name in (".claude", ".mcp.json", "AGENTS.md", "CLAUDE.md") if (project / name).exists()]
