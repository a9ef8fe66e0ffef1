"""External facts put together by loop: one external loop goes by up to three ids (formats C14)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from core.sources.loop_facts import LoopFact
from core.sources.loop_paths import ANALYTICS, BEST_OUTPUT, DETAILS, EXTERNAL_STATE, HEARTBEAT, LAUNCHER

SAME_START: Final = timedelta(seconds=5)
"""Two ids of one external loop name starts that differ by less than this (C14)."""
_TASK_KEY: Final = 80
"""Characters of a task that are compared: registries cut it."""
_ORDER: Final = {EXTERNAL_STATE: 0, LAUNCHER: 1, ANALYTICS: 2, BEST_OUTPUT: 3, HEARTBEAT: 4}
"""A heartbeat has no task: it is placed by the id that session state or analytics gave away."""


def by_loop(facts: Iterable[LoopFact]) -> dict[str, list[LoopFact]]:
    """External facts by the id of the loop's directory or registry entry; where it has none, by the id that the
    session state or the launcher gave it.

    Facts with the id of a directory or registry entry come first. The others find their loop by that id, by the pid
    that launcher and registry share, or by the same task and nearly the same start. Facts that only add detail and
    find no loop are left out.
    """
    clusters = _Clusters()
    late = []
    for fact in facts:
        if fact.directory or fact.source not in _ORDER:
            clusters.add(fact.loop_id, fact)
        else:
            late.append(fact)
    for fact in sorted(late, key=lambda fact: (_ORDER[fact.source], fact.file)):
        clusters.place(fact)
    return clusters.by_id


class _Clusters:
    """The loops found so far, and what others can find them by."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[LoopFact]] = {}
        self._same: dict[str, str] = {}
        self._starts: dict[str, list[tuple[datetime, str]]] = {}
        self._pids: dict[int, list[LoopFact]] = {}

    def place(self, fact: LoopFact) -> None:
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
        self.add(home, fact)

    def add(self, loop_id: str, fact: LoopFact) -> None:
        """Put a fact to the loop with this id."""
        self.by_id.setdefault(loop_id, []).append(fact)
        if fact.source in DETAILS:
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
        near = [(abs(started - fact.started_at), loop_id) for started, loop_id in starts[max(after - 1, 0) : after + 1]]
        distance, loop_id = min(near, default=(SAME_START, ""))
        return self._same.get(loop_id, loop_id) if distance < SAME_START else ""


def _task_key(task: str) -> str:
    return " ".join(task.split())[:_TASK_KEY].casefold()
