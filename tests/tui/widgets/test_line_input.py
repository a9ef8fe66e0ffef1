from __future__ import annotations

import pytest
from textual import events, on
from textual.app import App, ComposeResult
from textual.widgets import Input, OptionList

from tui.widgets.line_input import LineInput


class Lines(App[None]):
    """A line that Enter and Escape leave for a list, unless it is empty."""

    BINDINGS = [("escape", "leave")]

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def compose(self) -> ComposeResult:
        yield LineInput()
        yield OptionList("one", "two")

    def type(self, *keys: str) -> None:
        """All at once: each key arrives before any of them has done something."""
        for key in keys:
            self.query_one(LineInput)._forward_event(events.Key(key, key if len(key) == 1 else None))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value:
            self.query_one(OptionList).focus()
        else:
            self.query_one(LineInput).stay()

    def action_leave(self) -> None:
        if self.query_one(LineInput).value:
            self.query_one(OptionList).focus()

    def on_line_input_followed(self, message: LineInput.Followed) -> None:
        message.line.stay()

    def on_key(self, event: events.Key) -> None:
        self.heard.append(event.key)


@pytest.mark.parametrize("leaving", ["enter", "escape"])
async def test_keys_behind_one_that_leaves_the_line_go_where_it_leads(leaving: str) -> None:
    async with Lines().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Lines)
        app.type("a", leaving, "p", "down", "x")
        await pilot.pause()
        assert app.query_one(LineInput).value == "a"
        assert app.heard == [leaving, "p", "down", "x"]
        assert app.query_one(OptionList).highlighted == 1


@pytest.mark.parametrize("leaving", ["enter", "escape"])
async def test_keys_behind_one_that_leads_nowhere_stay_in_the_line(leaving: str) -> None:
    async with Lines().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Lines)
        app.type(leaving, "p", "q")
        await pilot.pause()
        assert app.query_one(LineInput).value == "pq"
