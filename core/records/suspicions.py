"""Results of the safety scan of a text (see `core.scanning`)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """Effect of a suspicion on its text, the most severe first."""

    BLOCKED = "blocked"
    """Not injected until a person releases this text with a reason."""
    HELD = "held"
    """Not injected until a person approves this text."""
    FLAGGED = "flagged"
    """Injected, but marked on screen and reviewed earlier."""

    @property
    def rank(self) -> int:
        """Position in the order of severity; 0 is the most severe."""
        return _RANKS[self]

    @property
    def stops(self) -> bool:
        """Whether the text is not injected until a person decides."""
        return self is not Severity.FLAGGED


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Suspicion(Struct, frozen=True, gc=False):
    """One suspicious part of a text.

    `rule` is the ID of the matching rule, see `core.scanning.rules`. `field` is the field of `Pattern` that contains
    it; "" across fields. `excerpt` is the matching words; untrusted.
    """

    rule: str
    severity: Severity
    field: str
    excerpt: str

    @property
    def critical(self) -> bool:
        """Whether it blocks the text."""
        return self.severity is Severity.BLOCKED
