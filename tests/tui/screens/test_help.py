from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from tests.tui.story import story
from tui.screens.dialogs import AskLine
from tui.screens.help import Help


async def test_the_help_begins_with_what_has_focus_and_is_searched_by_typing(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        await told.go("patterns")
        key = told.table.cursor_key
        assert key is not None
        await told.press("question_mark")
        assert isinstance(told.app.screen, Help)
        await told.sees(f"On {key}", "under the cursor", "not now: nobody has pinned it", "now: deprecate → never")
        await told.type("budg")
        await told.sees("nothing here has 'budg'")
        await told.press("ctrl+u")
        await told.type("whole markd")
        await told.sees("copy_whole")
        assert "Pin as proven" not in told.text()
        await told.press("escape", "escape")
        assert told.place.place == "patterns"

        await told.press("slash", "f1")
        await told.sees("You are typing", "letters are text here", "To the next pane")
        await told.press("f1", "escape", "tab")
        told.place.set_focus(told.place.query_one("#patterns-text"))
        await told.press("question_mark")
        await told.sees(f"On the text of {key}")


async def test_a_dialog_tells_its_keys_too(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        await told.go("patterns")
        await told.press("d")
        assert isinstance(told.app.screen, AskLine)
        await told.press("question_mark", "f1")
        assert isinstance(told.app.screen, Help)
        await told.sees("Keys in this dialog", "Decide nothing")
        await told.press("f1")
        assert isinstance(told.app.screen, AskLine)
        assert told.app.screen.query_one(Input).value == "?", "where text is typed, ? is text"


async def test_a_key_that_cannot_act_says_why_also_where_nothing_is(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with story(project, home) as told:
        for place, action, reason in (
            ("loops", "next_tab", "the list is empty"),
            ("patterns", "mark", "the list is empty"),
            ("patterns", "down", "the list is empty"),
            ("patterns", "back", "no filter"),
            ("patterns", "undo", "nothing to take back"),
            ("patterns", "redo", "nothing was taken back"),
            ("review", "go_review", "this is Review"),
            ("context", "page_down", "the list is empty"),
        ):
            told.app.go(place)
            await told.settled()
            assert reason in (told.place.reason_against(action) or ""), (place, action)
        await told.go("patterns")
        assert "not now: p promote" in told.key_line()
        await told.press("p")
        assert "no pattern under the cursor" in told.toasts()[-1]
