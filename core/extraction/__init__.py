"""What a finished loop has learned: from its errors, fixes, steps and failures to patterns (0)."""

from core.extraction.engine import ALL_TYPES, extract
from core.extraction.known import Known
from core.extraction.proposals import Extraction, Proposal

__all__ = ["ALL_TYPES", "Extraction", "Known", "Proposal", "extract"]
