"""Field for a value, with a label, a note and an error line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.widgets.input import Selection

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen

_TYPED: Final = frozenset("0123456789.,%")  # characters of a number; any other key acts as a command, as in a list


class _Value(Input, inherit_bindings=False):
    """Input that accepts only the characters in `typed`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "delete_left", show=False),
        Binding("delete", "delete_right", show=False),
        Binding("ctrl+u", "delete_left_all", show=False),
    ]

    def __init__(self, text: str, typed: frozenset[str]) -> None:
        super().__init__(text, max_length=40)
        self._typed = typed

    def select_all(self) -> None:
        """Select the whole text, and keep the start of a long text visible."""
        self.selection = Selection(len(self.value), 0)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character in self._typed

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character not in self._typed:
            event.prevent_default()  # skip the handler of Input, which would insert the key as text


class ValueField(Vertical):
    """Field for a value, between `label` and `note`. `name` identifies the field.

    Only the characters in `typed` can be typed. A `stepped` field has a list of words and accepts no typing.
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
        """The field has lost focus. May arrive after `Entered` of the next field."""

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
        """Set the text, and select it so that typing replaces it."""
        value = self.query_one(_Value)
        value.value = text
        value.select_all()

    def enter(self) -> None:
        self.query_one(_Value).focus()

    def show_state(self, *, changed: bool, fault: str) -> None:
        """Show the error, and whether the value differs from the initial one."""
        self.fault = fault
        self.set_class(changed, "-changed")
        self.set_class(bool(fault), "-faulty")
        self.query_one(".value--mark", Static).update(Content("!" if fault else "*" if changed else ""))
        self.query_one(".value--fault", Static).update(Content(fault))

    def on_key(self, event: events.Key) -> None:
        """Pass keys that are not part of a value to the bindings."""
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


def focused_field(screen: Screen[Any]) -> ValueField | None:
    """Return the field that has focus, or None."""
    widgets = screen.focused.ancestors_with_self if screen.focused is not None else []
    return next((one for one in widgets if isinstance(one, ValueField)), None)
