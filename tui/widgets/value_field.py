"""One line with a value that is typed: its name, the field, a note; and a line with what is wrong in it."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.widgets.input import Selection

_TYPED: Final = frozenset("0123456789.,%")
"""What a number is typed of; every key that a field is not typed of stays a command, as in a list."""


class _Value(Input, inherit_bindings=False):
    """The field; `typed` are the signs that go into it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "delete_left", show=False),
        Binding("delete", "delete_right", show=False),
        Binding("ctrl+u", "delete_left_all", show=False),
    ]

    def __init__(self, text: str, typed: frozenset[str]) -> None:
        super().__init__(text, max_length=40)
        self._typed = typed

    def select_all(self) -> None:
        """Select all, with the cursor at the start: of a long text that is what shows."""
        self.selection = Selection(len(self.value), 0)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character in self._typed

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character not in self._typed:
            event.prevent_default()  # of Input, which would take it as text


class ValueField(Vertical):
    """A value of some kind, as text.

    Args:
        name: What it is the value of, for the one who listens.
        label: The same, for people.
        note: What stands behind the field.
        text: What stands in it at first.
        stepped: Whether its values are words, which are stepped through: no key is typed into it.
        typed: The signs that its values are typed of.
    """

    class OfField(Message):
        """Of a field."""

        def __init__(self, field: ValueField) -> None:
            super().__init__()
            self.field = field

        @property
        def control(self) -> ValueField:
            """The field."""
            return self.field

    class Changed(OfField):
        """The text is another."""

        def __init__(self, field: ValueField, text: str) -> None:
            super().__init__(field)
            self.text = text

    class Entered(OfField):
        """It has focus now."""

    class Left(OfField):
        """It has lost focus; that may be told after the next one's `Entered`."""

    def __init__(
        self,
        name: str,
        label: Content,
        note: Content,
        text: str,
        *,
        stepped: bool = False,
        typed: frozenset[str] = _TYPED,
    ) -> None:
        super().__init__(name=name)
        self.stepped = stepped
        self._typed = typed
        self._label = label
        self._note = note
        self._start = text
        self.fault = ""
        """What is wrong in it."""

    def compose(self) -> ComposeResult:
        """The parts."""
        with Horizontal(classes="value--line"):
            yield Static(Content(""), classes="value--mark")
            yield Static(self._label, classes="value--label")
            yield _Value(self._start, frozenset() if self.stepped else self._typed)
            yield Static(self._note, classes="value--note")
        yield Static(Content(""), classes="value--fault")

    @property
    def text(self) -> str:
        """What is typed."""
        return self.query_one(_Value).value.strip()

    @property
    def faulty(self) -> bool:
        """Whether something is wrong in it."""
        return bool(self.fault)

    def put(self, text: str) -> None:
        """Put another text there; what is typed next replaces it."""
        value = self.query_one(_Value)
        value.value = text
        value.select_all()

    def enter(self) -> None:
        """Start typing."""
        self.query_one(_Value).focus()

    def tell(self, *, changed: bool, fault: str) -> None:
        """Show whether it differs from what it was at first, and what is wrong in it."""
        self.fault = fault
        self.set_class(changed, "-changed")
        self.set_class(bool(fault), "-faulty")
        self.query_one(".value--mark", Static).update(Content("!" if fault else "*" if changed else ""))
        self.query_one(".value--fault", Static).update(Content(fault))

    def on_key(self, event: events.Key) -> None:
        """What is no part of a value goes on to the bindings."""
        event.prevent_default(False)

    def on_descendant_focus(self) -> None:
        """Show and tell it."""
        self.add_class("-entered")
        self.query_one(_Value).select_all()
        self.post_message(self.Entered(self))

    def on_descendant_blur(self) -> None:
        """Show and tell it."""
        self.remove_class("-entered")
        self.query_one(_Value).cursor_position = 0
        self.post_message(self.Left(self))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(self, event.value.strip()))
