"""Bursts of keys, all sent before the first one has done anything, as a slow machine or a slow line has them."""

from __future__ import annotations

import asyncio

import pytest
from textual import events, on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from tui.kit import terminal
from tui.kit.terminal import KeyQueue


class Ask(ModalScreen[str]):
    """A line whose text Enter hands over."""

    AUTO_FOCUS = "Input"
    BINDINGS = [("escape", "dismiss")]

    def compose(self) -> ComposeResult:
        yield Input()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Keys(App[None]):
    """A line, reached and left by keys and left by a chain of messages; a dialog; a key that hangs."""

    class Left(Message):
        """The line is left."""

    AUTO_FOCUS = None
    BINDINGS = [("slash", "line"), ("escape", "leave"), ("d", "ask")]

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.key_queue = KeyQueue(self, self._holds)
        self.heard: list[str] = []
        self.user: list[str] = []

    def compose(self) -> ComposeResult:
        yield Label("list")
        yield Input()

    async def on_event(self, event: events.Event) -> None:
        if (
            isinstance(event, events.Key | events.Paste)
            and not event.is_forwarded
            and not self.key_queue.has_turn(event)
        ):
            self.key_queue.put(event)
            return
        await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        self.heard.append(event.key)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.post_message(self.Left())

    @on(Left)
    def _left(self) -> None:
        self.call_later(self.call_next, self.set_focus, None)

    def action_line(self) -> None:
        self.query_one(Input).focus()

    def action_leave(self) -> None:
        self.call_later(self.set_focus, None)

    def action_ask(self) -> None:
        self.push_screen(Ask(), self._clash_message)

    def _clash_message(self, answer: str | None) -> None:
        self.user.append(answer or "")

    def _holds(self) -> bool:
        self.held -= 1
        return self.held > 0

    @property
    def line(self) -> str:
        return self.screen_stack[0].query_one(Input).value


def burst(pilot: Pilot[None], *keys: str) -> Keys:
    app = pilot.app
    assert isinstance(app, Keys)
    for key in keys:
        app.post_message(events.Key("slash" if key == "/" else key, key if len(key) == 1 else None))
    return app


async def all_acted(app: Keys) -> None:
    async with asyncio.timeout(20):
        arrived = asyncio.Event()
        app.call_later(arrived.set)
        await arrived.wait()
        while not app.key_queue.is_empty:
            await asyncio.sleep(0)


async def test_keys_after_the_one_that_opens_a_field_are_typed_into_it() -> None:
    async with Keys().run_test() as pilot:
        app = burst(pilot, "x", "/", "d", "d", "escape", "y")
        await all_acted(app)
        assert app.line == "dd"
        assert app.heard == ["x", "slash", "escape", "y"]
        assert app.user == []


async def test_pasted_text_goes_to_the_focus_that_the_key_before_it_set() -> None:
    async with Keys().run_test() as pilot:
        app = burst(pilot, "/")
        app.post_message(events.Paste("pasted"))
        burst(pilot, "s")
        await all_acted(app)
        assert app.line == "pasteds"


async def test_keys_typed_after_enter_go_to_the_new_focus() -> None:
    async with Keys().run_test() as pilot:
        app = burst(pilot, "/", "a", "escape", "p", "/", "b", "enter", "q")
        await all_acted(app)
        assert app.line == "b", "the line that is entered again is overwritten"
        assert [key for key in app.heard if key in "pq"] == ["p", "q"]


async def test_keys_typed_ahead_follow_a_dialog_that_opens_and_closes() -> None:
    async with Keys().run_test() as pilot:
        app = burst(pilot, "d", "n", "o", "enter", "p", "d", "d", "escape", "d", "enter", "q")
        await all_acted(app)
        assert app.user == ["no", "", ""]
        assert [key for key in app.heard if key in "pq"] == ["p", "q"]


async def test_a_key_that_hangs_delays_the_next_one_only_until_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "LONGEST_SECONDS", 0.01)
    async with Keys().run_test() as pilot:
        app = burst(pilot, "/", "a")
        await all_acted(app)
        hangs = asyncio.Event()
        app.query_one(Input).call_later(hangs.wait)
        burst(pilot, "b", "c")
        await all_acted(app)
        assert app.line == "a"
        hangs.set()
        burst(pilot, "d")
        await all_acted(app)
        assert app.line == "abcd"


async def test_a_key_acts_after_the_previous_one_has_finished() -> None:
    async with Keys().run_test() as pilot:
        app = burst(pilot, "/", "a")
        app.held = 5
        await all_acted(app)
        assert app.held < 0 and app.line == "a"


async def test_discarded_keys_do_not_act() -> None:
    async with Keys().run_test() as pilot:
        app = burst(pilot, "/", "a", "b", "c")
        app.call_later(app.key_queue.forget)
        await all_acted(app)
        assert app.heard == []
        burst(pilot, "/", "d")
        await all_acted(app)
        assert app.line == "d"
