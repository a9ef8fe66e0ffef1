"""Scores of finished work; docs/scoring.md#outcomes."""

from __future__ import annotations

import math
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from core.base.formatting import format_decimal
from core.base.text import plural
from core.base.validation import check_amount, check_count, check_flag, check_text, check_texts
from core.config.settings import LearningSettings
from core.learning.decay import decayed_value, normalize_time
from core.records.events import Signals

_DEFAULTS: Final = LearningSettings()
_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60_000
_MAX_DURATION_MS: Final = 1e15  # about 30,000 years; a longer duration is invalid
_MAX_MINUTES: Final = 120
_MAX_HOURS: Final = 48


class Verdict(StrEnum):
    """Verdict of an outcome or of feedback."""

    HELPFUL = "helpful"
    HARMFUL = "harmful"
    NEUTRAL = "neutral"


class OutcomeSignals(Signals, frozen=True, kw_only=True):
    """The scored facts about a finished loop or attempt; None if unknown.

    `bead_id` is the ID of the work item. `success` is True if it was completed, `partial` if it reached part of its
    goal. `timestamp` is when it ended (ISO-8601 or `datetime`), converted to UTC. Raises BadInput for a value of
    another type, an infinite or negative duration, or a negative count.
    """

    bead_id: str
    success: bool
    partial: bool = False
    timestamp: str | datetime

    def __post_init__(self) -> None:
        for field in ("bead_id", "strategy", "failure_mode", "failure_details"):
            check_text(getattr(self, field), field)
        check_flag(self.success, "success")
        check_texts(self.files_touched, "files_touched")
        normalize_time(self, "timestamp")
        if self.duration_ms is not None:
            check_amount(self.duration_ms, "duration_ms", _MAX_DURATION_MS)
        for field in ("error_count", "retry_count"):
            if getattr(self, field) is not None:
                check_count(getattr(self, field), field)


class Outcome(Struct, frozen=True, kw_only=True):
    """The score of an outcome; all numbers are 0..1.

    `raw` is the weighted mean of the `parts`: the values of success, duration, errors and retries, in this order.
    `decayed` is raw x `decay`, the factor for its age. The verdict depends only on `raw`, so that age does not change
    it. `reasoning` is one line: `helpful, 0.86: success 1.00, 12 min 0.60, no errors 1.00, 1 retry 0.70`.
    """

    raw: float
    decay: float
    decayed: float
    verdict: Verdict
    parts: dict[str, float]
    reasoning: str


def score_outcome(signals: OutcomeSignals, now: str | datetime, settings: LearningSettings = _DEFAULTS) -> Outcome:
    """Score the signals of a finished loop or attempt.

    Unknown parts get a neutral value. Weights are divided by their sum. A raw score at most `ratio_tolerance` below a
    threshold reaches it. Raises BadInput if `now` can't be parsed.
    """
    duration, errors, retries = signals.duration_ms, signals.error_count, signals.retry_count
    some, many = settings.some_errors_value, settings.many_errors_value
    some_retries, many_retries = settings.some_retries_value, settings.many_retries_value
    parts = {
        "success": 1.0 if signals.success else settings.partial_success_value if signals.partial else 0.0,
        "duration": _duration_value(duration, settings),
        "errors": _count_value(errors, settings.max_errors_for_helpful, some, many),
        "retries": _count_value(retries, settings.max_retries_for_neutral, some_retries, many_retries),
    }
    weights = (settings.success_weight, settings.duration_weight, settings.errors_weight, settings.retries_weight)
    total = math.fsum(weights)
    raw = math.fsum(weight * value for weight, value in zip(weights, parts.values(), strict=True)) / total
    decay = decayed_value(signals.timestamp, now, settings.half_life_days)
    verdict = verdict_of(raw, settings)
    words = {
        "success": "success" if signals.success else "partial success" if signals.partial else "failure",
        "duration": _duration_word(duration, settings) if duration is not None else "",
        "errors": _count_word(errors, "error", "errors"),
        "retries": _count_word(retries, "retry", "retries"),
    }
    texts = [f"{word} {format_decimal(parts[name])}" for name, word in words.items() if word]
    if unknown := [name for name, word in words.items() if not word]:  # their values do not describe the work
        others = ", ".join(unknown[:-1])
        texts.append(f"{others}{' and ' * bool(others)}{unknown[-1]} not known")
    parts_text = ", ".join(texts)
    reasoning = f"{verdict}, {format_decimal(raw)}: {parts_text}"
    return Outcome(raw=raw, decay=decay, decayed=raw * decay, verdict=verdict, parts=parts, reasoning=reasoning)


def score_signals(
    signals: OutcomeSignals | None, now: datetime, settings: LearningSettings
) -> tuple[OutcomeSignals, Outcome] | None:
    """Return signals with their score; None without signals."""
    return None if signals is None else (signals, score_outcome(signals, now, settings))


def verdict_of(raw: float, settings: LearningSettings = _DEFAULTS) -> Verdict:
    """Return the verdict for a raw score, 0..1."""
    if raw >= settings.helpful_threshold - settings.ratio_tolerance:
        return Verdict.HELPFUL
    if raw <= settings.harmful_threshold + settings.ratio_tolerance:
        return Verdict.HARMFUL
    return Verdict.NEUTRAL


def format_duration_ms(duration_ms: float) -> str:
    """Format milliseconds, rounded down: `850 ms`, `45 s`, `12 min`, `2 h 5 min`."""
    if duration_ms < _SECOND_MS:
        return f"{int(duration_ms)} ms"
    if duration_ms < _MINUTE_MS:
        return f"{int(duration_ms // _SECOND_MS)} s"
    minutes = int(duration_ms // _MINUTE_MS)
    if minutes < _MAX_MINUTES:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < _MAX_HOURS:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"


def _duration_value(duration_ms: float | None, settings: LearningSettings) -> float:
    if duration_ms is not None and duration_ms < settings.fast_completion_threshold_ms:
        return 1.0
    if duration_ms is not None and duration_ms > settings.slow_completion_threshold_ms:
        return settings.slow_duration_value
    return settings.medium_duration_value


def _count_value(count: int | None, limit: int, some: float, many: float) -> float:
    if count == 0:
        return 1.0
    return some if count is None or count <= limit else many


def _duration_word(duration_ms: float, settings: LearningSettings) -> str:
    """Format a duration, with "over" if the rounded value would score differently."""
    word = format_duration_ms(duration_ms)
    unit = 1 if duration_ms < _SECOND_MS else _SECOND_MS if duration_ms < _MINUTE_MS else _MINUTE_MS
    shown_ms = duration_ms // unit * unit
    same = _duration_value(shown_ms, settings) == _duration_value(duration_ms, settings)
    return word if same else f"over {word}"


def _count_word(count: int | None, noun: str, many: str) -> str:
    if count is None:
        return ""
    return plural(count, noun, many) if count else f"no {many}"
