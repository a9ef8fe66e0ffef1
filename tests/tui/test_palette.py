"""The command palette finds records by all their texts, with the search index."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from textual.command import CommandList, CommandPalette

from core.records.decisions import Decision, Verb
from core.records.patterns import Pattern
from core.sources.patterns import ArchivedPattern
from tests.factories import make_pattern
from tests.tui.user import NOW, User, copy_tree, open_dashboard
from tui.palette import ARCHIVED, MAX_OF_A_KIND, PaletteIndex
from tui.screens.replay import ReplayScreen


def view_of(patterns: dict[str, Pattern]) -> Any:
    """A view with patterns, one reflection, one lesson, one decision and one question."""
    decision = Decision(id="d-7", at=NOW, by="ana", verb=Verb.ARCHIVE, subject="pat-gone", reason="the library is gone")
    snapshot = SimpleNamespace(
        number=1,
        patterns=patterns,
        loops={},
        tasks={},
        debug_sessions={},
        reflections={"ref-1": SimpleNamespace(text="Read the error first")},
        lessons={"lesson:1": SimpleNamespace(text="The staging server is in Oslo")},
        decisions=(decision,),
    )
    question = SimpleNamespace(question_key="duplicate:x", subject="pat-one", question="Do they say the same?")
    return SimpleNamespace(snapshot=snapshot, queue=(question,))


def index(**texts: str) -> PaletteIndex:
    """An index of patterns by id and title, the other records of `view_of`, and one archived pattern."""
    patterns = {name.replace("_", "-"): make_pattern(name, title=text) for name, text in texts.items()}
    archived = ArchivedPattern(pattern=make_pattern("pat-gone", title="Old"), file="a.json")
    return PaletteIndex(view_of(patterns), (archived,))


def test_records_are_found_by_their_words() -> None:
    jumps = index(pat_one="One", pat_two="Null check")
    for query, found in {
        "ERROR first": ("reflection", "reflections", "ref-1"),
        "library is gone": ("decision", "log", "d-7"),
        "say the same": ("question", "review", "duplicate:x"),
        "old": (ARCHIVED, "", "pat-gone"),
        "two null": ("pattern", "patterns", "pat-two"),
    }.items():
        assert [(one.kind, one.place, one.key) for one in jumps.find(query)] == [found]


def test_ids_rank_before_prefixes_and_prefixes_before_words() -> None:
    jumps = index(pat_null="a", pat_null_2="b", other="pat-null in words", x_pat_null="c")
    assert [one.id for one in jumps.find("Pat-Null")] == ["pat-null", "pat-null-2", "x-pat-null", "other"]


def test_matches_per_kind_are_limited_and_hostile_text_is_one_plain_line() -> None:
    jumps = index(**{f"pat_{n}": "a\x1b[31m\nb [red]" for n in range(100)})
    found = jumps.find("pat")
    assert sum(one.kind == "pattern" for one in found) == MAX_OF_A_KIND
    assert all(one.shown.isprintable() for one in found)
    assert jumps.find(" \n ") == []
    assert jumps.find("\x00" * 500) == []


def test_the_rarest_word_ranks_highest() -> None:
    jumps = index(**{f"pat_{n}": f"undefined number {n}" for n in range(20_000)})
    assert [one.id for one in jumps.find("undefined 19999")] == ["pat-19999"]


def test_patterns_are_found_by_their_description_which_is_shown_around_the_match() -> None:
    pattern = make_pattern("pat-one", title="Title", description=f"{'filler ' * 60}a rare Quetzal [b]\x1b[31m")
    [found] = PaletteIndex(view_of({"pat-one": pattern}), ()).find("quetzal rare")
    assert found.id == "pat-one"
    assert "a rare Quetzal" in found.shown
    assert found.shown.isprintable()


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return copy_tree("spec-examples", tmp_path / "project")


async def search(user: User, text: str) -> str:
    """Type a query into the palette, and return what it lists."""
    await user.press("ctrl+p")
    await user.until(lambda: isinstance(user.app.screen, CommandPalette), "the palette")
    await user.paste(text)
    await user.until(lambda: user.app.screen.has_class("-ready"), "the first list")
    await user.until(lambda: all(one.is_finished for one in user.app.screen.workers if one.node is user.app.screen))
    rows = user.app.screen.query_one(CommandList)
    return "\n".join(str(rows.get_option_at_index(n).prompt) for n in range(rows.option_count))


async def indexed(user: User) -> None:
    """Index all tasks."""
    while user.app.project.index.fill_words():
        pass


def write_action(project: Path, **action: object) -> None:
    """Append an action to the log of the second attempt, and give the file the age of the others."""
    log = project / ".aiwg/ralph/tasks/task-001/attempts/002/actions.jsonl"
    log.write_text(log.read_text() + json.dumps(action) + "\n")
    os.utime(log, (NOW.timestamp(), NOW.timestamp()))


async def test_the_palette_finds_an_action_by_its_output_and_replays_it(examples: Path, home: Path) -> None:
    write_action(examples, type="bash", output="saw a [bold]quetzal\x1b[31m fly")
    async with open_dashboard(examples, home) as user:
        await indexed(user)
        found = await search(user, "quetzal fly")
        assert "action  task-001.2 action" in found
        assert "[bold]quetzal" in found
        assert "\x1b" not in found
        assert "indexed" not in found
        await user.press("enter")
        await user.until(lambda: isinstance(user.app.screen, ReplayScreen), "the replay")
        await user.sees("quetzal")


async def test_actions_are_found_before_they_are_indexed(examples: Path, home: Path) -> None:
    write_action(examples, type="bash", output="quetzal")
    async with open_dashboard(examples, home) as user:
        found = await search(user, "quetzal")
        assert "action  task-001.2 action" in found
        assert "2 of 2 tasks not indexed yet; their files are searched" in found
        await user.press("escape")
        await indexed(user)
        write_action(examples, type="bash", output="mistletoe")
        assert "action  task-001.2 action" in await search(user, "mistletoe")


async def test_filters_narrow_the_palette_and_an_invalid_one_is_explained(examples: Path, home: Path) -> None:
    write_action(examples, type="bash", tool="Bash", output="quetzal")
    write_action(examples, type="edit", tool="Edit", output="quetzal")
    async with open_dashboard(examples, home) as user:
        await indexed(user)
        found = await search(user, "quetzal tool:edit")
        assert found.count("action  task-001.2 action") == 1
        await user.press("escape")
        assert "in:nowhere is not valid; use tasks" in await search(user, "in:nowhere quetzal")


async def test_a_failed_search_is_reported_in_the_palette(
    examples: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_dashboard(examples, home) as user:
        monkeypatch.setattr(user.app.project.index, "search", Mock(side_effect=KeyError))
        assert "The search failed (KeyError); the log has details" in await search(user, "quetzal")
        monkeypatch.undo()
        await user.press("escape")
        assert "failed" not in await search(user, "quetzal")
