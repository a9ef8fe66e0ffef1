"""Public names of inversion at their original import path; `core.learning` exports them too."""

from core.learning.inversion_rules import counts_text, inversion_triggered, invert_text, polarity_lint
from core.learning.reference.patterns import (
    ObservedPattern,
    PatternInversion,
    Recorded,
    format_anti_patterns,
    format_successful_patterns,
    invert,
    record_observation,
    should_invert,
)

__all__ = [
    "ObservedPattern",
    "PatternInversion",
    "Recorded",
    "counts_text",
    "format_anti_patterns",
    "format_successful_patterns",
    "inversion_triggered",
    "invert",
    "invert_text",
    "polarity_lint",
    "record_observation",
    "should_invert",
]
