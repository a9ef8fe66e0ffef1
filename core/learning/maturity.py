"""Pattern maturity: candidate, established, proven, deprecated, from decayed counts (2) State Transitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace
from numpy.typing import NDArray

from core.base.errors import BadInput, Refused
from core.base.prompt_text import escape_line
from core.base.text import visible_line
from core.base.validation import check_amount, check_choice, check_count, check_text, format_value
from core.config.settings import InjectionSettings, MaturitySettings
from core.learning.decay import decayed_value, moment, set_moment
from core.learning.statistics import percent
from core.records.patterns import Maturity

STATES: Final = (Maturity.CANDIDATE, Maturity.ESTABLISHED, Maturity.PROVEN, Maturity.DEPRECATED)
"""The states by their code in arrays."""
CODES: Final = {state: code for code, state in enumerate(STATES)}

_DEFAULTS: Final = MaturitySettings()
_MAX_CHARS: Final = InjectionSettings().max_field_chars
_COUNTABLE: Final = 2**53
"""From here on a float does not tell a count from the next one."""


class Result(Protocol):
    """What counts for or against a pattern: an `Observation` or a `MaturityFeedback`.

    Attributes:
        at: When; None if that is not known, then it does not decay.
        success: Helpful or harmful; None for neither.
        weight: 0..1.
        count: How many uses it stands for.
    """

    @property
    def pattern_id(self) -> str: ...
    @property
    def at(self) -> datetime | None: ...
    @property
    def success(self) -> bool | None: ...
    @property
    def weight(self) -> float: ...
    @property
    def count(self) -> int: ...


class MaturityFeedback(Struct, frozen=True, kw_only=True):
    """One judgement of one pattern (2) MaturityStorage.

    Attributes:
        type: Neutral feedback says nothing of maturity and is refused.
        timestamp: ISO-8601 or `datetime`; kept in UTC.
        weight: 0..1.

    Raises:
        BadInput: A value of another type, a time that can't be parsed, a weight outside 0..1.
    """

    pattern_id: str
    type: Literal["helpful", "harmful"]
    timestamp: str | datetime
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_text(self.pattern_id, "pattern_id")
        if self.type not in ("helpful", "harmful"):
            raise BadInput(f"type must be helpful or harmful, not {format_value(self.type)}")
        set_moment(self, "timestamp")
        check_amount(self.weight, "weight", 1)

    @property
    def at(self) -> datetime:
        """`timestamp` in UTC."""
        return moment(self.timestamp, "timestamp")

    @property
    def success(self) -> bool:
        """Whether it is helpful."""
        return self.type == "helpful"

    @property
    def count(self) -> int:
        """One judgement."""
        return 1


class PatternMaturity(Struct, frozen=True, kw_only=True):
    """What the feedback on one pattern amounts to.

    Attributes:
        state: The pin where there is one, else what the decayed sums say at `as_of`.
        helpful_count, harmful_count: All results ever, whatever their age.
        helpful, harmful: Decayed sums at `as_of`.
        last_validated: Newest result, helpful or harmful, at most `as_of`.
        promoted_at, deprecated_at: When it last became proven, when deprecated.
        pin, reason: What a person decided, and why it was deprecated; it holds until `reset` (semantics 4).

    Raises:
        BadInput: A value of another type, a time that can't be parsed, a count that is no whole number from 0 up,
            or a sum that is no finite number from 0 up.
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
        check_text(self.pattern_id, "pattern_id")
        check_text(self.reason, "reason")
        set_moment(self, "as_of")
        for field in ("last_validated", "promoted_at", "deprecated_at"):
            set_moment(self, field, optional=True)
        force_setattr(self, "state", _known_state(self.state, "state"))
        if self.pin is not None:
            force_setattr(self, "pin", _known_state(self.pin, "pin"))
        check_count(self.helpful_count, "helpful_count")
        check_count(self.harmful_count, "harmful_count")
        check_amount(self.helpful, "helpful")
        check_amount(self.harmful, "harmful")


def _known_state(value: str, field: str) -> Maturity:
    check_choice(value, field, STATES)
    return Maturity(value)


def state_of(helpful: float, harmful: float, settings: MaturitySettings) -> Maturity:
    """The state for decayed sums, by the rules in the order of semantics 3.

    Totals within `total_tolerance` of a threshold reach it; ratios compare with `ratio_margin`.
    """
    total = helpful + harmful
    enough = total >= settings.min_feedback - settings.total_tolerance
    ratio = harmful / total if total > 0 else 0.0
    if enough and ratio > settings.deprecation_threshold + settings.ratio_margin:
        return Maturity.DEPRECATED
    if not enough:
        return Maturity.CANDIDATE
    if (
        helpful >= settings.min_helpful - settings.total_tolerance
        and ratio < settings.max_harmful - settings.ratio_margin
    ):
        return Maturity.PROVEN
    return Maturity.ESTABLISHED


def state_codes(
    helpful: NDArray[np.float64], harmful: NDArray[np.float64], settings: MaturitySettings
) -> NDArray[np.int8]:
    """`state_of` for many patterns; indices into `STATES`."""
    total = helpful + harmful
    enough = total >= settings.min_feedback - settings.total_tolerance
    ratio = harmful / np.where(total > 0, total, 1.0)
    deprecated = ratio > settings.deprecation_threshold + settings.ratio_margin
    proven = (helpful >= settings.min_helpful - settings.total_tolerance) & (
        ratio < settings.max_harmful - settings.ratio_margin
    )
    good = np.where(proven, CODES[Maturity.PROVEN], CODES[Maturity.ESTABLISHED])
    judged = np.where(deprecated, CODES[Maturity.DEPRECATED], good)
    return np.where(enough, judged, CODES[Maturity.CANDIDATE]).astype(np.int8)


def multiplier(state: Maturity | str, settings: MaturitySettings = _DEFAULTS) -> float:
    """What a state does to a pattern's score (2) Multipliers in Decomposition.

    Raises:
        BadInput: `state` is neither a state nor the word for one.
    """
    return float(multipliers(settings)[CODES[_known_state(state, "state")]])


def multipliers(settings: MaturitySettings) -> NDArray[np.float64]:
    """The multipliers in the order of `STATES`."""
    return np.array(
        [
            settings.multiplier_candidate,
            settings.multiplier_established,
            settings.multiplier_proven,
            settings.multiplier_deprecated,
        ]
    )


def flips(base: tuple[float, float], step: tuple[float, float], settings: MaturitySettings) -> Iterator[float]:
    """Every x, in no order, at which a test of `state_of` turns for the sums `base + x * step`.

    Each test compares a sum with a threshold, or one sum with a share of another, and so turns at most once.
    """
    yield from _root(sum(base), sum(step), settings.min_feedback - settings.total_tolerance)
    yield from _root(base[0], step[0], settings.min_helpful - settings.total_tolerance)
    for limit in (
        settings.deprecation_threshold + settings.ratio_margin,
        settings.max_harmful - settings.ratio_margin,
    ):
        yield from _root(base[1] - limit * sum(base), step[1] - limit * sum(step), 0.0)


def _root(base: float, step: float, threshold: float) -> Iterator[float]:
    if step and math.isfinite(x := (threshold - base) / step):
        yield x


def fewest(
    state: Maturity, helpful: float, harmful: float, good: float, bad: float, settings: MaturitySettings = _DEFAULTS
) -> int | None:
    """The smallest number of further results, each adding (good, bad) to the sums, after which the state is `state`.

    0 if it is now, None if no number of them leads there.
    """
    counts = {0}
    for flip in flips((helpful, harmful), (good, bad), settings):
        if 0.0 <= flip < _COUNTABLE:
            counts.update(range(max(math.floor(flip) - 1, 0), math.floor(flip) + 3))  # either side of rounding
    for count in sorted(counts):
        if state_of(helpful + good * count, harmful + bad * count, settings) is state:
            return count
    return None


def decayed_counts(
    events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> tuple[float, float]:
    """(helpful, harmful): what all results together are worth at `now`; an undated one does not decay.

    Raises:
        BadInput: A time that can't be parsed.
    """
    now = moment(now, "now")
    helpful: list[float] = []
    harmful: list[float] = []
    for event in events:
        if event.success is None:
            continue
        worth = event.weight * event.count
        if (at := event.at) is not None:
            worth *= decayed_value(at, now, settings.half_life_days)
        (helpful if event.success else harmful).append(worth)
    # fsum rounds once, so that the order of the events can't matter.
    return math.fsum(helpful), math.fsum(harmful)


def maturity_state(events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS) -> Maturity:
    """The state that the evidence amounts to at `now`.

    Raises:
        BadInput: As `decayed_counts`.
    """
    return state_of(*decayed_counts(events, now, settings), settings)


def create_maturity(pattern_id: str, now: str | datetime) -> PatternMaturity:
    """A pattern that nobody has judged yet: a candidate."""
    return PatternMaturity(pattern_id=pattern_id, as_of=moment(now, "now"))


def update_maturity(
    maturity: PatternMaturity,
    events: Sequence[Result],
    now: str | datetime,
    settings: MaturitySettings = _DEFAULTS,
) -> PatternMaturity:
    """`maturity` as all `events` make it at `now`; a pin keeps its state.

    Args:
        events: All that is known of this pattern, in any order; not only what is new.

    Raises:
        BadInput: An event of another pattern, or as `decayed_counts`.
    """
    now = moment(now, "now")
    for event in events:
        if event.pattern_id != maturity.pattern_id:
            own, other = format_value(maturity.pattern_id), format_value(event.pattern_id)
            raise BadInput(f"pattern_id of every event must be {own}, not {other}")
    helpful, harmful = decayed_counts(events, now, settings)
    counted = replace(
        maturity,
        as_of=now,
        helpful_count=sum(event.count for event in events if event.success),
        harmful_count=sum(event.count for event in events if event.success is False),
        helpful=helpful,
        harmful=harmful,
        last_validated=max(
            (min(event.at, now) for event in events if event.success is not None and event.at), default=None
        ),
    )
    return _entering(counted, maturity.pin or state_of(helpful, harmful, settings), now)


def promote(maturity: PatternMaturity, now: str | datetime) -> PatternMaturity:
    """`maturity` pinned as proven (2) Manual State Changes.

    Raises:
        Refused: It is deprecated.
    """
    if maturity.state is Maturity.DEPRECATED:
        name = visible_line(maturity.pattern_id, 80)
        raise Refused(f"{name} is deprecated and cannot be promoted: reset it first")
    return _entering(replace(maturity, pin=Maturity.PROVEN), Maturity.PROVEN, moment(now, "now"))


def deprecate(maturity: PatternMaturity, reason: str, now: str | datetime) -> PatternMaturity:
    """`maturity` pinned as deprecated, with the reason (2) Manual State Changes.

    Raises:
        BadInput: No reason.
    """
    check_text(reason, "reason")
    if not reason.strip():
        raise BadInput("reason must say why the pattern is deprecated, it is empty")
    pinned = replace(maturity, pin=Maturity.DEPRECATED, reason=reason)
    return _entering(pinned, Maturity.DEPRECATED, moment(now, "now"))


def reset(
    maturity: PatternMaturity,
    events: Sequence[Result],
    now: str | datetime,
    settings: MaturitySettings = _DEFAULTS,
) -> PatternMaturity:
    """`update_maturity` without the pin and its reason: arithmetic decides again (semantics 4)."""
    return update_maturity(replace(maturity, pin=None, reason=""), events, now, settings)


def _entering(maturity: PatternMaturity, state: Maturity, now: datetime) -> PatternMaturity:
    if state is Maturity.PROVEN and maturity.state is not state:
        return replace(maturity, state=state, promoted_at=now)
    if state is Maturity.DEPRECATED and maturity.state is not state:
        return replace(maturity, state=state, deprecated_at=now)
    return replace(maturity, state=state)


def format_maturity(maturity: PatternMaturity) -> str:
    """State and raw counts for a prompt, in a few words: `proven (12 of 13 helpful, 92%)`."""
    total = maturity.helpful_count + maturity.harmful_count
    if not total:
        return f"{maturity.state} (no feedback yet)"
    share = percent(maturity.helpful_count, total)
    return f"{maturity.state} ({maturity.helpful_count} of {total} helpful, {share}%)"


def format_patterns_with_maturity(patterns: Mapping[str, PatternMaturity]) -> str:
    """Patterns for the prompt of a decomposition, best state first; "" if there is none to tell of.

    Deprecated ones are excluded entirely (2) Multipliers in Decomposition.

    Args:
        patterns: By the text of the pattern, which is untrusted and becomes one line.
    """
    parts = []
    for state in (Maturity.PROVEN, Maturity.ESTABLISHED, Maturity.CANDIDATE):
        found = [(text, maturity) for text, maturity in patterns.items() if maturity.state is state]
        if found:
            lines = (f"- {escape_line(text, _MAX_CHARS)}: {format_maturity(maturity)}" for text, maturity in found)
            parts.append("\n".join([f"### {state.capitalize()}", "", *lines]))
    return "\n\n".join(["## Patterns by Maturity", *parts]) if parts else ""
