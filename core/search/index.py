"""Full-text index of the task memory, in the user's cache folder (docs/task-memory.md#search).

The index is optional: if its file is missing, locked, damaged, or of another version, the files are read instead.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Generator, Iterable, Set
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.episodes.task_lookup import is_task, list_entries
from core.search import store
from core.search.blocks import kinds_mask, microseconds, unpack
from core.search.scan import Owner, drop_copies, is_wanted
from core.search.stamps import Freshness, NamedStamp, are_current
from core.search.trigrams import match_expression
from core.search.writer import IndexWriter
from core.storage.user_cache import cache_path

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.search.words import SearchFilters, SearchHit, SearchWords

SLICE_SECONDS: Final = 0.01  # time of an update between two calls of the caller
_COMMIT_SECONDS: Final = 2.0
_stamps: Final = msgspec.msgpack.Decoder(list[NamedStamp])
_owner: Final = msgspec.msgpack.Decoder(Owner)


class SearchIndex:
    """The index of one project; safe to use from several threads.

    `clock` returns the time in ns; a file that changed in the last moment is not indexed yet, as it may change again
    without another time.
    """

    def __init__(
        self, paths: ProjectPaths, file: Path | None = None, *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._paths = paths
        self.file = file or cache_path(paths.project, "search.sqlite3")
        self._clock = clock
        # Searches do not wait for an update: they see what it has committed.
        self._readers, self._writer = store.Access(self.file), store.Access(self.file)

    def close(self) -> None:
        self._readers.close()
        self._writer.close()

    def identity(self) -> bytes | None:
        """Return the identity of the file; None if it cannot be used."""
        return self._readers.run(lambda _, identity: identity)

    def check(self) -> Freshness | None:
        """Compare the index with all files; None if it cannot be used, or the tasks cannot be listed."""
        errors: list[OSError] = []
        entries = list_entries(self._paths.tasks, errors)
        tasks = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        if errors:
            return None

        def check(connection: sqlite3.Connection, identity: bytes) -> Freshness:
            store.check_words(connection)
            return self._check(connection, Freshness(identity), tasks)

        return self._readers.run(check)

    def check_again(self, fresh: Freshness, task_ids: Collection[str]) -> bool:
        """Compare some tasks with their files, and update `fresh`; return whether nothing has changed."""
        tasks = {task_id for task_id in task_ids if is_task(self._paths, task_id)}
        before = fresh.differences
        self._readers.run(lambda connection, _: self._check(connection, fresh, tasks, task_ids))
        return before == fresh.differences

    def _check(
        self,
        connection: sqlite3.Connection,
        fresh: Freshness,
        tasks: Set[str],
        only: Collection[str] | None = None,
    ) -> Freshness:
        """Check the units of all tasks or `only` some, of which `tasks` exist."""
        sql = "SELECT path, task, attempt, stamps FROM unit"
        if only is None:
            rows = connection.execute(sql).fetchall()
        else:
            rows = [row for one in only for row in connection.execute(f"{sql} WHERE task = ?", (one,)).fetchall()]
        current: set[str] = set()
        project = str(self._paths.project)
        for path, task, attempt, packed in rows:
            folder = project if attempt is not None else f"{project}/{path}"
            if task in tasks and are_current(folder, _stamps.decode(packed) if packed else ()):
                (current if attempt is None else fresh.logs).add(task if attempt is None else path)
            else:
                fresh.logs.discard(path)
                if task not in tasks:
                    fresh.removed[task] = None
        fresh.tasks |= dict.fromkeys(sorted(tasks - current))
        for path, task, attempt, _packed in rows:
            if attempt is not None and path not in fresh.logs and task in current:
                fresh.other_logs[path] = (task, attempt)
        if only is None:
            fresh.total = len(tasks)
        return fresh

    def find(
        self, words: SearchWords, filters: SearchFilters, most: int | None, fresh: Freshness
    ) -> tuple[list[SearchHit], bool] | None:
        """Return at most `most` matching records, of the files that were indexed last, and whether there are more.

        None if the index cannot be used. Records that `fresh` reports as outdated are left out.
        """

        def find(connection: sqlite3.Connection, identity: bytes) -> tuple[list[SearchHit], bool] | None:
            return self._find(connection, words, filters, most, fresh) if identity == fresh.identity else None

        return self._readers.run(find)

    def _find(
        self,
        connection: sqlite3.Connection,
        words: SearchWords,
        filters: SearchFilters,
        most: int | None,
        fresh: Freshness,
    ) -> tuple[list[SearchHit], bool]:
        owners: dict[str, Owner] = {}

        def owner_of(task_id: str) -> Owner:
            if task_id not in owners:
                sql = "SELECT owner FROM unit WHERE task = ? AND attempt IS NULL"
                row = connection.execute(sql, (task_id,)).fetchone()
                owners[task_id] = _owner.decode(row[0]) if row and row[0] else Owner()
            return owners[task_id]

        hits: list[SearchHit] = []
        seen: set[int] = set()  # tasks of which all records were read
        kinds = kinds_mask(kind for place in filters.places for kind in place.kinds)
        expression = match_expression(words.folded, lambda start: store.list_terms(connection, start))
        if not expression:
            return hits, False
        sql, values = _query(expression, filters, kinds)
        with closing(connection.execute(sql, values)) as rows:
            for unit, task, path, attempt, data, checksum in rows:
                if unit in seen or fresh.is_outdated(task, path if attempt is not None else None):
                    continue
                blocks: Iterable[tuple[Any, Any]] = [(data, checksum)]
                if attempt is None:
                    seen.add(unit)
                    blocks = connection.execute("SELECT data, checksum FROM block WHERE unit = ? ORDER BY id", (unit,))
                found = [hit for block in blocks for hit in unpack(*block, path, task, words, kinds)]
                for hit in drop_copies(found) if attempt is None else reversed(found):  # of a log, the newest first
                    if is_wanted(hit, filters, owner_of):
                        if len(hits) == most:
                            return hits, True
                        hits.append(hit)
        return hits, False

    def update(self, fresh: Freshness, go_on: Callable[[bool], bool] = lambda is_saved: True) -> bool:
        """Index what is not fresh, and update `fresh`; return whether all is indexed.

        `go_on` is called every `SLICE_SECONDS`, and returns whether to continue; its argument is whether all that is
        no longer in `fresh` can be found. If the index cannot be written, `fresh` cannot be used any more.
        """

        def update(connection: sqlite3.Connection, identity: bytes) -> bool:
            if identity != fresh.identity:
                return False
            with closing(self._steps(connection, fresh)) as steps:
                return all(go_on(is_saved) for is_saved in steps)

        return fresh.is_complete or bool(self._writer.run(update))

    def _steps(self, connection: sqlite3.Connection, fresh: Freshness) -> Generator[bool, None, None]:
        """Write the index in steps, each with whether it is committed: every few seconds, and at the end."""
        store.begin_update(connection)
        try:
            committed = begun = time.monotonic()
            for _ in IndexWriter(connection, self._paths, self._clock).write(fresh):
                now = time.monotonic()
                if now - begun < SLICE_SECONDS:
                    continue
                if is_saved := now - committed > _COMMIT_SECONDS:
                    connection.execute("COMMIT")
                    store.begin_update(connection)
                    committed = now
                yield is_saved
                begun = time.monotonic()
        except GeneratorExit:  # the caller stops here
            store.end_update(connection)
            raise
        store.end_update(connection)


def _query(expression: str, filters: SearchFilters, kinds: int) -> tuple[str, list[Any]]:
    """Return the statement that lists the blocks with possible hits, those indexed last first."""
    conditions = ["words MATCH ?", "b.kinds & ? != 0"]
    values: list[Any] = [expression, kinds]
    for condition, value in (
        ("u.task = ?", filters.task_id or None),
        ("ifnull(u.attempt = ?, 1)", filters.attempt),
        ("b.last >= ?", microseconds(filters.since)),
        ("b.first <= ?", microseconds(filters.until)),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    columns = "u.id, u.task, u.path, u.attempt, b.data, b.checksum"
    joined = "words w CROSS JOIN block b ON b.id = w.rowid CROSS JOIN unit u ON u.id = b.unit"
    return f"SELECT {columns} FROM {joined} WHERE {' AND '.join(conditions)} ORDER BY w.rowid DESC", values
