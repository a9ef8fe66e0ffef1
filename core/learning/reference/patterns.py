"""Observed strategies of other programs; docs/learning-api.md#inversion."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.prompt_text import escape_line
from core.base.settings import AntiPatternSettings, InjectionSettings
from core.base.validation import check_amount, check_choice, check_count, check_flag, check_text, check_texts
from core.learning.inversion_rules import format_counts, inversion_triggered, warning_text
from core.learning.states import normalize_time, parse_moment
from core.learning.statistics import round_percent

_DEFAULTS: Final = AntiPatternSettings()
MAX_CHARS: Final = InjectionSettings().max_field_chars
"""Maximum number of characters of a pattern in its line of a prompt."""


class ObservedPattern(Struct, frozen=True, kw_only=True):
    """A strategy of decomposition with its raw counts, or a warning against one.

    `content` is the strategy in words, or the warning; it is untrusted. A pattern is an anti-pattern if `kind` or
    `is_negative` marks it as one; `reason` is why it was inverted. `example_beads` are the work items in which it was
    observed, newest last. The times are ISO-8601 or `datetime`, converted to UTC. Raises BadInput for a value of
    another type, an unknown kind, a negative count, or a time that can't be parsed.
    """

    id: str
    content: str
    kind: Literal["pattern", "anti_pattern"] = "pattern"
    is_negative: bool = False
    success_count: int = 0
    failure_count: int = 0
    reason: str = ""
    tags: tuple[str, ...] = ()
    example_beads: tuple[str, ...] = ()
    created_at: str | datetime | None = None
    updated_at: str | datetime | None = None

    def __post_init__(self) -> None:
        for field in ("id", "content", "reason"):
            check_text(getattr(self, field), field)
        for field in ("tags", "example_beads"):
            check_texts(getattr(self, field), field)
            force_setattr(self, field, tuple(getattr(self, field)))
        check_choice(self.kind, "kind", ("pattern", "anti_pattern"))
        for field in ("success_count", "failure_count"):
            check_count(getattr(self, field), field)
        check_flag(self.is_negative, "is_negative")
        for field in ("created_at", "updated_at"):
            normalize_time(self, field, optional=True)
        if self.is_negative or self.kind == "anti_pattern":
            force_setattr(self, "kind", "anti_pattern")
            force_setattr(self, "is_negative", True)


class PatternInversion(Struct, frozen=True, kw_only=True):
    """A pattern that failed too often, and the anti-pattern that replaces it."""

    original: ObservedPattern
    inverted: ObservedPattern
    reason: str


class Recorded(Struct, frozen=True, kw_only=True):
    """A pattern after an observation, with its inversion if the counts require one."""

    pattern: ObservedPattern
    inversion: PatternInversion | None = None


def should_invert(pattern: ObservedPattern, settings: AntiPatternSettings = _DEFAULTS) -> bool:
    """Return whether the raw counts require inversion; never for an anti-pattern."""
    due = inversion_triggered(pattern.success_count, pattern.failure_count, settings)
    return not pattern.is_negative and bool(due)


def invert(
    pattern: ObservedPattern, reason: str, now: str | datetime, settings: AntiPatternSettings = _DEFAULTS
) -> ObservedPattern:
    """Convert a pattern to an anti-pattern; an anti-pattern is returned unchanged.

    The warning ends with `reason`; if that is "", with the counts.
    """
    if pattern.is_negative:
        return pattern
    check_text(reason, "reason")
    now = parse_moment(now, "now")
    reason = reason.strip() or format_counts(pattern.failure_count, pattern.success_count + pattern.failure_count)
    return replace(
        pattern,
        id=f"anti-{pattern.id}",
        content=warning_text(pattern.content, reason, settings),
        kind="anti_pattern",
        is_negative=True,
        reason=reason,
        created_at=now if pattern.created_at is None else pattern.created_at,
        updated_at=now,
    )


def record_observation(
    pattern: ObservedPattern,
    success: bool,
    now: str | datetime,
    bead_id: str = "",
    settings: AntiPatternSettings = _DEFAULTS,
) -> Recorded:
    """Count one observation, and invert the pattern if its counts require it.

    `bead_id` is the work item, which becomes the newest example; "" for none. Raises BadInput if `success` is not a
    bool, `bead_id` is not a text, or `now` can't be parsed.
    """
    check_flag(success, "success")
    check_text(bead_id, "bead_id")
    examples = pattern.example_beads
    if bead_id:
        examples = (*(example for example in examples if example != bead_id), bead_id)
    updated = replace(
        pattern,
        success_count=pattern.success_count + success,
        failure_count=pattern.failure_count + (not success),
        example_beads=examples[max(len(examples) - settings.max_examples, 0) :],
        updated_at=parse_moment(now, "now"),
    )
    if not should_invert(updated, settings):
        return Recorded(pattern=updated)
    inverted = invert(updated, "", now, settings)
    inversion = PatternInversion(original=updated, inverted=inverted, reason=inverted.reason)
    return Recorded(pattern=updated, inversion=inversion)


def format_anti_patterns(patterns: Iterable[ObservedPattern]) -> str:
    """Format the anti-patterns among `patterns` for a prompt; "" if there are none."""
    lines = [f"- {escape_line(pattern.content, MAX_CHARS)}" for pattern in patterns if pattern.is_negative]
    return _section("Anti-Patterns to Avoid", "Based on past failures, avoid these decomposition strategies:", lines)


def format_successful_patterns(patterns: Iterable[ObservedPattern], min_success_rate: float) -> str:
    """Format successful patterns for a prompt, best rate and most uses first; or "".

    Patterns that were never observed, or whose rate is below `min_success_rate`, are left out. Raises BadInput if
    `min_success_rate` is outside 0..1.
    """
    check_amount(min_success_rate, "min_success_rate", 1)
    ranked = []
    for pattern in patterns:
        good, total = pattern.success_count, pattern.success_count + pattern.failure_count
        if not pattern.is_negative and total and good / total >= min_success_rate:
            share = f"{good} of {total} times, {round_percent(good, total)}%"
            ranked.append((-good / total, -total, pattern.id, f"- {escape_line(pattern.content, MAX_CHARS)} ({share})"))
    lines = [line for *_, line in sorted(ranked)]
    return _section("Successful Patterns", "These decomposition strategies worked before:", lines)


def _section(heading: str, introduction: str, lines: list[str]) -> str:
    return "\n".join([f"## {heading}", "", introduction, "", *lines]) if lines else ""
