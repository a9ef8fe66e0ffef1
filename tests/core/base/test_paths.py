"""Folders of projects and of the user, whose they are, and the names of the user."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest

from core.base.errors import BadInput, ProjectNotFound
from core.base.paths import (
    TRUSTED_PATHS,
    ProjectPaths,
    cache_folder,
    config_folder,
    find_project,
    is_own,
    project_at,
    safe_component,
    state_folder,
    why_not_used,
)
from core.base.user_settings import find_own_name, own_names
from core.files.file_reader import Problem, RawFile, read_file


def test_an_id_that_could_leave_the_folder_is_refused() -> None:
    for name in ("ralph-fix-auth-a1b2c3d4", "task_001", "a", "v1.2", "9"):
        assert safe_component(name) == name, name
    odd = ("", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a..b", "a\x00", "a b", "é", "-rf", "a\n", "x" * 201)
    for name in (*odd, "\ud800"):
        with pytest.raises(BadInput):
            safe_component(name)


def test_the_nearest_project_above_is_found(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    assert project_at(tmp_path).ralph == tmp_path / ".aiwg/ralph", "a project may be empty"
    assert find_project(tmp_path / "src", or_repository=True).project == tmp_path, "for what only reads"
    with pytest.raises(ProjectNotFound, match=r"--project.*demo"):
        find_project(tmp_path / "src")
    with pytest.raises(ProjectNotFound, match="not a folder"):
        project_at(tmp_path / "missing")
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    (tmp_path / "src/inner/.aiwg/ralph-external").mkdir(parents=True)
    (tmp_path / "src/inner/deep").mkdir()
    for folder in (tmp_path, tmp_path / ".aiwg", tmp_path / ".aiwg/ralph"):
        assert project_at(folder).project == tmp_path
    assert not why_not_used(tmp_path)
    assert find_project(tmp_path / "src").project == tmp_path
    assert find_project(tmp_path / "src/inner/deep").project == tmp_path / "src/inner"


def test_only_paths_of_the_project_are_inside(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "project")
    paths.patterns.mkdir(parents=True)
    file = paths.pattern_file("anti")
    assert paths.relative(file) == ".aiwg/ralph/shared/patterns/anti-patterns.json"
    assert paths.inside(paths.relative(file)) == file.resolve()
    (tmp_path / "secret").write_text("x")
    (paths.ralph / "link").symlink_to(tmp_path)
    outside = ("../secret", ".aiwg/../../secret", ".aiwg/ralph/link/secret", "/etc/passwd", "README.md")
    for name in (*outside, ".aiwg/a\x00b", ".aiwg/\ud800"):
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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user = SimpleNamespace(pw_name="uma", pw_gecos="Uma Thorn,Room 3,,")
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: user)
    return tmp_path


def test_system_git_and_settings_know_the_names_of_the_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "eve")
    (home / ".gitconfig").write_text(
        '# [user]\n[core]\n\tname = eve\n[user "x"]\n\tname = eve\n[User]\n\tName = "Uma T."\n\temail=uma@example.com\n'
    )
    for file, text in (
        ("git/config", "[user]\nname = umat\n"),
        ("ralphdeck/settings.toml", '[decisions]\nnames = ["The Boss", "uma"]\n'),
    ):
        (home / "config" / file).parent.mkdir(parents=True)
        (home / "config" / file).write_text(text)
    assert own_names() == ("uma", "Uma Thorn", "Uma T.", "uma@example.com", "umat", "The Boss")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"[user", b"[user]\nname\n", b"[user]\nname =\n", b'[user]\nname = ""\n']
)
def test_a_damaged_configuration_of_git_has_no_names(home: Path, data: bytes) -> None:
    (home / ".gitconfig").write_bytes(data)
    assert own_names() == ("uma", "Uma Thorn")


def test_a_user_whom_the_system_does_not_know_has_a_number(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert own_names() == ("uid 4711",)


def test_case_does_not_matter_but_nothing_else_is_guessed() -> None:
    names = ("uma", "Uma Thorn")
    assert (find_own_name(" UMA thorn ", names), find_own_name("Uma T", names), find_own_name("", names)) == (
        *("Uma Thorn", ""),
        "",
    )


@pytest.mark.parametrize("value", [None, "relative", "absolute"])
def test_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
        if value is not None:
            monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind) if value == "absolute" else value)
    expected = (
        platformdirs.user_config_path("ralphdeck"),
        platformdirs.user_state_path("ralphdeck"),
        platformdirs.user_cache_path("ralphdeck"),
    )
    assert (config_folder(), state_folder(), cache_folder()) == expected
    assert tmp_path in cache_folder().parents
    if value != "absolute":  # a relative folder would be in the project
        monkeypatch.setenv("HOME", "here")
        for folder in (config_folder, state_folder, cache_folder):
            with pytest.raises(BadInput, match="HOME"):
                folder()
