"""Thresholds: what can't be one is an error that names field and value."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import BadInput
from core.settings import AntiPatternSettings, LearningSettings, MaturitySettings

NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (kind, field, value)
        for kind in (LearningSettings, MaturitySettings, AntiPatternSettings)
        for field in kind.__struct_fields__
        if field != "anti_pattern_prefix"
        for value in (NAN, -1, float("inf"), "0.6", None, True)
    ],
)
def test_no_threshold_is_what_cannot_be_one(kind: Any, field: str, value: object) -> None:
    with pytest.raises(BadInput, match=field):
        kind(**{field: value})


def test_shares_lie_within_one_and_a_half_life_above_nothing() -> None:
    with pytest.raises(BadInput, match=r"max_harmful must be a number from 0 to 1, not 1\.5"):
        MaturitySettings(max_harmful=1.5)
    with pytest.raises(BadInput, match="half_life_days must be a number of days above 0, not 0"):
        LearningSettings(half_life_days=0)
    assert MaturitySettings(max_harmful=0, deprecation_threshold=1).max_harmful == 0
