"""Settings and markers for all tests, in this process and in the processes that it starts."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings

from core.agents.agent_table import AGENTS
from core.agents.hooks import deadline
from tests.authors import be_person
from tests.copying import copy_folder
from tests.fence_token import fix_fence_token

pytest_plugins = ["tests.team_server"]

GARBAGE_THRESHOLD = 50_000
"""New objects between two garbage collections."""
gc.disable()  # until all tests are collected
MOST_FILES = 300
"""Open files of this process between two tests."""
WORKERS = 4
"""Processes of README's test command; each begins with its share of the tests that wait for programs."""
WAITING = tuple(
    f"tests/{name}"
    for name in ("hostile/test_terminal.py", "e2e/", "fix_sessions/", "crash/", "test_bench.py", "core/agents/hooks/")
)
MEMORY_FOLDER = "/dev/shm"
MIN_FREE_BYTES = 2 << 30
"""Free bytes that a folder needs; all tests together write a small part of that."""
LONGEST_ID = 200
"""Characters of a parameter that become part of the name of a test, which workers send to each other many times."""
FOLDER_MARKERS = {
    "e2e": ("e2e", "slow"),
    "crash": ("crash", "slow"),
    "hostile": ("slow",),
    "core/agents": ("slow",),
    "core/cli": ("slow",),
    "core/project": ("slow",),
    "core/questions": ("slow",),
    "core/trust": ("slow",),
    "reference": ("slow",),
    "tui": ("slow",),
}
"""Markers of all tests below a folder of `tests/`; whole commands, hooks, projects and screens are slow."""
SLOW_FIXTURES = {"team", "cluster", "sample", "project"}
"""Tests that need a server or a whole project are slow."""


WriteSample = Callable[[Path, datetime], None]


def _is_usable(folder: str) -> bool:
    """Whether tests can write to a folder, run programs from it, and have enough space."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    stat = os.statvfs(folder)
    return not stat.f_flag & os.ST_NOEXEC and stat.f_bavail * stat.f_frsize >= MIN_FREE_BYTES


# Tests write about 100,000 small files, flush them and read them once: memory is faster than a disk.
if "TMPDIR" not in os.environ and _is_usable(MEMORY_FOLDER):
    tempfile.tempdir = os.environ["TMPDIR"] = MEMORY_FOLDER

# Embeddings are computed only in the tests that are about them.
os.environ["RALPHDECK_SEMANTIC"] = "off"

# Contexts have the same token in all tests of this process, so that they can be compared.
fix_fence_token()

# No test reads the files of the person who runs it, nor those of that person's agents.
_HOME = tempfile.mkdtemp(prefix="ralphdeck-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["HOME"] = _HOME
for variable in list(os.environ):
    if variable.endswith(("_HOME", "_DIR")) and variable.startswith(("CLAUDE", "CODEX", "COPILOT", "XDG")):
        del os.environ[variable]

# Tests decide as a person, also if an agent runs them.
for variable in ("AI_AGENT", "RALPHDECK_AGENT", *(one for agent in AGENTS.values() for one in agent.shell_variables)):
    os.environ.pop(variable, None)

# Tests make their projects, which are trusted; those about trust remove the variable.
os.environ["RALPHDECK_TRUSTED_PATHS"] = "/"

# Child processes share compiled modules.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# The same examples in every run; to search for others: pytest --hypothesis-profile=default
settings.register_profile("same", derandomize=True, database=None, deadline=None, max_examples=50)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def _no_sweep_outlives_a_test() -> Iterator[None]:
    """Start no process in the background: it would write into folders of a test that has ended."""
    start = deadline.start_detached
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            deadline, "start_detached", lambda work, project: None if work == "sweep" else start(work, project)
        )
        yield


@pytest.fixture(autouse=True)
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has a terminal and no agent above it, so that its decisions are a person's."""
    be_person(monkeypatch)


@pytest.fixture(scope="session")
def write_sample(tmp_path_factory: pytest.TempPathFactory) -> WriteSample:
    """Write the sample project as of a time; it is made once for each time and then copied."""
    from core.cli.demo.sample import confirm_decisions, copy_sample

    @cache
    def make(now: datetime) -> Path:
        folder = tmp_path_factory.mktemp("sample")
        copy_sample(folder, now)
        return folder

    def write(target: Path, now: datetime) -> None:
        copy_folder(make(now), target)
        confirm_decisions(target)

    return write


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long parameters by their length."""
    return f"{argname}-of-{len(val)}" if isinstance(val, (str, bytes)) and len(val) > LONGEST_ID else None


def _begin_with_waiting(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Order tests so that each worker begins with some that wait, and none is alone with them at the end.

    xdist gives each worker a part of the list, in its order; one that has ended takes tests from the end of another.
    """
    waiting = [item for item in items if item.nodeid.startswith(WAITING)]
    others = iter([item for item in items if not item.nodeid.startswith(WAITING)])
    ordered: list[pytest.Item] = []
    for worker in range(WORKERS):
        share = waiting[worker::WORKERS]
        ordered += share
        ordered += islice(others, len(items) // WORKERS - len(share))
    return [*ordered, *others]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by folder, and start those that wait for programs first."""
    root = f"{config.rootpath / 'tests'}{os.sep}"
    for item in items:
        path = str(item.path).removeprefix(root)
        for folder, markers in FOLDER_MARKERS.items():
            for marker in markers if path.startswith(f"{folder}{os.sep}") else ():
                item.add_marker(marker)
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    items[:] = _begin_with_waiting(items)


def pytest_runtest_logfinish() -> None:
    """Close files of objects that refer to themselves, before there are more than `select` can wait for."""
    if sum(1 for _ in Path("/proc/self/fd").iterdir()) > MOST_FILES:
        gc.unfreeze()  # the dashboard freezes what earlier tests have left
        gc.collect()
        gc.freeze()


def pytest_collection_finish() -> None:
    """Exclude everything imported and collected from garbage collection."""
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
    gc.enable()
