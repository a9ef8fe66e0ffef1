"""The line in which a filter is typed, with the count of what is left beside it."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static


class FilterLine(Horizontal):
    """Prompt, input and count; every keystroke is a new filter."""

    class Changed(Message):
        """The filter is another."""

        def __init__(self, line: FilterLine, text: str) -> None:
            super().__init__()
            self.line = line
            self.text = text

        @property
        def control(self) -> FilterLine:
            """The line."""
            return self.line

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FilterLine.Changed)

    class Left(Message):
        """Enter or down: on to the list."""

        def __init__(self, line: FilterLine) -> None:
            super().__init__()
            self.line = line

        @property
        def control(self) -> FilterLine:
            """The line."""
            return self.line

    def __init__(self, hint: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hint = hint

    def compose(self) -> ComposeResult:
        """The parts."""
        yield Static(Content("❯"), classes="filter--prompt")
        yield Input(placeholder=self._hint, max_length=300)
        yield Static(Content(""), classes="filter--count")

    @property
    def text(self) -> str:
        """What is typed."""
        return self.query_one(Input).value

    @text.setter
    def text(self, value: str) -> None:
        self.query_one(Input).value = value

    def focus_input(self) -> None:
        """Start typing."""
        self.query_one(Input).focus()

    def count(self, content: Content) -> None:
        """Say how much is left."""
        self.query_one(".filter--count", Static).update(content)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(self, event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Left(self))
