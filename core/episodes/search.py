"""Search in the episodic memory: tasks, actions, reflections and errors, straight on the disk (1) ralph_search."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from core.config.paths import ProjectPaths
from core.episodes.search_matching import Hit, MemorySearcher, SearchPlace
from core.episodes.search_words import SearchWords
from core.records.episodes import TaskStatus
from core.records.findings import Finding
from core.records.loops import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """What a hit must be, beside having the words; an empty filter lets everything through.

    Attributes:
        places: A failed action is found among the actions and among the errors, and told once.
        task_id: Of the task, whole; with `attempt` only that attempt at it.
        statuses: Of the task.
        agent: Of the attempt or the task, or of the debug session; compared without case.
        outcomes: Of the attempt; for a task, of its last attempt.
        since, until: The time of the hit itself, both inclusive; what has no time is not found then.
    """

    places: frozenset[SearchPlace] = frozenset(SearchPlace)
    task_id: str = ""
    attempt: int | None = None
    statuses: frozenset[TaskStatus] = frozenset()
    agent: str = ""
    outcomes: frozenset[Outcome] = frozenset()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, newest first and those without a time last.

    Attributes:
        hits: At most as many as were wanted.
        total: How many there are.
        findings: What is wrong with the files that had to be looked into.
    """

    hits: tuple[Hit, ...]
    total: int
    findings: tuple[Finding, ...]


def search(
    paths: ProjectPaths, words: SearchWords, filters: SearchFilters | None = None, limit: int | None = None
) -> SearchResult:
    """The records that have all words and pass the filters.

    A file is decoded only where its bytes do not rule out a match: reading 10,000 tasks takes one to two seconds.
    """
    filters = filters or SearchFilters()
    matching = MemorySearcher(paths, words, filters.places, filters.statuses, filters.task_id)
    counted = _Counted(hit for hit in matching.hits() if _passes(hit, filters, matching))
    hits = sorted(counted, key=_order) if limit is None else heapq.nsmallest(limit, counted, key=_order)
    for _ in counted:  # what is left where nothing was wanted
        pass
    return SearchResult(tuple(hits), counted.total, tuple(matching.findings))


class _Counted(Iterator[Hit]):
    """Some hits, and how many they were."""

    def __init__(self, hits: Iterable[Hit]) -> None:
        self.total = 0
        self._hits = iter(hits)

    def __next__(self) -> Hit:
        hit = next(self._hits)
        self.total += 1
        return hit


def _order(hit: Hit) -> tuple[float, str, int, int]:
    newest = -hit.at.timestamp() if hit.at is not None else 0.0
    return newest, hit.task_id, hit.attempt or 0, hit.action or 0


def _passes(hit: Hit, filters: SearchFilters, matching: MemorySearcher) -> bool:
    if filters.task_id and (hit.task_id != filters.task_id or filters.attempt not in (None, hit.attempt)):
        return False
    if filters.since is not None and (hit.at is None or hit.at < filters.since):
        return False
    if filters.until is not None and (hit.at is None or hit.at > filters.until):
        return False
    if not (filters.statuses or filters.agent or filters.outcomes):
        return True
    owner = matching.owner(hit.task_id)
    attempt = owner.attempts.get(max(owner.attempts, default=0) if hit.attempt is None else hit.attempt)
    if filters.statuses and owner.task.status not in filters.statuses:
        return False
    if filters.outcomes and (attempt is None or attempt.outcome not in filters.outcomes):
        return False
    agents = {hit.agent, owner.task.agent, attempt.agent if attempt else ""}
    return not filters.agent or filters.agent.casefold() in {agent.casefold() for agent in agents}
