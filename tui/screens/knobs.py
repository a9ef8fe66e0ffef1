"""Input fields of settings: convert between values and short texts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Final

from core.base.declaration import Setting, Unit
from core.base.errors import BadInput
from core.base.settings import SETTINGS, Settings
from core.base.text import visible_line

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

    def with_text(self, settings: Settings, text: str) -> Settings:
        """Return `settings` with the value of `text`; raises `BadInput` if invalid."""
        changed: Settings = self.setting.with_value(settings, self.parse(text))
        return changed

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

    def try_value(self, settings: Settings, text: str, own: Settings) -> Settings:
        """Return `settings` with the value of the text.

        Raises `BadInput` if it is out of range, unless it is the value in `own`, the project's settings.
        """
        value = self.setting.value(own) if text == self.text(own) else self._parse(settings, text)
        changed: Settings = self.setting.with_value(settings, value)
        return changed

    def _parse(self, settings: Settings, text: str) -> Any:
        label = self.setting.label
        if self.words:
            if text not in self.words:
                raise BadInput(f"{label} must be {' or '.join(self.words)}")
            return self.parse(text)
        try:
            value = self.parse(text)
        except BadInput as error:
            reason = str(error).removeprefix(self.setting.name).rpartition(", not ")[0]
            raise BadInput(f"{label}{visible_line(reason, 100)}") from None
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


def number_text(value: float) -> str:
    """Return a number for an input field, without rounding errors."""
    return f"{round(value, 9):.15g}"


def stepped(value: float, step: float, steps: int, least: float, most: float) -> float:
    """Move a value by `steps`, round it to a multiple of `step`, and clamp it."""
    at = round(value / step, 6)
    return min(max(((floor(at) if steps > 0 else ceil(at)) + steps) * step, least), most)
