"""A project and a user whose agents have no settings yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from core.agents.plan import AgentPlan, Target, apply_plan, load_points, plan_connect, plan_remove

PROGRAM = "/opt/tools/ralphdeck"
Snapshot = dict[str, bytes | str | None]


class Desk:
    """A project whose agents are connected and disconnected."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.points = folder / "state/connections.json"

    def target(self, program: str = PROGRAM, *, is_global: bool = False, has_mcp: bool = True) -> Target:
        return Target(self.project, program, is_global, has_mcp)

    def connect(self, *agents: str, **options: Any) -> list[AgentPlan]:
        return self._apply(plan_connect(agents, self.target(**options), load_points(self.points)))

    def remove(self, *agents: str, **options: Any) -> list[AgentPlan]:
        return self._apply(plan_remove(agents, self.target(**options), load_points(self.points)))

    def _apply(self, plans: list[AgentPlan]) -> list[AgentPlan]:
        for plan in plans:
            apply_plan(plan, self.points)
        return plans

    def write(self, name: str, data: bytes | str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def snapshot(self) -> Snapshot:
        return snapshot(self.project)


def snapshot(folder: Path) -> Snapshot:
    """The content of every file below a folder, the target of every link, None for a folder."""

    def content(path: Path) -> bytes | str | None:
        if path.is_symlink():
            return str(path.readlink())
        return path.read_bytes() if path.is_file() else None

    return {path.relative_to(folder).as_posix(): content(path) for path in sorted(folder.rglob("*"))}


def problems(plans: Iterable[AgentPlan]) -> list[str]:
    return [plan.problem for plan in plans if plan.problem]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user who has run nothing yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Install a program `ralphdeck` that is the given shell script; returns its path."""

    def install(script: str) -> str:
        path = tmp_path / "bin/ralphdeck"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return install
