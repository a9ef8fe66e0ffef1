"""Maturity of patterns of other programs; docs/learning-api.md#maturity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.errors import BadInput, Refused
from core.base.prompt_text import escape_line
from core.base.settings import InjectionSettings, MaturitySettings
from core.base.text import visible_line
from core.base.validation import check_amount, check_choice, check_count, check_text, format_value
from core.learning.states import Result, decayed_counts, normalize_time, parse_moment, parse_state, state_of
from core.learning.statistics import round_percent
from core.records.patterns import Maturity

_DEFAULTS: Final = MaturitySettings()
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
