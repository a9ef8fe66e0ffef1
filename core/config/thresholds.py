"""Settings that `what-if` can change: lookup by name, and values as text."""

from __future__ import annotations

import difflib
from typing import Final

from core.base.errors import BadInput
from core.base.validation import format_value
from core.config.declaration import Setting
from core.config.settings import SETTINGS, Settings

_NAME_CHARS: Final = 80  # longest name that is compared with known names
_FIELDS: Final = (
    ("maturity", "half_life_days min_feedback min_helpful max_harmful deprecation_threshold"),
    ("maturity", "total_tolerance ratio_tolerance"),
    ("anti_pattern", "min_observations failure_ratio_threshold"),
    ("learning", "success_weight duration_weight errors_weight retries_weight helpful_threshold harmful_threshold"),
    ("learning", "fast_completion_threshold_ms slow_completion_threshold_ms partial_success_value"),
    ("learning", "medium_duration_value slow_duration_value max_errors_for_helpful some_errors_value"),
    ("learning", "many_errors_value max_retries_for_neutral some_retries_value many_retries_value ratio_tolerance"),
    ("learning", "max_marks burst_minutes neutral_counts_as half_life_days min_feedback_for_adjustment"),
    ("learning", "max_harmful_ratio min_criterion_weight"),
    ("maturity", "multiplier_candidate multiplier_established multiplier_proven multiplier_deprecated"),
    ("anti_pattern", "failures_until_asked_again max_examples"),
)
THRESHOLDS: Final = tuple(SETTINGS[f"{group}.{field}"] for group, fields in _FIELDS for field in fields.split())
"""All thresholds in the order of `what-if`; settings that change states and inversions come first."""


def find_threshold(name: str) -> Setting:
    """Threshold with a name; the field alone suffices where only one group has it.

    Raises BadInput if no threshold matches, or several do.
    """
    found = [known for known in THRESHOLDS if name in (known.name, known.field)]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"{name} is ambiguous; use {' or '.join(known.name for known in found)}")
    names = {word: known.name for known in THRESHOLDS for word in (known.field, known.name)}
    near = dict.fromkeys(names[word] for word in difflib.get_close_matches(name[:_NAME_CHARS], names))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise BadInput(f"no threshold {format_value(name)}{hint}")


def with_threshold(settings: Settings, name: str, text: str) -> Settings:
    """`settings` with another value of a threshold; BadInput if it is invalid."""
    setting = find_threshold(name)
    changed: Settings = setting.with_value(settings, setting.parse(text))
    return changed
