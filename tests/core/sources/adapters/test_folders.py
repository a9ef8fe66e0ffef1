"""Git working trees are found in files; Git does not run, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.sources.adapters.contract import find_folders, find_worktrees


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with the working trees `one` and `two`, as Git writes them."""
    main = tmp_path / "main"
    for name in ("one", "two"):
        entry, tree = main / ".git/worktrees" / name, tmp_path / name
        entry.mkdir(parents=True)
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {entry}\n")
        (entry / "gitdir").write_text(f"{tree / '.git'}\n")
    return main


def test_the_working_trees_of_a_repository_are_found(main: Path, tmp_path: Path) -> None:
    assert find_worktrees(main) == (tmp_path / "one", tmp_path / "two")


def test_from_a_working_tree_the_others_and_the_main_one_are_found(main: Path, tmp_path: Path) -> None:
    assert find_worktrees(tmp_path / "one") == (main, tmp_path / "two")


def test_a_folder_without_a_repository_has_none(tmp_path: Path) -> None:
    assert find_worktrees(tmp_path) == ()


@pytest.mark.parametrize("target", ["/", "/etc", "../one/.git", "", "\0", "/missing/.git"])
def test_a_tree_that_does_not_refer_to_the_repository_is_none(main: Path, tmp_path: Path, target: str) -> None:
    (main / ".git/worktrees/one/gitdir").write_text(f"{target}\n")
    assert find_worktrees(main) == (tmp_path / "two",)


def test_without_home_no_private_folder_is_known(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "agent"), "PATH": "/bin"}
    folders = find_folders(tmp_path, environment, has_home=False)
    assert folders.private("CLAUDE_CONFIG_DIR", ".claude") is None
    folders = find_folders(tmp_path, environment, has_home=True)
    assert folders.private("CLAUDE_CONFIG_DIR", ".claude") == tmp_path / "agent"
    assert folders.private("CODEX_HOME", ".codex") == tmp_path / ".codex"
