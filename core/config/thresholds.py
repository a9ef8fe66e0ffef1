"""The thresholds that a person may try other values of, by name, and what texts are values of them."""

from __future__ import annotations

import difflib
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.validation import check_amount, check_count, check_half_life, format_value
from core.config.settings import MAX_MINUTES, Settings

_NAME_CHARS: Final = 80
"""What is longer resembles no name."""


class Unit(StrEnum):
    """What the value of a threshold is; it decides which values there are."""

    DAYS = "days"
    """Above 0."""
    SHARE = "0..1"
    """Also written as a percentage."""
    TOTAL = "results, decayed"
    COUNT = "count"
    """A whole number."""
    MS = "ms"
    MINUTES = "minutes"
    FACTOR = "factor"
    CHOICE = "choice"


class Threshold(Struct, frozen=True, kw_only=True):
    """One field of `core.config.settings`.

    Attributes:
        group: `learning`, `maturity` or `anti_pattern`: the field of `Settings`.
        field: The field of the group.
        unit: Of its value.
        label: What it is, in a few words.
        choices: Its values, of unit `CHOICE`.
        replayed: Whether the states and inversions that `what_if` replays depend on it.
    """

    group: str
    field: str
    unit: Unit
    label: str
    choices: tuple[str, ...] = ()
    replayed: bool = True

    @property
    def name(self) -> str:
        """`maturity.min_feedback`."""
        return f"{self.group}.{self.field}"

    def value(self, settings: Settings) -> float | int | str:
        """Its value in these settings."""
        found: float | int | str = getattr(getattr(settings, self.group), self.field)
        return found

    def text(self, settings: Settings) -> str:
        """Its value in these settings as text; `parse` gives the value back."""
        value = self.value(settings)
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    def parse(self, text: str) -> float | int | str:
        """The value that a text says.

        Raises:
            BadInput: It says no value, or one that this threshold can't have.
        """
        word = text.strip()
        if self.unit is Unit.CHOICE:
            if word not in self.choices:
                raise BadInput(f"{self.name} must be {' or '.join(self.choices)}, not {format_value(text)}")
            return word
        if self.unit is Unit.COUNT:
            count = _count(word)
            check_count(text if count is None else count, self.name)
            assert count is not None
            return count
        number = _percentage(word) if self.unit is Unit.SHARE and word.endswith("%") else _number(word)
        given = text if number is None else number
        if self.unit is Unit.DAYS:
            check_half_life(given, self.name)
        elif self.unit is Unit.SHARE:
            check_amount(given, self.name, 1)
        elif self.unit is Unit.MINUTES:
            check_amount(given, self.name, MAX_MINUTES)
        else:
            check_amount(given, self.name)
        assert number is not None
        return number


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _count(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def _percentage(word: str) -> float | None:
    number = _number(word[:-1])
    return None if number is None else number / 100


def _of(group: str, *rows: tuple[str, Unit, str], replayed: bool = True) -> tuple[Threshold, ...]:
    return tuple(
        Threshold(group=group, field=field, unit=unit, label=label, replayed=replayed) for field, unit, label in rows
    )


THRESHOLDS: Final = (
    *_of(
        "maturity",
        ("half_life_days", Unit.DAYS, "half-life of results"),
        ("min_feedback", Unit.TOTAL, "results to be more than a candidate"),
        ("min_helpful", Unit.TOTAL, "successes to be proven"),
        ("max_harmful", Unit.SHARE, "failures that a proven pattern stays below"),
        ("deprecation_threshold", Unit.SHARE, "failures above which a pattern is deprecated"),
        ("total_tolerance", Unit.TOTAL, "totals this close reach a threshold"),
        ("ratio_tolerance", Unit.SHARE, "ratios this close are on a threshold"),
    ),
    *_of(
        "anti_pattern",
        ("min_observations", Unit.COUNT, "results before an inversion is proposed"),
        ("failure_ratio_threshold", Unit.SHARE, "failures from which on it is proposed"),
    ),
    *_of(
        "learning",
        ("success_weight", Unit.SHARE, "weight of success"),
        ("duration_weight", Unit.SHARE, "weight of the duration"),
        ("errors_weight", Unit.SHARE, "weight of errors"),
        ("retries_weight", Unit.SHARE, "weight of retries"),
        ("helpful_threshold", Unit.SHARE, "scores from here on are helpful"),
        ("harmful_threshold", Unit.SHARE, "scores up to here are harmful"),
        ("fast_completion_threshold_ms", Unit.MS, "less is fast"),
        ("slow_completion_threshold_ms", Unit.MS, "more is slow"),
        ("partial_success_value", Unit.SHARE, "value of a partial success"),
        ("medium_duration_value", Unit.SHARE, "value of a medium duration"),
        ("slow_duration_value", Unit.SHARE, "value of a slow one"),
        ("max_errors_for_helpful", Unit.COUNT, "more errors are many"),
        ("some_errors_value", Unit.SHARE, "value of some errors"),
        ("many_errors_value", Unit.SHARE, "value of many errors"),
        ("max_retries_for_neutral", Unit.COUNT, "more retries are many"),
        ("some_retries_value", Unit.SHARE, "value of some retries"),
        ("many_retries_value", Unit.SHARE, "value of many retries"),
        ("ratio_tolerance", Unit.SHARE, "scores this close are on a threshold"),
        ("max_marks", Unit.COUNT, "patterns that one source may blame without a question"),
        ("burst_minutes", Unit.MINUTES, "within this time"),
    ),
    Threshold(
        group="learning",
        field="neutral_counts_as",
        unit=Unit.CHOICE,
        label="what a neutral outcome says of what was applied",
        choices=("nothing", "failure"),
    ),
    *_of(
        "learning",
        ("half_life_days", Unit.DAYS, "half-life of outcomes and criteria"),
        ("min_feedback_for_adjustment", Unit.COUNT, "feedback before a criterion is deprecated"),
        ("max_harmful_ratio", Unit.SHARE, "harmful feedback above which it is"),
        ("min_criterion_weight", Unit.SHARE, "least weight of a criterion"),
        replayed=False,
    ),
    *_of(
        "maturity",
        ("multiplier_candidate", Unit.FACTOR, "of a candidate's score"),
        ("multiplier_established", Unit.FACTOR, "of an established pattern's score"),
        ("multiplier_proven", Unit.FACTOR, "of a proven pattern's score"),
        ("multiplier_deprecated", Unit.FACTOR, "of a deprecated pattern's score"),
        replayed=False,
    ),
    *_of(
        "anti_pattern",
        ("failures_until_asked_again", Unit.COUNT, "further failures until a rejected inversion comes back"),
        ("max_examples", Unit.COUNT, "examples that a pattern keeps"),
        replayed=False,
    ),
)
"""All of them, those that turn states and inversions first."""


def threshold(name: str) -> Threshold:
    """The threshold of this name; the field alone will do where no two groups have it.

    Raises:
        BadInput: There is none, or there are several.
    """
    found = [known for known in THRESHOLDS if name in (known.name, known.field)]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"{name} may be {' or '.join(known.name for known in found)}; give the group too")
    names = {word: known.name for known in THRESHOLDS for word in (known.field, known.name)}
    near = dict.fromkeys(names[word] for word in difflib.get_close_matches(name[:_NAME_CHARS], names))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise BadInput(f"no threshold {format_value(name)}{hint}")


def with_threshold(settings: Settings, name: str, text: str) -> Settings:
    """`settings` with another value of one threshold.

    Raises:
        BadInput: No threshold has this name, or the text says no value that it can have.
    """
    chosen = threshold(name)
    group = replace(getattr(settings, chosen.group), **{chosen.field: chosen.parse(text)})
    return replace(settings, **{chosen.group: group})
