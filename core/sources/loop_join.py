"""Loop facts to loop rows: one row a loop, whichever files know it (formats C14, section 7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from msgspec.structs import replace

from core.config.settings import WatchSettings
from core.records.findings import Finding
from core.records.loops import Liveness, Loop
from core.sources.external_loops import by_loop
from core.sources.liveness import Processes
from core.sources.loop_facts import LoopFact
from core.sources.loop_merge import Context, rows
from core.sources.loop_paths import ANALYTICS, BEST_OUTPUT, HEARTBEAT

_ADDING: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT})
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXTERNAL_TREE: Final = ".aiwg/ralph-external/"
_REGISTRY_FILE: Final = ".aiwg/ralph/registry.json"
_EXTERNAL_REGISTRY_FILE: Final = ".aiwg/ralph-external/registry.json"
_EXTERNAL: Final = "external"
_PRESENCE: Final = "registry"
_LOOP: Final = "loop:"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_Joined: TypeAlias = tuple[tuple[Loop, ...], tuple[Finding, ...]]
_NOTHING: Final[_Joined] = ((), ())
_JUDGED_FOR: Final = timedelta(seconds=5)
"""A thousand loops at work take 30 ms to judge: too long for every change of one of them."""


def join_loops(
    facts: Iterable[LoopFact], now: datetime, settings: WatchSettings, processes: Processes
) -> dict[str, Loop]:
    """All rows by id, newest start first, of all facts at once."""
    book = LoopCollection()
    by_file: dict[str, list[LoopFact]] = {}
    for fact in facts:
        by_file.setdefault(fact.file, []).append(fact)
    for file, told in by_file.items():
        book.replace(file, told)
    book.join(now, settings, processes)
    return book.records


class LoopCollection:
    """All loop facts by file; joins again only the loops that a change can touch.

    Internal loops are joined by id, external ones as `external.by_loop` puts their facts together. Usage: `replace`
    for each changed file (no facts: it is gone), then `join`.

    Attributes:
        records: Rows by id, newest start first, as of the last `join`; a new mapping after each change.
        aliases: Other ids of a loop (UUID of its analytics, launcher id) -> id of its row.
        findings: What only the joined view shows.
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
        """The ids under which the rows of each key stand in `records`."""
        self._dirty: set[str] = set()
        self._living: set[str] = set()
        self._judged_at = _LONG_AGO
        self._registries: frozenset[str] = frozenset()

    def replace(self, file: str, facts: Sequence[LoopFact]) -> None:
        """From now on `file` says `facts` and nothing else. A bare directory's file is its name with `/`."""
        groups: dict[str, list[LoopFact]] = {}
        for fact in facts:
            for key in _keys(fact):
                groups.setdefault(key, []).append(fact)
        for key in self._keys.get(file, frozenset()) - groups.keys():
            del self._groups[key][file]
            self._dirty.add(key)
        for key, told in groups.items():
            group = self._groups.setdefault(key, {})
            if group.get(file) != tuple(told):
                group[file] = tuple(told)
                self._dirty.add(key)
        if groups:
            self._keys[file] = frozenset(groups)
        else:
            self._keys.pop(file, None)

    def join(
        self, now: datetime, settings: WatchSettings, processes: Processes, *, force_liveness: bool = False
    ) -> frozenset[str]:
        """Bring the rows up to date; loops at work are judged anew, but not at every change of another loop.

        Args:
            now: The present, UTC.
            settings: Thresholds of liveness.
            processes: Whom to ask about a pid.
            force_liveness: Check running loops even if that was done a moment ago.

        Returns:
            Ids of the rows that changed, came or went.
        """
        if _EXTERNAL in self._dirty:
            self._place_external()
        registries = frozenset(self._groups.get(_PRESENCE, ()))
        if registries != self._registries:
            self._registries = registries
            self._dirty.update(self._groups, self._external)
        stale_after = timedelta(minutes=settings.stale_after_minutes)
        internal = Context(now, stale_after, processes, _REGISTRY_FILE in registries)
        external = Context(now, stale_after, processes, _EXTERNAL_REGISTRY_FILE in registries)
        touched = self._dirty
        if force_liveness or abs(now - self._judged_at) >= _JUDGED_FOR:
            touched = self._dirty | self._living
            self._judged_at = now
        before = {key: self._joined.get(key, _NOTHING) for key in touched - {_PRESENCE, _EXTERNAL}}
        changed = [key for key in before if self._join_group(key, external if key.startswith(_EXTERNAL) else internal)]
        self._dirty.clear()
        if not changed:
            return frozenset()
        places = (_places(before[key]) == _places(self._joined.get(key, _NOTHING)) for key in changed)
        return self._put(changed) if all(places) else self._publish()

    def _place_external(self) -> None:
        """Put the external facts together by loop; loops whose facts are others now have to be joined again."""
        pool = self._groups.get(_EXTERNAL, {})
        placed = by_loop(fact for told in pool.values() for fact in told)
        before, self._external = self._external, {f"{_EXTERNAL}:{loop_id}": facts for loop_id, facts in placed.items()}
        keys = before.keys() | self._external.keys()
        self._dirty.update(key for key in keys if before.get(key) != self._external.get(key))

    def _join_group(self, key: str, context: Context) -> bool:
        """Join the facts of one key again; whether that changed anything."""
        if key.startswith(_EXTERNAL):
            facts = self._external.get(key, [])
        else:
            facts = [fact for told in self._groups.get(key, {}).values() for fact in told]
        self._living.discard(key)
        if not facts:
            self._groups.pop(key, None)
            return self._joined.pop(key, None) is not None
        findings: list[Finding] = []
        loop_id = key.partition(":")[2]
        joined = tuple(rows(loop_id, facts, context, findings)), tuple(findings)
        if any(loop.liveness in (Liveness.ALIVE, Liveness.FRESH) for loop in joined[0]):
            self._living.add(key)
        if self._joined.get(key) == joined:
            return False
        self._joined[key] = joined
        return True

    def _put(self, keys: Iterable[str]) -> frozenset[str]:
        """The rows of some keys into a copy of the mapping, each where it stood; ids of those that differ."""
        rows = {
            id: _named(loop, id)
            for key in keys
            for id, loop in zip(self._ids.get(key, ()), self._joined.get(key, _NOTHING)[0], strict=True)
        }
        before, self.records = self.records, {**self.records, **rows}
        self._gather_findings()
        return frozenset(id for id, loop in rows.items() if before[id] != loop)

    def _gather_findings(self) -> None:
        self.findings = tuple(finding for _, findings in self._joined.values() for finding in findings)

    def _publish(self) -> frozenset[str]:
        """New mappings of all rows; ids of the rows that differ from the ones before."""
        found: dict[str, Loop] = {}
        self._ids = {}
        for key in sorted(self._joined, key=lambda key: key.startswith(_EXTERNAL)):
            ids = self._ids[key] = []
            for loop in self._joined[key][0]:
                free = loop.id
                while free in found:
                    free += "@external"
                found[free] = _named(loop, free)
                ids.append(free)
        order = sorted(found.values(), key=lambda loop: loop.id)
        order.sort(key=lambda loop: loop.started_at or _LONG_AGO, reverse=True)
        before, self.records = self.records, {loop.id: loop for loop in order}
        self.aliases = {alias: loop.id for loop in order for alias in loop.aliases if alias not in found}
        self._gather_findings()
        return frozenset(
            loop_id
            for loop_id in before.keys() | self.records.keys()
            if (old := before.get(loop_id)) is not (new := self.records.get(loop_id)) and old != new
        )


def _places(joined: _Joined) -> list[tuple[str, datetime | None, tuple[str, ...]]]:
    """What says where the rows of a key stand among all others, and what else they are called."""
    return [(loop.id, loop.started_at, loop.aliases) for loop in joined[0]]


def _named(loop: Loop, id: str) -> Loop:
    return loop if id == loop.id else replace(loop, id=id)


def _keys(fact: LoopFact) -> tuple[str, ...]:
    """The groups a fact is joined in. A UUID may be an internal loop's own id or one of an external loop."""
    if not fact.loop_id:
        return (_PRESENCE,)
    if fact.file.startswith(_EXTERNAL_TREE):
        return (_EXTERNAL,)
    if fact.source in _ADDING and _UUID.fullmatch(fact.loop_id):
        return (_LOOP + fact.loop_id, _EXTERNAL)
    return (_LOOP + fact.loop_id,)
