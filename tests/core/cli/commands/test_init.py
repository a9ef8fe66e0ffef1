"""`ralphdeck init` begins a project in a repository."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.trust.projects import save_answer
from tests.core.cli.conftest import Call


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    monkeypatch.chdir(folder / "src")
    return folder


def test_it_begins_at_the_root_of_the_repository(repository: Path, call: Call) -> None:
    result = call("init")
    assert result.code == 0 and (repository / ".aiwg/ralph").is_dir()
    assert result.out.splitlines() == [
        f"Project in {repository}/.aiwg",
        "Added the private files to .gitignore; commit .aiwg to share patterns and decisions with your team",
        "Next: ralphdeck connect claude   (or codex, gemini, cursor, copilot, opencode)",
    ]
    ignored = (repository / ".gitignore").read_text()
    assert "/.aiwg/ralph/sessions/" in ignored and "/actions.jsonl" in ignored and "/shared/patterns" not in ignored
    assert call("loop", "list").code == 0


def test_repeating_it_changes_nothing(repository: Path, call: Call) -> None:
    (repository / ".gitignore").write_bytes(b"build/\r\n*.log")
    call("init")
    first = (repository / ".gitignore").read_bytes()
    assert first.startswith(b"build/\r\n*.log\r\n\r\n# BEGIN ralphdeck")
    result = call("init", "--json")
    assert result.document == {"project": str(repository), "created": False, "ignored": False}
    assert (repository / ".gitignore").read_bytes() == first


def test_it_makes_the_folders_of_an_earlier_version_private(repository: Path, call: Call) -> None:
    tasks = repository / ".aiwg/ralph/tasks"
    (tasks / "task-001").mkdir(parents=True)
    tasks.chmod(0o755)
    call("init")
    assert tasks.stat().st_mode & 0o777 == 0o700
    assert "*" in (tasks / ".gitignore").read_text().splitlines()
    assert "private files" not in call("doctor").out
    (tasks / ".gitignore").unlink()
    assert "private files" in call("doctor").out


def test_it_works_outside_of_git(tmp_path: Path, call: Call) -> None:
    result = call("init", tmp_path)
    assert result.code == 0 and "Not in a Git repository" in result.err
    assert [path.name for path in tmp_path.iterdir()] == [".aiwg"]


def test_a_git_ignore_file_that_is_a_link_is_not_followed(repository: Path, tmp_path: Path, call: Call) -> None:
    (repository / ".gitignore").symlink_to(tmp_path / "outside")
    result = call("init")
    assert result.code == 1 and ".gitignore: is a link" in result.err
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("arguments", [["--readonly", "init"], ["init", "missing"]])
def test_it_fails_without_a_folder_that_may_be_written(repository: Path, call: Call, arguments: list[str]) -> None:
    assert call(*arguments).code == 1
    assert not (repository / ".aiwg").exists()


def test_a_file_in_place_of_the_folder_is_an_error(repository: Path, call: Call) -> None:
    (repository / ".aiwg").write_text("x")
    result = call("init")
    assert result.code == 1 and "cannot make" in result.err


@pytest.fixture
def lesson(repository: Path, call: Call) -> str:
    """ID of a lesson in a repository without `.aiwg`."""
    (repository / ".ralph").mkdir()
    signs = "### Sign: Read first\n- **Trigger**: Before a change\n- **Instruction**: Read the file first\n"
    (repository / ".ralph/guardrails.md").write_text(f"# Guardrails (Signs)\n\n## Learned Signs\n\n{signs}")
    (found,) = call("lesson", "--json", "--project", repository).document["lessons"]
    assert not (repository / ".aiwg").exists() and not (repository / ".gitignore").exists()
    return str(found["id"])


def test_the_first_decision_keeps_private_files_out_of_git(repository: Path, lesson: str, call: Call) -> None:
    result = call("lesson", lesson, "--accept", "--project", repository)
    assert result.code == 0 and "made .aiwg, and added its private files to .gitignore" in result.err
    ignored = (repository / ".gitignore").read_bytes()
    assert call("init", "--json").document["ignored"] is False
    assert (repository / ".gitignore").read_bytes() == ignored


def test_the_first_decision_is_made_without_a_writable_git_ignore(repository: Path, lesson: str, call: Call) -> None:
    (repository / ".gitignore").mkdir()
    result = call("lesson", lesson, "--accept", "--project", repository)
    assert result.code == 0 and "its private files are not in .gitignore" in result.err


@pytest.mark.parametrize("answer", ["declined", "revoked"])
def test_no_command_overturns_the_users_answer_about_trust(
    repository: Path, call: Call, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.delenv("RALPHDECK_TRUSTED_PATHS")
    monkeypatch.setattr("core.agents.checks.find_program", lambda: "ralphdeck")
    call("init")
    if answer == "revoked":
        assert call("trust", "--revoke").code == 0
    else:
        save_answer(ProjectPaths(repository), "question", datetime.now(UTC), answer="declined")
    for command in (["init"], ["connect", "claude", "--yes"], ["start", "--yes"]):
        call(*command)
        assert f"Trust {answer}" in call("trust", "--show").out
    call("trust", "--yes")
    assert "Trusted since" in call("trust", "--show").out
