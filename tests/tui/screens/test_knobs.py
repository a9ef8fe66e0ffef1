"""Fields of settings: values, steps and what is refused."""

from __future__ import annotations

import pytest

from core.base.errors import BadInput
from core.base.settings import InjectionSettings, Settings
from tui.screens.knobs import KNOBS

PROJECT = Settings()


@pytest.mark.parametrize("name", KNOBS)
def test_a_changed_value_shows_the_projects_value_and_can_be_reset(name: str) -> None:
    knob = KNOBS[name]
    assert knob.try_value(PROJECT, knob.text(PROJECT), PROJECT) == PROJECT
    assert len(knob.setting.label) <= 9, "has to fit into a third of 80 cells"


@pytest.mark.parametrize("name", KNOBS)
@pytest.mark.parametrize("steps", [1, -1])
def test_every_step_changes_the_value_until_the_last_one(name: str, steps: int) -> None:
    knob = KNOBS[name]
    once = knob.try_value(PROJECT, knob.stepped(PROJECT, steps), PROJECT)
    assert once != PROJECT
    settings = PROJECT
    for _ in range(30):
        settings = knob.try_value(settings, knob.stepped(settings, steps), PROJECT)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("top_k_patterns", "0", "patterns must be from 1 to 10"),
        ("top_k_patterns", "2.5", "patterns must be a whole number"),
        ("min_success_rate", "120%", "min rate must be a number from 0 to 1"),
        ("max_tokens", "99", "tokens must be from 100 to 100000"),
        ("order", "1", "order must be score or lower"),
        ("include_anti_patterns", "", "anti must be on or off"),
    ],
)
def test_an_invalid_value_is_refused_with_the_reason(name: str, text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=f"^{reason}"):
        KNOBS[name].try_value(PROJECT, text, PROJECT)


def test_a_setting_between_two_steps_is_kept() -> None:
    odd = Settings(injection=InjectionSettings(top_k_patterns=0, max_tokens=7))
    for name in ("top_k_patterns", "max_tokens"):
        assert KNOBS[name].try_value(odd, KNOBS[name].text(odd), odd) == odd
