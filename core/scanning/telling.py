"""Suspicions in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def unless_harmful(
    text: str, shown: Callable[[str], str] = str, *, avoided: bool = False, happened: bool = False
) -> str:
    """`shown(text)`, to be handed on to an agent; of one that the scan finds dangerous only what it does.

    The scan reads the text as it is and as it is shown: a warning that is cut off warns nobody, and what stands on
    lines of its own may be put together on one.

    Args:
        text: Of a field.
        shown: What the agent gets to see of a text.
        avoided: It names what is to be avoided.
        happened: It tells what went wrong.
    """
    printed = shown(text) if text else ""
    for said in dict.fromkeys((text, printed)):
        critical = [one for one in scan_text(said, avoided=avoided, happened=happened) if one.critical]
        if critical:
            return shown(left_out(meaning(critical[0])))
    return printed


def left_out(does: str) -> str:
    """What stands for a text that is withheld for what it does."""
    return f"(left out: this text {does})"


def _quoted(suspicion: Suspicion) -> str:
    excerpt = visible_line(" ".join(suspicion.excerpt.split()), _EXCERPT)
    return f' ("{excerpt}")' if excerpt else ""
