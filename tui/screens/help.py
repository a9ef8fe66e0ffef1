"""The help, searchable by typing; actions of the focused pane come first."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.present.help_text import Topic, help_lines
from tui.widgets.text_pane import TextPane

LONGEST: Final = 60
"""Characters of a search."""


class Help(ModalScreen[None]):
    """All keys of one screen; typing narrows them.

    Args:
        topic: The content.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_or_clear", "close"),
        Binding("f1,question_mark", "close", "close", priority=True),
        Binding("down", "move(1)", "down", show=False, priority=True),
        Binding("up", "move(-1)", "up", show=False, priority=True),
        Binding("pagedown", "page(1)", "page down", show=False, priority=True),
        Binding("pageup", "page(-1)", "page up", show=False, priority=True),
    ]

    def __init__(self, topic: Topic) -> None:
        super().__init__()
        self._topic = topic

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog--tall help"):
            yield Static(Content(f"Keys in {self._topic.title}"), classes="dialog--title")
            yield Input(placeholder="Search for a key or a word", max_length=LONGEST)
            yield TextPane()
            yield Static(
                Content.from_markup(
                    "[$accent b]↑ ↓ pgdn[/] scroll  [$accent b]esc[/] close   "
                    'change keys in keymap.toml: [b]name = "key"[/]'
                ),
                classes="dialog--keys",
            )

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(TextPane.Widened)
    def _widened(self) -> None:
        self._show()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show()

    def _show(self) -> None:
        pane = self.query_one(TextPane)
        search = self.query_one(Input).value
        pane.show(help_lines(self._topic, search, pane.scrollable_content_region.width))

    def action_move(self, rows: int) -> None:
        self.query_one(TextPane).move(rows)

    def action_page(self, pages: int) -> None:
        pane = self.query_one(TextPane)
        pane.move(pages * pane.page)

    def action_close_or_clear(self) -> None:
        """Clear the search, else close."""
        search = self.query_one(Input)
        if search.value:
            search.value = ""
        else:
            self.dismiss(None)

    def action_close(self) -> None:
        self.dismiss(None)
