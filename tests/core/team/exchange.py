"""Projects that exchange decisions through a space in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from core.base.paths import ProjectPaths
from core.decisions.conflicts import conflict_keys
from core.project.project import Project
from core.records.decisions import CurationState, Decision
from core.sources.ledger import Ledger
from core.team.receive import Receiver
from core.team.refusals import decisions_to_send, late_reason, seen_before, undo_refused
from core.team.sharing import Sharing, is_shared
from tests.core.team.working_copy import write_patterns
from tests.factories import NO_RETRY_SETTINGS

IDS: Final = ("pat-error-a-001", "pat-error-b-001", "pat-error-c-001")


class MemorySpace:
    """Records decisions in the order in which they come, as the functions of the server do."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []

    def decide(self, decision: Decision, seen: int, known: Sequence[str]) -> Decision | None:
        """Record a decision; returns the one that prevents it, None if it is recorded."""
        by_id = {one.id: one for one in self.decisions}
        if decision.id in by_id:
            return None
        keys = set(conflict_keys(decision, by_id))
        for one in self.decisions[seen:]:
            if one.id not in known and not keys.isdisjoint(conflict_keys(one, by_id)):
                return one
        self.decisions.append(decision)
        return None

    def seqs(self) -> dict[str, int]:
        return {decision.id: number for number, decision in enumerate(self.decisions, 1)}


class Member:
    """A reviewer with a project of their own that has joined the space; also its gate."""

    note = ""

    def __init__(self, space: MemorySpace, folder: Path, by: str, clock: Callable[[], datetime]) -> None:
        self.space = space
        self.clock = clock
        self.paths = write_project(folder)
        self.project = Project(self.paths, NO_RETRY_SETTINGS, by=by, clock=clock, cache=False, asks=False)
        self.project.load()
        self.project.curator.gate = self
        self.cursor = 0
        self.is_online = True
        self.sent: set[str] = set()

    @property
    def ledger(self) -> Ledger:
        return self.project.ledger

    @property
    def state(self) -> CurationState:
        return self.ledger.state()

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        known = self.ledger.by_id()
        unsent = {key for one in self.unsent() for key in conflict_keys(one, known)}
        if not self.is_online or any(unsent.intersection(conflict_keys(one, known)) for one in decisions):
            return {}
        before = [*self.space.decisions]
        refused = {decision.id: self._sent(decision) for decision in decisions}
        if is_whole and any(refused.values()):
            self.space.decisions[:] = before
        return {key: why for key, why in refused.items() if why}

    def unsent(self) -> list[Decision]:
        return [one for one in decisions_to_send(self.ledger.counting_decisions(), self.sent) if is_shared(one)]

    def _sent(self, decision: Decision) -> str:
        shared = Sharing("0" * 16).decision(decision)
        if shared is None:
            return ""
        seqs = {key: seq for key, seq in self.space.seqs().items() if key in self.sent}
        seen = seen_before(decision.id, self.ledger.decisions(), seqs, self.cursor)
        prevented = self.space.decide(through_json(shared), seen.seq, seen.known)
        if prevented is None:
            self.sent.add(decision.id)
        return late_reason(prevented, {}) if prevented is not None else ""

    def push(self) -> None:
        """Send what was decided offline, and undo what the space refuses."""
        for decision in self.unsent():
            if decision.id in {one.id for one in self.unsent()} and (why := self._sent(decision)):
                undo_refused(
                    self.paths, NO_RETRY_SETTINGS, self.ledger, {decision.id: why}, sent=self.sent, now=self.clock()
                )

    def pull(self, again_from: int | None = None) -> None:
        first = self.cursor if again_from is None else min(again_from, self.cursor)
        self.receiver().receive(self.space.decisions[first:], self.clock())
        self.cursor = len(self.space.decisions)

    def receiver(self, to_local: Callable[[str], str] = lambda shared: shared) -> Receiver:
        def read() -> Any:
            state, _ = self.project.apply((self.paths.ledger, self.paths.patterns, self.paths.events))
            return state.snapshot, state.board

        return Receiver(self.paths, NO_RETRY_SETTINGS, self.ledger, read, sent=self.sent, to_local=to_local)

    def sync(self) -> None:
        self.push()
        self.pull()
        self.project.apply((self.paths.ledger, self.paths.patterns))

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the records of the error file by pattern ID."""
        (records,) = json.loads(self.paths.pattern_file("error").read_bytes())["pattern_registry"].values()
        return {record["pattern_id"]: record for record in records}


def write_project(folder: Path) -> ProjectPaths:
    """Write three patterns, of which the last one mostly fails."""
    paths = ProjectPaths(folder)
    records = (
        {
            "pattern_id": key,
            "error_type": "runtime",
            "error_signature": f"TypeError: {key}",
            "fix_approach": f"Check for null in {key}",
            "success_rate": 0.2 if key == IDS[2] else 0.9,
            "usage_count": 10,
        }
        for key in IDS
    )
    write_patterns(paths, *records)
    return paths


def through_json(decision: Decision) -> Decision:
    return msgspec.json.decode(msgspec.json.encode(decision), type=Decision)


def comparable(state: CurationState) -> dict[str, Any]:
    """Return what must be the same in all projects."""
    names = ("pins", "inversions", "notes", "arrivals", "cleared", "approved", "extracted", "dismissed", "reset")
    found = {name: getattr(state, name) for name in names}
    found["notes"] = {key: [note.id for note in notes] for key, notes in state.notes.items()}
    return {name: value for name, value in found.items() if value}
