"""Rehearsed decisions: the very decision, made on copies in memory, so that what it changes is seen before it is made.

Nothing is written. The ledger is what the snapshot holds, with what is decided added in memory; what decisions change
in pattern files is worked out, by the code that writes them, on the text of the touched records alone, which the usual
reader reads; events go to a list. What comes out is scored like any other snapshot, so a prediction and what the
decision does cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from heapq import merge
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from core.base.errors import BadInput, UnknownRecord, Unwritable
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.apply import pattern_path, steps_of
from core.curation.curator import Curator, Decided
from core.curation.effects import Outcome, Step, apply_steps
from core.curation.pattern_registry import Registry, Stored, check_keepable
from core.curation.unit_of_work import Act
from core.learning.scoreboard import Scoreboard
from core.ledger.fold import fold
from core.ledger.ledger import Ledger
from core.project.index import Library, parted
from core.project.project import Project
from core.records.decisions import CurationState, Decision
from core.records.events import Event
from core.records.extractions import ALL_TYPES, Extraction
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Delta, Snapshot
from core.retrieval.embeddings import Embeddings
from core.sources.file_slice import excerpt
from core.sources.key_style import RecordText
from core.sources.pattern_text import find
from core.sources.patterns import read_patterns
from core.sources.record_collections import join_copies
from core.state.project_state import ProjectState
from core.state.review_items import ReviewItem
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_PATTERN_BYTES, read_file
from core.storage.json_editor import BadJson

Copies = Callable[[str], tuple[Pattern, ...]]
"""All records of an id in pattern files; see `Library.copies`."""
Extracting = Callable[[str, frozenset[PatternType]], Extraction]
"""What a loop, a task, a debug session or a learning offers; see `Project.extraction`."""


def rehearse(
    decide: Callable[[Project], Decided],
    view: ProjectState,
    project: ProjectPaths,
    *,
    by: str,
    copies: Copies,
    extraction: Extracting,
) -> ProjectState:
    """The view after a decision, at the moment of `view`; the questions and offers in it stay as they are.

    Args:
        decide: Makes the decision, as on the deck itself.
        view: What is known.
        project: Where the records stand; its files are only read.
        by: Who decides.
        copies, extraction: See there.

    Raises:
        RalphdeckError: What the decision itself would raise.
    """
    stage = _Stage(view, project, by, copies, extraction)
    decide(stage)
    after = stage.view
    return replace(after, queue=view.queue, offers=view.offers, embeddings=_embeddings(view, after.snapshot))


def _embeddings(view: ProjectState, after: Snapshot) -> Embeddings[Pattern] | None:
    """What patterns mean, the texts that are only supposed among them.

    As the next injection finds it, which first makes what is missing. As long as older texts lack vectors nothing is
    made: new texts ranked by meaning among those ranked by words would be no fair comparison.
    """
    known = view.snapshot.patterns
    new = {id: pattern for id, pattern in after.patterns.items() if known.get(id) is not pattern}
    if view.embeddings is None or not view.embeddings.missing(new) or view.coverage is not None:
        return view.embeddings
    return view.embeddings.supposing(new)


class _Stage(Project):
    """A deck of which all that is ever written is in memory."""

    def __init__(
        self, view: ProjectState, project: ProjectPaths, by: str, copies: Copies, extraction: Extracting
    ) -> None:
        super().__init__(project, view.settings, by=by, clock=lambda: view.now, cache=False)
        self._memory = _Memory(project, view, copies)
        self.library = self._memory
        self.curator = _Actor(project, view.settings, by, self._memory)
        self._extracting = extraction
        self._view = view

    def extraction(self, source_id: str, types: frozenset[PatternType] = ALL_TYPES) -> Extraction:
        """What the deck itself has found; nothing is read twice."""
        return self._extracting(source_id, types)

    def _append_events(self, *events: Event) -> None:
        self._memory.add_events(events)

    def _with_derived(self, decided: Decided) -> Decided:
        return decided

    def _queue(self, snapshot: Snapshot, board: Scoreboard, now: datetime) -> tuple[ReviewItem, ...]:
        return ()


class _Memory(Library):
    """What the project would hold: a snapshot with decisions, events and changed records added to it."""

    def __init__(self, project: ProjectPaths, view: ProjectState, copies: Copies) -> None:
        super().__init__(project, view.settings, clock=lambda: view.now, cache=False)
        self._snapshot = view.snapshot
        self._all_copies = copies
        self._changed: dict[str, tuple[Pattern, ...]] = {}
        self._all_events = tuple(merge(view.snapshot.events, view.snapshot.withdrawn, key=attrgetter("at")))
        self.decisions = view.snapshot.decisions
        self.touched: set[str] = set()
        """Ids of patterns whose records changed since the last `apply`."""

    def add_events(self, events: Iterable[Event]) -> None:
        """Put events behind those that are known."""
        self._all_events = (*self._all_events, *events)

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """All records of an id as they are now."""
        changed = self._changed.get(pattern_id)
        return self._all_copies(pattern_id) if changed is None else changed

    def put(self, file: str, pattern_id: str, records: Iterable[Pattern]) -> None:
        """From now on `file` holds these records of an id and no others."""
        others = (copy for copy in self.copies(pattern_id) if copy.file != file)
        self._changed[pattern_id] = (*others, *records)
        self.touched.add(pattern_id)

    def apply(self, changed: Iterable[Path] | None) -> tuple[Snapshot, Delta]:
        """The snapshot with all that was added so far, whatever is said to have changed."""
        before = self._snapshot
        patterns = dict(before.patterns)
        moved = set()
        for id in self.touched:
            after = join_copies(self.copies(id))
            if after == patterns.get(id):
                continue
            moved.add(id)
            if after is None:
                del patterns[id]
            else:
                patterns[id] = after
        self.touched.clear()
        decided = self.decisions is not before.decisions
        curation = fold(self.decisions) if decided else before.curation
        events, withdrawn = parted(self._all_events, curation)
        told = len(events) != len(before.events)
        delta = Delta(patterns=frozenset(moved), events=told, decisions=decided)
        if delta:
            self._snapshot = replace(
                before,
                number=before.number + 1,
                patterns=MappingProxyType(patterns) if moved else before.patterns,
                events=events if told else before.events,
                withdrawn=withdrawn,
                decisions=self.decisions,
                curation=curation,
            )
        return self._snapshot, delta


class _Notebook(Ledger):
    """A ledger in memory."""

    def __init__(self, paths: ProjectPaths, memory: _Memory) -> None:
        super().__init__(paths)
        self._memory = memory
        self._state = memory.snapshot.decisions, memory.snapshot.curation

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else writes to it."""
        yield

    def append(self, *decisions: Decision) -> None:
        """Add decisions, as they will be read again.

        Raises:
            UnicodeEncodeError: A text of one is no valid Unicode.
        """
        kept = (msgspec.convert(msgspec.json.decode(msgspec.json.encode(one)), Decision) for one in decisions)
        self._memory.decisions = (*self._memory.decisions, *kept)

    def decisions(self) -> tuple[Decision, ...]:
        """All of them, oldest first."""
        return self._memory.decisions

    def __contains__(self, decision_id: object) -> bool:
        return any(decision.id == decision_id for decision in self._memory.decisions)

    def by_id(self) -> Mapping[str, Decision]:
        """All of them by id."""
        return {decision.id: decision for decision in self._memory.decisions}

    def decision(self, decision_id: str) -> Decision:
        """One of them by id, else `UnknownRecord`."""
        for decision in self._memory.decisions:
            if decision.id == decision_id:
                return decision
        raise UnknownRecord(f"the ledger has no decision {visible_line(decision_id, 80)}")

    def state(self) -> CurationState:
        """What all decisions amount to."""
        if self._state[0] is not self._memory.decisions:
            self._state = self._memory.decisions, fold(self._memory.decisions)
        return self._state[1]

    def pending(self) -> tuple[tuple[Decision, str], ...]:
        """None: what is decided is in the records at once."""
        return ()

    def status(self) -> tuple[int, bool]:
        """How many decisions there are, all of them in the records."""
        return len(self._memory.decisions), True


class _Actor(Curator):
    """A curator that writes to a `_Memory`."""

    def __init__(self, paths: ProjectPaths, settings: Settings, by: str, memory: _Memory) -> None:
        super().__init__(paths, settings, by=by)
        self._memory = memory
        self._ledger = _Notebook(paths, memory)
        self._done = len(memory.decisions)

    def _act(self) -> Act:
        return _Scene(self._paths, self._ledger)

    def _settle(self) -> tuple[Outcome, ...]:
        """Bring what was decided since into the records."""
        new = self._memory.decisions[self._done :]
        self._done = len(self._memory.decisions)
        archive = f"{self._paths.relative(self._paths.archive)}/"
        known = self._ledger.by_id() if new else {}
        steps: dict[str, list[Step]] = {}
        for decision in new:
            for file in dict.fromkeys(effect.file for effect in decision.effects):
                if not file.startswith(archive):  # what is in there is no pattern of the registry
                    steps.setdefault(file, []).extend(steps_of(decision, file, known))
        return tuple(outcome for file, todo in steps.items() for outcome in self._change(file, todo))

    def _change(self, file: str, steps: list[Step]) -> tuple[Outcome, ...]:
        ids = dict.fromkeys(step.effect.pattern_id for step in steps)
        before = {id: [copy for copy in self._memory.copies(id) if copy.file == file] for id in ids}
        data = _text(self._paths, file, [copy for copies in before.values() for copy in copies])
        after, outcomes = apply_steps(data, steps, lambda taken: self._act().ids.like(taken))
        found: dict[str, list[Pattern]] = {id: [] for id in ids}
        for pattern in read_patterns(file, after).patterns if after is not None else ():
            if pattern.id in ids or not self._memory.copies(pattern.id):
                found.setdefault(pattern.id, []).append(pattern)
        for id, records in found.items():
            # Where a record stands does not change in memory; a new one stands nowhere yet.
            places = [copy.pointer for copy in before.get(id, ())] + [""] * len(records)
            placed = zip(records, places, strict=False)
            self._memory.put(file, id, [msgspec.structs.replace(one, pointer=place) for one, place in placed])
        return outcomes


class _Scene(Act):
    """What an act of deciding finds in the pattern files, read record by record."""

    @cached_property
    def registry(self) -> Registry:
        """The records, each read alone."""
        return _Records(self._paths)

    def written_override(self, pattern: Pattern) -> str | None:
        """Not looked up: only what takes a decision back needs it."""
        return None

    def text(self, pattern: Pattern) -> dict[str, Any]:
        """Not looked up: only what puts a text back needs it."""
        return {}


class _Records(Registry):
    """The records of pattern files, each read alone where that can be."""

    def record(self, pattern: Pattern) -> Stored:
        """The record of a pattern, else `Refused`; see there."""
        if not pattern.copy_folder and pattern.pointer:
            with suppress(BadInput, BadJson):
                pattern_path(self._paths, pattern.file)
                data = _text(self._paths, pattern.file, [pattern])
                document = RecordText(data or b"")
                record = find(document, pattern.id)
                if record is not None:
                    check_keepable(record.value, pattern.id)
                    return Stored(pattern.file, record.value, document.text_at(record.path))
        return super().record(pattern)


def _text(paths: ProjectPaths, file: str, copies: Collection[Pattern]) -> bytes | None:
    """The text of a pattern file with these records of it alone, or all of it where it cannot be taken apart."""
    raw = read_file(paths.inside(file), paths.aiwg, MAX_PATTERN_BYTES)
    if isinstance(raw, Problem):
        raise Unwritable(f"cannot read {visible_line(file, 160)}: it {raw.message}")
    if raw is None:
        return None
    part = excerpt(raw.data, [copy.pointer for copy in copies])
    if part is None:
        return raw.data
    # Somebody may have written the file since it was read, so that other records stand in these places.
    there = sorted(pattern.id for pattern in read_patterns(file, part).patterns)
    return part if there == sorted(copy.id for copy in copies) else raw.data
