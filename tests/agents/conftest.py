"""Fixtures that play an agent's story once, and the file with the results."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.agents.agent_table import AGENTS
from tests.agents.installation import NotInstalled, install
from tests.agents.results import CHECKS, write_results
from tests.agents.story import Story, play
from tests.agents.workbench import Workbench

OUTCOMES = pytest.StashKey[dict[str, dict[str, str]]]()
NOT_INSTALLED = "not installed"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = {}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the ordinary user may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="agents-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def make_bench(name: str, folder: Path) -> Workbench:
    """Return a workbench for an agent; skips the test if the agent cannot be installed."""
    try:
        program = install(AGENTS[name])
    except NotInstalled as reason:
        pytest.skip(f"{NOT_INSTALLED}: {reason}")
    return Workbench(name, program, folder)


@pytest.fixture(scope="session", params=AGENTS)
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    """The story of an agent."""
    folder = Path(tempfile.mkdtemp(prefix=f"agents-{request.param}-"))
    folder.chmod(0o755)
    yield play(make_bench(request.param, folder))
    if not request.session.testsfailed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the outcome of a test of an agent."""
    report = yield
    name = getattr(item, "originalname", item.name)
    if name in CHECKS and (report.when == "call" or not report.passed):
        agent = item.callspec.params["story"]  # type: ignore[attr-defined]
        if report.skipped and NOT_INSTALLED in str(report.longrepr):
            return report
        item.config.stash[OUTCOMES].setdefault(agent, {})[name] = report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results if tests of agents ran."""
    outcomes = session.config.stash.get(OUTCOMES, {})
    if outcomes:
        versions = {name: agent.version for name, agent in AGENTS.items()}
        write_results(outcomes, versions, datetime.now(UTC).date())
