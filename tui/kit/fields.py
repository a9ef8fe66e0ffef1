"""Input fields: the filter line with completion, and the field of a value."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static
from textual.widgets.input import Selection

from core.base.text import visible_line
from core.show.filter_parser import Fields, completions
from tui.kit.drawing import NewestMessage

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Key
    from textual.screen import Screen

LONGEST: Final = 300  # maximum characters that can be typed, or are shown of a text set by the program
_TURNS: Final = 20  # turns of the event loop in which a pending key reaches the input; together far below 1 ms


class _FirstCompletion(Suggester):
    """Suggests the first completion of a filter, shown behind the cursor."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.fields: Fields = {}

    async def get_suggestion(self, value: str) -> str | None:
        return next(iter(completions(value, self.fields)), None)


class _Line(Input):
    """Input that completes filters; while empty, it leaves some keys to the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", "complete", show=False)]

    def __init__(self, hint: str, passed_keys: Container[str]) -> None:
        self.first_completion = _FirstCompletion()
        super().__init__(placeholder=hint, max_length=LONGEST, suggester=self.first_completion)
        self.cursor_blink = False  # an idle dashboard paints nothing
        self._passed_keys = passed_keys

    def action_complete(self) -> None:
        """Accept the first completion; without one go to the next pane."""
        possible = completions(self.value, self.first_completion.fields) if self.cursor_at_end else ()
        if possible:
            self.value = possible[0]
            self.cursor_position = len(self.value)
        else:
            self.screen.focus_next("RecordTable, TextPane, Input")

    def _is_passed(self, key: str) -> bool:
        return not self.value and key in self._passed_keys

    def on_key(self, event: Key) -> None:
        if self._is_passed(event.key):
            event.prevent_default()  # skip the handler of Input, which would insert the key as text

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return not self._is_passed(key) and super().check_consume_key(key, character)


class FilterLine(Horizontal):
    """Prompt, input and match count; pending keys change the filter once together.

    While the input is empty, `passed_keys` act on the screen. `fields` are those that can be completed.
    """

    @dataclass(eq=False)
    class Changed(NewestMessage):
        text: str

    class Left(Message):
        """The user pressed enter or down to go to the list."""

    def __init__(self, hint: str, passed_keys: Container[str] = ()) -> None:
        super().__init__()
        self._hint = hint
        self._passed_keys = passed_keys
        self._given = ""
        self._count = Content("")

    def compose(self) -> ComposeResult:
        yield Static(Content("❯"), classes="filter--prompt")
        yield _Line(self._hint, self._passed_keys)
        yield Static(Content(""), classes="filter--count")

    def offer(self, fields: Fields) -> None:
        """Complete these fields and their values from now on."""
        self.query_one(_Line).first_completion.fields = fields

    @property
    def completions(self) -> tuple[str, ...]:
        """Completions as whole filters; () unless the user types at the end of one."""
        line = self.query_one(_Line)
        return completions(line.value, line.first_completion.fields) if line.has_focus and line.cursor_at_end else ()

    @property
    def text(self) -> str:
        """The filter as typed or as set; the input shows control characters escaped."""
        shown = self.query_one(Input).value
        return self._given if shown == visible_line(self._given, LONGEST) else shown

    @text.setter
    def text(self, value: str) -> None:
        self._given = value
        self.query_one(Input).value = visible_line(value, LONGEST)

    def show_hint(self, hint: str) -> None:
        """Replace the hint in the empty input."""
        self.query_one(Input).placeholder = hint

    def focus_input(self) -> None:
        self.query_one(Input).focus()

    def count(self, content: Content) -> None:
        """Show the number of matches, and update the layout only if the text has changed."""
        if not content.is_same(self._count):
            self._count = content
            self.query_one(".filter--count", Static).update(content)

    @on(Input.Changed)
    async def _changed(self, event: Input.Changed) -> None:
        event.stop()
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if event.value == event.input.value:  # else the message of a later key follows
            self.post_message(self.Changed(self.text))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Left())


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
