"""The command palette finds records by all their texts, with the search index."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from textual.command import CommandList, CommandPalette

from tests.tui.user import NOW, User, copy_tree, open_dashboard
from tui.screens.replay import ReplayScreen


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


async def test_before_tasks_are_indexed_the_palette_shows_a_note(examples: Path, home: Path) -> None:
    write_action(examples, type="bash", output="quetzal")
    async with open_dashboard(examples, home) as user:
        found = await search(user, "quetzal")
        assert "action  task-001.2 action" in found
        assert "2 of 2 tasks not indexed yet; their files are searched" in found


async def test_what_is_written_meanwhile_is_found_before_it_is_indexed(examples: Path, home: Path) -> None:
    async with open_dashboard(examples, home) as user:
        await indexed(user)
        write_action(examples, type="bash", output="quetzal")
        found = await search(user, "quetzal")
        assert "action  task-001.2 action" in found


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
