"""Memories of Claude Code and Codex as lessons."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from core.records.loops import Outcome
from core.sources.adapters.claude import ClaudeAdapter
from core.sources.adapters.codex import CodexAdapter
from core.sources.adapters.memories import parse_outcome
from tests.core.sources.adapters.fixtures import Case, open_case
from tests.e2e.play_claude import slug


def opened(name: str, tmp_path: Path) -> Case:
    return open_case(ClaudeAdapter(), f"claude-memory/{name}", tmp_path / "case")


def folder_of(case: Case) -> Path:
    return case.home / ".claude" / "projects" / slug(case.project) / "memory"


def messages(case: Case) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in case.findings()]


def test_only_the_first_200_lines_of_the_index_are_loaded(tmp_path: Path) -> None:
    case = opened("index-300-lines", tmp_path)
    lessons = case.lessons()
    assert [lesson.loaded for lesson in lessons[199:201]] == [True, False]
    assert len(lessons) == 300
    message = "has 300 lines; Claude Code loads only the first 200"
    assert ("memory-index-too-long", message) in messages(case)


def test_only_the_first_25_kb_of_the_index_are_loaded(tmp_path: Path) -> None:
    case = opened("index-300-lines", tmp_path)
    (folder_of(case) / "MEMORY.md").write_text(f"- {'x' * 1021}\n" * 30)
    assert ("memory-index-too-long", "has 30 lines; Claude Code loads only the first 25") in messages(case)


def test_working_trees_share_the_memories_of_the_repository(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    (case.project / ".git").mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {case.project}/.git/worktrees/tree\n")
    below = case.project / "packages"
    below.mkdir()
    expected = case.lessons()
    for folder in (tree, below):
        case.set_folders(project=folder)
        assert case.lessons() == expected


@pytest.mark.parametrize(
    ("settings", "place", "shown"),
    [
        ("home/.claude/settings.json", "home/notes", "~/notes/ci.md"),
        ("project/.claude/settings.local.json", "project/notes", "notes/ci.md"),
    ],
)
def test_the_agent_can_keep_its_memories_elsewhere(settings: str, place: str, shown: str, tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    folder_of(case).rename(case.root / place)
    assert case.lessons() == []
    path = case.root / settings
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"autoMemoryDirectory": str(case.root / place)}))
    assert [lesson.file for lesson in case.lessons()] == [shown]


@pytest.mark.parametrize("named", ["~/notes", "@PROJECT@/../home/notes"])
def test_settings_that_a_repository_can_contain_name_no_notes_outside_of_it(named: str, tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    folder_of(case).rename(case.home / "notes")
    path = case.project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"autoMemoryDirectory": named.replace("@PROJECT@", str(case.project))}))
    assert case.lessons() == []


def test_shared_settings_of_the_repository_cannot_move_the_memories(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    folder_of(case).rename(case.home / "notes")
    (case.project / ".claude").mkdir()
    (case.project / ".claude" / "settings.json").write_text(json.dumps({"autoMemoryDirectory": "~/notes"}))
    assert case.lessons() == []


def test_no_memories_are_read_without_the_home_folder(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    case.set_folders(home=None)
    assert case.lessons() == []


def test_a_memory_that_is_rewritten_gives_the_new_text(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    case.lessons()
    path = folder_of(case) / "ci.md"
    path.write_text(path.read_text().replace("laptops do not", "so do laptops"))
    assert [lesson.text for lesson in case.lessons()] == ["The CI runs in UTC, so do laptops."]


Open = Callable[[str], Case]


@pytest.fixture
def open_memories(tmp_path: Path) -> Open:
    return lambda case: open_case(CodexAdapter(), f"codex-memories/{case}", tmp_path)


def test_the_uses_of_an_older_table_are_unknown(open_memories: Open) -> None:
    case = open_memories("ascending")
    with closing(sqlite3.connect(case.home / ".codex" / "memories_1.sqlite")) as database:
        database.execute("ALTER TABLE stage1_outputs DROP COLUMN usage_count")
        database.commit()
    assert {one.uses for one in case.lessons()} == {None}
    assert not case.files.findings


def test_memories_that_did_not_change_are_parsed_once(open_memories: Open) -> None:
    case = open_memories("ascending")
    first, second = case.lessons()[0], case.lessons()[0]
    assert first is second
    path = case.home / ".codex/memories/raw_memories.md"
    path.write_text(path.read_text().replace("one commit per change", "two commits per change"))
    assert case.lessons()[0].text == "the user asked for two commits per change"


def test_the_words_for_outcomes_are_known() -> None:
    rows: list[tuple[str, Outcome]] = [
        ("success", Outcome.SUCCESS),
        ("Show cents, partial", Outcome.PARTIAL),
        ("failed", Outcome.FAILURE),
        ("fail", Outcome.FAILURE),
        ("uncertain", Outcome.UNKNOWN),
        ("", Outcome.UNKNOWN),
    ]
    for text, outcome in rows:
        assert parse_outcome(text) is outcome, text
