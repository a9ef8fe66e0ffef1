"""Search the task memory for tasks, actions, reflections and errors."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.episodes.history import TaskFiles
from core.episodes.task_lookup import list_entries
from core.records.findings import Finding
from core.redaction.masking import mask_secrets
from core.search.error_records import ErrorRecords
from core.search.scan import is_wanted, read_owner, scan_task
from core.search.task_records import TaskRecords
from core.search.words import HitKind, SearchFilters, SearchHit, SearchPlace, SearchWords

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.search.index import SearchIndex
    from core.search.stamps import Freshness

MAX_RANKED: Final = 1000  # maximum number of indexed records that are ranked and counted
_MAX_OWNERS: Final = 1024


class SearchResult(Struct, frozen=True):
    """Hits of a search, best first."""

    hits: tuple[SearchHit, ...]  # at most the requested number
    total: int  # number of all hits, or at least the number of hits if not `is_exact`
    findings: tuple[Finding, ...]  # problems with parsed files
    is_exact: bool = True


def search(
    paths: ProjectPaths,
    words: SearchWords,
    filters: SearchFilters | None = None,
    limit: int | None = None,
    *,
    index: SearchIndex | None = None,
    fresh: Freshness | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> SearchResult:
    """Find the records that contain all words and match the filters, best first.

    Of more than `MAX_RANKED` hits, the newest are ranked. Without an index, all files that may match are read. With an
    index, only files are read that differ from it: all files are compared with it or, if `fresh` is an earlier result
    of `SearchIndex.check`, those of the hits. No more files are read when `go_on` returns False.
    """
    filters = filters or SearchFilters()
    # Secrets are masked in the index, so a secret is only found in the files.
    if index is not None and mask_secrets(words.query) == words.query:
        most = None if limit is None else max(limit, MAX_RANKED)
        for is_checked in (fresh is None, True):
            fresh = fresh or index.check()
            indexed = index.find(words, filters, most, fresh) if fresh is not None else None
            if fresh is None or indexed is None:
                break
            result = _join(paths, words, filters, limit, fresh, go_on, *indexed)
            if is_checked or index.check_again(fresh, {hit.task_id for hit in result.hits}):
                return result
    return _join(paths, words, filters, limit, None, go_on, [], is_cut=False)


def _join(
    paths: ProjectPaths,
    words: SearchWords,
    filters: SearchFilters,
    limit: int | None,
    fresh: Freshness | None,
    go_on: Callable[[], bool],
    indexed: list[SearchHit],
    is_cut: bool,
) -> SearchResult:
    tasks, errors = TaskRecords(paths, words, filters.places), ErrorRecords(paths, words)
    owner_of = lru_cache(_MAX_OWNERS)(lambda task_id: read_owner(tasks, task_id))
    total = len(indexed)

    def matching() -> Iterator[SearchHit]:
        nonlocal total
        for hit in _scan(paths, filters, fresh, go_on, tasks, errors):
            if is_wanted(hit, filters, owner_of):
                total += 1
                yield hit

    hits = [*indexed, *matching()]
    if limit is not None:
        hits = heapq.nsmallest(max(limit, MAX_RANKED), hits, key=_newest_first)
    hits.sort(key=lambda hit: (-words.rank(hit.text), *_newest_first(hit)))
    hits = hits[:limit]
    placed = tuple(hit._replace(place=_place(hit.kind, filters)) for hit in hits)
    return SearchResult(placed, total, (*tasks.findings, *errors.findings), not is_cut)


def _newest_first(hit: SearchHit) -> tuple[float, str, int, int]:
    newest = -hit.at.timestamp() if hit.at is not None else 0.0
    return newest, hit.task_id, hit.attempt or 0, hit.action or 0


def _scan(
    paths: ProjectPaths,
    filters: SearchFilters,
    fresh: Freshness | None,
    go_on: Callable[[], bool],
    tasks: TaskRecords,
    errors: ErrorRecords,
) -> Iterator[SearchHit]:
    """Yield the matching records that are not in the index."""
    if filters.task_id:
        names = [filters.task_id] if fresh is None or filters.task_id in fresh.tasks else []
    elif fresh is not None:
        names = list(fresh.tasks)
    else:
        names = [entry.name for entry in list_entries(paths.tasks) if entry.is_dir(follow_symlinks=False)]
    for name in takewhile(lambda _: go_on(), names):
        yield from scan_task(tasks, TaskFiles(paths, name), filters, fresh.logs if fresh is not None else ())
    for file, (task_id, number) in fresh.other_logs.items() if fresh is not None else ():
        if filters.task_id in ("", task_id):
            yield from tasks.log(file, task_id, number)
    if SearchPlace.ERRORS in filters.places and go_on():
        yield from errors.hits()


def _place(kind: HitKind, filters: SearchFilters) -> SearchPlace:
    """Return the place of a record among the searched ones; a failed action is an error if possible."""
    order = (SearchPlace.ERRORS, SearchPlace.ACTIONS, SearchPlace.REFLECTIONS, SearchPlace.TASKS)
    return next(place for place in order if kind in place.kinds and place in filters.places)
