"""Scores of patterns, loops and criteria as pure functions; docs/learning-api.md.

The names below are the public API. They load on first use, so that a command imports only what it needs.
"""

# ruff: noqa: F403
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.learning.errors import *
    from core.learning.explanation import *
    from core.learning.inversion_rules import *
    from core.learning.outcomes import *
    from core.learning.reference.maturity import *
    from core.learning.reference.patterns import *
    from core.learning.reference.storage import *
    from core.learning.states import *
    from core.learning.strategies import *

_NAMES: Final = {
    "errors": "ErrorAccumulator ErrorEntry ErrorStats ErrorStorage MemoryErrors classify_error",
    "inversion_rules": "inversion_triggered invert_text polarity_lint",
    "explanation": "LineageEvent build_lineage format_lineage",
    "outcomes": "CriterionWeight FeedbackEvent Outcome OutcomeSignals Verdict WeightedScores apply_weights "
    "criterion_weight criterion_weights effective_weight score_outcome should_deprecate_criterion verdict_of",
    "reference.maturity": "MaturityFeedback PatternMaturity create_maturity deprecate format_maturity "
    "format_patterns_with_maturity maturity_state promote reset update_maturity",
    "reference.patterns": "ObservedPattern PatternInversion Recorded format_anti_patterns format_successful_patterns "
    "invert record_observation should_invert",
    "reference.storage": "FeedbackStorage MaturityStorage MemoryFeedback MemoryMaturity MemoryPatterns PatternStorage",
    "states": "Result decayed_counts decayed_value multiplier next_change state_calendar state_of",
    "strategies": "extract_strategies",
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
