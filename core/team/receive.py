"""Decisions of a space in the decision log and the pattern files of the project.

A received decision keeps its ID, so it is appended once. Its effects are planned anew for the records here: they keep
their counts, their places and their overrides. A decision about a pattern that this project does not have is only
logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.errors import Refused, UnknownRecord, Unwritable
from core.base.paths import is_safe_id
from core.decisions import record_changes, undo
from core.decisions.apply import apply_pending
from core.decisions.case import DECIDED_TEXT, Draft
from core.decisions.merge import as_read
from core.decisions.pattern_registry import OVERRIDE, UnitOfWork
from core.decisions.record_changes import ARCHIVED, Batch
from core.decisions.rules import override_changes, override_of
from core.decisions.undo import affected_ids
from core.decisions.use_counts import make_counted_events
from core.records.decisions import RE_ENABLED, TURNS, Decision, Effect, Verb
from core.records.patterns import PatternType
from core.sources.events import append_events
from core.sources.fold import fold
from core.sources.pattern_text import LIST_OF
from core.team.refusals import decisions_to_send, find_late, redo_accepted, undo_refused
from core.team.sharing import keep_shared_keys, new_record

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import CurationState, Pin
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.sources.ledger import Ledger

Read = Callable[[], tuple["Snapshot", "Scoreboard"]]
"""Reads the newest records of the project."""
_HASH_KEYS: Final = ("content_hash", "anti_hash")
_PINS: Final = frozenset({Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET, Verb.ACCEPT_INVERSION})
_EMPTY: Final[dict[str, Any]] = {"effects": (), "inverse": ()}
_ID_KEYS: Final = frozenset({"id", "pattern_id", "template_id"})


class Receiver:
    """Writes decisions of a space into one project.

    `sent` has the IDs of the known decisions of the space; received ones are added. `to_local` returns the content hash
    of the local text for that of a shared one; they differ where the shared text is masked.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        settings: Settings,
        ledger: Ledger,
        read: Read,
        *,
        sent: set[str],
        to_local: Callable[[str], str] = lambda shared: shared,
    ) -> None:
        self._paths = paths
        self._settings = settings
        self._ledger = ledger
        self._read = read
        self._sent = sent
        self._to_local = to_local

    def receive(
        self, decisions: Sequence[Decision], now: datetime, *, proposed_by: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Decision, ...]:
        """Append the decisions that the log lacks, in the space's order; apply them.

        Own decisions that were not sent and have a common subject with a new one are undone first. Returns all that
        was appended. Raises `Unwritable` if the log cannot be written. Effects that a file does not take stay pending.
        `proposed_by` are members by the IDs of extractions whose patterns are held until a person releases them.
        """
        known = self._ledger.by_id()
        self._sent.update(decision.id for decision in decisions)
        self._confirm(decisions)
        new = {decision.id: decision for decision in decisions if decision.id not in known}
        unsent = decisions_to_send(self._ledger.counting_decisions(), self._sent)
        accepted = {decision.id for decision in decisions if decision.id in known}
        received = [*redo_accepted(self._paths, self._settings, self._ledger, accepted, now)]
        if late := find_late(new.values(), unsent, known):
            received += undo_refused(self._paths, self._settings, self._ledger, late, sent=self._sent, now=now)
        for run in _runs(new.values(), self._ledger):
            self._apply()
            snapshot, _ = self._read()
            with self._ledger.exclusive():
                plan = _Plan(self._paths, self._ledger, snapshot.patterns, self._to_local, proposed_by)
                local = [plan.decision(decision) for decision in run if decision.id not in self._ledger]
                if local:
                    self._ledger.append(*local)
            received += local
            self._apply()
            self._count_merged(local)
        return tuple(received)

    def _confirm(self, decisions: Sequence[Decision]) -> None:
        """Confirm decisions that the space has and that came before, as by `git pull`."""
        claims, known = self._ledger.claims(), self._ledger.by_id()
        arrived = [one for one in decisions if one.id in claims and self._is_same(known[one.id], one)]
        if arrived:
            self._ledger.confirm(decision.id for decision in arrived)

    def _is_same(self, local: Decision, shared: Decision) -> bool:
        """Return whether a log line is this decision; each project plans its effects."""
        texts = [(local.after.get(key), shared.after.get(key)) for key in _HASH_KEYS]
        return (
            (local.verb, local.subject, local.at) == (shared.verb, shared.subject, shared.at)
            and all(here == there or here == self._to_local(str(there)) for here, there in texts)
            and all(_is_harmless(effect, shared) for effect in local.effects)
        )

    def _apply(self) -> None:
        apply_pending(self._paths, self._settings, self._ledger)

    def _count_merged(self, decisions: Iterable[Decision]) -> None:
        merges = [decision for decision in decisions if decision.verb is Verb.MERGE and decision.effects]
        if merges:
            snapshot, board = self._read()
            for merge in merges:
                append_events(self._paths, *make_counted_events(snapshot, board, (merge.subject,), merge))


def _is_harmless(effect: Effect, shared: Decision) -> bool:
    """Return whether a foreign line's effect only shows a pin or is the space's."""
    if effect.insert is not None or effect.remove:
        return effect.insert is not None and any(effect.insert == one.insert for one in shared.effects)
    return not {*effect.set, *effect.text, *effect.unset} - {OVERRIDE}


def _runs(decisions: Iterable[Decision], ledger: Ledger) -> Iterator[list[Decision]]:
    """Split decisions before any that depends on changed files; keep acts together."""
    run: list[Decision] = []
    changed: set[str] = set()
    for _, group in groupby(decisions, key=lambda decision: decision.act):
        act = list(group)
        about = {name for decision in act for name in _about(decision, ledger)}
        if not changed.isdisjoint(about):
            yield run
            run, changed = [], set()
        run += act
        for decision in act:
            if decision.effects or decision.verb in _PINS or decision.verb in TURNS:
                changed |= _about(decision, ledger)
    if run:
        yield run


def _about(decision: Decision, ledger: Ledger) -> set[str]:
    """Return the IDs a decision affects, with those of one it undoes or redoes."""
    original = ledger.by_id().get(decision.subject) if decision.verb in TURNS else None
    return affected_ids(decision) | (affected_ids(original) if original is not None else set())


class _Plan:
    """Plans received decisions' effects on present records, under the log's lock."""

    def __init__(
        self,
        paths: ProjectPaths,
        ledger: Ledger,
        patterns: Mapping[str, Pattern],
        to_local: Callable[[str], str],
        proposed_by: Mapping[str, str],
    ) -> None:
        self._paths = paths
        self._ledger = ledger
        self._patterns = patterns
        self._to_local = to_local
        self._proposed_by = proposed_by
        self._unit = UnitOfWork(paths, ledger)
        self._made: dict[str, Decision] = {}
        self._touched: set[str] = set()

    def decision(self, shared: Decision) -> Decision:
        """Return the decision as this project stores it."""
        if shared.verb in TURNS:
            local = self._turned(shared)
        else:
            local = self._with_local_texts(shared)
            local = replace(local, **self._effects(local))
            if (member := self._proposed_by.get(local.id)) is not None:
                local = self._held(local, member)
        self._made[local.id] = local
        self._touched |= affected_ids(local)
        return local

    def _held(self, decision: Decision, member: str) -> Decision:
        """Return an extraction as the member's proposal; compute its held texts here."""
        new = [one for one in decision.effects if one.insert is not None and one.pattern_id not in self._patterns]
        hashes = {one.pattern_id: as_read(one.insert or {}, PatternType(one.type)).content_hash for one in new}
        after = {**decision.after, "patterns": [*hashes], "joined": [], "hashes": hashes, "proposed": True}
        return replace(decision, by=member, after=after)

    def _turned(self, shared: Decision) -> Decision:
        original = self._made.get(shared.subject) or self._ledger.by_id().get(shared.subject)
        if original is None:  # it was not shared with this project
            return replace(shared, **_EMPTY)
        draft = undo.reversal(shared.verb, original, shared.by)
        self._touched |= affected_ids(original)
        return replace(shared, before=draft.before, after=draft.after, effects=draft.effects, inverse=draft.inverse)

    def _with_local_texts(self, shared: Decision) -> Decision:
        """Return the decision with the hashes of local texts."""
        before, after = self._local_details(shared.before), self._local_details(shared.after)
        if after.get("content_hash") != shared.after.get("content_hash") and DECIDED_TEXT in after:
            pattern = self._patterns.get(shared.subject)
            is_same = pattern is not None and pattern.content_hash == after["content_hash"]
            after[DECIDED_TEXT] = self._unit.text(pattern) if pattern is not None and is_same else {}
        return replace(shared, before=before, after=after)

    def _local_details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(details)
        for key in _HASH_KEYS:
            if isinstance(found.get(key), str):
                found[key] = self._to_local(found[key])
        hashes = found.get("hashes")
        if isinstance(hashes, dict):
            found["hashes"] = {key: self._to_local(one) for key, one in hashes.items() if isinstance(one, str)}
        return found

    def _effects(self, decision: Decision) -> dict[str, Any]:
        """Return `effects` and `inverse` for the records here."""
        try:
            match decision.verb:
                case Verb.ARCHIVE:
                    return self._archived(decision)
                case Verb.MERGE:
                    return self._merged(decision)
                case Verb.RESTORE:
                    return self._restored(decision)
            found = [*self._inserted(decision), *self._changed(decision)]
            if decision.verb in _PINS or decision.after.get(RE_ENABLED) is True:
                found += self._pinned(decision)
        except (Refused, UnknownRecord, Unwritable):
            return _EMPTY  # the records here are not as those of the author; only the log has the decision
        effects = tuple(effect for one in found for effect in one["effects"])
        inverse = tuple(effect for one in reversed(found) for effect in one["inverse"])
        return {"effects": effects, "inverse": inverse}

    def _state(self, subject: str) -> CurationState:
        """Return the state before the next decision, with this run's about `subject`."""
        if subject in self._touched:
            return self._ledger.state_with(tuple(self._made.values()))
        return self._ledger.state()

    def _pinned(self, decision: Decision) -> list[dict[str, Any]]:
        """Return the change of the override in the record of the subject."""
        pattern = self._patterns.get(decision.subject)
        if pattern is None or not self._unit.is_writable(pattern):
            return []
        before, after = self._state(pattern.id).pins.get(pattern.id), _pins(decision).get(pattern.id)
        if before is None and after is None:
            return []
        written = override_of(before) if before is not None else self._unit.written_override(pattern)
        return [override_changes(pattern, written, override_of(after) if after is not None else None)]

    def _inserted(self, decision: Decision) -> list[dict[str, Any]]:
        """Return the insertions of new records."""
        found = []
        pins = _pins(decision)
        for effect in decision.effects:
            if effect.insert is None or effect.type not in LIST_OF or not is_safe_id(effect.pattern_id):
                continue
            kind, pattern_id = PatternType(effect.type), effect.pattern_id
            known = self._patterns.get(pattern_id)
            file = known.file if known is not None else self._paths.relative(self._paths.pattern_file(kind.value))
            record = new_record(kind, pattern_id, effect.insert)
            if pattern_id in pins:
                record[OVERRIDE] = override_of(pins[pattern_id])
            changes = record_changes.Changes()
            changes.insert(file, kind, pattern_id, record, keep_id=True)
            found.append(changes.draft_fields())
        return found

    def _changed(self, decision: Decision) -> list[dict[str, Any]]:
        """Return the changes of texts of known records."""
        changes = record_changes.Changes()
        for effect in decision.effects:
            pattern = self._patterns.get(effect.pattern_id)
            if pattern is None:
                continue
            keys, removed = (
                {key: value for key, value in keep_shared_keys(pattern.type, one).items() if key not in _ID_KEYS}
                for one in (effect.set, dict.fromkeys(effect.unset))
            )
            if keys or removed:
                stored = self._unit.registry.record(pattern)
                changes.set(stored, pattern.type, pattern.id, keys, tuple(removed))
        return [changes.draft_fields()]

    def _archived(self, decision: Decision) -> dict[str, Any]:
        notes = {one.pattern_id: (one.insert or {}).get(ARCHIVED) for one in decision.effects if one.insert}
        names = decision.after.get("patterns")
        reasons = []
        for name in names if isinstance(names, list) else ():
            if (pattern := self._patterns.get(name)) is not None and self._unit.is_writable(pattern):
                note = notes.get(name)
                why = note.get("reason") if isinstance(note, dict) else None
                reasons.append((pattern, why if isinstance(why, str) else decision.reason))
        return _fields(record_changes.archive(self._batch(decision), reasons, decision.subject))

    def _merged(self, decision: Decision) -> dict[str, Any]:
        target, other = (self._patterns.get(str(id)) for id in (decision.subject, decision.after.get("merged")))
        if target is None or other is None:
            return _EMPTY
        return _fields(record_changes.merge(self._batch(decision), target, other))

    def _restored(self, decision: Decision) -> dict[str, Any]:
        try:
            return _fields(record_changes.restore(self._batch(decision), decision.subject, self._patterns))
        except UnknownRecord:  # it was archived before the project joined the team
            found = self._inserted(decision)
            return found[0] if found else _EMPTY

    def _batch(self, decision: Decision) -> Batch:
        return Batch(
            paths=self._paths,
            registry=self._unit.registry,
            ids=self._unit.ids,
            state=self._ledger.state(),
            id=decision.id,
            at=decision.at,
            by=decision.by,
            reason=decision.reason,
        )


def _pins(decision: Decision) -> Mapping[str, Pin]:
    """Return the pins that a decision sets, by pattern ID."""
    return fold((decision,)).pins


def _fields(draft: Draft) -> dict[str, Any]:
    return {"effects": draft.effects, "inverse": draft.inverse}
