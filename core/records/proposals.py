"""Decisions that agents proposed, which wait for a person (docs/curation.md#who-decides)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from core.records.decisions import Verb

_QUESTION: Final = "proposal "


class Proposal(Struct, frozen=True, kw_only=True):
    """Entry of the decision log that changes nothing: a decision that an agent asks for.

    `subjects` are what the decision would be about; see `Decision.subject`. `command` has the name of a decision
    command and its fields. `texts` has the content hashes, by pattern ID, of the texts that the agent proposed it for.
    """

    id: str
    at: datetime
    by: str
    verb: Verb
    subjects: tuple[str, ...]
    command: dict[str, Any]
    reason: str = ""
    texts: dict[str, str] = {}

    @property
    def question(self) -> str:
        """ID of the question whether to accept it."""
        return f"{_QUESTION}{self.id}"
