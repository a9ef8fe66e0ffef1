"""Undo and redo: which decisions one of them reaches, and what it writes down for each (semantics 4)."""

from __future__ import annotations

from typing import Final

from core.curation import rules
from core.curation.rules import Draft, shown
from core.errors import Refused
from core.records.decisions import CurationState, Decision, Verb
from core.text import plural

NOUNS: Final = {
    Verb.PROMOTE: "promotion",
    Verb.DEPRECATE: "deprecation",
    Verb.RESET: "reset",
    Verb.ACCEPT_INVERSION: "accepted inversion",
    Verb.REJECT_INVERSION: "rejected inversion",
    Verb.SNOOZE: "snooze",
    Verb.NOTE: "note",
    Verb.REVOKE: "revocation of the marks",
    Verb.CONFIRM: "confirmation of the marks",
    Verb.EXTRACT: "extraction",
    Verb.MERGE: "merge",
    Verb.ARCHIVE: "archiving",
    Verb.RESTORE: "restoring",
    Verb.IMPORT: "import",
    Verb.QUARANTINE: "quarantine",
    Verb.RELEASE: "release",
    Verb.DISMISS: "dismissal",
}
"""What was decided, as a noun."""


def last_act(verb: Verb, state: CurationState) -> tuple[str, ...]:
    """The decisions that undo takes back, or redo repeats, in the order in which it does.

    Raises:
        Refused: There are none.
    """
    candidates = state.undoable if verb is Verb.UNDO else state.redoable
    if not candidates:
        raise Refused(f"there is nothing to {verb}")
    act = state.acts[candidates[-1]]
    return tuple(one for one in reversed(candidates) if state.acts[one] == act)


def turned(verb: Verb, decision: Decision) -> Draft:
    """What undo (or redo) of one decision writes down."""
    back = verb is Verb.UNDO
    before, after = (decision.after, decision.before) if back else (decision.before, decision.after)
    states = ""
    if before.get("state") != after.get("state"):
        states = f": {before.get('state')} → {after.get('state')}"
    return Draft(
        verb=verb,
        subject=decision.id,
        summary=f"{_done(verb)} the {NOUNS[decision.verb]} of {rules.subject_text(decision)}{states}",
        before=before,
        after=after,
        effects=decision.inverse if back else decision.effects,
        inverse=decision.effects if back else decision.inverse,
    )


def summary(verb: Verb, decisions: list[Decision]) -> str:
    """What undo (or redo) of many decisions did, in one line."""
    nouns = {NOUNS[decision.verb] for decision in decisions}
    what = nouns.pop() if len(nouns) == 1 else "decision"
    about = {decision.subject for decision in decisions}
    subject = shown(about.pop()) if len(about) == 1 else plural(len(about), "pattern")
    return f"{_done(verb)} the {what} of {subject}"


def _done(verb: Verb) -> str:
    return "took back" if verb is Verb.UNDO else "repeated"
