"""Anti-pattern inversion: a pattern that keeps failing becomes a warning (2) Anti-Pattern Inversion."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.errors import BadInput
from core.base.negation import find_prohibition
from core.base.prompt_text import escape_line
from core.base.text import visible_line
from core.base.validation import check_amount, check_count, check_flag, check_text, check_texts, format_value
from core.config.settings import AntiPatternSettings, InjectionSettings
from core.learning.decay import moment, set_moment
from core.learning.statistics import percent

_DEFAULTS: Final = AntiPatternSettings()
MAX_CHARS: Final = InjectionSettings().max_field_chars
"""Characters of a pattern that its line in a prompt has at most."""

_PREFIX: Final = re.compile(r"\s*(avoid|do not|never)\s*:\s*", re.IGNORECASE)
_LINT_CHARS: Final = 1000


class ObservedPattern(Struct, frozen=True, kw_only=True):
    """A strategy of decomposition, and how often it worked (2) Anti-Pattern Inversion.

    Attributes:
        content: The strategy in words, of an anti-pattern the warning. Untrusted.
        kind, is_negative: One fact by the document's two names; either of them makes an anti-pattern.
        success_count, failure_count: Raw counts.
        reason: Why it was inverted.
        example_beads: Subtasks in which it was observed, newest last.
        created_at, updated_at: ISO-8601 or `datetime`; kept in UTC.

    Raises:
        BadInput: A value of another type, another kind, a count that is no whole number from 0 up, a time that
            can't be parsed.
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
        if self.kind not in ("pattern", "anti_pattern"):
            raise BadInput(f"kind must be pattern or anti_pattern, not {format_value(self.kind)}")
        check_count(self.success_count, "success_count")
        check_count(self.failure_count, "failure_count")
        check_flag(self.is_negative, "is_negative")
        set_moment(self, "created_at", optional=True)
        set_moment(self, "updated_at", optional=True)
        if self.is_negative or self.kind == "anti_pattern":
            force_setattr(self, "kind", "anti_pattern")
            force_setattr(self, "is_negative", True)


class PatternInversion(Struct, frozen=True, kw_only=True):
    """A pattern that failed too often, with its counts of now, and the anti-pattern that it becomes."""

    original: ObservedPattern
    inverted: ObservedPattern
    reason: str


class Recorded(Struct, frozen=True, kw_only=True):
    """A pattern after an observation; `inversion` where its counts call for one."""

    pattern: ObservedPattern
    inversion: PatternInversion | None = None


def inversion_triggered(successes: Any, failures: Any, settings: AntiPatternSettings) -> Any:
    """Whether raw counts, two numbers or two arrays, call for inversion (2) Inversion Threshold."""
    total = successes + failures
    return (total >= max(settings.min_observations, 1)) & (failures >= settings.failure_ratio_threshold * total)


def counts_text(failures: int, total: int) -> str:
    """`Failed 5/7 times (71% failure rate)`; the percentage rounds half up."""
    return f"Failed {failures}/{total} times ({percent(failures, total)}% failure rate)"


def stripped(content: str) -> str:
    """`content` without one leading `AVOID:`, `DO NOT:` or `NEVER:` in any case."""
    return _PREFIX.sub("", content, count=1) if _PREFIX.match(content) else content.strip()


def invert_text(content: str, failures: int, total: int, settings: AntiPatternSettings) -> str:
    """The warning that a failing approach becomes: prefix, approach, counts (2) Inversion Process."""
    return _warning(content, counts_text(failures, total), settings)


def _warning(content: str, reason: str, settings: AntiPatternSettings) -> str:
    approach = stripped(content).rstrip()
    end = "" if approach.endswith((".", "!", "?", "…")) else "."
    return f"{settings.anti_pattern_prefix}{approach}{end} {reason}"


def polarity_lint(text: str) -> tuple[str, ...]:
    """Why a warning made of `text` would say the wrong thing; empty if nothing speaks against it.

    `AVOID: never commit secrets` asks for secrets to be committed; and a text that already was a warning
    comes out as the same warning, though following it is what failed.
    """
    text = text[:_LINT_CHARS]
    notes: list[str] = []
    prefix = _PREFIX.match(text)
    if prefix:
        notes.append(
            f'already a warning ("{prefix[1].upper()}:"): the inversion would repeat the advice that failed; '
            "rewrite it as what to do instead"
        )
    if prohibition := find_prohibition(stripped(text)):
        word = visible_line(prohibition, 20)
        notes.append(
            f'double negative: the text already forbids something ("{word}"), to avoid it means to do that; '
            "rewrite it as the approach that failed"
        )
    return tuple(notes)


def should_invert(pattern: ObservedPattern, settings: AntiPatternSettings = _DEFAULTS) -> bool:
    """Whether the raw counts call for inversion (2) Inversion Threshold; never for an anti-pattern."""
    due = inversion_triggered(pattern.success_count, pattern.failure_count, settings)
    return not pattern.is_negative and bool(due)


def invert(
    pattern: ObservedPattern, reason: str, now: str | datetime, settings: AntiPatternSettings = _DEFAULTS
) -> ObservedPattern:
    """The anti-pattern that `pattern` becomes (2) Inversion Process; an anti-pattern stays as it is.

    Args:
        reason: What the warning ends with; "" for the counts.
    """
    if pattern.is_negative:
        return pattern
    check_text(reason, "reason")
    now = moment(now, "now")
    reason = reason.strip() or counts_text(pattern.failure_count, pattern.success_count + pattern.failure_count)
    return replace(
        pattern,
        id=f"anti-{pattern.id}",
        content=_warning(pattern.content, reason, settings),
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
    """Count one observation, and invert the pattern if that is due (2) Recording Observations.

    Args:
        bead_id: The subtask, kept as the newest example; "" for none.

    Raises:
        BadInput: `success` is neither True nor False, `bead_id` is no text, or `now` can't be parsed.
    """
    check_flag(success, "success")
    check_text(bead_id, "bead_id")
    examples = pattern.example_beads
    if bead_id:
        examples = (*(bead for bead in examples if bead != bead_id), bead_id)
    updated = replace(
        pattern,
        success_count=pattern.success_count + success,
        failure_count=pattern.failure_count + (not success),
        example_beads=examples[max(len(examples) - settings.max_examples, 0) :],
        updated_at=moment(now, "now"),
    )
    if not should_invert(updated, settings):
        return Recorded(pattern=updated)
    inverted = invert(updated, "", now, settings)
    return Recorded(
        pattern=updated, inversion=PatternInversion(original=updated, inverted=inverted, reason=inverted.reason)
    )


def format_anti_patterns(patterns: Iterable[ObservedPattern]) -> str:
    """The anti-patterns among `patterns` for a prompt (2) Using Anti-Patterns in Prompts; "" if there are none."""
    lines = [f"- {escape_line(pattern.content, MAX_CHARS)}" for pattern in patterns if pattern.is_negative]
    return _section("Anti-Patterns to Avoid", "Based on past failures, avoid these decomposition strategies:", lines)


def format_successful_patterns(patterns: Iterable[ObservedPattern], min_success_rate: float) -> str:
    """The patterns that worked for a prompt, best rate first, then most uses; "" if there are none.

    Args:
        min_success_rate: 0..1; patterns below it are left out, and those never observed.

    Raises:
        BadInput: `min_success_rate` lies outside 0..1.
    """
    check_amount(min_success_rate, "min_success_rate", 1)
    ranked = []
    for pattern in patterns:
        good, total = pattern.success_count, pattern.success_count + pattern.failure_count
        if not pattern.is_negative and total and good / total >= min_success_rate:
            share = f"{good} of {total} times, {percent(good, total)}%"
            ranked.append((-good / total, -total, pattern.id, f"- {escape_line(pattern.content, MAX_CHARS)} ({share})"))
    lines = [line for *_, line in sorted(ranked)]
    return _section("Successful Patterns", "These decomposition strategies worked before:", lines)


def _section(heading: str, introduction: str, lines: list[str]) -> str:
    return "\n".join([f"## {heading}", "", introduction, "", *lines]) if lines else ""
