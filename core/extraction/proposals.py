"""What could be extracted from one loop, before anybody has decided on it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from core.records.patterns import PatternType

ALL_TYPES: Final = frozenset(PatternType)


class Proposal(Struct, frozen=True, kw_only=True):
    """One pattern that a loop offers.

    Attributes:
        slug: What its id would be named after: lower-case letters, digits, hyphens.
        record: A record of (3) without its id, which it gets when it is accepted.
        trace: Where each part of it comes from, for a person: `iteration 1 → 2`.
        duplicate_of: The pattern of the registry that says the same, "" for a new one; this is a further use of it.
        similarity: To that one, 0..1.
        refused: Why it is not taken, "" if it is.
    """

    type: PatternType
    slug: str
    record: dict[str, Any]
    trace: tuple[str, ...] = ()
    duplicate_of: str = ""
    similarity: float = 0.0
    refused: str = ""

    @property
    def headline(self) -> str:
        """What it says, on one line for a person; untrusted."""
        record = self.record
        if self.type is PatternType.ERROR:
            signature, fix = record["error_signature"], record["fix_approach"]
            return f"{signature['error_type']}: {signature['error_pattern']} → {fix['description']}"
        if self.type is PatternType.SUCCESS:
            return f"{record['task_category']}: {record['approach']['description']}"
        if self.type is PatternType.ANTI:
            return f"{record['failure_mode']}: {record['approach_description']}"
        return f"{record['language']}: {record['description']}"


class Extraction(Struct, frozen=True, kw_only=True):
    """All that one loop or debug session offers."""

    source_id: str
    proposals: tuple[Proposal, ...] = ()

    @property
    def new(self) -> tuple[Proposal, ...]:
        """Patterns that the registry does not have."""
        return tuple(one for one in self.proposals if not one.refused and not one.duplicate_of)

    @property
    def merges(self) -> tuple[Proposal, ...]:
        """Further uses of patterns that it has."""
        return tuple(one for one in self.proposals if not one.refused and one.duplicate_of)

    @property
    def refused(self) -> tuple[Proposal, ...]:
        """What is not taken."""
        return tuple(one for one in self.proposals if one.refused)

    @property
    def why_nothing(self) -> str:
        """Why none of it is taken, where that is the same for all; "" else. Names ids of patterns."""
        reasons = {one.refused for one in self.proposals}
        return reasons.pop() if len(reasons) == 1 else ""
