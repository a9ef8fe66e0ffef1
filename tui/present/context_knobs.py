"""Input fields of Context: settings of the injection to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from core.base.errors import BadInput
from core.base.text import visible_line
from core.config.settings import SETTINGS, Settings
from tui.present.knobs import Knob
from tui.present.numbers import number_text


@dataclass(frozen=True, slots=True)
class ContextKnob(Knob):
    """Input field of a setting of the injection.

    Attributes:
        action: Action of the key beside the field: focus the field, or step through its words.
    """

    action: str

    def try_value(self, settings: Settings, text: str, own: Settings) -> Settings:
        """`settings` with the value in the field, within the range that this screen offers.

        The value in `own`, the project's settings, is always accepted.

        Raises:
            BadInput: The text is not a valid value.
        """
        value = self.setting.value(own) if text == self.text(own) else self._parse(settings, text)
        changed: Settings = self.setting.with_value(settings, value)
        return changed

    def _parse(self, settings: Settings, text: str) -> Any:
        if self.words:
            if text not in self.words:
                raise BadInput(f"{self.label} must be {' or '.join(self.words)}")
            return self.parse(text)
        try:
            value = self.parse(text)
        except BadInput as error:
            reason = str(error).removeprefix(self.name).rpartition(", not ")[0]
            raise BadInput(f"{self.label}{visible_line(reason, 100)}") from None
        least, most = self.setting.offered[0], self.highest(settings)
        if not least <= value <= most:
            raise BadInput(f"{self.label} must be from {number_text(least)} to {number_text(most)}")
        return value

    def highest(self, settings: Settings) -> float:
        """Highest number that the field accepts."""
        if self.setting.field == "top_k_patterns":
            return settings.injection.max_patterns_injected
        return min(self.setting.most, self.setting.offered[1])


KNOBS: Final = {
    field: ContextKnob(SETTINGS[f"injection.{field}"], action)
    for field, action in (
        ("top_k_patterns", "top_k"),
        ("min_success_rate", "min_rate"),
        ("max_tokens", "budget"),
        ("order", "order"),
        ("include_error_patterns", "errors"),
        ("include_success_patterns", "successes"),
        ("include_anti_patterns", "antis"),
        ("include_code_templates", "templates"),
        ("max_reflections", "reflections"),
    )
}
"""The fields by setting, in the order on the screen."""
