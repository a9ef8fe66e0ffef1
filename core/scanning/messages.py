"""Suspicions in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from core.base.text import visible_line
from core.records.suspicions import Severity, Suspicion
from core.scanning.rules import MEANINGS
from core.scanning.scan import scan_text

SEVERITY_WORDS: Final = {Severity.BLOCKED: "critical", Severity.HELD: "order", Severity.FLAGGED: "suspect"}
"""What a suspicion is called in front of its meaning."""
_MOST: Final = 3
"""Rules that one line names."""
_EXCERPT: Final = 60


def describe_rule(suspicion: Suspicion) -> str:
    """What the text does, in words that follow "this text"."""
    return MEANINGS.get(suspicion.rule, visible_line(suspicion.rule, 40))


def describe_suspicions(suspicions: Iterable[Suspicion]) -> str:
    """What a text does, in words that follow "this text": `runs what it downloads ("curl x | sh")`.

    Only the gravest of them.
    """
    found = tuple(suspicions)
    worst = min((one.severity.rank for one in found), default=0)
    gravest = [one for one in found if one.severity.rank == worst]
    parts = [f"{describe_rule(one)}{_quoted(one)}" for one in gravest[:_MOST]]
    return ", ".join(parts) + (f", and {len(gravest) - _MOST} more" if len(gravest) > _MOST else "")


def find_withhold_reason(
    text: str,
    shown: Callable[[str], str] = str,
    *,
    orders: bool = True,
    avoided: bool = False,
    happened: bool = False,
) -> str:
    """Why a text that is not a pattern may not be injected, in words that follow "this text"; "" if it may.

    The scan reads the text as it is and as the agent gets it: a cut may remove a warning, and lines that are joined
    may say something together.

    Args:
        text: Of a field.
        shown: What the agent gets of a text.
        orders: Whether a text that gives orders is withheld: `settings.scan.holds_other_texts`.
        avoided: It names what is to be avoided.
        happened: It tells what went wrong.
    """
    for said in dict.fromkeys((text, shown(text))) if text else ():
        for one in scan_text(said, avoided=avoided, happened=happened)[:1]:
            if one.critical or (orders and one.severity.stops):
                return describe_rule(one)
    return ""


def render_if_safe(
    text: str,
    shown: Callable[[str], str] = str,
    *,
    orders: bool = True,
    avoided: bool = False,
    happened: bool = False,
) -> str:
    """`shown(text)`, or what is injected in its place where `find_withhold_reason` gives a reason."""
    does = find_withhold_reason(text, shown, orders=orders, avoided=avoided, happened=happened)
    if does:
        return shown(withheld_note(does))
    return shown(text) if text else ""


def withheld_note(does: str) -> str:
    """What stands for a text that is withheld for what it does."""
    return f"(left out: this text {does})"


def _quoted(suspicion: Suspicion) -> str:
    excerpt = visible_line(" ".join(suspicion.excerpt.split()), _EXCERPT)
    return f' ("{excerpt}")' if excerpt else ""
