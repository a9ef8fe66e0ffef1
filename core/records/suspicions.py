"""Results of the safety scan of a text (see `core.base.scanning`)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """Severity of a suspicion, the most severe first; it decides on injection."""

    BLOCKED = "blocked"  # The text is not injected until a person releases it with a reason.
    HELD = "held"  # The text is not injected until a person approves it.
    FLAGGED = "flagged"  # The text is injected, but marked in the UI and reviewed earlier.

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
    """Suspicious part of a text, found by a rule of the safety scan.

    `rule` is the ID of a rule in `core.base.scanning.rules`. `field` is the field of `Pattern` with the match, or "" if
    the match spans several fields. `excerpt` contains the matching words and is untrusted. `since` is the first version
    of the rules that finds it.
    """

    rule: str
    severity: Severity
    field: str
    excerpt: str
    since: int = 1

    @property
    def critical(self) -> bool:
        """Whether it blocks the text: an approval without a reason is not enough."""
        return self.severity is Severity.BLOCKED
