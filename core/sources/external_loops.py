"""Group the facts about external loops by loop (docs/file-formats.md#joining-loops)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from core.sources.loop_facts import LoopFact
from core.sources.loop_paths import ANALYTICS, BEST_OUTPUT, DETAILS, EXTERNAL_STATE, HEARTBEAT, LAUNCHER

SAME_START: Final = timedelta(seconds=5)
"""Maximum difference between the starts of one loop under two IDs."""
_TASK_CHARS: Final = 80
"""Compared characters of a task; registries truncate it."""
_ORDER: Final = {EXTERNAL_STATE: 0, LAUNCHER: 1, ANALYTICS: 2, BEST_OUTPUT: 3, HEARTBEAT: 4}
"""Order of facts with another ID; a heartbeat has no task, so it needs the IDs found by the others."""


def group_by_loop(facts: Iterable[LoopFact]) -> dict[str, list[LoopFact]]:
    """Group external facts by the ID of the loop's directory or registry entry, else of its session or launcher.

    An external loop has up to three IDs. Facts with the ID of a directory or registry entry come first. The others find
    their loop by that ID, by the pid that launcher and registry share, or by the same task and nearly the same start.
    Facts that only add details and match no loop are dropped.
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
    """The groups so far, with indexes of what other facts can match."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[LoopFact]] = {}
        self._same_loop: dict[str, str] = {}
        self._starts: dict[str, list[tuple[datetime, str]]] = {}
        self._pids: dict[int, list[LoopFact]] = {}

    def match(self, fact: LoopFact) -> None:
        """Add a fact with another ID than the loop's own to its loop."""
        loop_id = self._same_loop.get(fact.loop_id, fact.loop_id)
        known = self.by_id.get(loop_id, ())
        if all(other.source in DETAILS for other in known):  # not the ID of a loop
            found = self._by_pid(fact) if fact.source == LAUNCHER else ""
            found = found or self._by_start(fact)
            if found:
                self.by_id[found].extend(self.by_id.pop(loop_id, ()))
                self._same_loop[fact.loop_id] = loop_id = found
            elif fact.source in DETAILS:
                return
        self.add(loop_id, fact)

    def add(self, loop_id: str, fact: LoopFact) -> None:
        """Add a fact to the loop with this ID."""
        self.by_id.setdefault(loop_id, []).append(fact)
        if fact.source in DETAILS:
            return
        if fact.started_at and fact.task:
            insort(self._starts.setdefault(_task_key(fact.task), []), (fact.started_at, loop_id))
        for pid in (fact.pid, fact.launcher_pid):
            if pid is not None:
                self._pids.setdefault(pid, []).append(fact)

    def _by_pid(self, fact: LoopFact) -> str:
        """The loop whose registry entry has the launcher's pid and, since pids are reused, the same task."""
        for other in self._pids.get(fact.launcher_pid or 0, ()):
            if not fact.task or not other.task or _task_key(fact.task) == _task_key(other.task):
                return self._same_loop.get(other.loop_id, other.loop_id)
        return ""

    def _by_start(self, fact: LoopFact) -> str:
        """The loop with the same task and the nearest start within `SAME_START`."""
        if fact.started_at is None or not fact.task:
            return ""
        starts = self._starts.get(_task_key(fact.task), [])
        after = bisect_left(starts, (fact.started_at, ""))
        near = [(abs(started - fact.started_at), loop_id) for started, loop_id in starts[max(after - 1, 0) : after + 1]]
        distance, loop_id = min(near, default=(SAME_START, ""))
        return self._same_loop.get(loop_id, loop_id) if distance < SAME_START else ""


def _task_key(task: str) -> str:
    return " ".join(task.split())[:_TASK_CHARS].casefold()
