"""Decay of evidence, and states of patterns by decayed sums.

See docs/scoring.md#half-life and #states. Below, the maturity of patterns of other programs,
docs/learning-api.md#maturity, and the assessment of one pattern: its evidence, state and score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.errors import BadInput, Refused
from core.base.prompt_text import escape_line
from core.base.settings import InjectionSettings, MaturitySettings
from core.base.steps import group_pairs
from core.base.text import plural, visible_line
from core.base.validation import check_amount, check_choice, check_count, check_half_life, check_text, format_value
from core.learning.evidence import round_half_up
from core.learning.statistics import jeffreys_interval, round_percent
from core.records.decisions import Pin
from core.records.patterns import Maturity
from core.records.times import parse_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECONDS_PER_DAY: Final = 86_400.0
STATES: Final = (Maturity.CANDIDATE, Maturity.ESTABLISHED, Maturity.PROVEN, Maturity.DEPRECATED)
"""The states in the order of their codes in arrays."""
CODES: Final = {state: code for code, state in enumerate(STATES)}
Sums = tuple[float, float]  # (helpful, harmful)
Change = tuple[datetime, Maturity]  # start of a state, and the state
_DEFAULTS: Final = MaturitySettings()
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
_MAX_EXACT_COUNT: Final = 2**53  # a float cannot represent every whole number above this


class Result(Protocol):
    """Evidence for or against a pattern."""

    @property
    def pattern_id(self) -> str: ...
    @property
    def at(self) -> datetime | None: ...  # None if unknown; such a result does not decay
    @property
    def success(self) -> bool | None: ...  # True: helpful, False: harmful, None: neither
    @property
    def weight(self) -> float: ...  # 0..1
    @property
    def count(self) -> int: ...  # the number of uses that it represents


def decayed_value(timestamp: str | datetime, now: str | datetime, half_life_days: float) -> float:
    """Return the decay factor of an event: `0.5 ** (age_days / half_life_days)`.

    A time after `now` counts as now. Raises BadInput for a time that can't be parsed, or a half-life that is not a
    finite number above 0.
    """
    check_half_life(half_life_days)
    age = parse_moment(now, "now") - parse_moment(timestamp, "timestamp")
    return decay_factor(age.total_seconds(), half_life_days)


def decay_factor(age: float, half_life_days: float) -> float:
    """Return `decayed_value` of an age in seconds, without checks."""
    return float(0.5 ** (max(age, 0.0) / SECONDS_PER_DAY / half_life_days))


def normalize_time(record: Struct, field: str, *, optional: bool = False) -> None:
    """Convert a time field of a new record to UTC; raises BadInput if it is invalid."""
    value = getattr(record, field)
    if value is not None or not optional:
        force_setattr(record, field, parse_moment(value, field))


def parse_moment(value: str | datetime, field: str) -> datetime:
    """Convert `value` to an aware UTC time; raises BadInput if it is invalid."""
    parsed = parse_time(value)
    if parsed is None:
        raise BadInput(f"{field} must be an ISO-8601 time, not {format_value(value)}")
    return parsed


def parse_state(value: str, field: str) -> Maturity:
    """Parse the name of a state; raises BadInput if it is not one of `STATES`."""
    check_choice(value, field, STATES)
    return Maturity(value)


def state_of(helpful: float, harmful: float, settings: MaturitySettings) -> Maturity:
    """Return the state for decayed sums; docs/scoring.md#states and #thresholds."""
    total = helpful + harmful
    if total < settings.min_feedback - settings.total_tolerance:
        return Maturity.CANDIDATE
    ratio = harmful / total if total > 0 else 0.0
    if ratio > settings.deprecation_threshold + settings.ratio_margin:
        return Maturity.DEPRECATED
    enough = helpful >= settings.min_helpful - settings.total_tolerance
    return Maturity.PROVEN if enough and ratio < settings.max_harmful - settings.ratio_margin else Maturity.ESTABLISHED


def state_codes(
    helpful: NDArray[np.float64], harmful: NDArray[np.float64], settings: MaturitySettings
) -> NDArray[np.int8]:
    """Return `state_of` for arrays of sums, as indices into `STATES`."""
    import numpy as np

    total = helpful + harmful
    enough = total >= settings.min_feedback - settings.total_tolerance
    ratio = harmful / np.where(total > 0, total, 1.0)
    deprecated = ratio > settings.deprecation_threshold + settings.ratio_margin
    proven = helpful >= settings.min_helpful - settings.total_tolerance
    proven &= ratio < settings.max_harmful - settings.ratio_margin
    good = np.where(proven, CODES[Maturity.PROVEN], CODES[Maturity.ESTABLISHED])
    judged = np.where(deprecated, CODES[Maturity.DEPRECATED], good)
    return np.where(enough, judged, CODES[Maturity.CANDIDATE]).astype(np.int8)


def multiplier(state: Maturity | str, settings: MaturitySettings = _DEFAULTS) -> float:
    """Return the factor that a state has in scores; docs/scoring.md#multipliers.

    Raises BadInput if `state` is not a state or the name of one.
    """
    return float(multipliers(settings)[CODES[parse_state(state, "state")]])


def multipliers(settings: MaturitySettings) -> NDArray[np.float64]:
    """Return the multipliers in the order of `STATES`."""
    import numpy as np

    return np.array([getattr(settings, f"multiplier_{state}") for state in STATES])


def find_flips(base: tuple[float, float], step: tuple[float, float], settings: MaturitySettings) -> Iterator[float]:
    """Yield each x at which `state_of` may change for the sums `base + x * step`.

    Each condition compares a sum with a threshold, or two sums with each other, so it changes at most once.
    """
    yield from _root(sum(base), sum(step), settings.min_feedback - settings.total_tolerance)
    yield from _root(base[0], step[0], settings.min_helpful - settings.total_tolerance)
    for limit in (settings.deprecation_threshold + settings.ratio_margin, settings.max_harmful - settings.ratio_margin):
        yield from _root(base[1] - limit * sum(base), step[1] - limit * sum(step), 0.0)


def _root(base: float, step: float, threshold: float) -> Iterator[float]:
    if step and math.isfinite(x := (threshold - base) / step):
        yield x


def fewest_results(
    state: Maturity, helpful: float, harmful: float, good: float, bad: float, settings: MaturitySettings = _DEFAULTS
) -> int | None:
    """Return the least number of results (good, bad) that leads to `state`, or None."""
    counts = {0}
    for flip in find_flips((helpful, harmful), (good, bad), settings):
        if 0.0 <= flip < _MAX_EXACT_COUNT:
            counts.update(range(max(math.floor(flip) - 1, 0), math.floor(flip) + 3))  # with neighbours, for rounding
    for count in sorted(counts):
        if state_of(helpful + good * count, harmful + bad * count, settings) is state:
            return count
    return None


def decayed_counts(
    events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> tuple[float, float]:
    """Return the decayed sums (helpful, harmful); docs/scoring.md#half-life.

    Raises BadInput if a time can't be parsed.
    """
    now = parse_moment(now, "now")
    helpful: list[float] = []
    harmful: list[float] = []
    for event in events:
        if event.success is None:
            continue
        value = event.weight * event.count
        if (at := event.at) is not None:
            age = now - parse_moment(at, "timestamp")
            value *= decay_factor(age.total_seconds(), settings.half_life_days)
        (helpful if event.success else harmful).append(value)
    # fsum rounds once, so that the order of the events does not matter.
    return math.fsum(helpful), math.fsum(harmful)


def state_calendar(
    events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> tuple[Change, ...]:
    """Return all future changes of state if no evidence is added, in order.

    Times are whole seconds after `now`: the first second with the new state. Raises BadInput if a time can't be parsed.
    """
    return tuple(_changes(events, now, settings))


def next_change(events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS) -> Change | None:
    """Return the first future change of state if no evidence is added, or None."""
    return next(_changes(events, now, settings), None)


def change_within(
    state: Maturity, moving: Sums, fixed: Sums, now: datetime, settings: MaturitySettings = _DEFAULTS
) -> Change | None:
    """Return the next change from `state` and two sums; `fixed` never decays."""
    return next(_walk(state, [(0.0, moving, fixed)], now, settings), None)


def _changes(events: Iterable[Result], now: str | datetime, settings: MaturitySettings) -> Iterator[Change]:
    now = parse_moment(now, "now")
    known = [event for event in events if event.success is not None]
    state = state_of(*decayed_counts(known, now, settings), settings)
    return _walk(state, _periods(known, now, settings), now, settings)


def _periods(events: list[Result], now: datetime, settings: MaturitySettings) -> list[tuple[float, Sums, Sums]]:
    """Return start (seconds after `now`), decaying and fixed sums of each period.

    A period starts at each future event, which does not decay before; undated events never do.
    """
    undated = [event for event in events if event.at is None]
    past = [event for event in events if event.at is not None and event.at <= now]
    ahead = group_pairs((event.at, event) for event in events if event.at is not None and event.at > now)
    starts = sorted(ahead)
    new = [decayed_counts(ahead[start], start, settings) for start in starts]
    # Summed from the end: subtracting from a sum would leave a rounding error that never decays.
    still = [*accumulate(reversed(new), add_sums, initial=decayed_counts(undated, now, settings))][::-1]
    moving = decayed_counts(past, now, settings)
    periods = [(0.0, moving, still[0])]
    for (earlier, start), added, fixed in zip(pairwise([now, *starts]), new, still[1:], strict=True):
        moving = add_sums(decay_sums(moving, (start - earlier).total_seconds(), settings), added)
        periods.append(((start - now).total_seconds(), moving, fixed))
    return periods


def _walk(
    state: Maturity, periods: list[tuple[float, Sums, Sums]], now: datetime, settings: MaturitySettings
) -> Iterator[Change]:
    """Yield the changes of state; only seconds near a changing condition are checked."""
    horizon = (_END_OF_TIME - now).total_seconds()
    ends = [start for start, _, _ in periods[1:]]
    for (start, moving, fixed), end in zip(periods, [*ends, horizon], strict=True):
        # The first two seconds cover changes at the start of the period.
        seconds = {math.ceil(start), math.ceil(start) + 1}
        for factor in find_flips(fixed, moving, settings):
            if 0.0 < factor <= 1.0:
                after = start - math.log2(factor) * settings.half_life_days * SECONDS_PER_DAY
                if after < end:
                    seconds.update(range(math.floor(after) - 1, math.floor(after) + 3))
        for second in sorted(second for second in seconds if max(start, 1.0) <= second < end):
            left = decay_sums(moving, second - start, settings)
            new = state_of(*add_sums(left, fixed), settings)
            if new is not state:
                state = new
                yield now + timedelta(seconds=second), state


def add_sums(one: Sums, other: Sums) -> Sums:
    return one[0] + other[0], one[1] + other[1]


def decay_sums(sums: Sums, seconds: float, settings: MaturitySettings) -> Sums:
    left = 0.5 ** (seconds / SECONDS_PER_DAY / settings.half_life_days)
    return sums[0] * left, sums[1] * left


# The maturity of patterns of other programs.

_MAX_CHARS: Final = InjectionSettings().max_field_chars


class MaturityFeedback(Struct, frozen=True, kw_only=True):
    """One helpful or harmful report on one pattern; neutral feedback is invalid.

    `timestamp` (ISO-8601 or `datetime`) is converted to UTC; `weight` is 0..1. Raises BadInput for any other value.
    """

    pattern_id: str
    type: Literal["helpful", "harmful"]
    timestamp: str | datetime
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_text(self.pattern_id, "pattern_id")
        check_choice(self.type, "type", ("helpful", "harmful"))
        normalize_time(self, "timestamp")
        check_amount(self.weight, "weight", 1)

    @property
    def at(self) -> datetime:
        """`timestamp` in UTC."""
        return parse_moment(self.timestamp, "timestamp")

    @property
    def success(self) -> bool:
        return self.type == "helpful"

    @property
    def count(self) -> int:
        return 1


class PatternMaturity(Struct, frozen=True, kw_only=True):
    """State of one pattern, with the counts that determine it.

    `state` is the pinned state if there is one, else the state computed from `helpful` and `harmful`, the sums decayed
    at `as_of`. The counts are of all results, without decay. `last_validated` is the time of the newest result, at most
    `as_of`. `promoted_at` and `deprecated_at` are the last times at which it became proven and deprecated. `pin` is the
    state set by a person, and `reason` why it was deprecated; both are in effect until `reset`. Raises BadInput for a
    value of another type, a time that can't be parsed, or a negative count or sum.
    """

    pattern_id: str
    as_of: datetime
    state: Maturity = Maturity.CANDIDATE
    helpful_count: int = 0
    harmful_count: int = 0
    helpful: float = 0.0
    harmful: float = 0.0
    last_validated: datetime | None = None
    promoted_at: datetime | None = None
    deprecated_at: datetime | None = None
    pin: Maturity | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        for field in ("pattern_id", "reason"):
            check_text(getattr(self, field), field)
        normalize_time(self, "as_of")
        for field in ("last_validated", "promoted_at", "deprecated_at"):
            normalize_time(self, field, optional=True)
        force_setattr(self, "state", parse_state(self.state, "state"))
        if self.pin is not None:
            force_setattr(self, "pin", parse_state(self.pin, "pin"))
        for field in ("helpful_count", "harmful_count"):
            check_count(getattr(self, field), field)
        for field in ("helpful", "harmful"):
            check_amount(getattr(self, field), field)


def maturity_state(events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS) -> Maturity:
    """Compute the state at `now`; raises BadInput if a time can't be parsed."""
    return state_of(*decayed_counts(events, now, settings), settings)


def create_maturity(pattern_id: str, now: str | datetime) -> PatternMaturity:
    """Create the maturity of a pattern without feedback, which is a candidate."""
    return PatternMaturity(pattern_id=pattern_id, as_of=parse_moment(now, "now"))


def update_maturity(
    maturity: PatternMaturity, events: Sequence[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> PatternMaturity:
    """Recompute counts and state at `now`; a pinned state stays.

    `events` must be all results of this pattern, in any order, not only new ones. Raises BadInput for an event of
    another pattern, or a time that can't be parsed.
    """
    now = parse_moment(now, "now")
    for event in events:
        if event.pattern_id != maturity.pattern_id:
            own, other = format_value(maturity.pattern_id), format_value(event.pattern_id)
            raise BadInput(f"pattern_id of every event must be {own}, not {other}")
    helpful, harmful = decayed_counts(events, now, settings)
    validated = (min(event.at, now) for event in events if event.success is not None and event.at)
    updated = replace(
        maturity,
        as_of=now,
        helpful_count=sum(event.count for event in events if event.success),
        harmful_count=sum(event.count for event in events if event.success is False),
        helpful=helpful,
        harmful=harmful,
        last_validated=max(validated, default=None),
    )
    return _enter(updated, maturity.pin or state_of(helpful, harmful, settings), now)


def promote(maturity: PatternMaturity, now: str | datetime) -> PatternMaturity:
    """Pin the state as proven; raises Refused if the pattern is deprecated."""
    if maturity.state is Maturity.DEPRECATED:
        name = visible_line(maturity.pattern_id, 80)
        raise Refused(f"{name} is deprecated and cannot be promoted: reset it first")
    return _enter(replace(maturity, pin=Maturity.PROVEN), Maturity.PROVEN, parse_moment(now, "now"))


def deprecate(maturity: PatternMaturity, reason: str, now: str | datetime) -> PatternMaturity:
    """Pin the state as deprecated; raises BadInput if the reason is empty."""
    check_text(reason, "reason")
    if not reason.strip():
        raise BadInput("reason must say why the pattern is deprecated, it is empty")
    pinned = replace(maturity, pin=Maturity.DEPRECATED, reason=reason)
    return _enter(pinned, Maturity.DEPRECATED, parse_moment(now, "now"))


def reset(
    maturity: PatternMaturity, events: Sequence[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> PatternMaturity:
    """Remove the pin and its reason, and recompute the state as in `update_maturity`."""
    return update_maturity(replace(maturity, pin=None, reason=""), events, now, settings)


def _enter(maturity: PatternMaturity, state: Maturity, now: datetime) -> PatternMaturity:
    field = {Maturity.PROVEN: "promoted_at", Maturity.DEPRECATED: "deprecated_at"}.get(state)
    entered = {field: now} if field and maturity.state is not state else {}
    return replace(maturity, state=state, **entered)


def format_maturity(maturity: PatternMaturity) -> str:
    """Format state and counts for a prompt: `proven (12 of 13 helpful, 92%)`."""
    total = maturity.helpful_count + maturity.harmful_count
    if not total:
        return f"{maturity.state} (no feedback yet)"
    share = round_percent(maturity.helpful_count, total)
    return f"{maturity.state} ({maturity.helpful_count} of {total} helpful, {share}%)"


def format_patterns_with_maturity(patterns: Mapping[str, PatternMaturity]) -> str:
    """Format patterns for a prompt, best state first, without deprecated ones; or "".

    The keys are the texts of the patterns, which are untrusted and become one line each.
    """
    parts = []
    for state in (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE):
        found = [(text, maturity) for text, maturity in patterns.items() if maturity.state is state]
        if found:
            lines = (f"- {escape_line(text, _MAX_CHARS)}: {format_maturity(maturity)}" for text, maturity in found)
            parts.append("\n".join([f"### {state.capitalize()}", "", *lines]))
    return "\n\n".join(["## Patterns by Maturity", *parts]) if parts else ""


HUMAN: Final = "human decision"
SCRIPT: Final = "script decision"
DECIDED: Final = frozenset({HUMAN, SCRIPT})
QUARANTINE: Final = "quarantine"
HELD: Final = "held"
INVERSION: Final = "inversion"
RULE: Final = "rule"


def describe_counts(given: int, uses: int, worked: int, seen: int, *, is_warning: bool = False) -> str:
    """Describe three counts: `given 4, used 2 (2 worked), seen 3 times`.

    A use needs no injection, so there may be more uses than injections.
    """
    applied = f"used {uses:,} ({worked:,} worked)" if uses else "never used"
    if is_warning:
        applied = f"right in {worked:,} of {plural(uses, 'result')}" if uses else "no result"
    return f"given {given:,}, {applied}" + (f", seen {plural(seen, 'time')}" if seen else "")


class Assessment(Struct, frozen=True, kw_only=True):
    """Evidence, state and score of one pattern; docs/scoring.md#states.

    A success of an anti-pattern means that the approach it warns of failed.
    """

    pattern_id: str
    successes: int  # raw counts of uses with a result
    failures: int
    uses: int  # raw count, including uses without a result
    injected_only: int  # injections that were not applied
    helpful: float  # decayed sums
    harmful: float
    rate: float | None  # success rate used for display and ranking, 0..1; None if unknown
    computed: Maturity  # state by the rules alone
    state: Maturity  # state in effect: the pin, candidate if stale or in quarantine, else `computed`; see `is_capped`
    faded: bool  # `computed` is candidate only because the evidence is old
    decided_by: str  # one of the constants above
    pin: Pin | None  # pin in effect, even if it is stale
    pin_stale: bool  # the text changed since the pin was set
    contradicted: bool  # evidence since the pin contradicts it
    multiplier: float  # factor of the state in scores
    score: float  # effectiveness x multiplier
    inversion_due: bool  # an inversion proposal is open and not snoozed
    injectable: bool  # may be injected: not deprecated, quarantined, warned of, or pending as an inversion
    quarantined: bool  # unpinned, and the imported text is unread or stopped by the scan
    last_used: datetime | None  # time of the newest known use
    given: int = 0  # injections, applied or not
    seen: int = 0  # loops that found the pattern themselves
    warning_id: str = ""  # the anti-pattern that warns of the same fix, so that this pattern is not injected
    claimed_rate: float | None = None  # recorded rate that the counts do not confirm, 0..1
    held: bool = False  # quarantined only because the text gives unapproved orders; docs/safety.md#held-texts
    unreviewed: bool = False  # no person has approved this text, which arrived by itself
    approved: bool = False  # agents get this text as guidance, see `CurationState.approves_as_guidance`
    blocked: bool = False  # blocked by the safety scan: releasing or promoting it needs a reason
    level: float = 0.9  # probability of the interval, 0..1
    known_interval: tuple[float, float] | None = None  # `interval`, if it was computed for all patterns

    @property
    def counts_text(self) -> str:
        return describe_counts(self.given, self.uses, self.successes, self.seen)

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high) of the Jeffreys interval of the rate, 0..1."""
        return self.known_interval or jeffreys_interval(self.successes, self.failures, self.level)

    @property
    def is_claimed(self) -> bool:
        total = self.successes + self.failures
        counted = self.successes / total if total else None
        return self.claimed_rate is not None and self.rate == self.claimed_rate != counted

    @property
    def claim_text(self) -> str:
        """Text such as `85% claimed, 3 of 4 recorded`; "" without a claimed rate."""
        if self.claimed_rate is None:
            return ""
        total = self.successes + self.failures
        recorded = f"{self.successes:,} of {total:,} recorded" if total else "no result recorded"
        return f"{round_half_up(self.claimed_rate * 100)}% claimed, {recorded}"

    @property
    def is_settled(self) -> bool:
        """Whether a pin on the current text fixes the state."""
        return self.pin is not None and not self.pin_stale

    @property
    def is_capped(self) -> bool:
        """Whether the pattern would be proven if a person approved its text."""
        return self.unreviewed and self.computed is Maturity.PROVEN and self.state is Maturity.ESTABLISHED

    @property
    def shown(self) -> str:
        """The displayed state: `quarantine`, `held`, or the state in effect."""
        if self.held:
            return HELD
        return QUARANTINE if self.quarantined else self.state.value
