"""What a waiting loop waits for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.records.loops import Liveness, LoopStatus

if TYPE_CHECKING:
    from core.records.loops import Loop

RATE_LIMIT: Final = "rate limit"
WAITS_FOR_YOU: Final = "waits for you"  # status shown for a loop that needs a person
_WORDS: Final = {
    RATE_LIMIT: re.compile(r"(?:rate|usage|api|5hour|hour|quota)[ _-]?limit|quota|overloaded|\b429\b", re.IGNORECASE),
    "permission": re.compile(r"permission|approv|denied|confirm", re.IGNORECASE),
    "question": re.compile(r"question|\bask|input|answer|elicit", re.IGNORECASE),
    "blocked": re.compile(r"block|stuck|defer", re.IGNORECASE),
}


def waits_for(loop: Loop) -> str:
    """Return what a loop waits for: `permission`, `question`, `blocked`, `rate limit` or `person`; "" if it does not.

    Only a rate limit ends without a person.
    """
    if loop.status is not LoopStatus.WAITING:
        return ""
    text = f"{loop.raw_status}\n{loop.end_reason}\n{loop.liveness_reason}"
    return next((name for name, words in _WORDS.items() if words.search(text)), "person")


def needs_person(loop: Loop) -> bool:
    """Return whether a loop of another runner goes on only if a person acts; a stale one is no longer waited for."""
    return bool(loop.runner) and loop.liveness is not Liveness.STALE and waits_for(loop) not in ("", RATE_LIMIT)
