"""Search tasks, actions, reflections and errors directly in the files."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from core.config.paths import ProjectPaths
from core.episodes.search_errors import ErrorSearcher
from core.episodes.search_reader import SearchHit, SearchPlace, SearchWords
from core.episodes.search_tasks import TaskSearcher
from core.records.episodes import TaskStatus
from core.records.findings import Finding
from core.records.loops import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """Conditions for a hit besides the words; an empty filter matches everything.

    Attributes:
        places: A failed action is both an action and an error, and is found once.
        task_id: The complete ID of the task; with `attempt` only that attempt.
        statuses: Of the task.
        agent: Of the attempt, the task or the debug session; case is ignored.
        outcomes: Of the attempt; for a task, of its last attempt.
        since, until: Range of the time of the hit, inclusive; hits without a time do not match then.
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
    """Hits, newest first and those without a time last.

    Attributes:
        hits: At most the requested number.
        total: The number of all hits.
        findings: Problems with the files that were parsed.
    """

    hits: tuple[SearchHit, ...]
    total: int
    findings: tuple[Finding, ...]


def search(
    paths: ProjectPaths, words: SearchWords, filters: SearchFilters | None = None, limit: int | None = None
) -> SearchResult:
    """The records that contain all words and match the filters.

    A file is parsed only if its bytes may match: searching 10,000 tasks takes one to two seconds.
    """
    filters = filters or SearchFilters()
    tasks = TaskSearcher(paths, words, filters.places, filters.statuses, filters.task_id)
    errors = ErrorSearcher(paths, words)
    found = chain(tasks.hits(), errors.hits() if SearchPlace.ERRORS in filters.places else ())
    total = 0

    def matching() -> Iterator[SearchHit]:
        nonlocal total
        for hit in found:
            if _matches(hit, filters, tasks):
                total += 1
                yield hit

    # At least one is taken, since all hits are counted even if the limit is 0.
    hits = sorted(matching(), key=_order) if limit is None else heapq.nsmallest(max(limit, 1), matching(), key=_order)
    return SearchResult(tuple(hits[:limit]), total, (*tasks.findings, *errors.findings))


def _order(hit: SearchHit) -> tuple[float, str, int, int]:
    newest = -hit.at.timestamp() if hit.at is not None else 0.0
    return newest, hit.task_id, hit.attempt or 0, hit.action or 0


def _matches(hit: SearchHit, filters: SearchFilters, tasks: TaskSearcher) -> bool:
    if filters.task_id and (hit.task_id != filters.task_id or filters.attempt not in (None, hit.attempt)):
        return False
    if filters.since is not None and (hit.at is None or hit.at < filters.since):
        return False
    if filters.until is not None and (hit.at is None or hit.at > filters.until):
        return False
    if not (filters.statuses or filters.agent or filters.outcomes):
        return True
    owner = tasks.owner(hit.task_id)
    attempt = owner.attempts.get(max(owner.attempts, default=0) if hit.attempt is None else hit.attempt)
    if filters.statuses and owner.task.status not in filters.statuses:
        return False
    if filters.outcomes and (attempt is None or attempt.outcome not in filters.outcomes):
        return False
    agents = {hit.agent, owner.task.agent, attempt.agent if attempt else ""}
    return not filters.agent or filters.agent.casefold() in {agent.casefold() for agent in agents}
