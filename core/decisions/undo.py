"""Undo and redo of decisions; see docs/curation.md#undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.base.errors import AlreadyDone, Refused, UnknownRecord
from core.base.formatting import format_day, shorten_id
from core.base.text import plural
from core.decisions.case import Draft, recorded_state, subject_text, verb_text
from core.records.decisions import (
    REPAIR,
    TURNS,
    Author,
    CurationState,
    Decision,
    Verb,
    author_of,
    is_same_user,
    verb_info,
)

ALONE: Final = frozenset({Verb.NOTE, Verb.SNOOZE})
"""Verbs of decisions that depend on no other decision, and on which no other depends."""
_ON_MANY: Final = frozenset({Verb.EXTRACT, Verb.IMPORT, Verb.ARCHIVE})
"""Verbs whose subject is a source or a policy, not a pattern."""
_RE_ENABLED: Final = {Verb.RESET, Verb.PROMOTE}  # The decisions of an act that re-enables a deprecated pattern.


def last_act(verb: Verb, state: CurationState, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the decisions to undo (or redo) next, in order; `Refused` if none.

    Undo skips unattended extractions that are newer than the last decision of a person.
    """
    candidates = state.undoable if verb is Verb.UNDO else state.redoable
    if not candidates:
        raise Refused(f"there is nothing to {verb}")
    if verb is Verb.UNDO and (last := newest_undoable(state, decisions)).id != candidates[-1]:
        return named_act(last.act, state, decisions)
    act = state.acts[candidates[-1]]
    return tuple(one for one in reversed(candidates) if state.acts[one] == act)


def newest_undoable(state: CurationState, decisions: Sequence[Decision]) -> Decision:
    """Return a person's newest undoable decision, else the newest unattended one.

    At least one decision must be undoable.
    """
    known: dict[str, Decision] = {}
    unread = reversed(decisions)  # the key line asks at each redraw, and the answer is mostly among the newest
    for identifier in reversed(state.undoable):
        while identifier not in known:
            decision = next(unread)
            known[decision.id] = decision
        if not known[identifier].is_unattended:
            return known[identifier]
    return known[state.undoable[-1]]


def check_own(newest: Decision, by: str) -> None:
    """Raise `Refused`, with advice, unless the newest decision is the user's own."""
    if not is_same_user(newest.by, by):
        is_agent = author_of(by) is Author.AGENT
        advice = "to propose to undo it, give its id" if is_agent else "to undo it, give --any-author or its id"
        raise Refused(
            f"the newest decision was made by {shorten_id(newest.by)}: {verb_text(newest)} "
            f"{subject_text(newest)} on {format_day(newest.at)}; {advice}: {newest.act}"
        )


def named_act(name: str, state: CurationState, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the decisions to undo for the ID of a decision or act, last first.

    Raises `UnknownRecord` if no decision or act has this ID, and `Refused` if it is already undone or a later decision
    depends on it.
    """
    named = [one for one in decisions if name in (one.id, one.group)]
    if not named:
        raise UnknownRecord(f"the decision log has no decision {shorten_id(name)}; see: ralphdeck log --json")
    if any(one.verb in TURNS for one in named):
        raise Refused(f"{shorten_id(name)} is itself an undo or a redo; name the decision that it is about")
    if any(one.id in state.claims for one in named):
        raise Refused(f"{shorten_id(name)} was made elsewhere, so it cannot be undone here")
    in_effect = {one.id: one for one in named if one.id not in state.undone}
    if not in_effect:
        raise AlreadyDone(f"{shorten_id(name)} is already undone")
    about: set[str] = set()
    for decision in decisions:
        if decision.verb in TURNS or decision.verb in ALONE or decision.id in state.claims:
            continue
        if decision.id in in_effect:
            about |= affected_ids(decision)
        elif decision.id not in state.undone and not about.isdisjoint(affected_ids(decision)):
            raise Refused(
                f"a later decision depends on it: {verb_text(decision)} {subject_text(decision)} by "
                f"{shorten_id(decision.by)} on {format_day(decision.at)}; undo that first: {decision.act}"
            )
    return tuple(reversed(in_effect))


def affected_ids(decided: Decision | Draft) -> set[str]:
    """Return the IDs that a decision affects; later decisions on them depend on it."""
    found = {effect.pattern_id for effect in decided.effects}
    for key in ("patterns", "joined"):
        names = decided.after.get(key)
        found |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    return found if decided.verb in _ON_MANY else found | {decided.subject}


def reversal(verb: Verb, decision: Decision, by: str) -> Draft:
    """Make the draft with which `by` undoes (or redoes) one decision."""
    is_undo = verb is Verb.UNDO
    before, after = (decision.after, decision.before) if is_undo else (decision.before, decision.after)
    state = f"→ {recorded_state(after)}" if recorded_state(before) != recorded_state(after) else ""
    return Draft(
        verb=verb,
        subject=decision.id,
        summary=_summary(verb, f"{verb_text(decision)} {subject_text(decision)}", decision.by, by, state),
        before=before,
        after=after,
        effects=decision.inverse if is_undo else decision.effects,
        inverse=decision.effects if is_undo else decision.inverse,
    )


def summary(verb: Verb, decisions: Sequence[Decision], by: str) -> str:
    """Describe in one line what the undo (or redo) of one act did."""
    return _summary(verb, describe_act(decisions), decisions[0].by, by, "")


def describe_act(decisions: Sequence[Decision]) -> str:
    """Describe decisions of one act (at least one): `promote X`, `decide 3 patterns`.

    The answer to a question is not named beside the changes that it made.
    """
    decisions = [decision for decision in decisions if decision.verb is not Verb.DISMISS] or decisions
    verbs = {decision.verb for decision in decisions}
    what = "re-enable" if verbs == _RE_ENABLED else "decide" if len(verbs) > 1 else verb_text(decisions[0])
    if REPAIR in map(verb_info, decisions):
        what = REPAIR.word
    subjects = {decision.subject for decision in decisions}
    subject = subject_text(decisions[0]) if len(subjects) == 1 else plural(len(subjects), "pattern")
    return f"{what} {subject}"


def _summary(verb: Verb, what: str, author: str, by: str, state: str) -> str:
    """`Undone: deprecate X (→ established)`, `Redone: promote X by imre`."""
    whose = "" if is_same_user(author, by) else f" by {shorten_id(author)}"
    return f"{'Undone' if verb is Verb.UNDO else 'Redone'}: {what}{whose}{f' ({state})' if state else ''}"
