"""Search the task memory for tasks, actions, reflections and errors."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from functools import lru_cache
from itertools import takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from core.base.errors import DamagedError, Unwritable
from core.base.masking import mask_secrets
from core.files.cache_database import is_damage
from core.index.database import Database
from core.index.search_records import ErrorRecords, Owner, TaskRecords, drop_copies, is_wanted, scan_task
from core.index.search_words import MAX_RANKED, HitKind, SearchFilters, SearchHit, SearchPlace, SearchWords
from core.index.task_words import (
    WordFiller,
    check_words,
    find_current,
    is_task_folder,
    kinds_mask,
    list_tasks,
    match_expression,
    microseconds,
    outdated_tasks,
    unpack_block,
)
from core.records.findings import Finding
from core.tasks.reader import TaskReader
from core.tasks.task_files import list_entries

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.snapshot import Snapshot

_MAX_OWNERS: Final = 1024
_WAIT_SECONDS: Final = 0.2  # for another process that writes; then the files are read
_STEP_SECONDS: Final = 0.25
_LAST: Final = "\U0010ffff"
_decode_owner: Final = msgspec.msgpack.Decoder(Owner).decode


class SearchResult(msgspec.Struct, frozen=True):
    """Hits of a search, best first.

    `missing` are the numbers of tasks that are not indexed, and of all tasks; None without an index.
    """

    hits: tuple[SearchHit, ...]  # at most the requested number
    total: int  # number of all hits, or at least the number of hits if not `is_exact`
    findings: tuple[Finding, ...]  # problems with parsed files
    is_exact: bool = True
    missing: tuple[int, int] | None = None

    @property
    def is_indexed(self) -> bool:
        """Whether no files had to be read for tasks."""
        return self.missing is not None and not self.missing[0]


class TaskView:
    """The indexed records of tasks in one view of the index, which `close` ends.

    Records of tasks in `outdated` are not used. They are those that the index knows or, with `checks_all`, those that
    differ from their files. Raises OSError if the tasks cannot be listed, DamagedError, or sqlite3.Error.
    """

    def __init__(self, connection: sqlite3.Connection, paths: ProjectPaths, *, checks_all: bool = False) -> None:
        self._connection = connection
        self._paths = paths
        try:
            if checks_all:
                check_words(connection)
                tasks, indexed = {*list_tasks(paths)}, {task for (task,) in connection.execute(_TASKS)}
                current = find_current(connection, paths) & tasks
                self.outdated = (tasks | indexed) - current
                self.missing = len(tasks - current), len(tasks)
            else:
                self.outdated = set(outdated_tasks(connection))
                [(total,)] = connection.execute(f"SELECT count(*) FROM ({_TASKS})")
                self.missing = len(self.outdated), total
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def check_again(self, task_ids: Collection[str]) -> bool:
        """Compare some tasks with their files; return whether nothing has changed."""
        before = len(self.outdated)
        for task_id in task_ids:
            if not (is_task_folder(self._paths, task_id) and find_current(self._connection, self._paths, task_id)):
                self.outdated.add(task_id)
        return len(self.outdated) == before

    def find(self, words: SearchWords, filters: SearchFilters, most: int | None) -> tuple[list[SearchHit], bool]:
        """Return at most `most` matching records, of the files that were indexed last, and whether there are more."""
        hits: list[SearchHit] = []
        seen: set[int] = set()  # tasks of which all records were read
        kinds = kinds_mask(kind for place in filters.places for kind in place.kinds)
        expression = match_expression(words.folded, self._list_terms)
        if not expression:
            return hits, False
        owner_of = lru_cache(_MAX_OWNERS)(self._owner)
        sql, values = _query(expression, filters, kinds)
        with closing(self._connection.execute(sql, values)) as rows:
            for unit, task, path, attempt, data, checksum in rows:
                if unit in seen or task in self.outdated:
                    continue
                blocks = [(data, checksum)]
                if attempt is None:
                    seen.add(unit)
                    select = "SELECT data, checksum FROM search_block WHERE unit = ? ORDER BY id"
                    blocks = self._connection.execute(select, (unit,)).fetchall()
                found = [hit for block in blocks for hit in unpack_block(*block, path, task, words, kinds)]
                for hit in drop_copies(found) if attempt is None else reversed(found):  # of a log, the newest first
                    if is_wanted(hit, filters, owner_of):
                        if len(hits) == most:
                            return hits, True
                        hits.append(hit)
        return hits, False

    def _owner(self, task_id: str) -> Owner:
        sql = "SELECT owner FROM search_unit WHERE task = ? AND attempt IS NULL"
        row = self._connection.execute(sql, (task_id,)).fetchone()
        return _decode_owner(row[0]) if row and row[0] else Owner()

    def _list_terms(self, start: str) -> list[str]:
        """Return the indexed trigrams that begin with `start`."""
        sql = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.term USING fts5vocab(main, search_words, row)"
        self._connection.execute(sql)
        sql = "SELECT term FROM temp.term WHERE term >= ? AND term < ?"
        return [term for (term,) in self._connection.execute(sql, (start, start + _LAST))]


_TASKS: Final = "SELECT task FROM search_unit WHERE attempt IS NULL"


def _query(expression: str, filters: SearchFilters, kinds: int) -> tuple[str, list[Any]]:
    """Return the statement that lists the blocks with possible hits, those indexed last first."""
    conditions = ["search_words MATCH ?", "b.kinds & ? != 0"]
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
    joined = "search_words w CROSS JOIN search_block b ON b.id = w.rowid CROSS JOIN search_unit u ON u.id = b.unit"
    return f"SELECT {columns} FROM {joined} WHERE {' AND '.join(conditions)} ORDER BY w.rowid DESC", values


def search(
    paths: ProjectPaths,
    words: SearchWords,
    filters: SearchFilters | None = None,
    limit: int | None = None,
    *,
    view: TaskView | None = None,
    go_on: Callable[[], bool] = lambda: True,
    snapshot: Snapshot | None = None,
) -> SearchResult:
    """Find the records that contain all words and match the filters, best first.

    Of more than `MAX_RANKED` hits, the newest are ranked. Without a view of the index, all files that may match are
    read; with one, those of outdated tasks, and those of the hits are compared. No more files are read when `go_on`
    returns False. Errors are searched in `snapshot` if it is given. Raises DamagedError or sqlite3.Error if the index
    cannot be used.
    """
    request = _Request(paths, words, filters or SearchFilters(), limit, go_on, snapshot)
    missing = view.missing if view is not None else None
    # Secrets are masked in the index, so a secret is only found in the files.
    if view is None or mask_secrets(words.query) != words.query:
        result = _join(request, None, [], is_cut=False)
    else:
        most = None if limit is None else max(limit, MAX_RANKED)
        result = _join(request, view, *view.find(words, request.filters, most))
        while not view.check_again({hit.task_id for hit in result.hits if hit.task_id} - view.outdated):
            result = _join(request, view, *view.find(words, request.filters, most))
    return msgspec.structs.replace(result, missing=missing)


class _Request(NamedTuple):
    """The parameters of `search`."""

    paths: ProjectPaths
    words: SearchWords
    filters: SearchFilters
    limit: int | None
    go_on: Callable[[], bool]
    snapshot: Snapshot | None


def _join(request: _Request, view: TaskView | None, indexed: list[SearchHit], is_cut: bool) -> SearchResult:
    paths, words, filters, limit = request[:4]
    tasks, errors = TaskRecords(paths, words, filters.places), ErrorRecords(paths, words)
    owner_of = lru_cache(_MAX_OWNERS)(lambda task_id: Owner.of(*tasks.task_of(task_id)))
    total = len(indexed)

    def matching() -> Iterator[SearchHit]:
        nonlocal total
        for hit in _scan(request, view, tasks, errors):
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


def _scan(request: _Request, view: TaskView | None, tasks: TaskRecords, errors: ErrorRecords) -> Iterator[SearchHit]:
    """Yield the matching records that are not in the index."""
    paths, filters, go_on = request.paths, request.filters, request.go_on
    if filters.task_id:
        names = [filters.task_id] if view is None or filters.task_id in view.outdated else []
    elif view is not None:
        names = sorted(name for name in view.outdated if is_task_folder(paths, name))
    else:
        names = [entry.name for entry in list_entries(paths.tasks) if entry.is_dir(follow_symlinks=False)]
    for name in takewhile(lambda _: go_on(), names):
        yield from scan_task(tasks, TaskReader(paths, name), filters)
    if SearchPlace.ERRORS in filters.places and (request.snapshot is not None or go_on()):
        yield from errors.hits(request.snapshot)


def _place(kind: HitKind, filters: SearchFilters) -> SearchPlace:
    """Return the place of a record among the searched ones; a failed action is an error if possible."""
    order = (SearchPlace.ERRORS, SearchPlace.ACTIONS, SearchPlace.REFLECTIONS, SearchPlace.TASKS)
    return next(place for place in order if kind in place.kinds and place in filters.places)


class IndexedSearch(NamedTuple):
    """Result of `search_indexed`, with the open index; None if it cannot be used."""

    result: SearchResult
    paths: ProjectPaths
    database: Database | None = None
    outdated: frozenset[str] = frozenset()

    def end(self, seconds: float) -> None:
        """Index outdated tasks for some time, in steps between which other processes may write, and close the index."""
        if self.database is not None:
            filler, until = WordFiller(self.paths, self.outdated), monotonic() + seconds
            with suppress(OSError, sqlite3.Error, DamagedError):
                while (left := until - monotonic()) > 0 and filler.fill(self.database, min(left, _STEP_SECONDS)):
                    pass
            self.database.close()


def search_indexed(paths: ProjectPaths, words: SearchWords, filters: SearchFilters, limit: int | None) -> IndexedSearch:
    """Search with all files compared with the index; for commands, which have not opened it."""
    for is_last in (False, True):  # a damaged index is made again
        database = None
        try:
            database = Database.open(paths.project, wait_seconds=_WAIT_SECONDS)
            with closing(TaskView(database.read(), paths, checks_all=True)) as view:
                outdated = frozenset(view.outdated)
                return IndexedSearch(search(paths, words, filters, limit, view=view), paths, database, outdated)
        except (Unwritable, OSError, sqlite3.Error, DamagedError, msgspec.MsgspecError, ValueError) as error:
            if database is None:
                break
            database.close()
            if is_last or not is_damage(error):
                break
            database.remove()
    return IndexedSearch(search(paths, words, filters, limit), paths)
