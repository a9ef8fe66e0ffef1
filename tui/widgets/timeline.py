"""The actions of an attempt as one line with the current position; a click goes to an action."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.present.glyphs import DRAWN, Glyphs
from tui.present.replay import Track, position_at, timeline
from tui.widgets.line_view import to_strip


class Timeline(Widget):
    """Two lines: the actions, and the numbers of their iterations."""

    DEFAULT_CSS = """
    Timeline { height: 2; margin: 0 1; background: $background; }
    """

    ALLOW_SELECT = False

    @dataclass(eq=False)
    class Picked(Message):
        """A click on an action."""

        line: Timeline
        position: int

    def __init__(self) -> None:
        super().__init__()
        self._track = Track()
        self._position = 0
        self._glyphs: Glyphs = DRAWN

    def show(self, track: Track, position: int, glyphs: Glyphs) -> None:
        self._track, self._position, self._glyphs = track, position, glyphs
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.visual_style
        return to_strip(self, timeline(self._track, self._position, width, self._glyphs)[y], width, style)

    def on_click(self, event: events.Click) -> None:
        if self._track.count:
            self.post_message(self.Picked(self, position_at(self._track, event.x, self.size.width)))
