"""The fields for the injection settings below a context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partialmethod
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container
from textual.content import Content
from textual.message import Message

from core.base.errors import BadInput
from tui.present.knobs import KNOBS, ContextKnob
from tui.screens.base_screen import BaseScreen
from tui.widgets.value_field import ValueField, focused_field

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.config.settings import InjectionSettings, Settings


class Knobs(Container):
    """Fields for all injection settings, initially the project's. `keys` maps each action to its key."""

    class Turned(Message):
        """A setting has changed, or a field became valid or invalid."""

    class Moved(Message):
        """The focus has moved into or out of a field."""

    def __init__(self, own: Settings, keys: Mapping[str, str]) -> None:
        super().__init__(id="context-knobs")
        self._own = own
        self._keys = keys
        self.settings = own  # the current settings; invalid values are ignored

    def compose(self) -> ComposeResult:
        for knob in KNOBS.values():
            own = knob.text(self._own)
            label = Content.assemble((self._keys[knob.action], "$accent"), f" {knob.setting.label}")
            yield ValueField(knob.setting.field, label, Content(f"({own})"), own, stepped=bool(knob.words))

    @property
    def fields(self) -> dict[str, ValueField]:
        return {str(field.name): field for field in self.query(ValueField)}

    @property
    def field(self) -> ValueField | None:
        """The field that has focus, or None."""
        return focused_field(self.screen)

    @property
    def turned(self) -> bool:
        """Whether any value differs from the project's settings."""
        return self.settings != self._own

    @property
    def fault(self) -> str:
        """The error message of the first invalid field, or ""."""
        return next((field.fault for field in self.fields.values() if field.fault), "")

    def enter(self, name: str = "") -> None:
        """Focus a field by name, or the first field if the name is empty."""
        fields = self.fields
        (fields[name] if name else next(iter(fields.values()))).enter()

    def step(self, name: str, steps: int) -> None:
        self.fields[name].put(KNOBS[name].stepped(self.settings, steps))

    def move(self, rows: int) -> None:
        fields, field = list(self.fields.values()), self.field
        if field is not None:
            fields[max(0, min(fields.index(field) + rows, len(fields) - 1))].enter()

    def put_back(self, fields: Iterable[ValueField]) -> None:
        """Reset fields to the values of the project's settings."""
        for field in fields:
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
        field.show_state(changed=knob.text(self.settings) != knob.text(self._own), fault=fault)
        if (self.settings, self.fault) != before:
            self.post_message(self.Turned())

    @on(ValueField.Entered)
    def _entered(self, message: ValueField.Entered) -> None:
        message.stop()
        self.post_message(self.Moved())

    @on(ValueField.Left)
    def _left(self, message: ValueField.Left) -> None:
        message.stop()
        if not message.field.text or message.field.fault:
            message.field.put(_knob(message.field).text(self.settings))
        self.post_message(self.Moved())


def _knob(field: ValueField) -> ContextKnob:
    return KNOBS[str(field.name)]


class KnobActions(BaseScreen):
    """Mixin with the actions that change the injection settings."""

    @property
    def knobs(self) -> Knobs:
        return self.query_one(Knobs)

    @property
    def settings(self) -> InjectionSettings:
        """The injection settings with the values of the fields."""
        return self.knobs.settings.injection

    def _enter(self, name: str) -> None:
        self.knobs.enter(name)

    def _switch(self, name: str) -> None:
        self.knobs.step(name, 1)

    def _step(self, steps: int) -> None:
        """Change the focused value, or the number of patterns if no field has focus."""
        self.knobs.step(str(self.knobs.field.name) if self.knobs.field else "top_k_patterns", steps)

    action_step_up = partialmethod(_step, 1)
    action_step_down = partialmethod(_step, -1)
    action_top_k = partialmethod(_enter, "top_k_patterns")
    action_min_rate = partialmethod(_enter, "min_success_rate")
    action_budget = partialmethod(_enter, "max_tokens")
    action_reflections = partialmethod(_enter, "max_reflections")
    action_order = partialmethod(_switch, "order")
    action_errors = partialmethod(_switch, "include_error_patterns")
    action_successes = partialmethod(_switch, "include_success_patterns")
    action_antis = partialmethod(_switch, "include_anti_patterns")
    action_templates = partialmethod(_switch, "include_code_templates")

    def action_put_back(self) -> None:
        self.knobs.put_back(filter(None, [self.knobs.field]))

    def action_put_all_back(self) -> None:
        self.knobs.put_back(self.knobs.fields.values())
