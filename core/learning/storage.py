"""Public names of storages at their original import path; `core.learning` exports them too."""

from core.learning.errors import ErrorStorage, MemoryErrors
from core.learning.reference.storage import (
    FeedbackStorage,
    MaturityStorage,
    MemoryFeedback,
    MemoryMaturity,
    MemoryPatterns,
    PatternStorage,
)

__all__ = [
    "ErrorStorage",
    "FeedbackStorage",
    "MaturityStorage",
    "MemoryErrors",
    "MemoryFeedback",
    "MemoryMaturity",
    "MemoryPatterns",
    "PatternStorage",
]
