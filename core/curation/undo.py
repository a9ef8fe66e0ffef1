"""Undo and redo: which decisions one of them reaches, and what it writes down for each (semantics 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.base.errors import Refused, UnknownRecord
from core.base.formatting import format_day, short_id
from core.base.text import plural
from core.curation import rules
from core.curation.rules import Draft
from core.records.decisions import TURNS, CurationState, Decision, Verb

ALONE: Final = frozenset({Verb.NOTE, Verb.SNOOZE})
"""Nothing rests on these, and they rest on nothing."""
_ON_MANY: Final = frozenset({Verb.EXTRACT, Verb.IMPORT, Verb.ARCHIVE})
"""Their subject says where the patterns come from, or whose idea it was."""
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
    Verb.EDIT: "edit",
}
"""What was decided, as a noun."""
_RE_ENABLED: Final = {Verb.RESET, Verb.PROMOTE}
"""The decisions of an act that re-enables a deprecated pattern."""


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


def check_own(newest: Decision, by: str) -> None:
    """Refuse to undo the newest decision unasked where another person made it.

    Raises:
        Refused: Somebody else did; the message says who, and how to undo it.
    """
    if newest.by != by:
        raise Refused(
            f"the newest decision was made by {short_id(newest.by)}: the {NOUNS[newest.verb]} of "
            f"{rules.subject_text(newest)} on {format_day(newest.at)}; "
            f"to undo it, give --any-author or its id: {newest.act}"
        )


def one_act(name: str, state: CurationState, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """The decisions that undo takes back when one of them, or a group, is named; the last one first.

    Args:
        name: The id of a decision or of a group.
        state: What the ledger amounts to.
        decisions: The ledger.

    Raises:
        UnknownRecord: Nothing is called so.
        Refused: It is taken back already, or something that was decided later rests on it.
    """
    named = [one for one in decisions if name in (one.id, one.group)]
    if not named:
        raise UnknownRecord(f"the ledger has no decision {short_id(name)}; see: ralphdeck log --json")
    if any(one.verb in TURNS for one in named):
        raise Refused(f"{short_id(name)} is itself an undo or a redo; name the decision that it is about")
    standing = {one.id: one for one in named if one.id not in state.undone}
    if not standing:
        raise Refused(f"{short_id(name)} is taken back already")
    about: set[str] = set()
    for decision in decisions:
        if decision.verb in TURNS or decision.verb in ALONE:
            continue
        if decision.id in standing:
            about |= touched(decision)
        elif decision.id not in state.undone and not about.isdisjoint(touched(decision)):
            raise Refused(
                f"the {NOUNS[decision.verb]} of {rules.subject_text(decision)} by {short_id(decision.by)} on "
                f"{format_day(decision.at)} rests on it; take that back first: {decision.act}"
            )
    return tuple(reversed(standing))


def touched(decided: Decision | Draft) -> set[str]:
    """What a decision is about, by id: whatever later touches the same rests on it."""
    found = {effect.pattern_id for effect in decided.effects}
    for key in ("patterns", "joined"):
        names = decided.after.get(key)
        found |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    return found if decided.verb in _ON_MANY else found | {decided.subject}


def turned(verb: Verb, decision: Decision, by: str) -> Draft:
    """What undo (or redo) of one decision writes down; `by` is who does so."""
    back = verb is Verb.UNDO
    before, after = (decision.after, decision.before) if back else (decision.before, decision.after)
    done = f"{_done(verb)} {_whose(decision, by)} {NOUNS[decision.verb]}"
    states = ""
    if before.get("state") != after.get("state"):
        states = f": {before.get('state')} → {after.get('state')}"
    return Draft(
        verb=verb,
        subject=decision.id,
        summary=f"{done} of {rules.subject_text(decision)}{states}",
        before=before,
        after=after,
        effects=decision.inverse if back else decision.effects,
        inverse=decision.effects if back else decision.inverse,
    )


def summary(verb: Verb, decisions: list[Decision], by: str) -> str:
    """What undo (or redo) of many decisions, all of one act, did, in one line; `by` is who did so."""
    verbs = {decision.verb for decision in decisions}
    what = "re-enabling" if verbs == _RE_ENABLED else "decision" if len(verbs) > 1 else NOUNS[decisions[0].verb]
    about = {decision.subject for decision in decisions}
    subject = short_id(about.pop()) if len(about) == 1 else plural(len(about), "pattern")
    return f"{_done(verb)} {_whose(decisions[0], by)} {what} of {subject}"


def _whose(decision: Decision, by: str) -> str:
    return "the" if decision.by == by else f"{short_id(decision.by)}'s"


def _done(verb: Verb) -> str:
    return "took back" if verb is Verb.UNDO else "repeated"
