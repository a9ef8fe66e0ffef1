"""Scoring of patterns, loops and criteria by pure functions; docs/learning-api.md.

The names below are the public API. They load on first use, so that a command imports only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.learning.calendar import next_change, state_calendar
    from core.learning.criteria import (
        CriterionWeight,
        FeedbackEvent,
        WeightedScores,
        apply_weights,
        criterion_weight,
        criterion_weights,
        effective_weight,
        should_deprecate_criterion,
    )
    from core.learning.decay import decayed_value
    from core.learning.errors import (
        ErrorAccumulator,
        ErrorEntry,
        ErrorStats,
        ErrorStorage,
        MemoryErrors,
        classify_error,
    )
    from core.learning.inversion_rules import inversion_triggered, invert_text, polarity_lint
    from core.learning.lineage import LineageEvent, build_lineage, format_lineage
    from core.learning.outcomes import Outcome, OutcomeSignals, Verdict, score_outcome, verdict_of
    from core.learning.reference.maturity import (
        MaturityFeedback,
        PatternMaturity,
        create_maturity,
        deprecate,
        format_maturity,
        format_patterns_with_maturity,
        maturity_state,
        promote,
        reset,
        update_maturity,
    )
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
    from core.learning.reference.storage import (
        FeedbackStorage,
        MaturityStorage,
        MemoryFeedback,
        MemoryMaturity,
        MemoryPatterns,
        PatternStorage,
    )
    from core.learning.states import Result, decayed_counts, multiplier, state_of
    from core.learning.strategies import extract_strategies

__all__ = [
    "CriterionWeight",
    "ErrorAccumulator",
    "ErrorEntry",
    "ErrorStats",
    "ErrorStorage",
    "FeedbackEvent",
    "FeedbackStorage",
    "LineageEvent",
    "MaturityFeedback",
    "MaturityStorage",
    "MemoryErrors",
    "MemoryFeedback",
    "MemoryMaturity",
    "MemoryPatterns",
    "ObservedPattern",
    "Outcome",
    "OutcomeSignals",
    "PatternInversion",
    "PatternMaturity",
    "PatternStorage",
    "Recorded",
    "Result",
    "Verdict",
    "WeightedScores",
    "apply_weights",
    "build_lineage",
    "classify_error",
    "create_maturity",
    "criterion_weight",
    "criterion_weights",
    "decayed_counts",
    "decayed_value",
    "deprecate",
    "effective_weight",
    "extract_strategies",
    "format_anti_patterns",
    "format_lineage",
    "format_maturity",
    "format_patterns_with_maturity",
    "format_successful_patterns",
    "inversion_triggered",
    "invert",
    "invert_text",
    "maturity_state",
    "multiplier",
    "next_change",
    "polarity_lint",
    "promote",
    "record_observation",
    "reset",
    "score_outcome",
    "should_deprecate_criterion",
    "should_invert",
    "state_calendar",
    "state_of",
    "update_maturity",
    "verdict_of",
]

_MODULES = (
    *("calendar", "criteria", "decay", "errors", "inversion_rules", "lineage", "outcomes"),
    *("reference.maturity", "reference.patterns", "reference.storage", "states", "strategies"),
)


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    if name in __all__:
        for module in _MODULES:
            path = f"{__name__}.{module}"
            found: object = getattr(import_module(path), name, None)
            if getattr(found, "__module__", None) == path:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
