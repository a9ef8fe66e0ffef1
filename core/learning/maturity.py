"""Public names of maturity at their original import path; `core.learning` exports them too."""

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
from core.learning.states import STATES, Result, decayed_counts, multiplier, state_codes, state_of

__all__ = [
    "STATES",
    "MaturityFeedback",
    "PatternMaturity",
    "Result",
    "create_maturity",
    "decayed_counts",
    "deprecate",
    "format_maturity",
    "format_patterns_with_maturity",
    "maturity_state",
    "multiplier",
    "promote",
    "reset",
    "state_codes",
    "state_of",
    "update_maturity",
]
