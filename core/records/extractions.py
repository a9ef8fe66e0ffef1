"""What could be extracted from one loop, before anybody has decided on it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from core.records.patterns import PatternType

_MAX_REASONS: Final = 4
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
        known_as: The pattern of the registry that was found in this very loop before, "" for none.
        failures: How often the loop tried the same in vain.
    """

    type: PatternType
    slug: str
    record: dict[str, Any]
    trace: tuple[str, ...] = ()
    duplicate_of: str = ""
    similarity: float = 0.0
    refused: str = ""
    known_as: str = ""
    failures: int = 0

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
    """All that one loop or debug session offers.

    Attributes:
        missing: Why there is no proposal of some types, one reason each.
    """

    source_id: str
    proposals: tuple[Proposal, ...] = ()
    missing: tuple[str, ...] = ()

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
        """Why nothing is taken, in one line; "" if something is. Names IDs of patterns."""
        if self.new or self.merges:
            return ""
        reasons = list(dict.fromkeys(one.refused for one in self.proposals)) or list(self.missing)
        more = f"; and {len(reasons) - _MAX_REASONS} more reasons" if len(reasons) > _MAX_REASONS else ""
        return "; ".join(reasons[:_MAX_REASONS]) + more
