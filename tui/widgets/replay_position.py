"""The position in Replay: timeline and list of actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from core.records.episodes import Action
from tui.present.glyphs import DRAWN, Glyphs
from tui.present.replay import Track, first_listed, list_line, position_at, timeline
from tui.widgets.line_view import to_strip


class PositionView(Widget):
    """Base: shows the current position in an attempt."""

    ALLOW_SELECT = False

    @dataclass(eq=False)
    class Picked(Message):
        """A click on an action."""

        position: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._position = 0
        self._glyphs: Glyphs = DRAWN


class Timeline(PositionView):
    """Two lines: the actions, and the numbers of their iterations."""

    DEFAULT_CSS = """
    Timeline { height: 2; margin: 0 1; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._track = Track()

    def show(self, track: Track, position: int, glyphs: Glyphs) -> None:
        self._track, self._position, self._glyphs = track, position, glyphs
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.visual_style
        return to_strip(self, timeline(self._track, self._position, width, self._glyphs)[y], width, style)

    def on_click(self, event: events.Click) -> None:
        if self._track.count:
            self.post_message(self.Picked(position_at(self._track, event.x, self.size.width)))


class ActionList(PositionView):
    """As many actions as there is room for, the current one about in the middle."""

    DEFAULT_CSS = """
    ActionList { background: $background; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._actions: Sequence[Action] = ()
        self._first = self._count = 0

    def show(self, actions: Sequence[Action], first: int, position: int, count: int, glyphs: Glyphs) -> None:
        """Show these actions.

        Args:
            actions: Consecutive actions around the current one; missing lines stay empty.
            first: Position (from 0) of the first of them.
            position: Of the current one.
            count: Number of actions in all.
        """
        self._actions, self._first, self._position, self._count = actions, first, position, count
        self._glyphs = glyphs
        self.refresh()

    def _at(self, y: int) -> int:
        """The position that a line shows."""
        return first_listed(self._position, self._count, self.content_size.height) + y

    def render_line(self, y: int) -> Strip:
        width, style = self.content_size.width, self.visual_style
        position = self._at(y)
        place = position - self._first
        if not 0 <= place < len(self._actions):
            return Strip.blank(width, style.rich_style)
        line = list_line(self._actions[place], width, self._glyphs, current=position == self._position)
        return to_strip(self, line, width, style)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= self._at(offset.y) - self._first < len(self._actions):
            self.post_message(self.Picked(self._at(offset.y)))
