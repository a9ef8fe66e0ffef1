from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from tests.tui.user import open_dashboard
from tui.kit.actions import PLACES
from tui.kit.text_pane import TextPane
from tui.screens.base_screen import SEEN_SCREENS, load_tables
from tui.screens.dialogs import AskLine
from tui.screens.help import Help


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
async def test_the_first_visit_of_a_place_states_its_purpose_in_one_line(sample: Path, home: Path, place: str) -> None:
    first: dict[str, Any] = {SEEN_SCREENS: ""}
    async with open_dashboard(sample, home, size=(80, 24), place=place, **first) as user:
        line = user.place.query_one(".purpose")
        purpose = load_tables()[place].about.partition(". ")[0]
        assert line.size.height == 1 and f"{purpose}." in user.text().splitlines()[1]


@pytest.mark.slow
async def test_the_help_begins_with_the_purpose_and_is_searched_by_typing(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        key = user.table.cursor_key
        assert key is not None
        await user.press("question_mark")
        assert isinstance(user.app.screen, Help)
        await user.sees("Every lesson of the project", "Columns", "how often it was used")
        await user.press("pagedown")
        await user.sees(
            f"On {key}", "under the cursor", "not now: It is not pinned", "now: deprecate → no longer given"
        )
        await user.type("budg")
        await user.sees("No help contains 'budg'")
        await user.press("ctrl+u")
        await user.type("whole markd")
        await user.sees("copy_whole")
        assert "Pin as proven" not in user.text()
        await user.press("escape", "escape")
        assert user.place.place == "patterns"

        await user.press("slash", "f1", "pagedown")
        await user.sees("You are typing", "letters are text", "Go to the next pane")
        await user.press("f1", "escape", "tab")
        user.place.set_focus(user.place.query_one("#patterns-text"))
        await user.press("question_mark", "pagedown")
        await user.sees(f"On the text of {key}")


async def test_a_dialog_has_help_for_its_keys(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.press("d")
        assert isinstance(user.app.screen, AskLine)
        await user.press("question_mark", "f1")
        assert isinstance(user.app.screen, Help)
        await user.sees("Help on this dialog", "Close without a decision")
        await user.press("f1")
        assert isinstance(user.app.screen, AskLine)
        assert user.app.screen.query_one(Input).value == "?", "where text is typed, ? is text"


@pytest.mark.slow
async def test_a_key_that_cannot_act_gives_a_reason_in_empty_lists_too(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with open_dashboard(project, home) as user:
        for place, action, reason in (
            ("loops", "next_tab", "The list is empty"),
            ("patterns", "mark", "The list is empty"),
            ("patterns", "down", "The list is empty"),
            ("patterns", "back", "Nothing to leave"),
            ("patterns", "undo", "Nothing to undo"),
            ("patterns", "redo", "Nothing to redo"),
            ("review", "go_review", "Review is already open"),
        ):
            user.app.go(place)
            await user.settled()
            assert reason in (user.place.reason_against(action) or ""), (place, action)
        await user.go("patterns")
        assert "not now: p promote" in user.key_line()
        await user.press("p")
        assert "no pattern under the cursor" in user.toasts()[-1]


async def test_the_help_can_be_read_in_a_small_pane_of_a_terminal(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(30, 8), place="now") as user:
        await user.press("?")
        assert isinstance(user.app.screen, Help)
        assert user.app.screen.query_one(TextPane).size.height >= 6
