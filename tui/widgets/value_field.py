"""One line with a typed value: label, field, note, and an error line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.widgets.input import Selection

_TYPED: Final = frozenset("0123456789.,%")  # characters of a number; any other key stays a command, as in a list


class _Value(Input, inherit_bindings=False):
    """The input; only the characters in `typed` are accepted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "delete_left", show=False),
        Binding("delete", "delete_right", show=False),
        Binding("ctrl+u", "delete_left_all", show=False),
    ]

    def __init__(self, text: str, typed: frozenset[str]) -> None:
        super().__init__(text, max_length=40)
        self._typed = typed

    def select_all(self) -> None:
        """Select all, with the cursor at the start of a long text."""
        self.selection = Selection(len(self.value), 0)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character in self._typed

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character not in self._typed:
            event.prevent_default()  # of Input, which would take it as text


class ValueField(Vertical):
    """A value as text, between `label` and `note`; `name` identifies it.

    Only the characters in `typed` are accepted, or none if it is `stepped` through a list of words.
    """

    @dataclass(eq=False)
    class Changed(Message):
        field: ValueField
        text: str

    @dataclass(eq=False)
    class Entered(Message):
        field: ValueField

    @dataclass(eq=False)
    class Left(Message):
        """The field has lost focus; may come after the `Entered` of the next one."""

        field: ValueField

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
        self._typed = frozenset() if stepped else typed
        self._label, self._note, self._start = label, note, text
        self.fault = ""  # its error

    def compose(self) -> ComposeResult:
        with Horizontal(classes="value--line"):
            yield Static(Content(""), classes="value--mark")
            yield Static(self._label, classes="value--label")
            yield _Value(self._start, self._typed)
            yield Static(self._note, classes="value--note")
        yield Static(Content(""), classes="value--fault")

    @property
    def text(self) -> str:
        return self.query_one(_Value).value.strip()

    def put(self, text: str) -> None:
        """Set the text; typing replaces it."""
        value = self.query_one(_Value)
        value.value = text
        value.select_all()

    def enter(self) -> None:
        self.query_one(_Value).focus()

    def show_state(self, *, changed: bool, fault: str) -> None:
        """Show whether it differs from the initial value, and its error."""
        self.fault = fault
        self.set_class(changed, "-changed")
        self.set_class(bool(fault), "-faulty")
        self.query_one(".value--mark", Static).update(Content("!" if fault else "*" if changed else ""))
        self.query_one(".value--fault", Static).update(Content(fault))

    def on_key(self, event: events.Key) -> None:
        """Keys that are not part of a value go on to the bindings."""
        event.prevent_default(False)

    def on_descendant_focus(self) -> None:
        self.add_class("-entered")
        self.query_one(_Value).select_all()
        self.post_message(self.Entered(self))

    def on_descendant_blur(self) -> None:
        self.remove_class("-entered")
        self.query_one(_Value).cursor_position = 0
        self.post_message(self.Left(self))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(self, event.value.strip()))
