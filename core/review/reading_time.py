"""How long it takes to read a question and to decide it, estimated."""

from __future__ import annotations

from typing import Final

from core.records.extractions import Extraction
from core.records.patterns import Pattern
from core.state.review_items import (
    BORDERLINE,
    BROAD,
    BURST,
    CONTRADICTED,
    DUPLICATE,
    ESCALATION,
    EXTRACTED,
    HELD,
    INVERSION,
    OFFER,
    QUARANTINE,
    RECURRING,
    STALE_PIN,
    UNRECONCILED,
)

CHARS_PER_SECOND: Final = 20.0
"""Some 240 words a minute, as people read technical text with care."""
THINKING: Final = {
    INVERSION: 15.0,
    CONTRADICTED: 10.0,
    STALE_PIN: 12.0,
    BORDERLINE: 10.0,
    DUPLICATE: 12.0,
    EXTRACTED: 8.0,
    QUARANTINE: 10.0,
    HELD: 10.0,
    BURST: 20.0,
    RECURRING: 12.0,
    OFFER: 12.0,
    BROAD: 8.0,
    UNRECONCILED: 8.0,
    ESCALATION: 10.0,
}
"""Seconds that a decision of each kind takes beside reading its texts: the evidence is looked at, a key pressed."""
_SECONDS_EACH: Final = 6.0
"""For each further pattern that a question is about: its headline is read."""
_MOST_CHARS: Final = 4000
"""Longest part of a text that is read before deciding."""


def seconds(kind: str, chars: int, further: int = 0) -> float:
    """Seconds to read `chars` of text, and headlines of `further` patterns."""
    return THINKING[kind] + min(chars, _MOST_CHARS) / CHARS_PER_SECOND + further * _SECONDS_EACH


def chars_of(pattern: Pattern) -> int:
    """How much there is to read of a pattern, in characters."""
    texts = (
        *(pattern.title, pattern.description, pattern.use_case, pattern.error_pattern),
        *(pattern.task_pattern, pattern.template_code),
    )
    lists = (pattern.steps, pattern.preconditions, pattern.benefits, pattern.limitations, pattern.symptoms)
    listed = sum(len(text) for many in lists for text in many)
    return sum(map(len, texts)) + listed + len(pattern.why_it_fails) + len(pattern.better_alternative)


def chars_offered(offer: Extraction) -> int:
    """How much there is to read of what is offered, in characters."""
    return sum(len(one.headline) for one in (*offer.new, *offer.merges))
