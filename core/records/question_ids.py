"""IDs of review questions that are not about a single pattern; decisions are recorded under them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from core.records.decisions import text_hash
from core.records.times import iso

ESCALATION_PREFIX: Final = "escalation of "


def extraction_question_id(source_id: str) -> str:
    """ID of the question whether to extract patterns from a loop, task or debug session."""
    return f"extraction of {source_id}"


def escalation_question_id(session_id: str, at: datetime | None) -> str:
    """ID of the question about an escalated debug session; escalating it again makes a new question."""
    return f"{ESCALATION_PREFIX}{session_id}" + (f" at {iso(at)}" if at is not None else "")


def held_text_question_id(text_id: str, text: str) -> str:
    """ID of the question about a held text that is not a pattern; a changed text is a new question."""
    return f"text {text_hash(text)[:12]} of {text_id}"


def duplicate_question_id(one: str, other: str) -> str:
    """ID of the question about two similar patterns; the lower pattern ID comes first."""
    return f"likeness of {min(one, other)} and {max(one, other)}"


def burst_question_id(source: str) -> str:
    """ID of the question about a burst of harmful reports from one source."""
    return f"burst of {source}"
