"""Lines that widgets draw for their current size: fit, selection and cursor; drawings that report clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from core.base.text import ELLIPSIS
from tui.kit.textual_private import style_parser

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Size
    from textual.selection import Selection

    from core.show.pages.document import Align


class NewestMessage(Message):
    """A message that replaces unprocessed older ones of the same class."""

    def can_replace(self, message: Message) -> bool:
        return type(message) is type(self)


def is_same(one: Sequence[Content], other: Sequence[Content]) -> bool:
    """Return True if texts and styles are equal. `==` on Content compares only texts."""
    return len(one) == len(other) and all(a.is_same(b) for a, b in zip(one, other, strict=True))


def shorten(content: Content, width: int) -> Content:
    """Cut `content` to `width` cells and end it with an ellipsis, unless it was cut after one of its own."""
    cut = content.truncate(width, ellipsis=True)
    if cut is not content and (head := cut.plain[:-1].rstrip()).endswith(ELLIPSIS):
        return content[: len(head)]
    return cut


def fit(content: Content, width: int, align: Align = "left", keep_end: int = 0) -> Content:
    """Cut or pad `content` to exactly `width` cells.

    A cut keeps the last `keep_end` characters, because some IDs differ only at the end.
    """
    if width <= 0:
        return Content("")
    if keep_end and content.cell_length > width > keep_end:
        head = shorten(content, width - keep_end)
        content = Content.assemble(head, content[len(content) - keep_end :])
    content = shorten(content, width)
    missing = max(width - content.cell_length, 0)
    return content.pad_left(missing) if align == "right" else content.pad_right(missing)


def to_strip(widget: Widget, content: Content, width: int, style: Style) -> Strip:
    """Convert one line of content to a strip of `width` cells with a base style."""
    content = shorten(content, width)
    segments = [
        Segment(text, (style + text_style).rich_style)
        for text, text_style in content.render(style, end="", parse_style=style_parser(widget))
    ]
    strip = Strip(segments, content.cell_length)
    return strip.extend_cell_length(width, style.rich_style)


def cursor_line(widget: Widget, content: Content, component: str) -> tuple[Content, Style]:
    """Return the content and background of the line under the cursor.

    The background comes from the component class. Themes with the terminal's colours use reverse video instead.
    """
    style = widget.get_visual_style(component)
    if widget.app.native_ansi_color:
        return Content(content.plain), style + Style(reverse=True)
    return content, style


def with_selection(widget: Widget, content: Content, row: int) -> Content:
    """Return `content`, line `row` of the widget, with the mouse selection highlighted."""
    selection = widget.text_selection
    span = selection.get_span(row) if selection is not None else None
    if span is None:
        return content
    start, end = span
    style = Style.from_styles(widget.screen.get_component_styles("screen--selection"))
    return content.stylize(style, start, len(content) if end == -1 else end)


def selected(lines: Sequence[str], selection: Selection) -> str:
    """Return the selected text of these lines, without trailing padding."""
    first = max(selection.start.y, 0) if selection.start is not None else 0
    last = min(selection.end.y, len(lines) - 1) if selection.end is not None else len(lines) - 1
    spans = [(row, selection.get_span(row)) for row in range(first, last + 1)]
    return "\n".join(lines[row][span[0] : span[1] if span[1] != -1 else None].rstrip() for row, span in spans if span)


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
