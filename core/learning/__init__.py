"""Scores of patterns, loops and criteria as pure functions; docs/learning-api.md.

The names below are the public API. They load on first use, so that a command imports only what it needs.
"""

# ruff: noqa: F403
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.learning.explanation import *
    from core.learning.inversion import *
    from core.learning.maturity import *
    from core.learning.outcomes import *
    from core.learning.storage import *

_NAMES: Final = {
    "explanation": "LineageEvent build_lineage format_lineage",
    "inversion": "ObservedPattern PatternInversion Recorded extract_strategies format_anti_patterns "
    "format_successful_patterns invert "
    "inversion_triggered invert_text polarity_lint record_observation should_invert",
    "maturity": "MaturityFeedback PatternMaturity Result create_maturity decayed_counts decayed_value deprecate "
    "format_maturity format_patterns_with_maturity maturity_state multiplier next_change promote reset state_calendar "
    "state_of update_maturity",
    "outcomes": "CriterionWeight FeedbackEvent Outcome OutcomeSignals Verdict WeightedScores apply_weights "
    "criterion_weight criterion_weights effective_weight score_outcome should_deprecate_criterion verdict_of",
    "storage": "ErrorAccumulator ErrorEntry ErrorStats ErrorStorage FeedbackStorage MaturityStorage MemoryErrors "
    "MemoryFeedback MemoryMaturity MemoryPatterns PatternStorage classify_error",
}
"""The public names by the module that defines them."""
_MODULES: Final = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_MODULES[name]), name)
    return found
