"""The project's own records follow the contract of adapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.adapters.contract import Adapter, Folders
from core.project.aiwg_adapter import AiwgAdapter
from tests.core.project.test_adapted import FOUND
from tests.core.project.test_index import LOOP, Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Project(tmp_path / "project")


def test_only_the_loops_of_aiwg_are_its_loops(project: Project) -> None:
    project.state()
    project.library.load()
    project.library.replace_adapted(FOUND)
    adapter = AiwgAdapter(project.paths, project.library)
    (loop,) = adapter.loops()
    assert loop.id == LOOP
    assert adapter.details(loop) == project.library.story(LOOP)
    assert not [*adapter.lessons()]


def test_its_evidence_and_places_are_its_folders(project: Project) -> None:
    adapter: Adapter = AiwgAdapter(project.paths, project.library)
    folders = Folders(project=project.paths.project)
    assert adapter.fingerprint(folders) == ()
    project.state()
    assert adapter.fingerprint(folders) == (".aiwg/ralph",)
    assert adapter.places(folders).watched == (project.paths.ralph, project.paths.external)
