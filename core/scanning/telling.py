"""Suspicions in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from core.records.suspicions import Suspicion
from core.scanning.rules import MEANINGS
from core.scanning.scan import scan_text
from core.text import visible_line

_MOST: Final = 3
"""Rules that one line names."""
_EXCERPT: Final = 60


def meaning(suspicion: Suspicion) -> str:
    """What the text does, in words that follow "this text"."""
    return MEANINGS.get(suspicion.rule, visible_line(suspicion.rule, 40))


def told(suspicions: Iterable[Suspicion]) -> str:
    """What a text does, in words that follow "this text": `runs what it downloads ("curl x | sh")`.

    Only what is critical, if anything is.
    """
    found = tuple(suspicions)
    gravest = [one for one in found if one.critical] or found
    parts = [f"{meaning(one)}{_quoted(one)}" for one in gravest[:_MOST]]
    return ", ".join(parts) + (f", and {len(gravest) - _MOST} more" if len(gravest) > _MOST else "")


def unless_harmful(text: str, *, avoided: bool = False) -> str:
    """`text`, to be handed on to an agent; of one that the scan finds dangerous only what it does.

    `avoided`: it tells of what went wrong.
    """
    critical = [one for one in scan_text(text, avoided=avoided) if one.critical] if text else []
    return f"(left out: this text {meaning(critical[0])})" if critical else text


def _quoted(suspicion: Suspicion) -> str:
    excerpt = visible_line(" ".join(suspicion.excerpt.split()), _EXCERPT)
    return f' ("{excerpt}")' if excerpt else ""
