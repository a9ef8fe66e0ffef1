"""The knobs of the Context place: one value each of the project's injection settings, as text to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.text import visible_line
from core.config.settings import InjectionSettings
from core.config.thresholds import Threshold, Unit
from tui.present.numbers import stepped, written


@dataclass(frozen=True, slots=True)
class Knob:
    """One field of `InjectionSettings`.

    Attributes:
        field: Its name there.
        action: What the key beside it does: goes to the field, or turns the knob if that has few values.
        label: One or two words.
        step: How far one key press goes, of a number.
        least: The least value, of a number.
        unit: Of a number.
        words: Its values by the words for them, of a knob with few values.
    """

    field: str
    action: str
    label: str
    step: float = 1.0
    least: float = 0.0
    unit: Unit = Unit.COUNT
    words: Mapping[str, object] | None = None

    def text(self, settings: InjectionSettings) -> str:
        """The value in these settings, as it stands in the field."""
        value = getattr(settings, self.field)
        if self.words is None:
            return written(value)
        return next(word for word, meant in self.words.items() if meant == value)

    def put(self, settings: InjectionSettings, text: str, own: InjectionSettings) -> InjectionSettings:
        """`settings` with what the field says; the project's own value is one, however odd.

        Raises:
            BadInput: The field says no value that the setting can have.
        """
        value = getattr(own, self.field) if text == self.text(own) else self._parsed(settings, text)
        return replace(settings, **{self.field: value})

    def _parsed(self, settings: InjectionSettings, text: str) -> Any:
        if self.words is not None:
            if text not in self.words:
                raise BadInput(f"{self.label} must be {' or '.join(self.words)}")
            return self.words[text]
        kind = Threshold(group="injection", field=self.field, unit=self.unit, label=self.label)
        try:
            value = float(kind.parse(text))
        except BadInput as error:
            reason = str(error).removeprefix(kind.name).rpartition(", not ")[0]
            raise BadInput(f"{self.label}{visible_line(reason, 100)}") from None
        most = self._most(settings)
        if not self.least <= value <= most:
            raise BadInput(f"{self.label} must be from {written(self.least)} to {written(most)}")
        return value if self.unit is Unit.SHARE else int(value)

    def _most(self, settings: InjectionSettings) -> float:
        if self.unit is Unit.SHARE:
            return 1.0
        most = {"top_k_patterns": settings.max_patterns_injected, "max_reflections": _MOST_REFLECTIONS}
        return most.get(self.field, _MOST_TOKENS)

    def stepped(self, settings: InjectionSettings, steps: int) -> str:
        """The field's text so many steps above or below the value in these settings."""
        if self.words is not None:
            words = list(self.words)
            return words[(words.index(self.text(settings)) + steps) % len(words)]
        value = getattr(settings, self.field)
        return written(stepped(value, self.step, steps, self.least, self._most(settings)))


_MOST_TOKENS: Final = 100_000
"""A budget beyond this lets in all that `max_patterns_injected` does."""
_MOST_REFLECTIONS: Final = 20
_SWITCH: Final[Mapping[str, object]] = {"on": True, "off": False}
_ORDERS: Final[Mapping[str, object]] = {"score": "score", "lower": "lower-bound"}

KNOBS: Final = {
    knob.field: knob
    for knob in (
        Knob("top_k_patterns", "top_k", "patterns", least=1),
        Knob("min_success_rate", "min_rate", "min rate", step=0.05, unit=Unit.SHARE),
        Knob("max_tokens", "budget", "tokens", step=100, least=100),
        Knob("order", "order", "order", words=_ORDERS),
        Knob("include_error_patterns", "errors", "errors", words=_SWITCH),
        Knob("include_success_patterns", "successes", "successes", words=_SWITCH),
        Knob("include_anti_patterns", "antis", "anti", words=_SWITCH),
        Knob("include_code_templates", "templates", "templates", words=_SWITCH),
        Knob("max_reflections", "reflections", "learnings"),
    )
}
"""The knobs by field, in the order in which they stand on the screen."""
