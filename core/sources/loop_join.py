"""The collection of all loops, joined incrementally from the facts of each file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from msgspec.structs import replace

from core.config.settings import WatchSettings
from core.records.findings import Finding
from core.records.loops import Liveness, Loop
from core.sources.external_loops import group_by_loop
from core.sources.liveness import Processes
from core.sources.loop_facts import LoopFact
from core.sources.loop_merge import Context, merge_facts
from core.sources.loop_paths import ANALYTICS, BEST_OUTPUT, HEARTBEAT

_DETAILS_BY_UUID: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT})
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXTERNAL_TREE: Final = ".aiwg/ralph-external/"
_REGISTRY_FILE: Final = ".aiwg/ralph/registry.json"
_EXTERNAL_REGISTRY_FILE: Final = ".aiwg/ralph-external/registry.json"
_EXTERNAL: Final = "external"
_REGISTRY: Final = "registry"
_LOOP: Final = "loop:"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_Joined: TypeAlias = tuple[tuple[Loop, ...], tuple[Finding, ...]]
_EMPTY: Final[_Joined] = ((), ())
_LIVENESS_INTERVAL: Final = timedelta(seconds=5)
"""Minimum time between liveness checks: a thousand running loops take 30 ms, too long for each change of one."""


def join_loops(
    facts: Iterable[LoopFact], now: datetime, settings: WatchSettings, processes: Processes
) -> dict[str, Loop]:
    """Join all facts at once; loops by ID, newest start first."""
    loops = LoopCollection()
    by_file: dict[str, list[LoopFact]] = {}
    for fact in facts:
        by_file.setdefault(fact.file, []).append(fact)
    for file, found in by_file.items():
        loops.replace(file, found)
    loops.join(now, settings, processes)
    return loops.records


class LoopCollection:
    """All loops; after a change only the affected ones are joined again.

    Internal loops are joined by ID, external ones as `group_by_loop` groups their facts. Call `replace` for each
    changed file (without facts if it was removed), then `join`.

    Attributes:
        records: Loops by ID, newest start first, as of the last `join`; a new mapping after each change.
        aliases: Other IDs of loops (UUID of analytics, launcher ID), each with the ID of the loop.
        findings: Findings that only joining several files shows.
    """

    def __init__(self) -> None:
        self.records: dict[str, Loop] = {}
        self.aliases: dict[str, str] = {}
        self.findings: tuple[Finding, ...] = ()
        self._keys: dict[str, frozenset[str]] = {}
        self._groups: dict[str, dict[str, tuple[LoopFact, ...]]] = {}
        self._external: dict[str, list[LoopFact]] = {}
        self._joined: dict[str, _Joined] = {}
        self._ids: dict[str, list[str]] = {}
        """By key, the IDs of its loops in `records`."""
        self._dirty: set[str] = set()
        self._running: set[str] = set()
        self._checked_at = _LONG_AGO
        self._registries: frozenset[str] = frozenset()

    def replace(self, file: str, facts: Sequence[LoopFact]) -> None:
        """Replace all facts of `file`; the file of a loop's folder is its name with `/`."""
        groups: dict[str, list[LoopFact]] = {}
        for fact in facts:
            for key in _keys(fact):
                groups.setdefault(key, []).append(fact)
        for key in self._keys.get(file, frozenset()) - groups.keys():
            del self._groups[key][file]
            self._dirty.add(key)
        for key, found in groups.items():
            group = self._groups.setdefault(key, {})
            if group.get(file) != tuple(found):
                group[file] = tuple(found)
                self._dirty.add(key)
        if groups:
            self._keys[file] = frozenset(groups)
        else:
            self._keys.pop(file, None)

    def join(
        self, now: datetime, settings: WatchSettings, processes: Processes, *, force_liveness: bool = False
    ) -> frozenset[str]:
        """Update `records`, and check the liveness of running loops from time to time.

        Args:
            now: The present, UTC.
            settings: Thresholds of liveness.
            processes: Running processes.
            force_liveness: Whether to check liveness even if that was done a moment ago.

        Returns:
            IDs of the loops that were added, changed or removed.
        """
        if _EXTERNAL in self._dirty:
            self._group_external()
        registries = frozenset(self._groups.get(_REGISTRY, ()))
        if registries != self._registries:
            self._registries = registries
            self._dirty.update(self._groups, self._external)
        stale_after = timedelta(minutes=settings.stale_after_minutes)
        internal = Context(now, stale_after, processes, _REGISTRY_FILE in registries)
        external = Context(now, stale_after, processes, _EXTERNAL_REGISTRY_FILE in registries)
        touched = self._dirty
        if force_liveness or abs(now - self._checked_at) >= _LIVENESS_INTERVAL:
            touched = self._dirty | self._running
            self._checked_at = now
        before = {key: self._joined.get(key, _EMPTY) for key in touched - {_REGISTRY, _EXTERNAL}}
        changed = [key for key in before if self._join_group(key, external if key.startswith(_EXTERNAL) else internal)]
        self._dirty.clear()
        if not changed:
            return frozenset()
        same_order = (_order_of(before[key]) == _order_of(self._joined.get(key, _EMPTY)) for key in changed)
        return self._replace_in_place(changed) if all(same_order) else self._rebuild()

    def _group_external(self) -> None:
        """Group the external facts by loop; groups that changed have to be joined again."""
        pool = self._groups.get(_EXTERNAL, {})
        groups = group_by_loop(fact for facts in pool.values() for fact in facts)
        before, self._external = self._external, {f"{_EXTERNAL}:{loop_id}": facts for loop_id, facts in groups.items()}
        keys = before.keys() | self._external.keys()
        self._dirty.update(key for key in keys if before.get(key) != self._external.get(key))

    def _join_group(self, key: str, context: Context) -> bool:
        """Join the facts of one key; returns whether anything changed."""
        if key.startswith(_EXTERNAL):
            facts = self._external.get(key, [])
        else:
            facts = [fact for found in self._groups.get(key, {}).values() for fact in found]
        self._running.discard(key)
        if not facts:
            self._groups.pop(key, None)
            return self._joined.pop(key, None) is not None
        findings: list[Finding] = []
        loop_id = key.partition(":")[2]
        joined = tuple(merge_facts(loop_id, facts, context, findings)), tuple(findings)
        if any(loop.liveness in (Liveness.ALIVE, Liveness.FRESH) for loop in joined[0]):
            self._running.add(key)
        if self._joined.get(key) == joined:
            return False
        self._joined[key] = joined
        return True

    def _replace_in_place(self, keys: Iterable[str]) -> frozenset[str]:
        """Copy the mapping with the loops of some keys replaced; returns the IDs of changed loops."""
        loops = {
            id: _with_id(loop, id)
            for key in keys
            for id, loop in zip(self._ids.get(key, ()), self._joined.get(key, _EMPTY)[0], strict=True)
        }
        before, self.records = self.records, {**self.records, **loops}
        self._collect_findings()
        return frozenset(id for id, loop in loops.items() if before[id] != loop)

    def _collect_findings(self) -> None:
        self.findings = tuple(finding for _, findings in self._joined.values() for finding in findings)

    def _rebuild(self) -> frozenset[str]:
        """Rebuild all mappings; returns the IDs of the loops that differ."""
        found: dict[str, Loop] = {}
        self._ids = {}
        for key in sorted(self._joined, key=lambda key: key.startswith(_EXTERNAL)):
            ids = self._ids[key] = []
            for loop in self._joined[key][0]:
                free_id = loop.id
                while free_id in found:
                    free_id += "@external"
                found[free_id] = _with_id(loop, free_id)
                ids.append(free_id)
        ordered = sorted(found.values(), key=lambda loop: loop.id)
        ordered.sort(key=lambda loop: loop.started_at or _LONG_AGO, reverse=True)
        before, self.records = self.records, {loop.id: loop for loop in ordered}
        self.aliases = {alias: loop.id for loop in ordered for alias in loop.aliases if alias not in found}
        self._collect_findings()
        return frozenset(
            loop_id
            for loop_id in before.keys() | self.records.keys()
            if (old := before.get(loop_id)) is not (new := self.records.get(loop_id)) and old != new
        )


def _order_of(joined: _Joined) -> list[tuple[str, datetime | None, tuple[str, ...]]]:
    """Everything that decides the order and aliases of the loops of a key."""
    return [(loop.id, loop.started_at, loop.aliases) for loop in joined[0]]


def _with_id(loop: Loop, id: str) -> Loop:
    return loop if id == loop.id else replace(loop, id=id)


def _keys(fact: LoopFact) -> tuple[str, ...]:
    """Keys of the groups that a fact is joined in; a UUID may belong to an internal or an external loop."""
    if not fact.loop_id:
        return (_REGISTRY,)
    if fact.file.startswith(_EXTERNAL_TREE):
        return (_EXTERNAL,)
    if fact.source in _DETAILS_BY_UUID and _UUID.fullmatch(fact.loop_id):
        return (_LOOP + fact.loop_id, _EXTERNAL)
    return (_LOOP + fact.loop_id,)
