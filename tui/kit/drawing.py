"""Widgets that draw lines for their current size and report clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.line_view import cursor_line, to_strip

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Size

Draw = Callable[[int, int], Sequence[Content]]  # maps width and height in cells to lines; missing lines stay empty


class Drawing(Widget):
    """Shows the lines that a function draws for the current size, and reports clicks."""

    ALLOW_SELECT: ClassVar[bool] = False
    DEFAULT_CSS = """
    Drawing { height: 1fr; background: $background; padding: 0 1; }
    """

    @dataclass(eq=False)
    class Clicked(Message):
        """A click on a cell, counted from the top left."""

        drawing: Drawing
        line: int
        column: int

        @property
        def control(self) -> Drawing:
            return self.drawing

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._draw: Draw | None = None
        self._lines: tuple[int, int, Sequence[Content]] = (-1, -1, ())

    def show(self, draw: Draw) -> None:
        self._draw = draw
        self._lines = (-1, -1, ())
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height = self.content_size
        if self._draw is not None and self._lines[:2] != (width, height):
            self._lines = (width, height, self._draw(width, height))
        lines, style = self._lines[2], self.visual_style
        if y >= len(lines):
            return Strip.blank(width, style.rich_style)
        return to_strip(self, lines[y], width, style)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None:
            self.post_message(self.Clicked(self, offset.y, offset.x))


class AnswerList(Widget):
    """Shows one line per answer. The highlighted answer has another background."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"answer-list--cursor"}
    DEFAULT_CSS = """
    AnswerList {
        height: auto;
        background: $background;
        & > .answer-list--cursor { background: $panel; }
    }
    """

    @dataclass(eq=False)
    class Chosen(Message):
        """A click on the line of an answer."""

        row: int

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[Content] = ()
        self._cursor = 0

    def show(self, rows: Sequence[Content], cursor: int) -> None:
        resized = len(rows) != len(self.rows)
        self.rows, self._cursor = rows, cursor
        self.refresh(layout=resized)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows)

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.visual_style
        if y >= len(self.rows):
            return Strip.blank(width, style.rich_style)
        content = Content.assemble(("▌", "$accent") if y == self._cursor else " ", self.rows[y])
        if y == self._cursor:
            content, style = cursor_line(self, content, "answer-list--cursor")
        return to_strip(self, content, width, style)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < len(self.rows):
            event.stop()
            self.post_message(self.Chosen(offset.y))
