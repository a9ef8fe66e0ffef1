"""What a rule of the scan is."""

from __future__ import annotations

from msgspec import Struct


class Rule(Struct, frozen=True, kw_only=True):
    """One kind of thing that a text might do to an agent.

    Attributes:
        id: Its name, for files and JSON.
        meaning: What the text does, in words that follow "this text".
        critical: Whether it keeps a text out of every context; else it only gets a mark.
        patterns: In RE2 syntax; any of them.
        unless: What is matched and matches this too is meant otherwise.
        advice: A text that warns of the thing does no harm: "never use --no-verify".
    """

    id: str
    meaning: str
    critical: bool
    patterns: tuple[str, ...]
    unless: str = ""
    advice: bool = False
