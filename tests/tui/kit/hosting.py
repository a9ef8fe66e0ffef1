"""A bare app around one widget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from textual._compositor import ChopsUpdate, Compositor
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from tui.kit.looks import DEFAULT_THEME, STYLES, load_themes


class Host(App[None]):
    """Shows one widget with ralphdeck's looks; `heard` are the messages that were asked for."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, widget: Widget) -> None:
        self._variables = load_themes()[DEFAULT_THEME][1].variables
        super().__init__(css_path=sorted(STYLES.glob("*.tcss")))
        self._widget = widget
        self.heard: list[Any] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._variables

    def compose(self) -> ComposeResult:
        yield self._widget


@asynccontextmanager
async def hosted(
    widget: Widget, *kinds: type[Message], size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Host, Pilot[None]]]:
    """The widget alone on a screen; messages of `kinds` are collected in `host.heard`."""
    heard: list[Message] = []

    def hook(message: Message) -> None:
        if isinstance(message, kinds) and all(
            message is not other for other in heard
        ):  # each message pump on the way reports it
            heard.append(message)

    host = Host(widget)
    async with host.run_test(size=size, message_hook=hook) as pilot:
        await pilot.pause()
        host.heard = heard
        yield host, pilot


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait for something to become true, and all is drawn."""
    for _ in range(1000):
        await pilot.pause()
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"timed out waiting for {condition}")


def lines_of(widget: Widget) -> list[str]:
    """What the widget draws, line by line, without the spaces at the end."""
    return ["".join(s.text for s in widget.render_line(y)).rstrip() for y in range(widget.size.height)]


ALL = -1
"""Replaces all lines of the screen."""


@contextmanager
def painted_lines() -> Iterator[set[int]]:
    """Collect the numbers of the lines of the screen that are painted meanwhile."""
    lines: set[int] = set()
    real = Compositor.render_update

    def render_update(self: Compositor, *args: Any, **how: Any) -> Any:
        update = real(self, *args, **how)
        if update is not None:
            lines.update((y for y, _, _ in update.spans) if isinstance(update, ChopsUpdate) else {ALL})
        return update

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", render_update)
        yield lines
