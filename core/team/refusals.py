"""Decisions that the space refuses: undone if made offline, authors informed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from core.base.formatting import format_age, format_day, shorten_id
from core.base.text import visible_line
from core.decisions import undo
from core.decisions.apply import apply_pending
from core.decisions.case import about_text, make_id, subject_text, verb_text
from core.decisions.conflicts import conflict_keys, conflict_text
from core.decisions.undo import ALONE, affected_ids
from core.records.decisions import SYNC, TURNS, Decision, Verb

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.records.team import SpaceConflict
    from core.sources.ledger import Ledger


_OPPOSITE: Final = {Verb.UNDO: Verb.REDO, Verb.REDO: Verb.UNDO}


class Seen(NamedTuple):
    """What a project had received from its space when a decision was made.

    `seq` is the number of the last decision up to which it had received all; `known` are the IDs of later ones.
    """

    seq: int
    known: tuple[str, ...]


def decisions_to_send(decisions: Sequence[Decision], known: Container[str]) -> list[Decision]:
    """Return decisions that the space lacks, oldest first; `known` are IDs it has.

    A decision that was undone before it was sent is left out. Of several undos and redos of a decision, only the last
    one is sent, if the space does not have the same result.
    """
    here: dict[str, bool] = {}
    there: dict[str, bool] = {}
    last: dict[str, str] = {}
    for decision in decisions:
        if decision.verb not in TURNS:
            here[decision.id], there[decision.id] = True, decision.id in known
            continue
        here[decision.subject] = decision.verb is Verb.REDO
        if decision.id in known:
            there[decision.subject] = decision.verb is Verb.REDO
        last[decision.subject] = decision.id

    def is_missing(decision: Decision) -> bool:
        if decision.id in known or decision.by == SYNC:
            return False
        if decision.verb not in TURNS:
            return here[decision.id]
        subject = decision.subject
        return subject in known and last[subject] == decision.id and here[subject] != there.get(subject, True)

    return [decision for decision in decisions if is_missing(decision)]


def seen_before(decision_id: str, decisions: Sequence[Decision], seqs: Mapping[str, int], cursor: int) -> Seen:
    """Return what was received when a decision was made; now if not in the log.

    `seqs` are the numbers of the known decisions of the space by ID; all up to `cursor` were received. What the log has
    after the decision was not seen.
    """
    before: list[str] = []
    seen, is_after = cursor, False
    for decision in decisions:
        is_after |= decision.id == decision_id
        if (seq := seqs.get(decision.id)) is not None:
            if is_after:
                seen = min(seen, seq - 1)
            else:
                before.append(decision.id)
    return Seen(seen, tuple(id for id in before if seqs[id] > seen))


def find_late(
    received: Iterable[Decision], unsent: Sequence[Decision], known: Mapping[str, Decision]
) -> dict[str, str]:
    """Return refusals of unsent decisions by ID: a received one has their subject."""
    late: dict[str, str] = {}
    keys = {decision.id: set(conflict_keys(decision, known)) for decision in unsent}
    if not any(keys.values()):
        return late
    by_id = {**known}
    for decision in received:
        by_id[decision.id] = decision
        about = conflict_keys(decision, by_id)
        for identifier, own in keys.items():
            if identifier not in late and not own.isdisjoint(about):
                late[identifier] = late_reason(decision, by_id)
    return late


def late_reason(decision: Decision, known: Mapping[str, Decision]) -> str:
    """Describe the decision of another member because of which one is undone."""
    reason = f" ({visible_line(decision.reason, 120)})" if decision.reason else ""
    return (
        f"{shorten_id(decision.by)} had decided on {format_day(decision.at)} at {decision.at:%H:%M} UTC: "
        f"{verb_text(decision)} {about_text(decision, known)}{reason}"
    )


def undo_refused(
    paths: ProjectPaths,
    settings: Settings,
    ledger: Ledger,
    refusals: Mapping[str, str],
    *,
    sent: Container[str] = (),
    now: datetime,
) -> tuple[Decision, ...]:
    """Undo refused decisions, each with its reason, and later dependent ones.

    `sent` are the IDs of decisions in the space, which stay. Returns the new decisions, which are not shared.
    """
    apply_pending(paths, settings, ledger)
    with ledger.exclusive():
        known = ledger.by_id()
        turns = []
        for decision, why in reversed(_reasons(ledger, refusals, sent)):
            if decision.verb in TURNS:
                turns.append((_OPPOSITE[decision.verb], known[decision.subject], why))
            else:
                turns.append((Verb.UNDO, decision, why))
        made = _make_turns(turns, now)
        if made:
            ledger.append(*made)
    apply_pending(paths, settings, ledger)
    return made


def redo_accepted(
    paths: ProjectPaths, settings: Settings, ledger: Ledger, accepted: Container[str], now: datetime
) -> tuple[Decision, ...]:
    """Redo decisions undone by `undo_refused` that another copy has since sent."""
    with ledger.exclusive():
        known = ledger.by_id()
        last = {one.subject: one for one in ledger.decisions() if one.verb in TURNS}
        refused = [known[key] for key, turn in last.items() if key in accepted and turn.by == SYNC]
        why = "another copy of this project has sent it"
        made = _make_turns(
            [(Verb.REDO, one, why) for one in refused if last[one.id].verb is Verb.UNDO and one.verb not in TURNS], now
        )
        if made:
            ledger.append(*made)
    if made:
        apply_pending(paths, settings, ledger)
    return made


def _make_turns(turns: Iterable[tuple[Verb, Decision, str]], now: datetime) -> tuple[Decision, ...]:
    """Make undo and redo of decisions, each with its reason."""
    now = now.astimezone(UTC)
    act = make_id(now)
    found = []
    for number, (verb, subject, why) in enumerate(turns, 1):
        draft = undo.reversal(verb, subject, SYNC)
        shared = {name: getattr(draft, name) for name in ("verb", "subject", "before", "after", "effects", "inverse")}
        found.append(Decision(id=f"{act}-{number:04d}", at=now, by=SYNC, reason=why, **shared))
    return tuple(found)


def _reasons(ledger: Ledger, refusals: Mapping[str, str], sent: Container[str]) -> list[tuple[Decision, str]]:
    """Return the decisions to undo, oldest first, with the reason of each."""
    undone, known = ledger.state().undone, ledger.by_id()
    about: dict[str, Decision] = {}
    found: list[tuple[Decision, str]] = []
    for decision in ledger.decisions():
        why = refusals.get(decision.id, "")
        if decision.verb in TURNS:
            original = known.get(decision.subject)
            if why and original is not None and (original.id in undone) is (decision.verb is Verb.UNDO):
                found.append((decision, why))
            continue
        if decision.id in undone:
            continue
        names = affected_ids(decision)
        if not why and decision.id not in sent and decision.by != SYNC and decision.verb not in ALONE:
            earlier = next((about[name] for name in sorted(names) if name in about), None)
            if earlier is not None:
                why = f"depends on a decision that was undone: {verb_text(earlier)} {subject_text(earlier)}"
        if why:
            found.append((decision, why))
            if decision.verb not in ALONE:
                about |= dict.fromkeys(names, decision)
    return found


OwnRecord = Callable[[str], Mapping[str, Any]]
"""Returns a record of this project as the space would get it, {} if there is none."""
_MAX_LINE: Final = 80
_ID_KEYS: Final = frozenset({"pattern_id", "template_id", "id"})


def describe_conflict(
    conflict: SpaceConflict, known: Mapping[str, Decision], own_record: OwnRecord, now: datetime
) -> str:
    """Describe, to the author of a decision, why it was not made."""
    if conflict.kind == "decision" and (decision := _decision(conflict)) is not None:
        return conflict_text(decision, known, now)
    what = _changed_text(conflict, own_record)
    change = first_change(own_record(conflict.subject), _record(conflict))
    when = f"{format_age(conflict.at, now)}{change}"
    return f"{what} by {shorten_id(conflict.by)} {when}; your decision was not made, review it again"


def describe_late(conflict: SpaceConflict, known: Mapping[str, Decision], own_record: OwnRecord) -> str:
    """Describe, for the log, why a decision that was made offline is undone."""
    if conflict.kind == "decision" and (decision := _decision(conflict)) is not None:
        return late_reason(decision, known)
    when = f"on {format_day(conflict.at)} at {conflict.at:%H:%M} UTC"
    change = first_change(own_record(conflict.subject), _record(conflict))
    return f"{_changed_text(conflict, own_record)} by {shorten_id(conflict.by)} {when}{change}"


def _changed_text(conflict: SpaceConflict, own_record: OwnRecord) -> str:
    name = shorten_id(conflict.subject)
    if conflict.kind == "decision":
        return f"{name} was decided on"
    if conflict.record is None:
        return f"{name} was removed from the registry of the team"
    return f"the text of {name} was changed" if own_record(conflict.subject) else f"{name} was added"


def _decision(conflict: SpaceConflict) -> Decision | None:
    """Return a conflict's decision, with the server's time and sending member."""
    try:
        decision = msgspec.json.decode(conflict.payload, type=Decision)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return replace(decision, at=conflict.at, by=conflict.by)


def _record(conflict: SpaceConflict) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(conflict.record or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def first_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the first differing line of two records as `: 'old' → 'new'`, or ""."""
    if not before or not after:
        return ""
    for key in (*after, *(key for key in before if key not in after)):
        if key in _ID_KEYS or before.get(key) == after.get(key):
            continue
        old, new = [*_lines(before.get(key))], [*_lines(after.get(key))]
        for number in range(max(len(old), len(new))):
            one, other = (lines[number] if number < len(lines) else "" for lines in (old, new))
            if one != other:
                return f": '{visible_line(one, _MAX_LINE)}' → '{visible_line(other, _MAX_LINE)}'"
    return ""


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _lines(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _lines(item)
    elif value is not None:
        yield from str(value).splitlines()
