"""`ralphdeck start` sets up a repository in which an agent has left sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.core.cli.conftest import Call
from tests.factories import leave_draft, read_tree
from tests.fix_sessions.transcripts import leave_transcripts


@pytest.fixture
def shop(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which Claude Code has fixed three failing checks; `ralphdeck` is installed."""
    monkeypatch.setattr("core.agents.checks.find_program", lambda: "ralphdeck")
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    leave_transcripts(folder, home, datetime.now(UTC), 3)
    monkeypatch.chdir(folder)
    return folder


def test_it_sets_up_connects_and_proposes_lessons_for_review(shop: Path, call: Call) -> None:
    result = call("start", "--yes", "--by", "uma", "--json")
    assert result.code == 0
    found = result.document
    assert (found["written"], found["sessions"], found["lessons"], len(found["steps"])) == (True, 3, 3, 3)
    assert (shop / ".aiwg/ralph").is_dir() and "ralphdeck" in (shop / ".claude/settings.json").read_text()
    patterns = call("pattern", "list", "--json").document["patterns"]
    assert {pattern["state"] for pattern in patterns} == {"candidate"} and len(patterns) == 3
    kinds = [question["kind"] for question in call("review", "--json").document["questions"]]
    assert kinds == ["extracted"] * 3
    assert "uma" in call("log").out and "hook" not in call("log").out
    call("connect", "claude", "--remove", "--yes")
    (plan,) = call("connect", "claude", "--yes", "--json").document["agents"]
    assert found["left"] == [f"Claude Code: {text}" for text in plan["left"]] and plan["left"]
    assert call("undo", "--any-author").code == 0 and not call("pattern", "list", "--json").document["patterns"]


def test_repeating_it_changes_nothing_and_finishes_a_connection_that_was_interrupted(shop: Path, call: Call) -> None:
    call("start", "--yes")
    before = read_tree(shop)
    result = call("start", "--yes", "--json")
    assert (result.code, result.document["written"], result.document["steps"]) == (0, False, [])
    assert read_tree(shop) == before
    for missing in (".mcp.json", "CLAUDE.md"):
        (shop / missing).unlink()
        assert call("start", "--yes").code == 0
        assert read_tree(shop) == before
    for command in (["start"], ["connect", "--yes"], ["doctor"]):
        left, other = leave_draft(shop / "CLAUDE.md"), leave_draft(shop / "notes.md")
        call(*command)
        assert other.exists() and not left.exists(), "it removes what a killed write has left"
        other.unlink()


def test_nothing_is_written_without_an_answer(shop: Path, call: Call) -> None:
    before = read_tree(shop)
    for options, code in ((["--dry-run"], 0), ([], 1)):
        result = call("start", *options)
        assert result.code == code and "Propose 3 lessons from 3 sessions" in result.out
    assert call("--readonly", "start", "--yes").code == 1
    assert read_tree(shop) == before and not (shop / ".aiwg").exists()


def test_records_of_a_clone_are_not_trusted_by_it(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_TRUSTED_PATHS")
    patterns = shop / ".aiwg/ralph/shared/patterns"
    patterns.mkdir(parents=True)
    (patterns / "error-patterns.json").write_text("{}")
    before = read_tree(shop)
    assert call("start", "--yes").code == 1 and read_tree(shop) == before
    assert "Not trusted" in call("trust", "--show").out


def test_without_sessions_it_sets_up_the_project(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.agents.plan.detect", lambda project: iter(()))
    (shop.with_name("empty") / ".git").mkdir(parents=True)
    monkeypatch.chdir(shop.with_name("empty"))
    result = call("start", "--yes", "--json")
    assert (result.code, result.document["lessons"]) == (0, 0) and Path(".aiwg/ralph").is_dir()


def test_it_finishes_a_decision_that_was_interrupted(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr("core.decisions.curator.apply_pending", lambda *_: ())
        call("start", "--yes")
    patterns = shop / ".aiwg/ralph/shared/patterns"
    assert not list(patterns.glob("*.json"))
    result = call("start", "--yes", "--json")
    assert (result.code, len(result.document["steps"])) == (0, 1)
    assert list(patterns.glob("*.json")) and call("start", "--json").document["steps"] == []


def test_it_finishes_a_folder_that_was_only_made(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_TRUSTED_PATHS")
    (shop / ".aiwg/ralph").mkdir(parents=True)
    assert call("start", "--yes").code == 0
    assert "/.aiwg/ralph/sessions/" in (shop / ".gitignore").read_text()
    assert "Trusted since" in call("trust", "--show").out


def test_an_agent_whose_file_cannot_be_changed_is_reported(shop: Path, call: Call) -> None:
    (shop / "CLAUDE.md").mkdir()
    result = call("start", "--yes", "--json")
    assert (result.code, result.document["lessons"]) == (1, 3)
    assert "Claude Code is not changed: CLAUDE.md" in result.err and not (shop / ".mcp.json").exists()
    assert call("start").code == 1


def test_two_at_once_both_end_well(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def start_another() -> bool:
        return call("start", "--yes").code == 0

    monkeypatch.setattr("core.cli.commands.start._confirm", start_another)
    result = call("start", "--json")
    assert (result.code, result.document["lessons"]) == (0, 0)
    assert len(call("pattern", "list", "--json").document["patterns"]) == 3
