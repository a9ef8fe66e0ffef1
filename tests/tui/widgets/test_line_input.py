from __future__ import annotations

from textual import events, on
from textual.app import App, ComposeResult
from textual.widgets import Input, OptionList

from tui.widgets.line_input import LineInput


class Lines(App[None]):
    """A line that Enter leaves for a list, unless it is empty."""

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

    def on_key(self, event: events.Key) -> None:
        self.heard.append(event.key)


async def test_keys_behind_enter_go_where_it_leads() -> None:
    async with Lines().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Lines)
        app.type("a", "enter", "p", "down", "x")
        await pilot.pause()
        assert app.query_one(LineInput).value == "a"
        assert app.heard == ["enter", "p", "down", "x"]
        assert app.query_one(OptionList).highlighted == 1


async def test_keys_behind_an_enter_that_leads_nowhere_stay_in_the_line() -> None:
    async with Lines().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Lines)
        app.type("enter", "p", "q")
        await pilot.pause()
        assert app.query_one(LineInput).value == "pq"
