"""Loop facts to loop rows: one row a loop, whichever files know it (formats C14, section 7)."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from core.records.findings import Finding
from core.records.loops import Liveness, Loop
from core.settings import WatchSettings
from core.sources.liveness import Processes
from core.sources.loops import (
    ANALYTICS,
    BEST_OUTPUT,
    DETAILS,
    EXTERNAL_STATE,
    HEARTBEAT,
    LAUNCHER,
    LoopFact,
)
from core.sources.rows import Context, rows

SAME_START: Final = timedelta(seconds=5)
"""Two ids of one external loop name starts that differ by less than this (C14)."""
_TASK_KEY: Final = 80
"""Characters of a task that are compared: registries cut it."""
_ADDING: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT})
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXTERNAL_TREE: Final = ".aiwg/ralph-external/"
_EXTERNAL: Final = "external"
_PRESENCE: Final = "registry"
_LOOP: Final = "loop:"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def join_loops(
    facts: Iterable[LoopFact], now: datetime, settings: WatchSettings, processes: Processes
) -> dict[str, Loop]:
    """All rows by id, newest start first, of all facts at once."""
    book = LoopBook()
    by_file: dict[str, list[LoopFact]] = {}
    for fact in facts:
        by_file.setdefault(fact.file, []).append(fact)
    for file, told in by_file.items():
        book.replace(file, told)
    book.join(now, settings, processes)
    return book.loops


class LoopBook:
    """All loop facts by file; joins again only the loops that a change can touch.

    Internal loops are joined by id, each on its own. External loops have up to three ids each (C14) and are
    joined all together. Usage: `replace` for each changed file (no facts: it is gone), then `join`.

    Attributes:
        loops: Rows by id, newest start first, as of the last `join`; a new mapping after each change.
        aliases: Other ids of a loop (UUID of its analytics, launcher id) -> id of its row.
        findings: What only the joined view shows.
    """

    def __init__(self) -> None:
        self.loops: dict[str, Loop] = {}
        self.aliases: dict[str, str] = {}
        self.findings: tuple[Finding, ...] = ()
        self._keys: dict[str, frozenset[str]] = {}
        self._groups: dict[str, dict[str, tuple[LoopFact, ...]]] = {}
        self._joined: dict[str, tuple[tuple[Loop, ...], tuple[Finding, ...]]] = {}
        self._dirty: set[str] = set()
        self._living: set[str] = set()
        self._registered = False

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

    def join(self, now: datetime, settings: WatchSettings, processes: Processes) -> frozenset[str]:
        """Bring the rows up to date, loops at work judged anew.

        Returns:
            Ids of the rows that changed, came or went.
        """
        registered = bool(self._groups.get(_PRESENCE))
        if registered != self._registered:
            self._registered = registered
            self._dirty.update(self._groups)
        stale_after = timedelta(minutes=settings.stale_after_minutes)
        context = Context(now, stale_after, processes, registered)
        changed = [
            key for key in (self._dirty | self._living) - {_PRESENCE} if self._join_group(key, context)
        ]
        self._dirty.clear()
        return self._publish() if changed else frozenset()

    def _join_group(self, key: str, context: Context) -> bool:
        """Join the facts of one key again; whether that changed anything."""
        group = self._groups.get(key)
        if not group:
            self._groups.pop(key, None)
            self._living.discard(key)
            return self._joined.pop(key, None) is not None
        facts = [fact for told in group.values() for fact in told]
        findings: list[Finding] = []
        if key == _EXTERNAL:
            joined = tuple(_external_rows(facts, context, findings))
        else:
            joined = tuple(rows(facts[0].loop_id, facts, context, findings))
        if any(loop.liveness in (Liveness.ALIVE, Liveness.FRESH) for loop in joined):
            self._living.add(key)
        else:
            self._living.discard(key)
        if self._joined.get(key) == (joined, tuple(findings)):
            return False
        self._joined[key] = joined, tuple(findings)
        return True

    def _publish(self) -> frozenset[str]:
        """New mappings of all rows; ids of the rows that differ from the ones before."""
        external, _ = self._joined.get(_EXTERNAL, ((), ()))
        found = {
            loop.id: loop for key, (loops, _) in self._joined.items() if key != _EXTERNAL for loop in loops
        }
        for loop in external:
            free = loop.id if loop.id not in found else f"{loop.id}@external"
            found[free] = loop if free == loop.id else replace(loop, id=free)
        order = sorted(found.values(), key=lambda loop: loop.id)
        order.sort(key=lambda loop: loop.started_at or _LONG_AGO, reverse=True)
        before, self.loops = self.loops, {loop.id: loop for loop in order}
        self.aliases = {alias: loop.id for loop in order for alias in loop.aliases if alias not in found}
        self.findings = tuple(finding for _, findings in self._joined.values() for finding in findings)
        return frozenset(
            loop_id
            for loop_id in before.keys() | self.loops.keys()
            if (old := before.get(loop_id)) is not (new := self.loops.get(loop_id)) and old != new
        )


def _keys(fact: LoopFact) -> tuple[str, ...]:
    """The groups a fact is joined in. A UUID may be an internal loop's own id or one of an external loop."""
    if fact.file.startswith(_EXTERNAL_TREE):
        return (_EXTERNAL,)
    if not fact.loop_id:
        return (_PRESENCE,)
    if fact.source in _ADDING and _UUID.fullmatch(fact.loop_id):
        return (_LOOP + fact.loop_id, _EXTERNAL)
    return (_LOOP + fact.loop_id,)


def _external_rows(facts: Sequence[LoopFact], context: Context, findings: list[Finding]) -> Iterator[Loop]:
    """Rows of all external loops."""
    registered = any(not fact.loop_id and fact.source != LAUNCHER for fact in facts)
    context = Context(context.now, context.stale_after, context.processes, registered)
    clusters = _Clusters([fact for fact in facts if fact.loop_id])
    for loop_id, parts in clusters.by_id.items():
        yield from rows(loop_id, parts, context, findings)


class _Clusters:
    """External facts put together by loop (C14): by id, by pid, by task and start.

    Attributes:
        by_id: Facts by the id of the loop's directory or registry entry; where there is none, by the id that
            the launcher or the session state gave it.
    """

    def __init__(self, facts: Sequence[LoopFact]) -> None:
        self.by_id: dict[str, list[LoopFact]] = {}
        self._same: dict[str, str] = {}
        self._starts: dict[str, list[tuple[datetime, str]]] = {}
        self._pids: dict[int, list[LoopFact]] = {}
        late = []
        for fact in facts:
            if fact.directory or fact.source not in (EXTERNAL_STATE, LAUNCHER, *_ADDING):
                self._add(fact.loop_id, fact)
            else:
                late.append(fact)
        late.sort(key=lambda fact: _ORDER[fact.source])
        for fact in late:
            self._place(fact)

    def _place(self, fact: LoopFact) -> None:
        """Put a fact whose id is not the loop's own to the loop that it tells of."""
        home = self._same.get(fact.loop_id, fact.loop_id)
        known = self.by_id.get(home, ())
        if all(other.source in DETAILS for other in known):  # nobody calls a loop so, at most a bare folder
            found = self._by_pid(fact) if fact.source == LAUNCHER else ""
            found = found or self._by_start(fact)
            if found:
                self.by_id[found].extend(self.by_id.pop(home, ()))
                self._same[fact.loop_id] = home = found
            elif fact.source in DETAILS:
                return
        self._add(home, fact)

    def _add(self, loop_id: str, fact: LoopFact) -> None:
        self.by_id.setdefault(loop_id, []).append(fact)
        if fact.source in _ADDING:
            return
        if fact.started_at and fact.task:
            insort(self._starts.setdefault(_task_key(fact.task), []), (fact.started_at, loop_id))
        for pid in (fact.pid, fact.launcher_pid):
            if pid is not None:
                self._pids.setdefault(pid, []).append(fact)

    def _by_pid(self, fact: LoopFact) -> str:
        """The loop whose registry entry names the launcher's pid; pids come again, so the task must agree."""
        for other in self._pids.get(fact.launcher_pid or 0, ()):
            if not fact.task or not other.task or _task_key(fact.task) == _task_key(other.task):
                return self._same.get(other.loop_id, other.loop_id)
        return ""

    def _by_start(self, fact: LoopFact) -> str:
        """The loop with the same task that started at nearly the same time, the nearest of several."""
        if fact.started_at is None or not fact.task:
            return ""
        starts = self._starts.get(_task_key(fact.task), [])
        after = bisect_left(starts, (fact.started_at, ""))
        near = [
            (abs(started - fact.started_at), loop_id)
            for started, loop_id in starts[max(after - 1, 0) : after + 1]
        ]
        distance, loop_id = min(near, default=(SAME_START, ""))
        return self._same.get(loop_id, loop_id) if distance < SAME_START else ""


_ORDER: Final = {EXTERNAL_STATE: 0, LAUNCHER: 1, ANALYTICS: 2, BEST_OUTPUT: 3, HEARTBEAT: 4}
"""A heartbeat has no task: it is placed by the id that session state or analytics gave away."""


def _task_key(task: str) -> str:
    return " ".join(task.split())[:_TASK_KEY].casefold()
