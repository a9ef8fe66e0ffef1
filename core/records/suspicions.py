"""What the scan of a text has found (see `core.scanning`)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """What a suspicion does to the text that it is about, the gravest first."""

    BLOCKED = "blocked"
    """Kept out of every context until a person releases this text for a reason."""
    HELD = "held"
    """Kept out of every context until a person approves this text."""
    FLAGGED = "flagged"
    """Injected; marked on screen and asked about earlier."""

    @property
    def rank(self) -> int:
        """Position in the order of gravity; 0 is the gravest."""
        return _RANKS[self]

    @property
    def stops(self) -> bool:
        """Whether it keeps a text out of contexts until a person decides."""
        return self is not Severity.FLAGGED


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Suspicion(Struct, frozen=True, gc=False):
    """One thing that a text might do to an agent that reads it.

    Attributes:
        rule: ID of the rule that found it, see `core.scanning.rules`.
        severity: What follows from it.
        field: Name of the field of `Pattern` that contains it; "" across fields.
        excerpt: The words that it was found by; untrusted.
    """

    rule: str
    severity: Severity
    field: str
    excerpt: str

    @property
    def critical(self) -> bool:
        """Whether it blocks the text."""
        return self.severity is Severity.BLOCKED
