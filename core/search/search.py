"""Search the task memory for tasks, actions, reflections and errors."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

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
    from core.records.snapshot import Snapshot
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
    snapshot: Snapshot | None = None,
) -> SearchResult:
    """Find the records that contain all words and match the filters, best first.

    Of more than `MAX_RANKED` hits, the newest are ranked. Without an index, all files that may match are read. With an
    index, only files are read that differ from it: all files are compared with it or, if `fresh` is an earlier result
    of `SearchIndex.check`, those of the hits. No more files are read when `go_on` returns False. Errors are
    searched in `snapshot` if it is given.
    """
    request = _Request(paths, words, filters or SearchFilters(), limit, go_on, snapshot)
    # Secrets are masked in the index, so a secret is only found in the files.
    if index is not None and mask_secrets(words.query) == words.query:
        most = None if limit is None else max(limit, MAX_RANKED)
        for is_checked in (fresh is None, True):
            fresh = fresh or index.check()
            indexed = index.find(words, request.filters, most, fresh) if fresh is not None else None
            if fresh is None or indexed is None:
                break
            result = _join(request, fresh, *indexed)
            if is_checked or index.check_again(fresh, {hit.task_id for hit in result.hits}):
                return result
    return _join(request, None, [], is_cut=False)


class _Request(NamedTuple):
    """The parameters of `search`."""

    paths: ProjectPaths
    words: SearchWords
    filters: SearchFilters
    limit: int | None
    go_on: Callable[[], bool]
    snapshot: Snapshot | None


def _join(request: _Request, fresh: Freshness | None, indexed: list[SearchHit], is_cut: bool) -> SearchResult:
    paths, words, filters, limit = request[:4]
    tasks, errors = TaskRecords(paths, words, filters.places), ErrorRecords(paths, words)
    owner_of = lru_cache(_MAX_OWNERS)(lambda task_id: read_owner(tasks, task_id))
    total = len(indexed)

    def matching() -> Iterator[SearchHit]:
        nonlocal total
        for hit in _scan(request, fresh, tasks, errors):
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


def _scan(request: _Request, fresh: Freshness | None, tasks: TaskRecords, errors: ErrorRecords) -> Iterator[SearchHit]:
    """Yield the matching records that are not in the index."""
    paths, filters, go_on = request.paths, request.filters, request.go_on
    if filters.task_id:
        names = [filters.task_id] if fresh is None or filters.task_id in fresh.tasks else []
    elif fresh is not None:
        names = list(fresh.tasks)
    else:
        names = [entry.name for entry in list_entries(paths.tasks) if entry.is_dir(follow_symlinks=False)]
    for name in takewhile(lambda _: go_on(), names):
        yield from scan_task(tasks, TaskFiles(paths, name), filters, fresh.logs if fresh is not None else ())
    for file, (task_id, number) in fresh.other_logs.items() if fresh is not None and go_on() else ():
        if filters.task_id in ("", task_id):
            yield from tasks.log(file, task_id, number)
    if SearchPlace.ERRORS in filters.places and (request.snapshot is not None or go_on()):
        yield from errors.hits(request.snapshot)


def _place(kind: HitKind, filters: SearchFilters) -> SearchPlace:
    """Return the place of a record among the searched ones; a failed action is an error if possible."""
    order = (SearchPlace.ERRORS, SearchPlace.ACTIONS, SearchPlace.REFLECTIONS, SearchPlace.TASKS)
    return next(place for place in order if kind in place.kinds and place in filters.places)
