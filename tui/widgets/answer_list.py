"""The answers to a question, one line each, one of them highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.line_view import cursor_line, to_strip


class AnswerList(Widget):
    """One line per answer; the highlighted one has another background."""

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
        """A click on a line."""

        answers: AnswerList
        row: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[Content, ...] = ()
        self._cursor = 0

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "\n".join(row.plain for row in self._rows)

    def show(self, rows: Sequence[Content], cursor: int) -> None:
        """Show these lines, the one at `cursor` highlighted."""
        resized = len(rows) != len(self._rows)
        self._rows, self._cursor = tuple(rows), cursor
        self.refresh(layout=resized)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.visual_style
        if y >= len(self._rows):
            return Strip.blank(width, style.rich_style)
        if y != self._cursor:
            return to_strip(self, Content.assemble(" ", self._rows[y]), width, style)
        marked = Content.assemble(("▌", "$accent"), self._rows[y])
        content, style = cursor_line(self, marked, "answer-list--cursor")
        return to_strip(self, content, width, style)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < len(self._rows):
            event.stop()
            self.post_message(self.Chosen(self, offset.y))
