from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from core.base.paths import project_at
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.project.project import Project
from tests.hostile.sowing import NOW
from tests.hostile.tree import write_texts, write_types
from tui.kit.looks import ASCII, DRAWN, Glyphs


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with hostile texts; read-only."""
    project = tmp_path_factory.mktemp("hostile") / "texts"
    write_texts(project)
    return project


@pytest.fixture(scope="session")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with values of wrong types; read-only."""
    project = tmp_path_factory.mktemp("hostile") / "types"
    write_types(project)
    return project


@pytest.fixture(scope="session")
def load(request: pytest.FixtureRequest, caches: Path) -> Callable[[str], Project]:
    """Load one of the projects by the name of its fixture, once for all tests; also fills the cache of the commands."""

    @cache
    def load_once(name: str) -> Project:
        project: Path = request.getfixturevalue(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(caches))
            opened = Project(project_at(project), Settings(), by="ana", clock=lambda: NOW)
        opened.load()
        return opened

    return load_once


@pytest.fixture(params=["texts", "types"])
def opened(request: pytest.FixtureRequest, load: Callable[[str], Project]) -> Project:
    """Each of the projects, loaded."""
    return load(request.param)


@pytest.fixture
def view(opened: Project) -> ProjectState:
    """The state of each project."""
    return opened.view


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache folder shared by all commands."""
    return tmp_path_factory.mktemp("caches")


EAST, WEST = ("Pacific/Kiritimati", ASCII), ("America/Los_Angeles", DRAWN)
"""Time zones at both ends of the day, with glyphs: a minimal or maximal time is out of range in one of them."""


@pytest.fixture
def glyphs(request: pytest.FixtureRequest) -> Iterator[Glyphs]:
    """Glyphs, in a time zone."""
    zone, marks = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield marks
    time.tzset()
