"""A small Git project with a failing test, in which an agent works."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.agents.agent_table import AGENTS, Place
from tests.agents.model_server import HOST
from tests.agents.recorded_program import HookRecord, install_program, read_records
from tests.agents.sandbox import (
    NO_PROXY,
    PID_FILE,
    PROXY,
    ROOT,
    give_to_user,
    ordinary_user,
    sandboxed,
    without_network,
)
from tests.agents.scenarios import BROKEN, MODULE, TEST

REQUESTS: Final = "requests"
"""Folder with the requests to the model of each session, and with what the agent printed."""
SESSION_SECONDS: Final = 180
"""Longest time of a session."""
BACKGROUND_SECONDS: Final = 60
"""Longest time until the work in the background is done after a session."""
_LANGUAGE: Final = {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "xterm-256color", "NO_COLOR": "1"}
_GIT: Final = ("git", "-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main")


@dataclass(frozen=True)
class AgentSession:
    """What one session of an agent did."""

    code: int | None
    """Exit code; None if the session took too long."""
    output: str
    requests: list[dict[str, Any]]
    """Requests to the model that offer tools, in their order."""
    hooks: list[HookRecord]

    def bodies(self) -> list[str]:
        """The bodies of the requests as text."""
        return [json.dumps(request["body"], ensure_ascii=False) for request in self.requests]

    def events(self) -> set[str]:
        """The names of the hook events that arrived."""
        return {hook.name for hook in self.hooks}


class Workbench:
    """A project of its own, with a home folder for one agent."""

    def __init__(self, name: str, program: Path, folder: Path) -> None:
        self.agent = AGENTS[name]
        self.name = name
        self._program = program
        self.home = folder / "home"
        self.project = folder / "shop"
        self._folder = folder
        self._runs = 0
        self.place = Place(self.project, self.home, _free_port())
        self._records = install_program(folder)
        self._write_home()
        self.project.mkdir()
        (self.project / "test_cart.py").write_text(TEST)
        (self.project / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
        self.break_cart()
        give_to_user(folder)
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Add the cart"]):
            subprocess.run([*ordinary_user(), *_GIT, *command], cwd=self.project, env=self.environment(), check=True)

    def _write_home(self) -> None:
        files = {".profile": f'PATH="{self._folder / "bin"}:$PATH"\n', **self.agent.settings(self.place)}
        for name, text in files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def break_cart(self) -> None:
        """Write the module whose test fails."""
        (self.project / MODULE).write_text(BROKEN)
        give_to_user(self.project)

    def environment(self) -> dict[str, str]:
        """The whole environment of an agent and of ralphdeck."""
        home = self.home
        return {
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "USER": "nobody",
            "SHELL": "/bin/bash",
            "TMPDIR": str(self._folder),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_DATA_HOME": str(home / "data"),
            "PYTHONPYCACHEPREFIX": str(self._folder / "bytecode"),  # as an installed program has it
            "RALPHDECK_SEMANTIC": "off",
            **_LANGUAGE,
            **NO_PROXY,
            **({} if without_network() else PROXY),
            **self.agent.environment(self.place),
        }

    def _ralphdeck(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*ordinary_user(), str(self._folder / "bin" / "ralphdeck"), *arguments]
        env = self.environment()
        return subprocess.run(command, cwd=self.project, env=env, capture_output=True, text=True, check=False)

    def ralphdeck(self, *arguments: str) -> str:
        """Run a command of ralphdeck as the user; returns what it printed."""
        done = self._ralphdeck(*arguments)
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def exit_code(self, *arguments: str) -> int:
        """Run a command of ralphdeck as the user; returns its exit code."""
        return self._ralphdeck(*arguments).returncode

    def json(self, *arguments: str) -> Any:
        """Run a command of ralphdeck that prints JSON."""
        return json.loads(self.ralphdeck(*arguments, "--json"))

    def patterns(self) -> list[dict[str, Any]]:
        """The patterns of the project."""
        rows: list[dict[str, Any]] = self.json("pattern", "list")["patterns"]
        return rows

    def loops(self) -> list[dict[str, Any]]:
        """The rows of `loop list`."""
        rows: list[dict[str, Any]] = self.json("loop", "list")["loops"]
        return rows

    def newest_task(self) -> dict[str, Any]:
        """The task that changed last; empty if there is none."""
        tasks: list[dict[str, Any]] = self.json("task", "list")["tasks"]
        return max(tasks, key=lambda task: str(task["updated_at"]), default={})

    def extract_newest(self) -> None:
        """Extract the lessons of the newest session, as a person does by hand where no hook does it."""
        newest = max(self.loops(), key=lambda row: str(row["started_at"]))
        self.ralphdeck("loop", "extract", newest["id"])

    def command(self, prompt: str) -> list[str]:
        """The command of a session."""
        return [str(self._program), *self.agent.command(prompt)]

    def run(self, prompt: str, scenario: str) -> AgentSession:
        """Let the agent work at a prompt until it ends."""
        return self.start(self.command(prompt), scenario).wait()

    def start(self, command: list[str], scenario: str) -> RunningAgent:
        """Start a command in which the agent works."""
        self._runs += 1
        log = self._folder / REQUESTS / str(self._runs)
        log.mkdir(parents=True)
        process = subprocess.Popen(
            sandboxed(command, self.place.port, scenario, log),
            cwd=self.project,
            env={**self.environment(), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return RunningAgent(process, log, self._records)


class RunningAgent:
    """A session that runs."""

    def __init__(self, process: subprocess.Popen[str], log: Path, records: Path) -> None:
        self._process = process
        self._log = log
        self._records = records
        self._known = len(read_records(records))

    def requests(self) -> list[dict[str, Any]]:
        """The requests to the model until now that offer tools."""
        requests = [json.loads(path.read_text()) for path in sorted(self._log.glob("*.json"))]
        return [request for request in requests if request["has_tools"]]

    def kill(self) -> None:
        """Kill the agent and what it runs, so that it cannot end in order."""
        os.killpg(int((self._log / PID_FILE).read_text()), signal.SIGKILL)

    def wait(self) -> AgentSession:
        """Wait until the session ends; one that takes too long is killed."""
        code: int | None = None
        try:
            output, _ = self._process.communicate(timeout=SESSION_SECONDS)
            code = self._process.returncode
        except subprocess.TimeoutExpired:
            self.kill()
            output, _ = self._process.communicate()
        self._log.with_suffix(".output").write_text(output)
        return AgentSession(code, output, self.requests(), read_records(self._records)[self._known :])


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
        return port


def wait_until(is_done: Callable[[], bool], seconds: float = BACKGROUND_SECONDS) -> bool:
    """Wait until a condition holds; False if it does not in time."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True
