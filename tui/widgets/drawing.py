"""A picture made of lines, redrawn for any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.line_view import to_strip

Draw = Callable[[int, int], Sequence[Content]]
"""From cells and lines to the drawn lines; missing ones stay empty."""


class Drawing(Widget):
    """Shows the result of a drawing function."""

    ALLOW_SELECT: ClassVar[bool] = False
    DEFAULT_CSS = """
    Drawing { height: 1fr; background: $background; padding: 0 1; }
    """

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
