"""Which facts are about the same loop (docs/file-formats.md#joining-loops)."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from core.sources.loop_facts import ANALYTICS, BEST_OUTPUT, DETAILS, EXTERNAL_STATE, HEARTBEAT, LAUNCHER, LoopFact

SAME_START: Final = timedelta(seconds=5)  # Maximum difference between the start times that two files have for one loop.
_TASK_CHARS: Final = 80  # Number of compared characters of a task; registries truncate the text.
_ORDER: Final = {EXTERNAL_STATE: 0, LAUNCHER: 1, ANALYTICS: 2, BEST_OUTPUT: 3, HEARTBEAT: 4}
"""Order in which facts with another ID are matched; a heartbeat has no task and needs earlier matches."""
_DETAILS_BY_UUID: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT})
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXTERNAL_TREE: Final = ".aiwg/ralph-external/"
EXTERNAL: Final = "external"
"""Key of all facts about external loops, which `group_by_loop` groups."""
REGISTRY: Final = "registry"
"""Key of the facts that a registry exists."""
LOOP: Final = "loop:"
"""Prefix of the key of an internal loop."""


def group_keys(fact: LoopFact) -> tuple[str, ...]:
    """Group keys of a fact; a UUID may belong to an internal or external loop."""
    if not fact.loop_id:
        return (REGISTRY,)
    if fact.file.startswith(_EXTERNAL_TREE):
        return (EXTERNAL,)
    key = sys.intern(LOOP + fact.loop_id)  # several files of each loop have it
    return (key, EXTERNAL) if fact.source in _DETAILS_BY_UUID and _UUID.fullmatch(fact.loop_id) else (key,)


def group_by_loop(facts: Iterable[LoopFact]) -> dict[str, list[LoopFact]]:
    """Group external facts by the ID of the loop's directory or registry entry.

    The session and the launcher of an external loop have other IDs. Their facts are matched with a loop by its ID, by
    the pid that launcher and registry share, or by the same task and nearly the same start. Facts that only add details
    are dropped if they match no loop.
    """
    groups = _LoopGroups()
    others = []
    for fact in facts:
        if fact.directory or fact.source not in _ORDER:
            groups.add(fact.loop_id, fact)
        else:
            others.append(fact)
    for fact in sorted(others, key=lambda fact: (_ORDER[fact.source], fact.file)):
        groups.match(fact)
    return groups.by_id


class _LoopGroups:
    """Groups of facts, with indexes for matching further facts."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[LoopFact]] = {}
        self._same_loop: dict[str, str] = {}
        self._starts: dict[str, list[tuple[datetime, str]]] = {}
        self._pids: dict[int, list[LoopFact]] = {}

    def match(self, fact: LoopFact) -> None:
        """Find the loop of a fact that may have another ID, and add the fact to it."""
        loop_id = self._same_loop.get(fact.loop_id, fact.loop_id)
        known = self.by_id.get(loop_id, ())
        if all(other.source in DETAILS for other in known):  # this is not the ID of a loop
            found = self._by_pid(fact) if fact.source == LAUNCHER else ""
            found = found or self._by_start(fact)
            if found:
                self.by_id[found].extend(self.by_id.pop(loop_id, ()))
                self._same_loop[fact.loop_id] = loop_id = found
            elif fact.source in DETAILS:
                return
        self.add(loop_id, fact)

    def add(self, loop_id: str, fact: LoopFact) -> None:
        self.by_id.setdefault(loop_id, []).append(fact)
        if fact.source in DETAILS:
            return
        if fact.started_at and fact.task:
            insort(self._starts.setdefault(_task_key(fact.task), []), (fact.started_at, loop_id))
        for pid in (fact.pid, fact.launcher_pid):
            if pid is not None:
                self._pids.setdefault(pid, []).append(fact)

    def _by_pid(self, fact: LoopFact) -> str:
        for other in self._pids.get(fact.launcher_pid or 0, ()):
            if not fact.task or not other.task or _task_key(fact.task) == _task_key(other.task):
                return self._same_loop.get(other.loop_id, other.loop_id)
        return ""

    def _by_start(self, fact: LoopFact) -> str:
        """ID of the loop with the same task and the nearest start in `SAME_START`, or ""."""
        if fact.started_at is None or not fact.task:
            return ""
        starts = self._starts.get(_task_key(fact.task), [])
        after = bisect_left(starts, (fact.started_at, ""))
        near = [(abs(started - fact.started_at), loop_id) for started, loop_id in starts[max(after - 1, 0) : after + 1]]
        distance, loop_id = min(near, default=(SAME_START, ""))
        return self._same_loop.get(loop_id, loop_id) if distance < SAME_START else ""


def _task_key(task: str) -> str:
    return " ".join(task.split())[:_TASK_CHARS].casefold()
