"""The collection of all loops, joined incrementally from the facts of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from core.base.grouping import group_pairs
from core.records.findings import Finding
from core.records.loops import Liveness, Loop
from core.sources.loop_groups import EXTERNAL, LOOP, REGISTRY, group_by_loop, group_keys
from core.sources.loop_merge import Context, merge_facts
from core.sources.loop_union import newest_first

if TYPE_CHECKING:
    from core.config.settings import WatchSettings
    from core.sources.liveness import Processes
    from core.sources.loop_facts import LoopFact

_REGISTRY_FILE: Final = ".aiwg/ralph/registry.json"
_EXTERNAL_REGISTRY_FILE: Final = ".aiwg/ralph-external/registry.json"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_Joined: TypeAlias = tuple[tuple[Loop, ...], tuple[Finding, ...]]
_EMPTY: Final[_Joined] = ((), ())
_SOME: Final = 20  # groups that take about 1 ms
_LIVENESS_INTERVAL: Final = timedelta(seconds=5)
"""Minimum time between liveness checks; checking 1,000 running loops takes 30 ms."""


class LoopCollection:
    """The collection of loops, joined again only where facts changed.

    Internal loops are joined by ID, external ones as `group_by_loop` groups their facts. Call `replace` for each
    changed file (without facts if it was removed), then `join`, which updates the attributes: `records` are loops by
    ID, newest start first, a new mapping after each change; `aliases` are other IDs of loops (UUID of analytics,
    launcher ID), each with the ID of the loop; `findings` come from comparing several files.
    """

    def __init__(self) -> None:
        self.records: dict[str, Loop] = {}
        self.aliases: dict[str, str] = {}
        self.findings: tuple[Finding, ...] = ()
        self._keys: dict[str, tuple[str, ...]] = {}
        self._groups: dict[str, dict[str, tuple[LoopFact, ...]]] = {}
        self._external: dict[str, list[LoopFact]] = {}
        self._joined: dict[str, _Joined] = {}
        self._ids: dict[str, list[str]] = {}
        """For each group key, the IDs of its loops in `records`."""
        self._dirty: set[str] = set()
        self._before: dict[str, _Joined] = {}
        """What groups were that `join_some` has joined since the last `join`."""
        self._running: set[str] = set()
        self._checked_at = _LONG_AGO
        self._registries: frozenset[str] = frozenset()

    def replace(self, file: str, facts: Sequence[LoopFact]) -> None:
        """Replace all facts of `file`; the path of a loop folder ends in `/`."""
        if len(facts) == 1 and file not in self._keys:  # nearly all while loading
            self._keys[file] = keys = group_keys(facts[0])
            for key in keys:
                self._groups.setdefault(key, {})[file] = tuple(facts)
            self._dirty.update(keys)
            return
        groups = group_pairs((key, fact) for fact in facts for key in group_keys(fact))
        for key in set(self._keys.get(file, ())) - groups.keys():
            del self._groups[key][file]
            self._dirty.add(key)
        for key, found in groups.items():
            group = self._groups.setdefault(key, {})
            if group.get(file) != tuple(found):
                group[file] = tuple(found)
                self._dirty.add(key)
        if groups:
            self._keys[file] = tuple(groups)
        else:
            self._keys.pop(file, None)

    def join(
        self, now: datetime, settings: WatchSettings, processes: Processes, *, force_liveness: bool = False
    ) -> frozenset[str]:
        """Update `records`; returns the IDs of added, changed and removed loops.

        The liveness of running loops is checked at intervals, or at once with `force_liveness`.
        """
        if EXTERNAL in self._dirty:
            self._group_external()
        self._note_registries()
        internal = self._context(now, settings, processes, _REGISTRY_FILE)
        external = self._context(now, settings, processes, _EXTERNAL_REGISTRY_FILE)
        touched = self._dirty
        if force_liveness or abs(now - self._checked_at) >= _LIVENESS_INTERVAL:
            touched = self._dirty | self._running
            self._checked_at = now
        groups = {key: self._joined.get(key, _EMPTY) for key in touched - {REGISTRY, EXTERNAL}}
        rejoined = [key for key in groups if self._join_group(key, external if key.startswith(EXTERNAL) else internal)]
        before = groups | self._before
        changed = dict.fromkeys((*self._before, *rejoined))
        self._dirty.clear()
        self._before = {}
        if not changed:
            return frozenset()
        pairs = [(before[key], self._joined.get(key, _EMPTY)) for key in changed]
        if any(_order_of(old) != _order_of(new) for old, new in pairs):
            return self._rebuild()
        if any(old[1] != new[1] for old, new in pairs):
            self._collect_findings()
        return self._replace_in_place(changed)

    def join_some(self, now: datetime, settings: WatchSettings, processes: Processes) -> bool:
        """Join some changed groups in advance for the next `join`; returns False if there are none."""
        self._note_registries()
        context = self._context(now, settings, processes, _REGISTRY_FILE)
        keys = list(islice((key for key in self._dirty if key.startswith(LOOP)), _SOME))
        self._dirty.difference_update(keys)
        for key in keys:
            known = self._joined.get(key, _EMPTY)
            if self._join_group(key, context):
                self._before.setdefault(key, known)
        return bool(keys)

    def _note_registries(self) -> None:
        """Let all loops be joined again if there are other registries."""
        registries = frozenset(self._groups.get(REGISTRY, ()))
        if registries != self._registries:
            self._registries = registries
            self._dirty.update(self._groups, self._external)

    def _context(self, now: datetime, settings: WatchSettings, processes: Processes, registry: str) -> Context:
        return Context(now, timedelta(minutes=settings.stale_after_minutes), processes, registry in self._registries)

    def _group_external(self) -> None:
        """Group the external facts by loop; changed groups will be joined again."""
        pool = self._groups.get(EXTERNAL, {})
        groups = group_by_loop(fact for facts in pool.values() for fact in facts)
        before, self._external = self._external, {f"{EXTERNAL}:{loop_id}": facts for loop_id, facts in groups.items()}
        keys = before.keys() | self._external.keys()
        self._dirty.update(key for key in keys if before.get(key) != self._external.get(key))

    def _join_group(self, key: str, context: Context) -> bool:
        """Join the facts of one key; returns whether anything changed."""
        if key.startswith(EXTERNAL):
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
        """Replace the loops of some keys; returns the IDs of changed loops."""
        loops = {
            id: _with_id(loop, id)
            for key in keys
            for id, loop in zip(self._ids.get(key, ()), self._joined.get(key, _EMPTY)[0], strict=True)
        }
        before, self.records = self.records, {**self.records, **loops}
        return frozenset(id for id, loop in loops.items() if before[id] != loop)

    def _collect_findings(self) -> None:
        self.findings = tuple(finding for _, findings in self._joined.values() for finding in findings)

    def _rebuild(self) -> frozenset[str]:
        """Rebuild all mappings; returns the IDs of the loops that differ."""
        found: dict[str, Loop] = {}
        self._ids = {}
        for key in sorted(self._joined, key=lambda key: key.startswith(EXTERNAL)):
            ids = self._ids[key] = []
            for loop in self._joined[key][0]:
                free_id = loop.id
                while free_id in found:
                    free_id += "@external"
                found[free_id] = _with_id(loop, free_id)
                ids.append(free_id)
        before, self.records = self.records, newest_first(found.values())
        self.aliases = {
            alias: loop.id for loop in self.records.values() for alias in loop.aliases if alias not in found
        }
        self._collect_findings()
        return frozenset(
            loop_id
            for loop_id in before.keys() | self.records.keys()
            if (old := before.get(loop_id)) is not (new := self.records.get(loop_id)) and old != new
        )


def _order_of(joined: _Joined) -> list[tuple[str, datetime | None, tuple[str, ...]]]:
    """The values that decide the order and the aliases of the loops of a group."""
    return [(loop.id, loop.started_at, loop.aliases) for loop in joined[0]]


def _with_id(loop: Loop, id: str) -> Loop:
    return loop if id == loop.id else replace(loop, id=id)
