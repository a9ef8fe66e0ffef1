"""Decisions that agents propose; they wait for a person (docs/curation.md#who-decides)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

_QUESTION: Final = "proposal "


class ProposedDecision(Struct, frozen=True, kw_only=True):
    """Entry of the decision log that changes nothing: a decision that an agent asks for.

    `id` sorts by time among those of decisions. `verb` is that of the decision, and `subjects` are what it would be
    about (see `Decision.subject`). `command` has the name of a decision command and its fields. `texts` has the content
    hashes, by pattern ID, of the texts that it was proposed for.
    """

    id: str
    at: datetime
    by: str
    verb: str
    subjects: tuple[str, ...]
    command: dict[str, Any]
    reason: str = ""
    texts: dict[str, str] = {}

    @property
    def pattern_id(self) -> str:
        """ID of the only pattern that the decision would be about, else ""."""
        return self.subjects[0] if len(self.subjects) == 1 and self.subjects[0] in self.texts else ""

    @property
    def question(self) -> str:
        """ID of the question whether a person accepts it."""
        return f"{_QUESTION}{self.id}"
