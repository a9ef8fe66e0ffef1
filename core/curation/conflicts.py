"""A decision is bound to what the person saw: whoever decided on the same since then is heard first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from core.base.errors import Conflict
from core.base.formatting import short_id
from core.base.text import visible_line
from core.curation.rules import Draft, about_text, verb_text
from core.curation.undo import ALONE, touched
from core.learning.outcomes import took
from core.records.decisions import TURNS, Decision


class Seen(NamedTuple):
    """What the person saw who decides.

    Attributes:
        decisions: How many decisions, from the first on.
        is_other: Whether the pattern of an id had another text then than it has now, or was not there.
    """

    decisions: int
    is_other: Callable[[str], bool]


def check_texts(draft: Draft, seen: Seen) -> None:
    """Refuse what is decided about a text that the person has not seen; what is taken back was seen once.

    Raises:
        Conflict: The text of a pattern that the decision is about, or quotes, is another one.
    """
    if draft.verb in TURNS:
        return
    for pattern_id in sorted(touched(draft).union(draft.quoted)):
        if seen.is_other(pattern_id):
            raise Conflict(f"the text of {short_id(pattern_id)} is another one by now; look again")


def check_seen(draft: Draft, by: str, news: Sequence[Decision], known: Mapping[str, Decision], now: datetime) -> None:
    """Refuse what was decided without knowing what somebody, be it the same person, decided meanwhile.

    Notes and snoozes stand beside other decisions; only the same one twice is none.

    Args:
        draft: What is to be decided.
        by: By whom.
        news: What was decided after what the person saw, oldest first.
        known: All decisions by id, of which an undo names one.
        now: The present moment.

    Raises:
        Conflict: Somebody did.
    """
    mine = _meant(draft, known)
    for decision in reversed(news):
        if draft.verb in TURNS and decision.by == by:
            continue
        beside = not ALONE.isdisjoint((draft.verb, decision.verb))
        again = draft.verb is decision.verb and draft.after.get("text") == decision.after.get("text")
        if (again or not beside) and not mine.isdisjoint(_meant(decision, known)):
            raise _conflict(decision, known, now)


def check_last_seen(by: str, news: Sequence[Decision], known: Mapping[str, Decision], now: datetime) -> None:
    """Refuse undo or redo of what stands last where others changed what that is; one's own decisions may be taken back
    faster than they are shown. See `check_seen`.
    """
    for decision in reversed(news):
        if decision.by != by:
            raise _conflict(decision, known, now)


def _meant(decided: Decision | Draft, known: Mapping[str, Decision]) -> set[str]:
    """What a decision is about; for undo and redo also what the one is about that they turn."""
    turned = known.get(decided.subject) if decided.verb in TURNS else None
    return touched(decided) | (touched(turned) if turned else set())


def told_since(about: Collection[str], seen: int, decisions: Sequence[Decision], now: datetime) -> str:
    """Who decided what on some patterns or questions since a person saw so many decisions; "" if nobody did."""
    news = decisions[seen:]
    known = {decision.id: decision for decision in decisions} if news else {}
    for decision in reversed(news):
        if decision.verb not in ALONE and not _meant(decision, known).isdisjoint(about):
            return _told(decision, known, now)
    return ""


def _conflict(decision: Decision, known: Mapping[str, Decision], now: datetime) -> Conflict:
    return Conflict(f"{_told(decision, known, now)}; nothing is decided, look again")


def _told(decision: Decision, known: Mapping[str, Decision], now: datetime) -> str:
    seconds = (now - decision.at).total_seconds()
    when = "just now" if seconds < 1 else f"{took(seconds * 1000)} ago"
    reason = f" ({visible_line(decision.reason, 120)})" if decision.reason else ""
    what = f"{verb_text(decision)} {about_text(decision, known)}"
    return f"{short_id(decision.by)} decided {when}: {what}{reason}"
