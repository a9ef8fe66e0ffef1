"""A project without files, and a background that works at once in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agents.hooks import answer, background
from core.base.paths import ProjectPaths
from tests.core.agents.hooks.agents import FIX_PROMPT, SimulatedAgent, make_project
from tests.core.cli.conftest import home

__all__ = ["home"]  # a fixture that all tests use


@pytest.fixture(autouse=True)
def _no_named_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_TASK", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path / "project")


@pytest.fixture
def agent(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> SimulatedAgent:
    """A session whose background work is done when an event returns."""
    made = SimulatedAgent(project)
    monkeypatch.setattr(answer, "start_background", lambda paths: background.run(paths, made.at))
    return made


@pytest.fixture
def later(agent: SimulatedAgent) -> SimulatedAgent:
    """A session after another one has fixed an error, which left a lesson."""
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    return SimulatedAgent(agent.project, "s2", at=agent.at)
