"""When a failing pattern becomes a warning; docs/scoring.md#inversion."""

from __future__ import annotations

import re
from typing import Any, Final

from core.base.negation import find_prohibition
from core.base.text import visible_line
from core.config.settings import AntiPatternSettings
from core.learning.statistics import round_percent

_PREFIX: Final = re.compile(r"\s*(avoid|do not|never)\s*:\s*", re.IGNORECASE)
_MAX_CHECKED: Final = 1000
"""Maximum number of characters that `polarity_lint` reads."""


def inversion_triggered(successes: Any, failures: Any, settings: AntiPatternSettings) -> Any:
    """Return whether raw counts, two numbers or two arrays, call for inversion."""
    total = successes + failures
    return (total >= max(settings.min_observations, 1)) & (failures >= settings.failure_ratio_threshold * total)


def counts_text(failures: int, total: int) -> str:
    """Format counts: `Failed 5/7 times (71% failure rate)`, rounded half up."""
    return f"Failed {failures}/{total} times ({round_percent(failures, total)}% failure rate)"


def remove_warning_prefix(content: str) -> str:
    """Remove one leading `AVOID:`, `DO NOT:` or `NEVER:` in any case."""
    return _PREFIX.sub("", content, count=1) if _PREFIX.match(content) else content.strip()


def invert_text(content: str, failures: int, total: int, settings: AntiPatternSettings) -> str:
    """Return the warning for a failing approach: prefix, approach, counts."""
    return warning_text(content, counts_text(failures, total), settings)


def warning_text(content: str, reason: str, settings: AntiPatternSettings) -> str:
    """Return a warning against an approach, for a reason."""
    approach = remove_warning_prefix(content).rstrip()
    end = "" if approach.endswith((".", "!", "?", "…")) else "."
    return f"{settings.anti_pattern_prefix}{approach}{end} {reason}"


def polarity_lint(text: str) -> tuple[str, ...]:
    """List the reasons why a warning made of `text` would give wrong advice.

    `AVOID: never commit secrets` asks to commit secrets. A text that already was a warning would become the same
    warning again, although following it is what failed.
    """
    text = text[:_MAX_CHECKED]
    notes: list[str] = []
    if prefix := _PREFIX.match(text):
        notes.append(
            f'already a warning ("{prefix[1].upper()}:"): the inversion would repeat the advice that failed; '
            "rewrite it as what to do instead"
        )
    if prohibition := find_prohibition(remove_warning_prefix(text)):
        word = visible_line(prohibition, 20)
        notes.append(
            f'double negative: the text already forbids something ("{word}"), to avoid it means to do that; '
            "rewrite it as the approach that failed"
        )
    return tuple(notes)
