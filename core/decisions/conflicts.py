"""Optimistic concurrency: reject decisions about something that changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from core.base.errors import Conflict
from core.base.formatting import format_age, shorten_id
from core.base.text import visible_line
from core.decisions.case import about_text, verb_text
from core.decisions.undo import ALONE, affected_ids
from core.records.decisions import TURNS, Decision, Verb

if TYPE_CHECKING:
    from core.decisions.case import Draft


class ExpectedState(NamedTuple):
    """The state that the user saw when deciding.

    `decisions` is the number of decisions in the ledger. `has_changed` returns whether a pattern (by ID) is new or its
    text has changed since.
    """

    decisions: int
    has_changed: Callable[[str], bool]


def check_texts(draft: Draft, expected: ExpectedState) -> None:
    """Raise `Conflict` if a text that the decision is about, or quotes, has changed."""
    if draft.verb in TURNS:
        return
    for pattern_id in sorted(affected_ids(draft).union(draft.quoted)):
        if expected.has_changed(pattern_id):
            raise Conflict(f"{shorten_id(pattern_id)} was edited since you opened it; review it again")


def check_decisions(
    draft: Draft, by: str, news: Sequence[Decision], known: Mapping[str, Decision], now: datetime
) -> None:
    """Raise `Conflict` if a newer decision is about the subject of `draft`.

    `news` has the decisions that the author of `draft` has not seen, oldest first. Notes and snoozes conflict only with
    an identical decision.
    """
    mine = _all_affected(draft, known)
    for decision in reversed(news):
        if draft.verb in TURNS and decision.by == by:
            continue
        can_coexist = not ALONE.isdisjoint((draft.verb, decision.verb))
        is_same = draft.verb is decision.verb and draft.after.get("text") == decision.after.get("text")
        if (is_same or not can_coexist) and not mine.isdisjoint(_all_affected(decision, known)):
            raise _conflict(decision, known, now)


def check_newest(by: str, news: Sequence[Decision], known: Mapping[str, Decision], now: datetime) -> None:
    """Raise `Conflict` if another author decided since; used by undo and redo."""
    for decision in reversed(news):
        if decision.by != by:
            raise _conflict(decision, known, now)


def _all_affected(decided: Decision | Draft, known: Mapping[str, Decision]) -> set[str]:
    """Return the IDs affected by a decision and by the one it undoes or redoes."""
    other = known.get(decided.subject) if decided.verb in TURNS else None
    return affected_ids(decided) | (affected_ids(other) if other else set())


def conflict_keys(decision: Decision, known: Mapping[str, Decision]) -> tuple[str, ...]:
    """Return what a decision is about; decisions with a common key depend on order.

    Notes and dismissals have no key. `known` has the decisions by ID, for undo and redo.
    """
    if decision.verb in TURNS:
        other = known.get(decision.subject)
        return (*(conflict_keys(other, known) if other else ()), f"decision {decision.subject}")
    question = f"question {decision.subject}"
    match decision.verb:
        case Verb.NOTE | Verb.DISMISS:
            return ()
        case Verb.SNOOZE:
            return (question,)
        case Verb.EXTRACT | Verb.IMPORT:  # further uses of known patterns are added up
            texts = decision.after.get("patterns")
            names = [name for name in texts if isinstance(name, str)] if isinstance(texts, list) else []
            return tuple(sorted({*names, *(one.pattern_id for one in decision.effects if one.insert is not None)}))
        case Verb.ACCEPT_INVERSION | Verb.REJECT_INVERSION:
            return (*sorted(affected_ids(decision)), question)
    return tuple(sorted(affected_ids(decision)))


def newer_decision_text(about: Collection[str], first: int, decisions: Sequence[Decision], now: datetime) -> str:
    """Describe the newest decision on these IDs after the `first` ones, or ""."""
    news = decisions[first:]
    known = {decision.id: decision for decision in decisions} if news else {}
    for decision in reversed(news):
        if decision.verb not in ALONE and not _all_affected(decision, known).isdisjoint(about):
            return _decision_line(decision, known, now)
    return ""


def _conflict(decision: Decision, known: Mapping[str, Decision], now: datetime) -> Conflict:
    return Conflict(conflict_text(decision, known, now))


def conflict_text(decision: Decision, known: Mapping[str, Decision], now: datetime) -> str:
    """Describe the earlier decision that prevents one, to its author."""
    return f"{_decision_line(decision, known, now)}; your decision was not made, review it again"


def _decision_line(decision: Decision, known: Mapping[str, Decision], now: datetime) -> str:
    reason = f" ({visible_line(decision.reason, 120)})" if decision.reason else ""
    what = f"{verb_text(decision)} {about_text(decision, known)}"
    age = format_age(min(decision.at, now), now)  # clocks of machines differ
    return f"{shorten_id(decision.by)} decided {'just now' if age == 'now' else age}: {what}{reason}"
