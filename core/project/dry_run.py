"""Dry run: make a decision in memory and score the result.

Decisions are appended to a copy of the ledger in memory. The code that writes pattern files is applied to the affected
records alone, and the usual reader parses the result. So a forecast cannot differ from the decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from core.base.errors import BadInput, Unwritable
from core.base.text import visible_line
from core.decisions.apply import Outcomes, Step, apply_steps, pattern_path, steps_of
from core.decisions.curator import Curator
from core.decisions.pattern_registry import Registry, Stored, UnitOfWork, check_storable
from core.files.decoded import Problem
from core.files.file_reader import MAX_PATTERN_BYTES, read_file
from core.files.json_editor import BadJson
from core.project.project import Project
from core.records.decisions import Decision
from core.records.event_log import EventView
from core.records.extractions import ALL_TYPES, Extraction
from core.records.snapshot import Delta, Snapshot
from core.sources.keys import RecordText
from core.sources.ledger import Ledger
from core.sources.pattern_text import find, slice_file
from core.sources.patterns import join_copies, read_patterns

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.decisions.case import Decided
    from core.decisions.commands import Command
    from core.index.project_state import ProjectState
    from core.records.events import Event
    from core.records.patterns import Pattern, PatternType
    from core.retrieval.embeddings import Embeddings
    from core.sources.ledger import DecisionLog


class DryRun(NamedTuple):
    """A decision, and the state after it; queue and offers are those from before."""

    decided: Decided
    state: ProjectState


def dry_run(project: Project, command: Command, state: ProjectState | None = None) -> DryRun:
    """Make a decision in memory, starting from `state`, by default the newest one.

    Raises `RalphdeckError` as the decision itself would; the project is not changed.
    """
    before = state or project.view
    stage = _Stage(project, before)
    decided = stage.decide(command)
    after = stage.view
    unchanged = {name: getattr(before, name) for name in ("queue", "offers", "task_embeddings")}
    return DryRun(decided, replace(after, **unchanged, embeddings=_embeddings(before, stage.changed_patterns)))


def _embeddings(view: ProjectState, new: Mapping[str, Pattern]) -> Embeddings[Pattern] | None:
    """Return embeddings that include the texts of new and changed patterns, as the next injection would.

    While older texts lack vectors, none are added: the new texts would be ranked by a different method than the others.
    """
    if view.embeddings is None or not view.embeddings.missing(new) or view.coverage is not None:
        return view.embeddings
    return view.embeddings.supposing(new)


class _Stage(Project):
    """A project whose writes stay in memory."""

    def __init__(self, project: Project, state: ProjectState) -> None:
        super().__init__(
            project.project, state.settings, by=project.by, clock=lambda: state.now, cache=False, asks=False
        )
        self._real = project
        self.ledger = _MemoryLedger(project.project, state.snapshot)
        self._memory = _MemoryRecords(project, state, self.ledger)
        self.curator = _MemoryCurator(project, state, self._memory, self.ledger)
        self._view = state

    @property
    def changed_patterns(self) -> Mapping[str, Pattern]:
        """The changed and added patterns."""
        patterns = self._view.snapshot.patterns
        return {id: patterns[id] for id in self._memory.changed if id in patterns}

    def extraction(self, source_id: str, types: frozenset[PatternType] = ALL_TYPES) -> Extraction:
        """Return what the real project extracts."""
        return self._real.extraction(source_id, types)

    def _for_author(self, command: Command) -> Command:
        """Carry out what a person could decide, also for an agent, which would only propose it."""
        return command

    def apply(self, changed: Iterable[Path] | None) -> tuple[ProjectState, Delta]:
        """Update the scores with everything added so far; `changed` is ignored."""
        return self._after(*self._memory.refresh())

    def _append_events(self, *events: Event) -> None:
        self._memory.add_events(events)

    def _with_derived(self, decided: Decided) -> Decided:
        return decided


class _MemoryRecords:
    """A snapshot with decisions, events and changed records added to it."""

    def __init__(self, project: Project, state: ProjectState, ledger: Ledger) -> None:
        self._ledger = ledger
        self._snapshot = state.snapshot
        self._all_copies = project.index.copies
        self._changed: dict[str, tuple[Pattern, ...]] = {}
        self._new_events: tuple[Event, ...] = ()
        self.touched: set[str] = set()
        """IDs of patterns whose records changed since the last `apply`."""
        self.changed: set[str] = set()
        """IDs of all patterns that changed."""

    def add_events(self, events: Iterable[Event]) -> None:
        self._new_events = (*self._new_events, *events)

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """Return all current records of an ID."""
        changed = self._changed.get(pattern_id)
        return self._all_copies(pattern_id) if changed is None else changed

    def put(self, file: str, pattern_id: str, records: Iterable[Pattern]) -> None:
        """Replace the records of an ID in `file`."""
        others = (copy for copy in self.copies(pattern_id) if copy.file != file)
        self._changed[pattern_id] = (*others, *records)
        self.touched.add(pattern_id)

    def refresh(self) -> tuple[Snapshot, Delta]:
        """Return the snapshot with everything added so far."""
        before = self._snapshot
        joined = ((id, join_copies(self.copies(id))) for id in self.touched)
        moved = {id: pattern for id, pattern in joined if pattern != before.patterns.get(id)}
        self.touched.clear()
        self.changed |= moved.keys()
        decisions, curation = self._ledger.decisions(), self._ledger.state()
        decided = len(decisions) != len(before.decisions)
        new_events, self._new_events = self._new_events, ()
        delta = Delta(patterns=frozenset(moved), events=bool(new_events), decisions=decided)
        if delta:
            self._snapshot = before.with_changes(
                number=before.number + 1,
                patterns=_replace_patterns(before.patterns, moved) if moved else before.patterns,
                events=EventView.of(before.events).extended(new_events) if new_events else before.events,
                decisions=decisions,
                curation=curation,
            )
        return self._snapshot, delta


def _replace_patterns(known: Mapping[str, Pattern], moved: Mapping[str, Pattern | None]) -> Mapping[str, Pattern]:
    """Return the patterns with some replaced or added, and without those that are None."""
    changed = {**known, **moved}
    return MappingProxyType({id: pattern for id, pattern in changed.items() if pattern is not None})


class _MemoryLedger(Ledger):
    """A ledger in memory that begins with the decisions of a snapshot."""

    def __init__(self, paths: ProjectPaths, snapshot: Snapshot) -> None:
        super().__init__(paths)
        self.log.by_id = {decision.id: decision for decision in snapshot.decisions}
        self._folded = self.log.decisions, (), snapshot.curation
        self._made_elsewhere = snapshot.curation.claims

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Do nothing: memory needs no lock."""
        yield

    def claims(self) -> frozenset[str]:
        """Return those of the snapshot: what is decided in memory is an own decision."""
        return self._made_elsewhere

    def append(self, *decisions: Decision) -> None:
        """Append decisions as they would be read from disk."""
        for one in decisions:
            self.log.by_id[one.id] = msgspec.convert(msgspec.json.decode(msgspec.json.encode(one)), Decision)

    def _log(self) -> DecisionLog:
        return self.log


class _MemoryCurator(Curator):
    """A curator that writes to a `_MemoryRecords`."""

    def __init__(self, project: Project, state: ProjectState, memory: _MemoryRecords, ledger: Ledger) -> None:
        super().__init__(project.project, state.settings, by=project.by, ledger=ledger)
        self._memory = memory
        self._done = len(ledger.decisions())

    def open_files(self) -> UnitOfWork:
        return _DryUnit(self.paths, self.ledger)

    def write_pending(self) -> Outcomes:
        """Apply the new decisions to the records in memory."""
        new = self.ledger.decisions()[self._done :]
        self._done += len(new)
        archive = f"{self.paths.relative(self.paths.archive)}/"
        known = self.ledger.by_id() if new else {}
        steps: dict[str, list[Step]] = {}
        for decision in new:
            for file in dict.fromkeys(effect.file for effect in decision.effects):
                if not file.startswith(archive):  # archived records are not part of the registry
                    steps.setdefault(file, []).extend(steps_of(decision, file, known))
        return tuple(outcome for file, todo in steps.items() for outcome in self._change(file, todo))

    def _change(self, file: str, steps: list[Step]) -> Outcomes:
        ids = dict.fromkeys(step.effect.pattern_id for step in steps)
        before = {id: [copy for copy in self._memory.copies(id) if copy.file == file] for id in ids}
        data = _text(self.paths, file, [copy for copies in before.values() for copy in copies])
        after, outcomes = apply_steps(data, steps, lambda taken: self.open_files().ids.like(taken))
        found: dict[str, list[Pattern]] = {id: [] for id in ids}
        for pattern in read_patterns(file, after).patterns if after is not None else ():
            if pattern.id in ids or not self._memory.copies(pattern.id):
                found.setdefault(pattern.id, []).append(pattern)
        for id, records in found.items():
            # Positions in files do not change in memory; a new record has none yet.
            pointers = [copy.pointer for copy in before.get(id, ())] + [""] * len(records)
            pairs = zip(records, pointers, strict=False)
            self._memory.put(file, id, [msgspec.structs.replace(one, pointer=pointer) for one, pointer in pairs])
        return outcomes


class _DryUnit(UnitOfWork):
    """The pattern files, read record by record."""

    @cached_property
    def registry(self) -> Registry:
        return _RecordRegistry(self._paths)

    def written_override(self, pattern: Pattern) -> str | None:
        """Return None; a dry run never undoes, so nothing needs the stored override."""
        return None

    def text(self, pattern: Pattern) -> dict[str, Any]:
        """Return {}; a dry run never restores texts, so nothing needs them."""
        return {}


class _RecordRegistry(Registry):
    """The records of pattern files, each read on its own if possible."""

    def record(self, pattern: Pattern) -> Stored:
        if not pattern.copy_folder and pattern.pointer:
            with suppress(BadInput, BadJson):
                pattern_path(self._paths, pattern.file)
                data = _text(self._paths, pattern.file, [pattern])
                document = RecordText(data or b"")
                record = find(document, pattern.id)
                if record is not None:
                    check_storable(record.value, pattern.id)
                    return Stored(pattern.file, record.value, document.text_at(record.path))
        return super().record(pattern)


def _text(paths: ProjectPaths, file: str, copies: Collection[Pattern]) -> bytes | None:
    """Read only these records of a file, or all of it; None if it does not exist."""
    raw = read_file(paths.inside(file), paths.aiwg, MAX_PATTERN_BYTES)
    if isinstance(raw, Problem):
        raise Unwritable(f"cannot read {visible_line(file, 160)}: it {raw.message}")
    if raw is None:
        return None
    part = slice_file(raw.data, [copy.pointer for copy in copies])
    if part is None:
        return raw.data
    # If another process wrote the file since, other records may be in these positions.
    found = sorted(pattern.id for pattern in read_patterns(file, part).patterns)
    return part if found == sorted(copy.id for copy in copies) else raw.data
