"""What all decisions together amount to: a fold over the ledger (semantics 4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from core.records.decisions import Arrival, BurstVerdict, CurationState, Decision, InversionVerdict, Pin, Verb
from core.records.patterns import Maturity
from core.records.times import parse_time
from core.records.verbs import TEXT_HASH

_PINS: Final = {
    Verb.PROMOTE: Maturity.PROVEN,
    Verb.DEPRECATE: Maturity.DEPRECATED,
    Verb.ACCEPT_INVERSION: Maturity.DEPRECATED,
}

_ARRIVALS: Final = {Verb.IMPORT: "import", Verb.EXTRACT: "extraction", Verb.QUARANTINE: "quarantine"}
_SEEING: Final = {Verb.RELEASE, Verb.PROMOTE, Verb.DEPRECATE}
"""Who decides so about a pattern has seen its text."""
_BURST_VERDICTS: Final = {Verb.REVOKE: "revoked", Verb.CONFIRM: "confirmed"}


def fold(decisions: Iterable[Decision]) -> CurationState:
    """The state after `decisions`, oldest first.

    Undo takes a decision out as if it had never been made, redo puts it back in its place, and any new
    decision ends the chance to redo, as in an editor. An undo or redo whose subject cannot be taken back or
    repeated at that point (a ledger joined by hand) changes nothing.
    """
    made: dict[str, Decision] = {}
    undoable: dict[str, None] = {}
    redoable: dict[str, None] = {}
    undone: set[str] = set()
    acts: dict[str, str] = {}
    for decision in decisions:
        if decision.verb is Verb.UNDO:
            if decision.subject in undoable:
                acts[decision.subject] = decision.act
                del undoable[decision.subject]
                redoable[decision.subject] = None
                undone.add(decision.subject)
        elif decision.verb is Verb.REDO:
            if decision.subject in redoable:
                acts[decision.subject] = decision.act
                del redoable[decision.subject]
                undoable[decision.subject] = None
                undone.discard(decision.subject)
        elif decision.id not in made:
            made[decision.id] = decision
            acts[decision.id] = decision.act
            undoable[decision.id] = None
            redoable.clear()
    pins: dict[str, Pin] = {}
    inversions: dict[str, InversionVerdict] = {}
    notes: dict[str, tuple[Decision, ...]] = {}
    bursts: dict[str, tuple[BurstVerdict, ...]] = {}
    arrivals: dict[str, Arrival] = {}
    cleared: dict[str, frozenset[str]] = {}
    approved: dict[str, frozenset[str]] = {}
    approved_texts: set[str] = set()
    extracted: set[str] = set()
    imported: dict[str, dict[str, Any]] = {}
    dismissed: set[str] = set()
    reset: set[str] = set()
    for decision in made.values():
        if decision.id in undone:
            # A record that was used or edited since stays in its file when the import is taken back, unread.
            if decision.verb is Verb.IMPORT:
                _arrive(decision, arrivals)
            continue
        if decision.verb in _BURST_VERDICTS:
            _judge_burst(decision, bursts)
        elif decision.verb is Verb.DISMISS:
            dismissed.add(decision.subject)
        elif decision.verb in _ARRIVALS:
            _arrive(decision, arrivals)
            if decision.verb is Verb.QUARANTINE:
                cleared.pop(decision.subject, None)
                approved.pop(decision.subject, None)
            elif decision.verb is Verb.EXTRACT:
                extracted |= {effect.pattern_id for effect in decision.effects if effect.insert is not None}
            _remember_imported(decision, imported)
        else:
            _see(decision, arrivals)
            _approve(decision, approved, cleared)
            if decision.verb is Verb.RELEASE and (text := _text(decision.after.get(TEXT_HASH))):
                approved_texts.add(text)
            _apply(decision, pins, inversions, notes)
            if decision.verb is Verb.RESET:
                reset.add(decision.subject)
            elif decision.verb in _PINS:
                reset.discard(decision.subject)
    return CurationState(
        pins=pins,
        inversions=inversions,
        notes=notes,
        bursts=bursts,
        arrivals=arrivals,
        cleared=cleared,
        approved=approved,
        approved_texts=frozenset(approved_texts),
        extracted=frozenset(extracted),
        dismissed=frozenset(dismissed),
        imported=imported,
        undone=frozenset(undone),
        undoable=tuple(undoable),
        redoable=tuple(redoable),
        acts=acts,
        reset=frozenset(reset),
    )


def _judge_burst(decision: Decision, bursts: dict[str, tuple[BurstVerdict, ...]]) -> None:
    first, last = parse_time(decision.after.get("first")), parse_time(decision.after.get("last"))
    patterns = decision.after.get("patterns")
    if first is not None and last is not None:
        verdict = BurstVerdict(
            verdict=_BURST_VERDICTS[decision.verb],
            first=first,
            last=last,
            decision_id=decision.id,
            patterns=tuple(filter(None, map(_text, patterns))) if isinstance(patterns, list) else (),
        )
        bursts[decision.subject] = (*bursts.get(decision.subject, ()), verdict)


def _arrive(decision: Decision, arrivals: dict[str, Arrival]) -> None:
    """Texts that nobody has read yet; `after["hashes"]` names them by pattern id."""
    hashes = decision.after.get("hashes")
    for pattern_id in hashes if isinstance(hashes, dict) else ():
        known = arrivals.get(pattern_id)
        # Whoever puts a pattern into quarantine wants it looked at again, whatever was seen before.
        seen = known.seen if known is not None and decision.verb is not Verb.QUARANTINE else frozenset()
        arrivals[pattern_id] = Arrival(
            kind=_ARRIVALS[decision.verb],
            at=decision.at,
            by=decision.by,
            decision_id=decision.id,
            blocks=decision.verb is not Verb.EXTRACT or (known is not None and known.blocks),
            seen=seen,
            reason=decision.reason,
        )


def _remember_imported(decision: Decision, imported: dict[str, dict[str, Any]]) -> None:
    if decision.verb is Verb.IMPORT:
        imported |= {effect.pattern_id: effect.insert for effect in decision.effects if effect.insert is not None}
        records = decision.after.get("imported")
        for pattern_id, record in records.items() if isinstance(records, dict) else ():
            if isinstance(record, dict):
                imported[pattern_id] = record


def _see(decision: Decision, arrivals: dict[str, Arrival]) -> None:
    known, seen = arrivals.get(decision.subject), _text(decision.after.get("content_hash"))
    if known is not None and seen and decision.verb in _SEEING:
        arrivals[decision.subject] = replace(known, seen=known.seen | {seen})


def _approve(decision: Decision, approved: dict[str, frozenset[str]], cleared: dict[str, frozenset[str]]) -> None:
    seen = _text(decision.after.get("content_hash"))
    if decision.verb in (Verb.RELEASE, Verb.PROMOTE) and seen:
        for texts in (approved, cleared) if decision.reason else (approved,):
            texts[decision.subject] = texts.get(decision.subject, frozenset()) | {seen}


def _apply(
    decision: Decision,
    pins: dict[str, Pin],
    inversions: dict[str, InversionVerdict],
    notes: dict[str, tuple[Decision, ...]],
) -> None:
    subject = decision.subject
    if decision.verb in _PINS:
        pins[subject] = Pin(
            state=_PINS[decision.verb],
            at=decision.at,
            by=decision.by,
            reason=decision.reason,
            content_hash=_text(decision.after.get("content_hash")),
            decision_id=decision.id,
            successes=_count(decision.after.get("successes")),
            failures=_count(decision.after.get("failures")),
        )
    if decision.verb is Verb.RESET:
        pins.pop(subject, None)
    elif decision.verb is Verb.NOTE:
        notes[subject] = (*notes.get(subject, ()), decision)
    elif decision.verb in (Verb.ACCEPT_INVERSION, Verb.REJECT_INVERSION):
        inversions[subject] = InversionVerdict(
            verdict="accepted" if decision.verb is Verb.ACCEPT_INVERSION else "rejected",
            at=decision.at,
            failures=_count(decision.after.get("failures")),
            anti_id=_text(decision.after.get("anti_id")),
            decision_id=decision.id,
        )
        if decision.verb is Verb.ACCEPT_INVERSION and (made := _text(decision.after.get("anti_id"))):
            pins[made] = Pin(
                state=Maturity.ESTABLISHED,
                at=decision.at,
                by=decision.by,
                reason=decision.reason,
                content_hash=_text(decision.after.get("anti_hash")),
                decision_id=decision.id,
                # A failure of the avoided approach confirms the anti-pattern (semantics 1).
                successes=_count(decision.after.get("failures")),
                failures=_count(decision.after.get("successes")),
            )
    elif decision.verb is Verb.SNOOZE:
        until = parse_time(decision.after.get("until"))
        beyond = _count(decision.after.get("beyond")) or None
        standing = inversions.get(subject)
        if standing is not None and standing.verdict != "snoozed":
            inversions[subject] = replace(standing, until=until, beyond=beyond)
        else:
            inversions[subject] = InversionVerdict(
                verdict="snoozed", at=decision.at, until=until, beyond=beyond, decision_id=decision.id
            )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
