from __future__ import annotations

from pathlib import Path

import pytest

from core.base.errors import BadInput, ProjectNotFound
from core.base.paths import ProjectPaths, find_project, project_at, safe_component


@pytest.mark.parametrize("name", ["ralph-fix-auth-a1b2c3d4", "task_001", "a", "v1.2", "9"])
def test_ordinary_ids_can_be_path_components(name: str) -> None:
    assert safe_component(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a..b", "a\x00", "a b", "é", "-rf", "a\n", "x" * 201, "\ud800"],
)
def test_an_id_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        safe_component(name)


def test_every_folder_of_a_project_resolves_to_the_project(tmp_path: Path) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / ".aiwg", tmp_path / ".aiwg/ralph"):
        assert project_at(folder).project == tmp_path


def test_a_project_may_be_empty(tmp_path: Path) -> None:
    assert project_at(tmp_path).ralph == tmp_path / ".aiwg/ralph"
    with pytest.raises(ProjectNotFound, match="not a folder"):
        project_at(tmp_path / "missing")


def test_the_nearest_project_above_is_found(tmp_path: Path) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    (tmp_path / "src/inner/.aiwg/ralph-external").mkdir(parents=True)
    (tmp_path / "src/inner/deep").mkdir()
    assert find_project(tmp_path / "src").project == tmp_path
    assert find_project(tmp_path / "src/inner/deep").project == tmp_path / "src/inner"


def test_the_error_for_a_missing_project_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ProjectNotFound, match=r"--project.*demo"):
        find_project(tmp_path)


def test_relative_and_inside_are_inverse(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    paths.patterns.mkdir(parents=True)
    file = paths.pattern_file("anti")
    assert paths.relative(file) == ".aiwg/ralph/shared/patterns/anti-patterns.json"
    assert paths.inside(paths.relative(file)) == file.resolve()


def test_paths_outside_are_refused(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "project")
    paths.ralph.mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (paths.ralph / "link").symlink_to(tmp_path)
    for name in ("../secret", ".aiwg/../../secret", ".aiwg/ralph/link/secret", "/etc/passwd", "README.md"):
        with pytest.raises(BadInput):
            paths.inside(name)


def test_unlinked_refuses_links(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "project")
    paths.patterns.mkdir(parents=True)
    (paths.ralph / "link").symlink_to(paths.patterns)
    for name in (".aiwg/ralph/link", ".aiwg/ralph/link/deep/er.json"):
        assert paths.inside(name).is_relative_to(paths.patterns)
        with pytest.raises(BadInput, match=r"ralph/link' is a link"):
            paths.unlinked(name)
    (tmp_path / "other").symlink_to(tmp_path / "project")
    behind = ProjectPaths(tmp_path / "other")
    assert behind.unlinked(".aiwg/ralph/tasks/t") == behind.tasks / "t"


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"], ids=["null", "surrogate"])
def test_invalid_paths_are_refused(tmp_path: Path, name: str) -> None:
    paths = ProjectPaths(tmp_path)
    paths.ralph.mkdir(parents=True)
    with pytest.raises(BadInput):
        paths.inside(f".aiwg/{name}")


def test_a_repository_is_a_project_only_for_what_reads(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    assert find_project(tmp_path / "src", or_repository=True).project == tmp_path
    with pytest.raises(ProjectNotFound):
        find_project(tmp_path / "src")


def test_a_project_above_the_repository_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    (tmp_path / "shop/.git").mkdir(parents=True)
    (tmp_path / "shop/src").mkdir()
    with pytest.raises(ProjectNotFound):
        find_project(tmp_path / "shop/src")
    assert find_project(tmp_path / "shop/src", or_repository=True).project == tmp_path / "shop"
    (tmp_path / "shop/.aiwg/ralph").mkdir(parents=True)
    assert find_project(tmp_path / "shop/src").project == tmp_path / "shop"


@pytest.mark.parametrize("kept_in", ["worktrees/login", "modules/login"], ids=["worktree", "submodule"])
def test_a_part_of_a_repository_inside_its_working_tree_belongs_to_its_project(tmp_path: Path, kept_in: str) -> None:
    project, tree = tmp_path / "shop", tmp_path / "shop/trees/login"
    for folder in (tmp_path / ".aiwg/ralph", project / ".git" / kept_in, project / ".aiwg/ralph", tree):
        folder.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: ../../.git/{kept_in}\n")
    assert find_project(tree).project == project
    (project / ".aiwg/ralph").rmdir()
    with pytest.raises(ProjectNotFound):
        find_project(tree)


@pytest.mark.parametrize("content", [b"gitdir: /elsewhere/.git/worktrees/login\n", b"\xff\x00", b"gitdir: \x00", b""])
def test_a_worktree_elsewhere_ends_the_search(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    (tmp_path / "login/src").mkdir(parents=True)
    (tmp_path / "login/.git").write_bytes(content)
    with pytest.raises(ProjectNotFound):
        find_project(tmp_path / "login/src")


def test_the_home_folder_is_not_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").mkdir()
    with pytest.raises(ProjectNotFound):
        find_project(tmp_path / "notes", or_repository=True)
    assert find_project(tmp_path).project == tmp_path
