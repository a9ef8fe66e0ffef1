"""Outcomes of work, weights of criteria (docs/scoring.md#outcomes, #criteria)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from core.base.errors import BadInput
from core.base.formatting import format_decimal
from core.base.settings import LearningSettings
from core.base.steps import group_pairs
from core.base.text import plural
from core.base.validation import (
    check_amount,
    check_count,
    check_flag,
    check_half_life,
    check_text,
    check_texts,
    format_value,
)
from core.learning.maturity import decayed_value, normalize_time, parse_moment
from core.records.events import Event, Signals
from core.records.loops import Iteration, Loop, LoopStatus
from core.records.loops import Outcome as LoopOutcome

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession, Failure
    from core.records.episodes import Attempt

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


_MAX_KEY: Final = 300  # maximum number of characters of a message that are compared
_TYPE: Final = re.compile(r"(?:uncaught )?(?:\w{1,40}\.){0,6}\w{0,60}(?:error|exception)(?: ?\[\w{1,40}\])?: ")
_PLACE: Final = re.compile(r" (?:at |\()[\w.@~+/\\-]{1,200}:\d[\d:]{0,20}\)?$")

_Value = TypeVar("_Value")
_BY_OUTCOME: Final = {
    LoopOutcome.SUCCESS: True,
    LoopOutcome.PARTIAL: False,
    LoopOutcome.FAILURE: False,
    LoopOutcome.TIMEOUT: False,
}


@dataclass(frozen=True, slots=True)
class WorkReport:
    """The events about one loop or attempt as a whole."""

    outcomes: tuple[Event, ...] = ()  # newest first; at equal times, the last written first
    errors: tuple[str, ...] = ()  # messages of the error log, including resolved errors

    @property
    def at(self) -> datetime | None:
        return self.outcomes[0].at if self.outcomes else None

    @property
    def success(self) -> bool | None:
        """Success flag of the newest outcome event that has one."""
        return _first(*(event.success for event in self.outcomes))

    def signal(self, name: str) -> Any:
        """Return a field of `Signals` from the newest outcome event that has it, or None."""
        signals = (event.signals for event in self.outcomes if event.signals is not None)
        return next((value for one in signals if (value := getattr(one, name)) not in (None, "", ())), None)


def is_report(event: Event) -> bool:
    """Return whether an event is about a loop or attempt as a whole."""
    about_work = event.error is not None if event.kind == "error" else event.kind == "outcome" and not event.pattern_id
    return bool(event.loop_id) and about_work


def collect_reports(events: Iterable[Event]) -> dict[str, WorkReport]:
    """Group the events about whole work items by the work ID in them."""
    grouped = group_pairs((event.loop_id, event) for event in events if is_report(event))
    return {work_id: make_report(found) for work_id, found in grouped.items()}


def make_report(events: Sequence[Event]) -> WorkReport:
    """Summarize the events about one work item, which are in order of time."""
    outcomes = (event for event in reversed(events) if event.kind != "error")
    errors = (event.error.message for event in events if event.kind == "error" and event.error is not None)
    return WorkReport(_newest_first(outcomes), tuple(errors))


def merge_reports(reports: Iterable[WorkReport]) -> WorkReport:
    """Merge the reports on one work item; at equal times, the first has priority."""
    found = list(reports)
    if len(found) == 1:
        return found[0]
    outcomes = _newest_first(one for report in found for one in report.outcomes)
    return WorkReport(outcomes, tuple(message for report in found for message in report.errors))


def _newest_first(outcomes: Iterable[Event]) -> tuple[Event, ...]:
    return tuple(sorted(outcomes, key=lambda event: event.at, reverse=True))


def loop_signals(loop: Loop, report: WorkReport, sessions: Sequence[DebugSession] = ()) -> OutcomeSignals | None:
    """Return the signals of a loop; None if it has not ended with a result.

    See docs/scoring.md#outcomes, #errors-of-a-loop and #retries-of-a-loop. Each field comes from outcome events if they
    have it. Only the time is the end of the loop, since an outcome is often reported later.
    """
    failed = [iteration.failed for iteration in loop.iterations]
    known = any(iteration.outcome is not LoopOutcome.UNKNOWN or iteration.failures for iteration in loop.iterations)
    own = Signals(
        duration_ms=_measure_duration(loop.started_at, loop.ended_at, approximate=loop.ended_approximate),
        error_count=count_errors(report.errors, loop.iterations, sessions),
        retry_count=sum(failed[:-1]) if known else None,
        files_touched=tuple(dict.fromkeys(file for iteration in loop.iterations for file in iteration.files)),
    )
    return _make_signals(
        loop.id,
        report,
        own,
        success=loop.success,
        partial=loop.status is LoopStatus.PARTIAL,
        ended_at=loop.ended_at,
        fallback_time=loop.last_activity or loop.started_at,
    )


def loop_success(loop: Loop, report: WorkReport) -> bool | None:
    """Return the success in a loop's signals, but faster; None: unknown or partial."""
    if report.success is None and loop.status is LoopStatus.PARTIAL:
        return None
    is_dated = loop.ended_at or report.at or loop.last_activity or loop.started_at
    return _first(report.success, loop.success) if is_dated else None


def attempt_signals(
    attempt: Attempt, report: WorkReport, sessions: Sequence[DebugSession] = ()
) -> OutcomeSignals | None:
    """Return the signals of an attempt; the retries are its number - 1.

    Errors are those of the error log and debug sessions; without an error log, at least the failed actions.
    """
    errors = count_errors(report.errors, (), sessions)
    if attempt.errors is not None and not report.errors:
        errors = max(attempt.errors, errors or 0)
    duration = _measure_duration(attempt.started_at, attempt.ended_at)
    return _make_signals(
        attempt.id,
        report,
        Signals(duration_ms=duration, error_count=errors, retry_count=max(attempt.number - 1, 0)),
        success=_BY_OUTCOME.get(attempt.outcome),
        partial=attempt.outcome is LoopOutcome.PARTIAL,
        ended_at=attempt.ended_at,
        fallback_time=attempt.started_at,
    )


def attempt_success(attempt: Attempt, report: WorkReport) -> bool | None:
    """Return whether an attempt succeeded; None if unknown or partial."""
    own = None if attempt.outcome is LoopOutcome.PARTIAL else _BY_OUTCOME.get(attempt.outcome)
    return _first(report.success, own)


def report_signals(work_id: str, report: WorkReport) -> OutcomeSignals | None:
    """Return the signals of a work item that only events mention."""
    return _make_signals(work_id, report, Signals(error_count=len(report.errors) or None))


def _make_signals(
    work_id: str,
    report: WorkReport,
    own: Signals,
    *,
    success: bool | None = None,
    partial: bool = False,
    ended_at: datetime | None = None,
    fallback_time: datetime | None = None,
) -> OutcomeSignals | None:
    partial = partial and report.success is None
    success = _first(report.success, success)
    at = ended_at or report.at or fallback_time
    if success is None or at is None:
        return None
    return OutcomeSignals(
        bead_id=work_id,
        success=success,
        partial=partial,
        timestamp=at,
        duration_ms=_first(report.signal("duration_ms"), own.duration_ms),
        error_count=_first(report.signal("error_count"), own.error_count),
        retry_count=_first(report.signal("retry_count"), own.retry_count),
        files_touched=report.signal("files_touched") or own.files_touched,
        strategy=report.signal("strategy") or "",
        failure_mode=report.signal("failure_mode") or "",
        failure_details=report.signal("failure_details") or "",
    )


def _first(*values: _Value | None) -> _Value | None:
    return next((value for value in values if value is not None), None)


def _measure_duration(start: datetime | None, end: datetime | None, *, approximate: bool = False) -> float | None:
    """Return the duration; None if a time is missing or the end copies the start."""
    if start is None or end is None or end < start or (approximate and end == start):
        return None
    return (end - start).total_seconds() * 1000


def count_errors(
    logged: Sequence[str], iterations: Sequence[Iteration], sessions: Sequence[DebugSession]
) -> int | None:
    """Count the errors in three sources, each error once; None if unknown.

    `logged` are messages of the error log. For an attempt, `iterations` is empty.
    """
    known = any(iteration.outcome is not LoopOutcome.UNKNOWN or iteration.failures for iteration in iterations)
    silent = sum(iteration.failed and not iteration.failures for iteration in iterations)
    if not logged and not sessions and not any(iteration.failures for iteration in iterations):
        return silent if known else None  # the common case: nothing to compare
    distinct = (
        {(*identify_failure(one), one.file, one.line) for one in iteration.failures} for iteration in iterations
    )
    of_iterations = Counter(key for failures in distinct for key, *_ in failures)
    runs = [run for session in sessions for run in session.executions]
    # A test that fails again with the same message in a later run is the same failure.
    of_sessions = Counter(key for key, *_ in {identify_failure(failure) for run in runs for failure in run.failures})
    counts = [run.results.failing for run in runs if run.results is not None and run.results.failing is not None]
    if not (logged or known or of_sessions or counts):
        return None
    together = (Counter(map(_normalize, logged)) | of_iterations | of_sessions).total()
    return max(together, of_iterations.total() + (0 if logged else silent), *counts, 0)


def identify_failure(failure: Failure) -> tuple[str, str, str]:
    """Return the normalized message, the error type and the test of a failure."""
    return _normalize(failure.message or failure.error_type), failure.error_type, failure.test_name


def _normalize(message: str) -> str:
    """Return the first line of a message, without error type and source location."""
    first = message.strip()[: 2 * _MAX_KEY].partition("\n")[0]
    text = " ".join(first.casefold().split())[:_MAX_KEY]
    return _PLACE.sub("", text[found.end() :] if (found := _TYPE.match(text)) else text) or text


class FeedbackEvent(Struct, frozen=True, kw_only=True):
    """One piece of feedback on one criterion, e.g. `type_safe`.

    `id` is "" until it is stored. `type` is helpful, harmful or neutral; neutral feedback does not change the weight.
    `timestamp` (ISO-8601 or `datetime`) is converted to UTC. `raw_value` is the value without decay, 0..1. `bead_id` is
    the ID of the work item, or "". `context` is an untrusted remark. Raises BadInput for any other value.
    """

    id: str = ""
    criterion: str
    type: str
    timestamp: str | datetime
    raw_value: float = 1.0
    bead_id: str = ""
    context: str = ""

    def __post_init__(self) -> None:
        for field in ("id", "criterion", "bead_id", "context"):
            check_text(getattr(self, field), field)
        if self.type not in tuple(Verdict):
            raise BadInput(f"type must be helpful, harmful or neutral, not {format_value(self.type)}")
        normalize_time(self, "timestamp")
        check_amount(self.raw_value, "raw_value", 1)


class CriterionWeight(Struct, frozen=True, kw_only=True):
    """Weight of a criterion, 0..1; at least `min_criterion_weight` if computed.

    `helpful` and `harmful` are the sums of `raw_value`, decayed with `half_life_days`; the counts are of all such
    events. `last_validated` is the time (UTC) of the newest helpful or harmful event, at most now; None without one.
    `no_data` means that the weight is 1 by default: there is no feedback, or it has decayed to 0. Raises BadInput for a
    weight outside 0..1, a negative count or sum, or a half-life that is not above 0.
    """

    criterion: str
    weight: float
    helpful_count: int
    harmful_count: int
    last_validated: datetime | None = None
    half_life_days: float = _DEFAULTS.half_life_days
    helpful: float = 0.0
    harmful: float = 0.0
    no_data: bool = False

    def __post_init__(self) -> None:
        check_text(self.criterion, "criterion")
        normalize_time(self, "last_validated", optional=True)
        check_amount(self.weight, "weight", 1)
        check_half_life(self.half_life_days)
        for field in ("helpful_count", "harmful_count"):
            check_count(getattr(self, field), field)
        for field in ("helpful", "harmful"):
            check_amount(getattr(self, field), field)


class WeightedScores(Struct, frozen=True, kw_only=True):
    """Scores after weighting, all 0..1.

    `scores` contains score x effective weight for each criterion, and `weights` the effective weights. `total` is the
    weighted mean of the scores; None if all weights are 0.
    """

    scores: dict[str, float]
    weights: dict[str, float]
    total: float | None


def criterion_weight(
    events: Iterable[FeedbackEvent], now: str | datetime, settings: LearningSettings = _DEFAULTS
) -> CriterionWeight:
    """Return the weight of a criterion: the helpful share of decayed feedback.

    `events` must be all feedback on the criterion, in any order. Raises BadInput for events of several criteria.
    """
    today = parse_moment(now, "now")
    names: dict[str, None] = {}
    values: dict[str, list[float]] = {kind: [] for kind in Verdict}
    validated: list[datetime] = []
    for event in events:
        names[event.criterion] = None
        at = parse_moment(event.timestamp, "timestamp")
        values[event.type].append(event.raw_value * decayed_value(at, today, settings.half_life_days))
        if event.type != Verdict.NEUTRAL:
            validated.append(min(at, today))
    if len(names) > 1:
        raise BadInput(f"criterion must be the same in all events, not {' and '.join(map(format_value, [*names][:2]))}")
    # fsum rounds once, so that the order of the events does not matter.
    helpful, harmful = math.fsum(values[Verdict.HELPFUL]), math.fsum(values[Verdict.HARMFUL])
    no_data = not helpful + harmful
    return CriterionWeight(
        criterion=next(iter(names), ""),
        weight=1.0 if no_data else max(settings.min_criterion_weight, helpful / (helpful + harmful)),
        helpful_count=len(values[Verdict.HELPFUL]),
        harmful_count=len(values[Verdict.HARMFUL]),
        last_validated=max(validated, default=None),
        half_life_days=settings.half_life_days,
        helpful=helpful,
        harmful=harmful,
        no_data=no_data,
    )


def criterion_weights(
    events: Iterable[FeedbackEvent], now: str | datetime, settings: LearningSettings = _DEFAULTS
) -> dict[str, CriterionWeight]:
    """Return the weight of each criterion with feedback, by name in sorted order."""
    by_name = group_pairs((event.criterion, event) for event in events)
    return {name: criterion_weight(by_name[name], now, settings) for name in sorted(by_name)}


def should_deprecate_criterion(weight: CriterionWeight, settings: LearningSettings = _DEFAULTS) -> bool:
    """Return whether the harmful share of undecayed feedback exceeds the limit."""
    total = weight.helpful_count + weight.harmful_count
    enough = total > 0 and total >= settings.min_feedback_for_adjustment
    return enough and weight.harmful_count / total > settings.max_harmful_ratio + settings.ratio_tolerance


def effective_weight(weight: CriterionWeight, settings: LearningSettings = _DEFAULTS) -> float:
    """Return the weight of a criterion; 0 if the criterion is deprecated."""
    return 0.0 if should_deprecate_criterion(weight, settings) else weight.weight


def apply_weights(
    scores: Mapping[str, float], weights: Mapping[str, CriterionWeight], settings: LearningSettings = _DEFAULTS
) -> WeightedScores:
    """Multiply scores (0..1) by the weights of their criteria, by default 1.

    Raises BadInput for a score outside 0..1, or a weight that is not a `CriterionWeight`.
    """
    for name, weight in weights.items():
        if not isinstance(weight, CriterionWeight):
            raise BadInput(f"weight of {format_value(name)} must be a CriterionWeight, not {format_value(weight)}")
    for name, score in scores.items():
        check_amount(score, f"score of {format_value(name)}", 1)
    effective = {name: effective_weight(weights[name], settings) if name in weights else 1.0 for name in scores}
    weighted = {name: score * effective[name] for name, score in scores.items()}
    total = math.fsum(effective.values())
    mean = math.fsum(weighted.values()) / total if total else None
    return WeightedScores(scores=weighted, weights=effective, total=mean)
