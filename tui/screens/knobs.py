"""The editor of settings in What-if and Context: fields that try each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Final

from textual import on
from textual.containers import Container
from textual.message import Message

from core.base.errors import BadInput
from core.base.settings import SETTINGS, Setting, Settings, Unit
from core.base.text import visible_line
from tui.kit.fields import ValueField, focused_field

_UNITS: Final = {Unit.DAYS: "days", Unit.MS: "min", Unit.MINUTES: "min"}
_SHORT_WORDS: Final = {"lower-bound": "lower"}  # Words that are too long for a field.


@dataclass(frozen=True, slots=True)
class Knob:
    """Input field of one setting; shows milliseconds as minutes."""

    setting: Setting

    @property
    def unit(self) -> str:
        """Unit of the number in the field; "" for counts, shares and choices."""
        return _UNITS.get(self.setting.unit, "")

    @property
    def words(self) -> tuple[str, ...]:
        """Words that the field accepts; empty for a number."""
        words = ("on", "off") if self.setting.kind is bool else self.setting.choices
        return tuple(_SHORT_WORDS.get(word, word) for word in words)

    def text(self, settings: Settings) -> str:
        """Return the value in these settings as the text of the field."""
        if self.words:
            text = self.setting.text(settings)
            return _SHORT_WORDS.get(text, text)
        return number_text(self.setting.value(settings) / self.setting.editor_scale)

    def try_value(self, settings: Settings, text: str, own: Settings) -> Settings:
        """Return `settings` with the text's value; raises `BadInput` with the reason.

        The value in `own`, the project's settings, is always valid.
        """
        value = self.setting.value(own) if text == self.text(own) else self._read(settings, text)
        changed: Settings = self.setting.with_value(settings, value)
        return changed

    def _read(self, settings: Settings, text: str) -> Any:
        """Parse the text of the field; raises `BadInput` with a reason without the name."""
        try:
            return self.parse(text)
        except BadInput as error:
            reason = str(error).removeprefix(f"{self.setting.name} ").rpartition(", not ")[0] or str(error)
            raise BadInput(visible_line(reason, 120)) from None

    def parse(self, text: str) -> Any:
        """Parse the text of the field; raises `BadInput` for an invalid value."""
        if self.words:
            return self.setting.parse(next((word for word, short in _SHORT_WORDS.items() if short == text), text))
        if self.setting.editor_scale != 1:
            with suppress(ValueError):
                text = repr(float(text) * self.setting.editor_scale)
        return self.setting.parse(text)

    def highest(self, settings: Settings) -> float:
        """Return the highest number that steps can reach."""
        return min(self.setting.most, self.setting.offered[1])

    def stepped(self, settings: Settings, steps: int) -> str:
        """Return the text after `steps` steps up (or down if negative), on whole steps."""
        if words := self.words:
            return words[(words.index(self.text(settings)) + steps) % len(words)]
        value = self.setting.value(settings) / self.setting.editor_scale
        return number_text(stepped(value, self.setting.step, steps, self.setting.offered[0], self.highest(settings)))


@dataclass(frozen=True, slots=True)
class ContextKnob(Knob):
    """Input field of an injection setting."""

    def _read(self, settings: Settings, text: str) -> Any:
        """Parse the text; raises `BadInput` with the label if invalid or not offered."""
        label = self.setting.label
        if self.words:
            if text not in self.words:
                raise BadInput(f"{label} must be {' or '.join(self.words)}")
            return self.parse(text)
        try:
            value = super(ContextKnob, self)._read(settings, text)
        except BadInput as error:
            raise BadInput(f"{label} {error}") from None
        least, most = self.setting.offered[0], self.highest(settings)
        if not least <= value <= most:
            raise BadInput(f"{label} must be from {number_text(least)} to {number_text(most)}")
        return value

    def highest(self, settings: Settings) -> float:
        """Return the highest number that the field accepts."""
        if self.setting.field == "top_k_patterns":
            return settings.injection.max_patterns_injected
        return min(self.setting.most, self.setting.offered[1])


KNOBS: Final = {
    field: ContextKnob(SETTINGS[f"injection.{field}"])
    for field in (
        *("top_k_patterns", "min_success_rate", "max_tokens", "max_reflections", "order"),
        *("include_error_patterns", "include_success_patterns", "include_anti_patterns", "include_code_templates"),
    )
}
"""The fields by setting, in the order on the screen."""


class SettingFields(Container):
    """Fields for settings, initially the project's (`own`); ignores invalid values.

    `knobs` are by the name of their field. With `empty_is_own` an empty field means the project's value, and an invalid
    text stays when the field is left; else the last valid value takes the place of both. The reason is shown.
    """

    @dataclass(eq=False)
    class Turned(Message):
        """A setting has changed (`has_changed`), or a field became valid or invalid."""

        has_changed: bool

    class Moved(Message):
        """The focus has moved into or out of a field."""

    def __init__(
        self, knobs: Mapping[str, Knob], own: Settings, *, empty_is_own: bool, id: str | None = None, classes: str = ""
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._knobs = knobs
        self._empty_is_own = empty_is_own
        self.own = own
        self.settings = own

    @property
    def fields(self) -> dict[str, ValueField]:
        return {str(field.name): field for field in self.query(ValueField)}

    @property
    def field(self) -> ValueField | None:
        """The field that has focus, or None."""
        return focused_field(self.screen)

    @property
    def turned(self) -> list[Knob]:
        """The settings whose value differs from the project's."""
        return [knob for knob in self._knobs.values() if knob.text(self.settings) != knob.text(self.own)]

    @property
    def fault(self) -> str:
        """The error message of the first invalid field, or ""."""
        return next((field.fault for field in self.fields.values() if field.fault), "")

    def knob(self, field: ValueField) -> Knob:
        return self._knobs[str(field.name)]

    def step(self, name: str, steps: int) -> None:
        self.fields[name].put(self._knobs[name].stepped(self.settings, steps))

    def move(self, rows: int) -> None:
        fields, field = list(self.fields.values()), self.field
        if field is not None:
            fields[max(0, min(fields.index(field) + rows, len(fields) - 1))].enter()

    def put_back(self, fields: Iterable[ValueField]) -> None:
        """Reset fields to the values of the project's settings."""
        for field in fields:
            field.put(self.knob(field).text(self.own))

    @on(ValueField.Changed)
    def _changed(self, message: ValueField.Changed) -> None:
        message.stop()
        field, knob, before = message.field, self.knob(message.field), (self.settings, self.fault)
        text, fault = message.text or knob.text(self.own) * self._empty_is_own, ""
        if text:
            try:
                self.settings = knob.try_value(self.settings, text, self.own)
            except BadInput as error:
                fault = str(error)
        field.show_state(changed=knob in self.turned, fault=fault)
        if (self.settings, self.fault) != before:
            self.post_message(self.Turned(self.settings != before[0]))

    @on(ValueField.Entered)
    def _entered(self, message: ValueField.Entered) -> None:
        message.stop()
        self.post_message(self.Moved())

    @on(ValueField.Left)
    def _left(self, message: ValueField.Left) -> None:
        message.stop()
        if not message.field.text or (message.field.fault and not self._empty_is_own):
            message.field.put(self.knob(message.field).text(self.settings))
        self.post_message(self.Moved())


def number_text(value: float) -> str:
    """Return a number for an input field, without rounding errors."""
    return f"{round(value, 9):.15g}"


def stepped(value: float, step: float, steps: int, least: float, most: float) -> float:
    """Move a value by `steps`, round it to a multiple of `step`, and clamp it."""
    at = round(value / step, 6)
    return min(max(((floor(at) if steps > 0 else ceil(at)) + steps) * step, least), most)
