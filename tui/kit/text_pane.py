"""Pane for scrollable styled text of any length. Long texts are wrapped in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.kit.drawing import is_same, selected, to_strip, with_selection

if TYPE_CHECKING:
    from textual.selection import Selection

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
    """Wrap paragraphs to `width` cells, keeping their indentation. `marks` has a prefix for each paragraph."""
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
