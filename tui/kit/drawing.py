"""Lines that widgets draw, drawings that report clicks, and a pane for long text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from core.base.text import ELLIPSIS
from tui.kit.textual_private import style_parser

if TYPE_CHECKING:
    from textual import events
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
    """Cut `content` to `width` cells; end it with an ellipsis, but not with two."""
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
    """Return `content` (line `row` of the widget) with the mouse selection marked."""
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


LONG: Final = 20_000  # characters from which wrapping leaves the UI thread
PART: Final = 200  # paragraphs that a thread wraps at once
_WIDEST: Final = 2  # cells of the widest character
_NOTHING: Final = Content("")


class TextPane(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows paragraphs, each wrapped to the width with its indentation."""

    DEFAULT_CSS = """
    TextPane {
        height: 1fr;
        background: $background;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        padding: 0 1;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = set()

    class Widened(Message):
        """The width has changed, so content drawn for the width must be redrawn."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cells = 0
        self._paragraphs: tuple[Content, ...] = ()
        self._marks: tuple[Content, ...] = ()
        self._lines: list[Content] = []
        self._wrapped_for: tuple[int, int] = (-1, -1)
        self._generation = 0

    @property
    def plain(self) -> str:
        """The text without styles, for copying."""
        return "\n".join(paragraph.plain for paragraph in self._paragraphs)

    def show(self, paragraphs: Sequence[Content], *, top: bool = True, marks: Sequence[Content] = ()) -> None:
        """Show a text from its top, or at the current scroll position if not `top`.

        `marks` has a prefix for the lines of each paragraph. All prefixes have the same width.
        """
        paragraphs, marks = tuple(paragraphs), tuple(marks)
        if not (is_same(paragraphs, self._paragraphs) and is_same(marks, self._marks)):
            self._paragraphs, self._marks = paragraphs, marks
            self._generation += 1
            self._wrap()
        if top:
            self.scroll_to(y=0, animate=False)

    def on_resize(self) -> None:
        self._wrap()
        width = self.scrollable_content_region.width
        if width != self._cells:
            self._cells = width
            self.post_message(self.Widened())

    def move(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False)

    def reach(self, paragraph: int) -> None:
        """Scroll to a paragraph unless its start is already visible."""
        row = len(wrap(self._paragraphs[:paragraph], self.scrollable_content_region.width, self._marks))
        if not self.scroll_offset.y <= row < self.scroll_offset.y + self.page:
            self.scroll_to(y=row - 1, animate=False)

    def count_lines(self, width: int) -> int:
        """Return how many lines the text takes in `width` cells."""
        return len(wrap(self._paragraphs, width, self._marks))

    @property
    def page(self) -> int:
        """Number of lines that fit on a page."""
        return max(self.size.height - 1, 1)

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0 or self._wrapped_for == (self._generation, width):
            return
        self._wrapped_for = (self._generation, width)
        if sum(len(paragraph) for paragraph in self._paragraphs) < LONG:
            self.workers.cancel_group(self, "wrap")
            self._take(wrap(self._paragraphs, width, self._marks))
            return
        self.run_worker(self._wrap_long(self._paragraphs, self._marks, width), group="wrap", exclusive=True)

    async def _wrap_long(self, paragraphs: Sequence[Content], marks: Sequence[Content], width: int) -> None:
        """Wrap in a thread in parts, so that a newer text can replace this one at once."""
        lines: list[Content] = []
        for start in range(0, len(paragraphs), PART):
            end = start + PART
            lines += await asyncio.to_thread(wrap, paragraphs[start:end], width, marks[start:end])
        self._take(lines)

    def _take(self, lines: list[Content]) -> None:
        self._lines = lines
        self.virtual_size = Size(0, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        style = self.visual_style
        row = y + self.scroll_offset.y
        if row >= len(self._lines):
            return Strip.blank(width, style.rich_style)
        return to_strip(self, with_selection(self, self._lines[row], row), width, style).apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        return selected([line.plain for line in self._lines], selection), "\n"


def wrap(paragraphs: Sequence[Content], width: int, marks: Sequence[Content] = ()) -> list[Content]:
    """Wrap paragraphs to `width` cells, keeping indentation; `marks` are prefixes."""
    lines: list[Content] = []
    for paragraph, mark in zip_longest(paragraphs, marks[: len(paragraphs)], fillvalue=_NOTHING):
        broken = _broken(paragraph, width - mark.cell_length)
        lines += [Content.assemble(mark, line) for line in broken] if mark else broken
    return lines


def _broken(paragraph: Content, width: int) -> list[Content]:
    if "\t" in paragraph.plain:
        paragraph = paragraph.expand_tabs(4)  # a terminal would use its own tab stops
    if paragraph.cell_length <= width and "\n" not in paragraph.plain:
        return [paragraph]
    lines: list[Content] = []
    for part in paragraph.split("\n", allow_blank=True):
        plain = part.plain
        indent = len(plain) - len(plain.lstrip(" "))
        if part.cell_length <= width or indent == 0 or indent > min(width // 2, width - _WIDEST):
            lines += part.wrap(width) if plain else [Content("")]
        else:
            lines += [line.pad_left(indent) for line in part[indent:].wrap(width - indent)]
    return lines
