"""Texts that describe a decision to people: verb, author, subject and change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.base.formatting import shorten_id
from core.base.text import plural
from core.decisions.case import change
from core.learning.assessment import HELD, QUARANTINE
from core.records.decisions import TURNS, WAS_HELD, WAS_QUARANTINED, Decision, is_signed_unattended, verb_info

HOOK: Final = "hook"
ABOUT: Final = "about"  # Key in `after` of a decision: a short name for a question whose ID is too long to read.


def verb_text(decision: Decision) -> str:
    """Return the verb of a decision: `promote`, `acknowledge`, `accept inversion`."""
    return verb_info(decision).word


def author_text(decision: Decision) -> str:
    """Return who decided: the signature, or `hook` for what a program extracted by itself when work ended."""
    return HOOK if is_signed_unattended(decision.by) else decision.by


def subject_text(decision: Decision) -> str:
    """Return the short name of a decision's subject, or its ID if it has none."""
    about = decision.after.get(ABOUT)
    return shorten_id(about if isinstance(about, str) and about else decision.subject)


def about_text(decision: Decision, known: Mapping[str, Decision]) -> str:
    """Describe the subject of a decision; for undo and redo, the original decision."""
    other = known.get(decision.subject) if decision.verb in TURNS else None
    return f"{verb_text(other)} {subject_text(other)}" if other else subject_text(decision)


def describe_change(decision: Decision) -> str:
    """Describe what a decision changed: `established → proven`, `8 patterns`, or ""."""
    merged = decision.after.get("merged")
    if isinstance(merged, str):
        return f"with {shorten_id(merged)}"
    patterns, joined = decision.after.get("patterns"), decision.after.get("joined")
    if isinstance(patterns, list):
        parts = [plural(len(patterns), "pattern")] if patterns or not joined else []
        if isinstance(joined, list) and joined:
            parts.append(f"{plural(len(joined), 'known pattern')} found again")
        return ", ".join(parts)
    before, after = recorded_state(decision.before), recorded_state(decision.after)
    return change(before, after) if before and after else ""


def recorded_state(values: Mapping[str, Any]) -> str:
    """Return the state of a pattern by `Decision.before` or `.after`, "" if none is recorded.

    A decision that stops a text, or lets it through, records the state that the pattern has without that.
    """
    state = values.get("state")
    if not isinstance(state, str):
        return ""
    if values.get(WAS_QUARANTINED) is True or "hashes" in values:
        return QUARANTINE
    return HELD if values.get(WAS_HELD) is True else state
