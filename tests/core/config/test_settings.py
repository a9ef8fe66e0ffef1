"""Settings: an invalid value is an error with field and value."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.errors import BadInput
from core.config.settings import (
    AntiPatternSettings,
    ExtractionSettings,
    InjectionSettings,
    LearningSettings,
    MaturitySettings,
    PruningSettings,
    Settings,
    WatchSettings,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (kind, field, value)
        for kind in (
            *(LearningSettings, MaturitySettings, AntiPatternSettings, ExtractionSettings),
            *(InjectionSettings, PruningSettings, WatchSettings),
        )
        for field in kind.__struct_fields__
        if field != "anti_pattern_prefix"
        for value in (NAN, -1, float("inf"), "0.6", None, True)
        if value is not True or not isinstance(getattr(kind(), field), bool)
    ],
)
def test_invalid_values_are_refused_with_the_field(kind: Any, field: str, value: object) -> None:
    with pytest.raises(BadInput, match=field):
        kind(**{field: value})


def test_shares_are_at_most_one_and_half_lives_above_zero() -> None:
    with pytest.raises(BadInput, match=r"max_harmful must be a number from 0 to 1, not 1\.5"):
        MaturitySettings(max_harmful=1.5)
    for nothing in (0, 5e-324):
        with pytest.raises(BadInput, match=f"half_life_days must be a number of days above 0, not {nothing}"):
            LearningSettings(half_life_days=nothing)
    assert MaturitySettings(max_harmful=0, deprecation_threshold=1).max_harmful == 0


def test_not_all_outcome_weights_can_be_zero() -> None:
    assert LearningSettings(success_weight=0, duration_weight=0, errors_weight=0).retries_weight
    with pytest.raises(BadInput, match="retries_weight cannot all be 0"):
        LearningSettings(success_weight=0, duration_weight=0, errors_weight=0, retries_weight=0)


def test_times_have_upper_and_lower_bounds() -> None:
    with pytest.raises(BadInput, match="stale_after_minutes must be a number from 0 to 1,000,000,000"):
        WatchSettings(stale_after_minutes=1e300)
    with pytest.raises(BadInput, match=r"poll_seconds must be a number from 0\.05 to 86,400, not 0"):
        WatchSettings(poll_seconds=0)
    with pytest.raises(BadInput, match="prune_interval_days must be a whole number from 0 to 36,500"):
        PruningSettings(prune_interval_days=36_501)


@pytest.mark.parametrize("prefix", ["", "  ", "a\nb", "a\x1b[2J", "a\u202eb", "x" * 41, 3])
def test_a_prefix_is_one_short_visible_line(prefix: Any) -> None:
    with pytest.raises(BadInput, match="anti_pattern_prefix must be a text of 1 to 40 visible characters"):
        AntiPatternSettings(anti_pattern_prefix=prefix)


def test_the_interval_level_is_a_share() -> None:
    with pytest.raises(BadInput, match="interval_level must be a number from 0 to 1"):
        Settings(interval_level=1.5)
