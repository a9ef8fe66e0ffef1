"""Worker that keeps the search index of the project up to date, and answers searches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import cached_property, partial
from math import inf
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.snapshot import Snapshot
    from core.search.index import SearchIndex
    from core.search.search import SearchResult
    from core.search.stamps import Freshness
    from core.search.words import SearchFilters, SearchWords
    from core.storage.watcher import FileChanges

_log: Final = logging.getLogger(__name__)
FIRST_PAGE: Final = 20  # maximum number of hits
_PAUSE_SECONDS: Final = 0.01  # between two steps of an update, so that the screen runs
_SETTLE_SECONDS: Final = 0.3  # after a change; most changes are part of several
_SOON_SECONDS: Final = 1.0  # before files are indexed that had just changed
_AGAIN_SECONDS: Final = 60.0  # before a retry if the index could not be written, and between two sweeps of all files


class SearchWorker:
    """Updates the index in one thread in short steps; answers searches in any thread.

    Until the index has been checked, and for all that it lacks, a search reads the files.
    """

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._fresh: Freshness | None = None
        self._lock = threading.Lock()
        self._changed: set[str] = set()  # tasks with changed files
        self._checking: set[str] = set()  # those that are being compared with the index
        self._checked_at = -inf
        self._must_check = True  # whether all files must be compared with the index
        self._wanted = threading.Event()
        self._stopped = False
        self._left = (0, 0, 0)  # what the last update could not index: what changes all the time or cannot be read

    def want(self) -> None:
        """Start to update the index."""
        self._wanted.set()

    def note(self, changes: FileChanges) -> None:
        """Note changed files; called in the thread of the watcher."""
        tasks = self._paths.tasks
        with self._lock:
            for path in changes.paths:
                if path.is_relative_to(tasks) and path != tasks:
                    self._changed.add(path.relative_to(tasks).parts[0])
                elif tasks.is_relative_to(path):
                    self._must_check = True
            self._must_check |= changes.sweep
            is_news = self._fresh is not None and (self._must_check or self._changed)
        if is_news:
            self._wanted.set()

    def stop(self) -> None:
        """Make `run` return after the current step."""
        self._stopped = True
        self._wanted.set()

    @cached_property
    def _index(self) -> SearchIndex:
        from core.search.index import SearchIndex  # imports sqlite3

        return SearchIndex(self._paths)

    def run(self) -> None:
        """Update the index on request until stopped; runs in a thread worker."""
        again: float | None = None
        while not self._stopped:
            self._wanted.wait(again)
            self._wanted.clear()
            if not self._stopped:
                again = self._try_update()
        self._index.close()

    def _try_update(self) -> float | None:
        """Update the index; after an unexpected error, searches read the files until the index is wanted again."""
        try:
            return self._update()
        except Exception:
            _log.exception("the search index cannot be updated")
            self._fresh = None
            return None

    @property
    def missing(self) -> tuple[int, int] | None:
        """Number of tasks that are not indexed yet, and of all tasks; None if the index cannot be used."""
        fresh = self._fresh
        return (len(fresh.tasks), max(fresh.total, len(fresh.tasks))) if fresh is not None else None

    def search(
        self,
        words: SearchWords,
        filters: SearchFilters,
        snapshot: Snapshot,
        go_on: Callable[[], bool],
        limit: int = FIRST_PAGE,
    ) -> tuple[SearchResult, bool]:
        """Return the best hits, and whether the index has all tasks.

        The files of other tasks are read until `go_on` returns False. Errors are searched in `snapshot`.
        """
        from core.search.search import search

        fresh = self._fresh.copy() if self._fresh is not None else None
        find = partial(search, self._paths, words, filters, limit, go_on=go_on, snapshot=snapshot)
        if fresh is None:
            return find(), False
        if self._index.identity() != fresh.identity:  # deleted, or built again by another process
            self._must_check = True
            self.want()
        with self._lock:
            changed = self._changed | self._checking
        self._index.check_again(fresh, changed)
        return find(index=self._index, fresh=fresh), fresh.is_complete

    def _update(self) -> float | None:
        """Index all that has changed; return the seconds until the next attempt if that was not possible."""
        sleep(_SETTLE_SECONDS if self._fresh is not None else 0)
        with self._lock:
            changed, self._changed = self._changed, set()
            self._checking = changed
        is_due = monotonic() - self._checked_at > _AGAIN_SECONDS
        if self._fresh is None or (self._must_check and is_due):
            self._must_check, self._checked_at = False, monotonic()
            fresh = self._index.check()
        else:
            fresh = self._fresh.copy()
        if fresh is None:
            self._fresh = None
            return _AGAIN_SECONDS
        self._index.check_again(fresh, changed)
        self._fresh = fresh.copy()
        self._checking = set()

        def go_on(is_saved: bool) -> bool:
            if is_saved:
                self._fresh = fresh.copy()
            sleep(_PAUSE_SECONDS)
            return not self._stopped

        if self._index.update(fresh, go_on):
            self._fresh = fresh
            before, self._left = self._left, fresh.differences
            if not fresh.is_complete:
                return _SOON_SECONDS if self._left != before else _AGAIN_SECONDS
        else:
            self._must_check = True
        return _AGAIN_SECONDS if self._must_check else None
