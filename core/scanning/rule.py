"""Rule of the scan."""

from __future__ import annotations

from msgspec import Struct

from core.records.suspicions import Severity


class Rule(Struct, frozen=True, kw_only=True):
    """A kind of harm that a text could do to an agent.

    Attributes:
        id: Name in files and JSON.
        meaning: What the text does, in words that follow "this text".
        severity: Severity of a match.
        patterns: RE2 patterns, any of which matches.
        unless: Pattern of matches to ignore.
        advice: Whether a warning of the thing is harmless: "never use --no-verify".
    """

    id: str
    meaning: str
    severity: Severity
    patterns: tuple[str, ...] = ()
    unless: str = ""
    advice: bool = False

    @property
    def critical(self) -> bool:
        """Whether the rule blocks a text."""
        return self.severity is Severity.BLOCKED
