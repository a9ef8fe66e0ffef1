"""Patterns, reflections, memory and attempts by file: one record an id; only what a change can touch is joined again.

The counterpart for loops is `core.sources.loop_join.LoopBook`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from msgspec.structs import replace

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.patterns import Pattern, PatternCopy
from core.records.reflections import Reflection
from core.sources.reflections import join_group, reflection_key


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_Record = TypeVar("_Record", bound=_Identified)
_file = attrgetter("file")


class PatternIndex:
    """All pattern records by file. `shared/patterns` is authoritative, copies elsewhere are mirrors (C4).

    Attributes:
        patterns: By id as of the last `join`; a new mapping after each change.
    """

    def __init__(self) -> None:
        self.patterns: dict[str, Pattern] = {}
        self._doubles: dict[str, tuple[Finding, ...]] = {}
        self._orphans: dict[str, tuple[Finding, ...]] = {}
        self._referrers: dict[str, set[str]] = defaultdict(set)
        self._files: dict[str, tuple[Pattern, ...]] = {}
        self._copies: dict[str, tuple[Pattern, ...]] = {}
        self._touched: dict[str, None] = {}

    def replace(self, file: str, patterns: Sequence[Pattern]) -> None:
        """From now on `file` holds `patterns` and nothing else."""
        before = self._files.pop(file, ())
        if patterns:
            self._files[file] = tuple(patterns)
        if not before and not any(pattern.id in self._copies for pattern in patterns):
            # A file read for the first time, the common case of a load: nothing to take out.
            changed = dict.fromkeys(pattern.id for pattern in patterns)
            if len(changed) == len(patterns):
                self._copies.update((pattern.id, (pattern,)) for pattern in patterns)
                self._touched |= changed
                return
        # Records that a reader kept as they were are the very same objects: no need to compare 100,000 of them.
        same = set(map(id, before)) & set(map(id, patterns))
        old = _by_id(pattern for pattern in before if id(pattern) not in same)
        new = _by_id(pattern for pattern in patterns if id(pattern) not in same)
        for identifier in {**old, **new}:
            others = (copy for copy in self._copies.get(identifier, ()) if copy.file != file or id(copy) in same)
            copies = tuple(sorted((*others, *new.get(identifier, ())), key=_rank))
            if copies:
                self._copies[identifier] = copies
            else:
                del self._copies[identifier]
            if old.get(identifier) != new.get(identifier):
                self._touched[identifier] = None

    def join(self) -> frozenset[str]:
        """Bring `patterns` up to date; ids of those that changed, came or went."""
        if not self._touched:
            return frozenset()
        changed = set()
        moved = set()
        patterns = dict(self.patterns)
        for identifier in self._touched:
            copies = self._copies.get(identifier, ())
            _put(self._doubles, identifier, _doubles(copies))
            before, after = patterns.get(identifier), joined(copies)
            if before == after:
                continue
            changed.add(identifier)
            if before is None or after is None:
                moved.add(identifier)
            if after is not None:
                patterns[identifier] = after
            else:
                del patterns[identifier]
            self._refer(identifier, before, after)
        self._touched.clear()
        if changed:
            self.patterns = patterns
            for identifier in changed.union(*(self._referrers.get(target, ()) for target in moved)):
                _put(self._orphans, identifier, _orphans(patterns.get(identifier), patterns))
        return frozenset(changed)

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """All records of an id, the one that counts first."""
        return self._copies.get(pattern_id, ())

    def findings(self) -> Iterator[Finding]:
        """What only the joined view shows: ids that occur twice, references to no pattern."""
        return chain.from_iterable(chain(self._doubles.values(), self._orphans.values()))

    def _refer(self, identifier: str, before: Pattern | None, after: Pattern | None) -> None:
        for target in _references(before):
            self._referrers[target].discard(identifier)
        for target in _references(after):
            self._referrers[target].add(identifier)


def _put(findings: dict[str, tuple[Finding, ...]], identifier: str, found: tuple[Finding, ...]) -> None:
    if found:
        findings[identifier] = found
    else:
        findings.pop(identifier, None)


def _doubles(copies: Sequence[Pattern]) -> tuple[Finding, ...]:
    """The first record of an id in the registry counts; each other one there is one too many."""
    registered = [copy for copy in copies if not copy.copy_folder]
    return tuple(
        Finding(
            copy.file,
            copy.pointer,
            Severity.WARNING,
            "duplicate-id",
            f"'{visible_line(copy.id, 80)}' stands at {registered[0].pointer} of {registered[0].file}; that one counts",
        )
        for copy in registered[1:]
    )


def _references(pattern: Pattern | None) -> set[str]:
    """Ids of other patterns that a pattern names."""
    return {*pattern.related, pattern.better_pattern_id} - {""} if pattern is not None else set()


def _orphans(pattern: Pattern | None, patterns: Mapping[str, Pattern]) -> tuple[Finding, ...]:
    if pattern is None:
        return ()
    return tuple(
        Finding(
            pattern.file,
            pattern.pointer,
            Severity.INFO,
            "orphan-reference",
            f"names '{visible_line(target, 80)}', which is no pattern of this project",
        )
        for target in sorted(_references(pattern))
        if target not in patterns
    )


def _by_id(patterns: Iterable[Pattern]) -> dict[str, list[Pattern]]:
    grouped: dict[str, list[Pattern]] = defaultdict(list)
    for pattern in patterns:
        grouped[pattern.id].append(pattern)
    return grouped


def _rank(pattern: Pattern) -> tuple[bool, str, list[tuple[int, str]]]:
    """The registry before mirrors, then by file and place."""
    place = [(int(part), "") if part.isdecimal() else (-1, part) for part in pattern.pointer.split("/")]
    return (bool(pattern.copy_folder), pattern.file, place)


def joined(copies: Sequence[Pattern]) -> Pattern | None:
    """Of all records of an id the one that counts, with the others as its mirrors; None of none."""
    if len(copies) < 2:
        return copies[0] if copies else None
    kept, *others = sorted(copies, key=_rank)
    found = (PatternCopy(file=copy.file, pointer=copy.pointer, differs=_differ(kept, copy)) for copy in others)
    return replace(kept, copies=tuple(found))


def _differ(kept: Pattern, copy: Pattern) -> bool:
    """Whether a copy says anything else than the one that counts."""
    return kept != replace(copy, file=kept.file, pointer=kept.pointer, copy_folder=kept.copy_folder)


class ReflectionIndex:
    """All reflections by file, each told once (C9).

    Attributes:
        reflections: By id, newest first, as of the last `join`; a new mapping after each change.
    """

    def __init__(self) -> None:
        self.reflections: dict[str, Reflection] = {}
        self._files: dict[str, tuple[Reflection, ...]] = {}
        self._groups: dict[str, list[Reflection]] = {}
        self._joined: dict[str, tuple[Reflection, ...]] = {}
        self._order: list[tuple[float, str]] = []
        self._touched: dict[str, None] = {}
        self._aliases: Mapping[str, str] = {}

    def replace(self, file: str, reflections: Sequence[Reflection]) -> None:
        """From now on `file` holds `reflections` and nothing else."""
        before = self._files.pop(file, ())
        if reflections:
            self._files[file] = tuple(reflections)
        if before == tuple(reflections):
            return
        for key in {reflection_key(reflection) for reflection in before}:
            self._groups[key] = [reflection for reflection in self._groups[key] if reflection.file != file]
            self._touched[key] = None
        for reflection in reflections:
            key = reflection_key(reflection)
            self._groups.setdefault(key, []).append(reflection)
            self._touched[key] = None

    def join(self, aliases: Mapping[str, str]) -> frozenset[str]:
        """Bring `reflections` up to date; ids of those that changed, came or went.

        Args:
            aliases: Other ids of loops -> the id of the row.
        """
        if aliases != self._aliases:
            self._aliases = dict(aliases)
            self._touched = dict.fromkeys((*self._groups, *self._joined))
        if not self._touched:
            return frozenset()
        changed: dict[str, None] = {}  # not a set: in the order of memory this is twice as fast
        fresh = dict(self.reflections)
        for key in self._touched:
            before = {reflection.id: reflection for reflection in self._joined.pop(key, ())}
            group = sorted(self._groups.pop(key, ()), key=_file)
            if group:
                self._groups[key] = group
                self._joined[key] = join_group(key, group, self._aliases)
                for reflection in self._joined[key]:
                    if before.pop(reflection.id, None) != reflection:
                        fresh[reflection.id] = reflection
                        changed[reflection.id] = None
            for identifier in before:
                del fresh[identifier]
                changed[identifier] = None
        self._touched.clear()
        if changed:
            self._order = sorted(
                [
                    *(key for key in self._order if key[1] not in changed),
                    *(_newest_first(fresh[identifier]) for identifier in changed if identifier in fresh),
                ]
            )
            self.reflections = {identifier: fresh[identifier] for _, identifier in self._order}
        return frozenset(changed)


def _newest_first(reflection: Reflection) -> tuple[float, str]:
    """Key for sorting; what has no time comes last."""
    return (-reflection.at.timestamp() if reflection.at else math.inf, reflection.id)


class RecordIndex(Generic[_Record]):
    """Records of one kind by file, which a function joins to one record an id.

    Args:
        joined: Makes one record of each id of all that files tell of it; the files come in the order of their names.

    Attributes:
        records: By id as of the last `join`; a new mapping after each change.
    """

    def __init__(self, joined: Callable[[Iterable[_Record]], dict[str, _Record]]) -> None:
        self.records: dict[str, _Record] = {}
        self._joined = joined
        self._files: dict[str, Sequence[_Record]] = {}
        self._tellers: dict[str, set[str]] = defaultdict(set)
        self._touched: set[str] = set()

    def replace(self, file: str, records: Sequence[_Record]) -> None:
        """From now on `file` holds `records` and nothing else."""
        for record in self._files.pop(file, ()):
            self._tellers[record.id].discard(file)
            self._touched.add(record.id)
        if records:
            self._files[file] = records
        for record in records:
            self._tellers[record.id].add(file)
            self._touched.add(record.id)

    def join(self) -> frozenset[str]:
        """Bring `records` up to date; ids of those that changed, came or went."""
        if not self._touched:
            return frozenset()
        touched, self._touched = self._touched, set()
        files = sorted({file for id in touched for file in self._tellers[id]})
        told = (record for file in files for record in self._files[file] if record.id in touched)
        after = self._joined(told)
        changed = frozenset(id for id in touched if self.records.get(id) != after.get(id))
        if changed:
            self.records = {id: record for id, record in self.records.items() if id not in touched} | after
        return changed
