"""What a rule of the scan is."""

from __future__ import annotations

from msgspec import Struct

from core.records.suspicions import Severity


class Rule(Struct, frozen=True, kw_only=True):
    """One kind of thing that a text might do to an agent.

    Attributes:
        id: Its name, for files and JSON.
        meaning: What the text does, in words that follow "this text".
        severity: What happens to a text that the rule finds something in.
        patterns: In RE2 syntax; any of them.
        unless: What is matched and matches this too is meant otherwise.
        advice: A text that warns of the thing does no harm: "never use --no-verify".
    """

    id: str
    meaning: str
    severity: Severity
    patterns: tuple[str, ...] = ()
    unless: str = ""
    advice: bool = False

    @property
    def critical(self) -> bool:
        """Whether it blocks a text."""
        return self.severity is Severity.BLOCKED
