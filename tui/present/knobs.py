"""Settings as short texts that a person types or steps through."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from core.config.declaration import Setting, Unit
from core.config.settings import Settings
from core.config.thresholds import find_threshold
from tui.present.numbers import number_text, stepped

_UNITS: Final = {Unit.DAYS: "days", Unit.MS: "min", Unit.MINUTES: "min"}
_SHORT_WORDS: Final = {"lower-bound": "lower"}
"""Words that are too long for a field."""


@dataclass(frozen=True, slots=True)
class Knob:
    """Input field of one setting; shows milliseconds as minutes."""

    setting: Setting

    @property
    def name(self) -> str:
        """Name of the setting, such as `maturity.min_feedback`."""
        return self.setting.name

    @property
    def label(self) -> str:
        """Short name beside the field."""
        return self.setting.label

    @property
    def unit(self) -> str:
        """Unit of the number in the field; "" for a count, a share or a choice."""
        return _UNITS.get(self.setting.unit, "")

    @property
    def words(self) -> tuple[str, ...]:
        """Values of a field that accepts only words."""
        words = ("on", "off") if self.setting.kind is bool else self.setting.choices
        return tuple(_SHORT_WORDS.get(word, word) for word in words)

    def text(self, settings: Settings) -> str:
        """Value in these settings as text in the field."""
        if self.words:
            text = self.setting.text(settings)
            return _SHORT_WORDS.get(text, text)
        return number_text(self.setting.value(settings) / self.setting.editor_scale)

    def put(self, settings: Settings, text: str) -> Settings:
        """`settings` with the value in the field.

        Raises:
            BadInput: The text is not a valid value.
        """
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
        """Highest number that steps lead to."""
        return min(self.setting.most, self.setting.offered[1])

    def stepped(self, settings: Settings, steps: int) -> str:
        """Text of the field after `steps` steps up or down, in multiples of the step."""
        if words := self.words:
            return words[(words.index(self.text(settings)) + steps) % len(words)]
        value = self.setting.value(settings) / self.setting.editor_scale
        return number_text(stepped(value, self.setting.step, steps, self.setting.offered[0], self.highest(settings)))


def threshold_knob(name: str) -> Knob:
    """Input field of a threshold of `what-if`."""
    return Knob(find_threshold(name))
