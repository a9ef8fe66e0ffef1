"""Whose `.aiwg` is used: another owner, a link, another file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.base.errors import ProjectNotFound
from core.base.ownership import TRUSTED_PATHS, is_own, why_not_used
from core.base.paths import find_project, project_at
from core.files.decoded import Problem
from core.files.file_reader import RawFile, read_file

OTHER_USER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def _trust_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUSTED_PATHS, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".aiwg/ralph").mkdir(parents=True)
    return folder


def test_an_own_folder_is_used(project: Path) -> None:
    assert not why_not_used(project)
    assert find_project(project).project == project


def test_a_link_is_refused_wherever_it_leads(project: Path) -> None:
    other = project.with_name("other")
    other.mkdir()
    (other / ".aiwg").symlink_to(project / ".aiwg")
    for find in (find_project, project_at):
        with pytest.raises(ProjectNotFound, match="link"):
            find(other)


@as_root
def test_a_folder_of_another_user_is_refused_unless_the_environment_names_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(project / ".aiwg", OTHER_USER, OTHER_USER)
    for find in (find_project, project_at):
        with pytest.raises(ProjectNotFound, match="another user"):
            find(project)
    monkeypatch.setenv(TRUSTED_PATHS, f"relative:{project.parent}")
    assert find_project(project).project == project


@as_root
def test_the_search_upwards_ends_at_a_folder_of_another_user(project: Path) -> None:
    inside = project / "a" / "b"
    inside.mkdir(parents=True)
    os.chown(inside.parent, OTHER_USER, OTHER_USER)
    os.chown(inside, OTHER_USER, OTHER_USER)
    assert find_project(inside).project == project  # root, who runs the test, owns what is above
    os.chown(project, 12345, 12345)
    with pytest.raises(ProjectNotFound):
        find_project(inside)


@as_root
def test_a_file_of_another_user_is_a_problem_and_not_read(project: Path) -> None:
    file = project / ".aiwg/ralph/x.json"
    file.write_text("{}")
    assert isinstance(read_file(file, project / ".aiwg"), RawFile)
    os.chown(file, OTHER_USER, OTHER_USER)
    found = read_file(file, project / ".aiwg")
    assert isinstance(found, Problem)
    assert found.code == "other-owner"


def test_under_sudo_the_files_of_the_caller_are_own_ones(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = os.stat_result((*project.stat()[:4], 4321, *project.stat()[5:]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not is_own(status)
    monkeypatch.setenv("SUDO_UID", "4321")
    assert is_own(status)
