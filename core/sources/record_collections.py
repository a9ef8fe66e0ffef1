"""Collections of all records of a project by ID, updated file by file.

A collection joins the records of all files to one record per ID. After a change, it only joins the affected IDs again.
`records` is the result of the last `join`, a new mapping after each change. For loops, see
`core.sources.loop_join.LoopCollection`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from core.base.grouping import group_pairs
from core.sources.agent_sessions import join_agent_sessions
from core.sources.cross_task_memory import join_memory
from core.sources.debug_sessions import join_escalations, join_sessions
from core.sources.episodes import join_attempts, join_tasks
from core.sources.liveness import process_space
from core.sources.loop_join import LoopCollection
from core.sources.loop_union import LoopUnion
from core.sources.pattern_join import dangling_findings, duplicate_findings, join_copies, precedence, references
from core.sources.reflections import join_group, reflection_key
from core.sources.session_rows import SessionRows
from core.sources.session_states import Moment
from core.sources.stale_waits import StaleWaits

if TYPE_CHECKING:
    from core.config.settings import WatchSettings
    from core.records.agent_sessions import AgentSession
    from core.records.findings import Finding
    from core.records.lessons import Lesson
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.reflections import Reflection
    from core.records.snapshot import Snapshot
    from core.sources.liveness import Processes
    from core.sources.parsed_file import ParsedFile


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


_Record = TypeVar("_Record", bound=_HasId)
_file = attrgetter("file")
_SOME_GROUPS: Final = 200  # groups of reflections that take about 1 ms


class RecordCollection(Generic[_Record]):
    """Records by ID; `join` gets all records with changed IDs, in order of files."""

    def __init__(self, join: Callable[[Iterable[_Record]], dict[str, _Record]]) -> None:
        self.records: dict[str, _Record] = {}
        self._join_records = join
        self._files: dict[str, Sequence[_Record]] = {}
        self._files_of: dict[str, set[str]] = defaultdict(set)
        self._touched: set[str] = set()

    def replace(self, file: str, records: Sequence[_Record]) -> None:
        for record in self._files.pop(file, ()):
            self._files_of[record.id].discard(file)
            self._touched.add(record.id)
        if records:
            self._files[file] = records
        for record in records:
            self._files_of[record.id].add(file)
            self._touched.add(record.id)

    def join(self) -> frozenset[str]:
        """Update `records`; returns the IDs that were added, changed or removed."""
        if not self._touched:
            return frozenset()
        touched, self._touched = self._touched, set()
        files = sorted({file for id in touched for file in self._files_of[id]})
        after = self._join_records(record for file in files for record in self._files[file] if record.id in touched)
        changed = frozenset(id for id in touched if self.records.get(id) != after.get(id))
        if changed:
            self.records = {id: record for id, record in self.records.items() if id not in touched} | after
        return changed


class PatternCollection:
    """Patterns by ID; those in `shared/patterns` take precedence over copies."""

    def __init__(self) -> None:
        self.records: dict[str, Pattern] = {}
        self._duplicates: dict[str, tuple[Finding, ...]] = {}
        self._dangling: dict[str, tuple[Finding, ...]] = {}
        self._referrers: dict[str, set[str]] = defaultdict(set)
        self._files: dict[str, tuple[Pattern, ...]] = {}
        self._several: dict[str, tuple[Pattern, ...]] = {}
        """All records of each ID that several have, by precedence; the only record of another ID is in `records`."""
        self._touched: dict[str, Pattern | tuple[Pattern, ...]] = {}
        """The same, or the only record, of each ID that is to be joined."""

    def replace(self, file: str, patterns: Sequence[Pattern]) -> None:
        before = self._files.pop(file, ())
        if patterns:
            self._files[file] = tuple(patterns)
        if not before:
            # The common case while loading, the first read of a file: there is nothing to remove.
            added_only: dict[str, Pattern | tuple[Pattern, ...]] = {pattern.id: pattern for pattern in patterns}
            known = self.records.keys(), self._touched.keys()
            if len(added_only) == len(patterns) and all(map(added_only.keys().isdisjoint, known)):
                self._touched |= added_only
                return
        # Unchanged records are identical objects: comparing 100,000 of them by value would be slow.
        removed, added = _difference(before, patterns)
        old, new = (group_pairs((pattern.id, pattern) for pattern in found) for found in (removed, added))
        left = set(map(id, removed))
        for pattern_id in {**old, **new}:
            others = (copy for copy in self.copies(pattern_id) if id(copy) not in left)
            self._touched[pattern_id] = tuple(sorted((*others, *new.get(pattern_id, ())), key=precedence))

    def join(self) -> frozenset[str]:
        """Update `records`; returns the IDs that were added, changed or removed."""
        if not self._touched:
            return frozenset()
        changed = set()
        added_or_removed = set()
        patterns = dict(self.records)
        for pattern_id in self._touched:
            copies = self.copies(pattern_id)
            if len(copies) > 1:
                self._several[pattern_id] = copies
                _set_findings(self._duplicates, pattern_id, duplicate_findings(copies))
            elif pattern_id in self._several:
                del self._several[pattern_id]
                self._duplicates.pop(pattern_id, None)
            before, after = patterns.get(pattern_id), join_copies(copies)
            if before == after:
                if after is not None:
                    patterns[pattern_id] = after  # `replace` finds records by identity
                continue
            changed.add(pattern_id)
            if before is None or after is None:
                added_or_removed.add(pattern_id)
            if after is not None:
                patterns[pattern_id] = after
            else:
                del patterns[pattern_id]
            for target in references(before):
                self._referrers[target].discard(pattern_id)
            for target in references(after):
                self._referrers[target].add(pattern_id)
        self._touched.clear()
        self.records = patterns
        if changed:
            for pattern_id in changed.union(*(self._referrers.get(target, ()) for target in added_or_removed)):
                targets = references(pattern := patterns.get(pattern_id))
                if targets or pattern_id in self._dangling:
                    found = dangling_findings(pattern, targets - patterns.keys()) if pattern is not None else ()
                    _set_findings(self._dangling, pattern_id, found)
        return frozenset(changed)

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """Return all records with an ID, the one with precedence first."""
        for known in (self._touched, self._several, self.records):
            if (found := known.get(pattern_id)) is not None:
                return found if isinstance(found, tuple) else (found,)
        return ()

    @property
    def findings(self) -> Iterator[Finding]:
        """Findings across files: duplicate IDs and references to unknown patterns."""
        return chain.from_iterable(chain(self._duplicates.values(), self._dangling.values()))


def _difference(before: Sequence[Pattern], after: Sequence[Pattern]) -> tuple[list[Pattern], list[Pattern]]:
    """Return the removed and the added records of two versions of a file."""
    if len(before) == len(after):  # usually one record changed in its place
        changed = [pair for pair in zip(before, after, strict=True) if pair[0] is not pair[1]]
        before, after = [one for one, _ in changed], [one for _, one in changed]
    same = set(map(id, before)) & set(map(id, after))
    return [one for one in before if id(one) not in same], [one for one in after if id(one) not in same]


def _set_findings(findings: dict[str, tuple[Finding, ...]], pattern_id: str, found: tuple[Finding, ...]) -> None:
    if found:
        findings[pattern_id] = found
    else:
        findings.pop(pattern_id, None)


class ReflectionCollection:
    """Reflections by ID, newest first; the copies of a reflection are joined to one."""

    def __init__(self) -> None:
        self.records: dict[str, Reflection] = {}
        self._files: dict[str, tuple[Reflection, ...]] = {}
        self._groups: dict[str, tuple[Reflection, ...]] = {}
        self._joined: dict[str, tuple[Reflection, ...]] = {}
        self._order: list[tuple[float, str]] = []
        self._touched: dict[str, None] = {}
        self._changed: dict[str, Reflection | None] = {}  # since the last `join`; None if removed
        self._aliases: Mapping[str, str] = {}

    def replace(self, file: str, reflections: Sequence[Reflection]) -> None:
        before = self._files.pop(file, ())
        if reflections:
            self._files[file] = tuple(reflections)
        if before == tuple(reflections):
            return
        for key in {reflection_key(reflection) for reflection in before}:
            self._groups[key] = tuple(reflection for reflection in self._groups[key] if reflection.file != file)
            self._touched[key] = None
        for reflection in reflections:
            key = reflection_key(reflection)
            self._groups[key] = (*self._groups.get(key, ()), reflection)
            self._touched[key] = None

    def join(self, aliases: Mapping[str, str]) -> frozenset[str]:
        """Update `records`; returns the IDs that were added, changed or removed.

        `aliases` maps other IDs of loops to the ID of the loop.
        """
        if aliases != self._aliases:
            self._aliases = dict(aliases)
            self._touched = dict.fromkeys((*self._groups, *self._joined))
        while self.join_some():
            pass
        changed = {id: found for id, found in self._changed.items() if found != self.records.get(id)}
        self._changed = {}
        if changed:
            records = {**self.records, **{id: found for id, found in changed.items() if found is not None}}
            for id in [id for id, found in changed.items() if found is None]:
                del records[id]
            self._replace_records(records, changed)
        return frozenset(changed)

    def join_some(self) -> bool:
        """Join some groups in advance for the next `join`; returns False if there are none."""
        keys = list(islice(self._touched, _SOME_GROUPS))
        for key in keys:
            del self._touched[key]
            known = self._joined.pop(key, ())
            joined: tuple[Reflection, ...] = ()
            if group := self._groups[key]:
                if len(group) > 1:
                    self._groups[key] = group = tuple(sorted(group, key=_file))
                self._joined[key] = joined = join_group(key, group, self._aliases)
            else:
                del self._groups[key]
            before = {reflection.id: reflection for reflection in known}
            for reflection in joined:
                if before.pop(reflection.id, None) != reflection:
                    self._changed[reflection.id] = reflection
            for reflection_id in before:
                self._changed[reflection_id] = None
        return bool(keys)

    def _replace_records(self, records: dict[str, Reflection], changed: Mapping[str, object]) -> None:
        """Set `records` in the right order; takes little time if only new ones change."""
        before = self.records
        found = sorted(_newest_first(records[id]) for id in changed if id in records)
        places = sorted(_newest_first(before[id]) for id in changed if id in before)
        if places == found:
            self.records = before | {id: records[id] for _, id in found}
            return
        last = bisect_right(self._order, max(found[-1:] + places[-1:]))  # what is older keeps its place
        newer = sorted([*(entry for entry in self._order[:last] if entry[1] not in changed), *found])
        self._order[:last] = newer
        self.records = {id: records[id] for _, id in newer} | records


def _newest_first(reflection: Reflection) -> tuple[float, str]:
    """Sort key; reflections without a time come last."""
    return (-reflection.at.timestamp() if reflection.at else math.inf, reflection.id)


class ProjectRecords:
    """All collections of one project.

    `adapted_loops` and `lessons` are those of adapters, by ID; `join` publishes them after they were set.
    """

    def __init__(self) -> None:
        self.patterns = PatternCollection()
        self.loops = LoopCollection()
        self.adapted_loops: Mapping[str, Loop] = {}
        self.lessons: Mapping[str, Lesson] = {}
        self._joined_lessons: Mapping[str, Lesson] = {}
        self._all_loops = LoopUnion()
        self._stale_waits = StaleWaits()
        self._session_rows = SessionRows()
        self._agent_sessions: RecordCollection[AgentSession] = RecordCollection(join_agent_sessions)
        self._reflections = ReflectionCollection()
        self._others: dict[str, RecordCollection[Any]] = {
            "memory_tasks": RecordCollection(join_memory),
            "tasks": RecordCollection(join_tasks),
            "attempts": RecordCollection(join_attempts),
            "debug_sessions": RecordCollection(join_sessions),
            "escalations": RecordCollection(join_escalations),
        }
        self._all: dict[str, Any] = {
            "patterns": self.patterns,
            "loops": self.loops,
            "reflections": self._reflections,
            **self._others,
        }
        self._parts = {**self._all, "agent_sessions": self._agent_sessions}
        self._read = attrgetter(*self._parts)

    def replace(self, file: str, before: ParsedFile, after: ParsedFile) -> None:
        for collection, old, new in zip(self._parts.values(), self._read(before), self._read(after), strict=True):
            if old or new:
                collection.replace(file, new)

    def join(
        self,
        now: datetime,
        settings: WatchSettings,
        processes: Processes,
        *,
        force_liveness: bool = False,
        with_reflections: bool = True,
    ) -> dict[str, frozenset[str]]:
        """Update all collections; returns the changed IDs by collection.

        With `force_liveness`, running loops are checked even if that was done a moment ago. Without
        `with_reflections`, reflections are not joined, which would take long while a project is loading.
        """
        own = self.loops.join(now, settings, processes, force_liveness=force_liveness)
        others = {name: collection.join() for name, collection in self._others.items()}
        moment = Moment(now, timedelta(minutes=settings.stale_after_minutes), processes, process_space())
        adapted = self._stale_waits.mark(self._join_sessions(others, moment), now, moment.stale_after)
        changed = {"loops": self._all_loops.join(self.loops.records, own, adapted)}
        changed["lessons"] = _changed_ids(self._joined_lessons, self.lessons)
        self._joined_lessons = self.lessons
        changed["patterns"] = self.patterns.join()
        changed["reflections"] = self._reflections.join(self.loops.aliases) if with_reflections else frozenset()
        return changed | others

    def _join_sessions(self, changed: Mapping[str, frozenset[str]], moment: Moment) -> Mapping[str, Loop]:
        """Return the loops of adapters with the sessions that hooks recorded."""
        rows, tasks, attempts = self._session_rows, self._others["tasks"].records, self._others["attempts"].records
        touched = rows.replace_attempts(changed["attempts"], attempts)
        affected = rows.replace_tasks({*touched, *changed["tasks"]}, tasks) | self._agent_sessions.join()
        return rows.join(self.adapted_loops, affected, self._agent_sessions.records, moment)

    def join_some(self, now: datetime, settings: WatchSettings, processes: Processes) -> bool:
        """Join some loops or reflections in advance for the next `join`; returns False if there are none."""
        return self.loops.join_some(now, settings, processes) or self._reflections.join_some()

    def mappings(self, before: Snapshot, changed: Mapping[str, frozenset[str]]) -> dict[str, Any]:
        """Return read-only mappings by collection; unchanged ones come from `before`."""
        found: dict[str, Mapping[str, Any]] = {name: collection.records for name, collection in self._all.items()}
        found["loops"], found["lessons"] = self._all_loops.records, self.lessons
        return {
            name: MappingProxyType(records) if changed[name] else getattr(before, name)
            for name, records in found.items()
        }

    def findings(self) -> Iterator[Finding]:
        """Iterate the findings that come from comparing several files."""
        return chain(self.patterns.findings, self.loops.findings)


def _changed_ids(before: Mapping[str, object], after: Mapping[str, object]) -> frozenset[str]:
    if before is after:
        return frozenset()
    return frozenset(id for id in before.keys() | after.keys() if before.get(id) != after.get(id))
