"""The knobs below a context: a field each, with its key and, once turned, the project's own value."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.message import Message

from core.base.errors import BadInput
from core.config.settings import Settings
from tui.present.context_knobs import KNOBS, ContextKnob
from tui.widgets.value_field import ValueField


class Knobs(Container):
    """All knobs of the injection.

    Args:
        own: The project's settings; the knobs start there.
        keys: The key of each action, for people.
    """

    class Turned(Message):
        """The settings are others, or a field says no value now, or does again."""

    class Moved(Message):
        """Another field has focus, or none."""

    def __init__(self, own: Settings, keys: Mapping[str, str]) -> None:
        super().__init__(id="context-knobs")
        self._own = own
        self._keys = keys
        self.settings = own
        """As the knobs stand; what is no value does not count."""

    def compose(self) -> ComposeResult:
        """The fields."""
        for knob in KNOBS.values():
            own = knob.text(self._own)
            label = Content.assemble((self._keys[knob.action], "$accent"), f" {knob.label}")
            yield ValueField(knob.setting.field, label, Content(f"({own})"), own, stepped=bool(knob.words))

    @property
    def fields(self) -> dict[str, ValueField]:
        """The fields by what they are of, in order."""
        return {str(field.name): field for field in self.query(ValueField)}

    @property
    def field(self) -> ValueField | None:
        """The field that has focus."""
        return next((field for field in self.fields.values() if field.has_focus_within), None)

    @property
    def turned(self) -> bool:
        """Whether any stands elsewhere than the project has it."""
        return self.settings != self._own

    @property
    def fault(self) -> str:
        """What is wrong in a field, if anything."""
        return next((field.fault for field in self.fields.values() if field.faulty), "")

    def enter(self, name: str = "") -> None:
        """Go to a field; without a name to the first."""
        fields = self.fields
        (fields[name] if name else next(iter(fields.values()))).enter()

    def step(self, name: str, steps: int) -> None:
        """Turn a knob by so many steps."""
        self.fields[name].put(KNOBS[name].stepped(self.settings, steps))

    def move(self, rows: int) -> None:
        """Go on from the field that has focus."""
        fields, field = list(self.fields.values()), self.field
        if field is not None:
            fields[max(0, min(fields.index(field) + rows, len(fields) - 1))].enter()

    def put_back(self) -> None:
        """The field that has focus as the project has it."""
        if field := self.field:
            field.put(_knob(field).text(self._own))

    def put_all_back(self) -> None:
        """All as the project has them."""
        for field in self.fields.values():
            field.put(_knob(field).text(self._own))

    @on(ValueField.Changed)
    def _changed(self, message: ValueField.Changed) -> None:
        message.stop()
        field, knob, before = message.field, _knob(message.field), (self.settings, self.fault)
        fault = ""
        if message.text:
            try:
                self.settings = knob.try_value(self.settings, message.text, self._own)
            except BadInput as error:
                fault = str(error)
        field.tell(changed=knob.text(self.settings) != knob.text(self._own), fault=fault)
        if (self.settings, self.fault) != before:
            self.post_message(self.Turned())

    @on(ValueField.Entered)
    def _entered(self, message: ValueField.Entered) -> None:
        message.stop()
        self.post_message(self.Moved())

    @on(ValueField.Left)
    def _left(self, message: ValueField.Left) -> None:
        message.stop()
        if not message.field.text or message.field.faulty:
            message.field.put(_knob(message.field).text(self.settings))
        self.post_message(self.Moved())


def _knob(field: ValueField) -> ContextKnob:
    return KNOBS[str(field.name)]
