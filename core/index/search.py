"""Search the task memory for tasks, actions, reflections and errors, by words.

The index has the records of tasks with the trigrams by which a search finds them (docs/task-memory.md#search). Nothing
waits for them: they are written in steps, and a search reads the files of tasks whose records are outdated.
"""

from __future__ import annotations

import heapq
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from functools import lru_cache
from itertools import islice, takewhile
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import msgspec

from core.base.errors import DamagedError, Unwritable
from core.base.masking import mask_secrets, may_contain_secret
from core.base.text import from_bytes, to_bytes
from core.files.cache_database import is_damage
from core.files.file_reader import MAX_PATTERN_BYTES, UNREADABLE, Problem, RawFile, read_file
from core.index.database import Database, get_meta, set_meta
from core.index.search_records import ErrorRecords, LogPart, Owner, TaskRecords, drop_copies, is_wanted, scan_task
from core.index.search_words import MAX_RANKED, HitKind, SearchFilters, SearchHit, SearchPlace, SearchWords
from core.records.episodes import Task
from core.records.findings import Finding
from core.sources import episodes as sources
from core.sources.episodes import join_attempts
from core.sources.record_kinds import is_text
from core.tasks.history import MAX_RESULTS, TaskReader
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
        """Return up to `most` matches, those indexed last, and whether there are more."""
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
    """Return the statement that lists blocks with possible hits, last indexed first."""
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
    """Return the searched place of a record; for failed actions, errors if searched."""
    order = (SearchPlace.ERRORS, SearchPlace.ACTIONS, SearchPlace.REFLECTIONS, SearchPlace.TASKS)
    return next(place for place in order if kind in place.kinds and place in filters.places)


class IndexedSearch(NamedTuple):
    """Result of `search_indexed`, with the open index; None if it cannot be used."""

    result: SearchResult
    paths: ProjectPaths
    database: Database | None = None
    outdated: frozenset[str] = frozenset()

    def end(self, seconds: float) -> None:
        """Index outdated tasks in steps, so that others can write, and close the index."""
        if self.database is not None:
            filler, until = WordFiller(self.paths, self.outdated), monotonic() + seconds
            with suppress(OSError, sqlite3.Error, DamagedError):
                while (left := until - monotonic()) > 0 and filler.fill(self.database, min(left, _STEP_SECONDS)):
                    pass
            self.database.close()


def search_indexed(paths: ProjectPaths, words: SearchWords, filters: SearchFilters, limit: int | None) -> IndexedSearch:
    """Search and compare all files with the index; for commands that have none open."""
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


WORDS: Final = (
    "search words"  # name in the table `meta` of the checksum of `search_words`; it has none while it changes
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BETWEEN: Final = "\n\x1e\n"
_LEVEL: Final = 1  # of compression; higher levels take much longer and save little
_MAX_BYTES: Final = 1 << 28  # maximum size of a block that was not damaged, uncompressed
_BLOCK_CHARS: Final = 8_000  # of texts in a block: small blocks compress badly, large ones take longer to search
_PIECE_BYTES: Final = 1 << 18  # of a log that are indexed at once, in about 30 ms
_CHECK_SECONDS: Final = (
    60.0  # between two comparisons of all files, and before a file that cannot be read is tried again
)
_NO_TARGET: Final = -1  # instead of the size of a link that leads nowhere
_OF_TASK: Final = ("", sources.ATTEMPTS, sources.METADATA, sources.TRAJECTORY, sources.SUMMARY, sources.REFLECTIONS)
_OF_ATTEMPT: Final = ("", sources.ATTEMPT, sources.OUTCOME, sources.PLAN)

NamedStamp = tuple[str, int, int, int, int]  # path, inode, size, and time of the last change and of its status, in ns
_Record = tuple[int, int | None, int | None, int | None, bytes | None, bytes, bytes, bytes]
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[_Record]).decode
_stamps: Final = msgspec.msgpack.Decoder(list[NamedStamp]).decode

_TRIGRAM_CHARS: Final = 3  # characters of a trigram
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_BREAK: Final = "\x1f"
_MAX_TRIGRAMS: Final = 100  # maximum number of trigrams that are looked up; the text decides anyway
_IDEOGRAPHS: Final = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_UNSAFE: Final = re.compile("[\x00\x1f\ud800-\udfff]")  # NUL ends a text in the index; surrogates are not in UTF-8


# What is current


def outdated_tasks(connection: sqlite3.Connection) -> list[str]:
    """Return the tasks whose records are known to differ from the files."""
    return [task for (task,) in connection.execute("SELECT task FROM search_unit WHERE is_current = 0")]


def list_tasks(paths: ProjectPaths) -> list[str]:
    """Return the names of all task folders; raises OSError if they cannot be listed."""
    errors: list[OSError] = []
    tasks = [entry.name for entry in list_entries(paths.tasks, errors) if entry.is_dir(follow_symlinks=False)]
    if errors:
        raise errors[0]
    return tasks


def is_task_folder(paths: ProjectPaths, name: str) -> bool:
    """Return whether a folder has the name, as `list_tasks` lists it."""
    try:
        return stat.S_ISDIR((paths.tasks / name).lstat().st_mode) and not paths.tasks.is_symlink()
    except (OSError, ValueError):
        return False


def find_current(connection: sqlite3.Connection, paths: ProjectPaths, task_id: str | None = None) -> set[str]:
    """Return the tasks, of all or only one, whose files have the indexed stamps."""
    only, values = ("", ()) if task_id is None else (" WHERE task = ?", (task_id,))
    rows = connection.execute(f"SELECT path, task, attempt, is_current, stamps FROM search_unit{only}", values)
    current: set[str] = set()
    outdated: set[str] = set()
    project = str(paths.project)
    for path, task, attempt, is_current, packed in rows:
        if attempt is None:
            current.add(task)
        if is_current == 0 or not _has_stamps(project if attempt is not None else f"{project}/{path}", packed):
            outdated.add(task)
    return current - outdated


def _has_stamps(folder: str, packed: bytes) -> bool:
    stamps = _stamps(packed) if packed else ()
    return bool(stamps) and all(_read_stamp(folder, stamp[0]) == stamp for stamp in stamps)


def _read_stamps(folder: str, files: TaskReader) -> list[NamedStamp]:
    """Return the stamps of all files and folders of a task but its logs.

    A missing file needs no stamp: writing it changes its folder.
    """
    names = [*_OF_TASK]
    for name in files.numbers.values():
        inside = f"{sources.ATTEMPTS}/{name}"
        names += (f"{inside}/{part}" for part in _OF_ATTEMPT)
        names += _results(folder, f"{inside}/{sources.RESULTS}")
    return [stamp for name in names if (stamp := _read_stamp(folder, name)) is not None]


def _results(folder: str, results: str) -> Iterator[str]:
    for name in (results, *_entries(folder, results)):
        yield name
        if name != results and Path(folder, name).is_dir() and not Path(folder, name).is_symlink():
            yield from _entries(folder, name)


def _entries(folder: str, name: str) -> list[str]:
    try:
        with os.scandir(f"{folder}/{name}") as entries:
            return [f"{name}/{entry.name}" for entry in islice(entries, MAX_RESULTS) if is_text(entry.name)]
    except OSError:
        return []


def _read_stamp(folder: str, name: str) -> NamedStamp | None:
    """Return the stamp of a file, folder or broken link; None if it does not exist."""
    path = f"{folder}/{name}"
    try:
        found = os.stat(path)  # noqa: PTH116 (faster than a Path)
        size = found.st_size
    except (OSError, ValueError):
        try:
            found, size = os.lstat(path), _NO_TARGET
        except (OSError, ValueError):
            return None
    return name, found.st_ino, size, found.st_mtime_ns, found.st_ctime_ns


# Blocks


class Block(NamedTuple):
    """Compressed records of a unit; `kinds` is a bit mask, `first`, `last` are times."""

    kinds: int
    first: int | None
    last: int | None
    data: bytes
    checksum: int


def pack_block(hits: Sequence[SearchHit], file: str) -> tuple[Block, str]:
    """Return records of a unit, mostly in `file`, and text to index; masks secrets."""
    records: list[tuple[Any, ...]] = []
    texts = _mask_all([hit.text for hit in hits])
    for hit, text in zip(hits, texts, strict=True):
        name = None if hit.file == file else to_bytes(hit.file)
        at = microseconds(hit.at)
        parts = (hit.pointer, hit.tool, text)
        records.append((hit.kind, hit.attempt, hit.action, at, name, *map(to_bytes, parts)))
    times = [at for at in (record[3] for record in records) if at is not None]
    data = zlib.compress(_encode(records), _LEVEL)
    kinds = kinds_mask(hit.kind for hit in hits)
    return Block(kinds, min(times, default=None), max(times, default=None), data, crc32(data)), indexed_text(texts)


def unpack_block(
    data: object, checksum: object, file: str, task: str, words: SearchWords, kinds: int
) -> list[SearchHit]:
    """Return the records of a block that contain all words, of these kinds.

    Raises DamagedError if the block is not as written.
    """
    if not isinstance(data, bytes) or crc32(data) != checksum:
        raise DamagedError("a block differs from its checksum")
    try:
        records = _decode(zlib.decompressobj().decompress(data, _MAX_BYTES))
    except zlib.error as error:
        raise DamagedError(f"a block cannot be unpacked: {error}") from None
    hits: list[SearchHit] = []
    for kind, attempt, action, at, name, pointer, tool, packed in records:
        if 1 << kind & kinds and words.are_in(text := from_bytes(packed)):
            found = from_bytes(name) if name is not None else file
            when = None if at is None else _EPOCH + at * _MICROSECOND
            hit = SearchHit(found, task, text, when, attempt, from_bytes(pointer), HitKind(kind), action)
            hits.append(hit._replace(tool=from_bytes(tool)) if tool else hit)
    return hits


def kinds_mask(kinds: Iterable[int]) -> int:
    """Return a number with a bit for each kind."""
    return sum(1 << kind for kind in set(kinds))


def microseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def _mask_all(texts: list[str]) -> list[str]:
    """Mask the secrets in all texts, in one call if none reaches into the next text."""
    if not may_contain_secret("\n".join(texts)):
        return texts
    wanted = [number for number, text in enumerate(texts) if may_contain_secret(text)]
    masked = mask_secrets(_BETWEEN.join(texts[number] for number in wanted)).split(_BETWEEN) if wanted else []
    if len(masked) != len(wanted):
        masked = [mask_secrets(texts[number]) for number in wanted]
    for number, text in zip(wanted, masked, strict=True):
        texts[number] = text
    return texts


def _batches(hits: Iterator[SearchHit]) -> Iterator[list[SearchHit]]:
    """Yield records in groups with texts of about `_BLOCK_CHARS` characters."""
    batch: list[SearchHit] = []
    size = 0
    for hit in hits:
        batch.append(hit)
        size += len(hit.text)
        if size >= _BLOCK_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# Damage


def check_words(connection: sqlite3.Connection) -> None:
    """Raise DamagedError if the trigrams changed: SQLite would just find less."""
    known = get_meta(connection, WORDS)
    if known is not None and known != _checksum_of_words(connection):
        raise DamagedError("the search words differ from their checksum")


def _checksum_of_words(connection: sqlite3.Connection) -> bytes:
    checksum = 0
    for sql in ("SELECT id, block FROM search_words_data", "SELECT segid, term, pgno FROM search_words_idx"):
        for row in connection.execute(sql):
            checksum = crc32(_encode(row), checksum)
    return b"%d" % checksum


# Filling


class _Result(Enum):
    """How far a file or task was indexed."""

    DONE = auto()
    PARTLY = auto()  # the next call continues
    UNREADABLE = auto()  # now; perhaps later


class WordFiller:
    """Writes the records of tasks into the index in steps; for one thread at a time.

    Without `only` some tasks, those are found that the index knows to be outdated and, in the beginning and at most
    once a minute after `check_all`, those that differ from their files.
    """

    def __init__(self, paths: ProjectPaths, only: Collection[str] | None = None) -> None:
        self._paths = paths
        self._folder = paths.relative(paths.tasks)
        self._only = only
        self._must_check = True
        self._checked_at = -inf
        self._unreadable: dict[str, float] = {}  # when tasks were tried that have files that cannot be read
        # Tasks that may be outdated; the records of the last one are listed first in a search.
        self._queue = dict.fromkeys(sorted(only or (), key=self._changed_at))

    def check_all(self) -> None:
        """Compare all files soon, as a sweep does: it sees only some of them."""
        self._must_check = True

    def fill(self, database: Database, seconds: float) -> bool:
        """Index outdated tasks for some time; return whether something is left to do now.

        Writes in one transaction. Raises DamagedError, or sqlite3.Error if the index cannot be written.
        """
        until = monotonic() + seconds
        connection = database.writer
        if not self._queue and self._only is None:
            self._find_outdated(connection)
        while self._queue and monotonic() < until and (task_id := next(iter(self._queue))):
            if task_id not in find_current(connection, self._paths, task_id):
                break
            del self._queue[task_id]
        if self._queue:
            if monotonic() < until:
                with database.transaction():
                    self._index_until(connection, until)
            return True
        if get_meta(connection, WORDS) is None:
            with database.transaction():  # only the commit before wrote all words
                set_meta(connection, WORDS, _checksum_of_words(connection))
        return False

    def _find_outdated(self, connection: sqlite3.Connection) -> None:
        """Queue tasks known to be outdated and, at times, those whose files differ."""
        now = monotonic()
        found = dict.fromkeys(outdated_tasks(connection))
        if self._must_check and now - self._checked_at > _CHECK_SECONDS:
            self._must_check, self._checked_at = False, now
            found |= {task: None for (task,) in connection.execute("SELECT DISTINCT task FROM search_unit")}
            found |= {task: None for task in list_tasks(self._paths) if is_text(task)}
        new = [task for task in found if now - self._unreadable.get(task, -inf) > _CHECK_SECONDS]
        self._queue = dict.fromkeys(sorted(new, key=self._changed_at))

    def _changed_at(self, task_id: str) -> int:
        stamp = _read_stamp(f"{self._paths.project}/{self._folder}/{task_id}", sources.METADATA)
        return stamp[3] if stamp is not None else 0

    def _index_until(self, connection: sqlite3.Connection, until: float) -> None:
        connection.execute("DELETE FROM meta WHERE name = ?", (WORDS,))
        while self._queue:
            task_id = next(iter(self._queue))
            if (result := self._index(connection, task_id, until)) is not _Result.PARTLY:
                del self._queue[task_id]
                self._unreadable.pop(task_id, None)
                if result is _Result.UNREADABLE:
                    self._unreadable[task_id] = monotonic()
            if monotonic() > until:
                break

    def _index(self, connection: sqlite3.Connection, task_id: str, until: float) -> _Result:
        """Index what differs from the files of a task; after `until`, at most one file."""
        rows = connection.execute("SELECT path, id, stamps FROM search_unit WHERE task = ?", (task_id,))
        units: dict[str, tuple[int, bytes]] = {path: (id, stamps) for path, id, stamps in rows}
        if not is_task_folder(self._paths, task_id):
            _remove(connection, [id for id, _ in units.values()])
            return _Result.DONE
        path = f"{self._folder}/{task_id}"
        files = TaskReader(self._paths, task_id)
        stamps = _read_stamps(f"{self._paths.project}/{path}", files)
        if not _are_readable(files.findings):  # its attempts are unknown
            _mark(connection, path, task_id, is_current=False)
            return _Result.UNREADABLE
        is_readable = True
        if path not in units or units[path][1] != _encode(stamps):
            is_readable = self._write_documents(connection, path, files, stamps)
        logs = {files.path(sources.ACTIONS, number): number for number in files.numbers}
        _remove(connection, [id for name, (id, _) in units.items() if name != path and name not in logs])
        for log, number in logs.items():
            if log in units and _has_stamps(str(self._paths.project), units[log][1]):
                continue
            result = self._write_log(connection, log, task_id, number)
            is_readable &= result is not _Result.UNREADABLE
            if result is _Result.PARTLY or (monotonic() > until and log != next(reversed(logs))):
                _mark(connection, path, task_id, is_current=False)
                return _Result.PARTLY
        _mark(connection, path, task_id, is_current=is_readable)
        return _Result.DONE if is_readable else _Result.UNREADABLE

    def _write_documents(
        self, connection: sqlite3.Connection, path: str, files: TaskReader, stamps: Sequence[NamedStamp]
    ) -> bool:
        """Index a task without its logs; return whether all files could be read."""
        records = TaskRecords(self._paths)
        unit = _begin(connection, path, files.task_id, None)
        _insert(connection, unit, path, records.documents(files))
        [task, *_], parts = records.read[0] or [Task(id=files.task_id)], records.read[1]
        owner = Owner.of(task, {attempt.number: attempt for attempt in join_attempts(parts).values()})
        is_readable = _are_readable([*records.findings, *files.findings])
        values = (_encode(owner), _encode(stamps) if is_readable else b"", unit)
        connection.execute("UPDATE search_unit SET owner = ?, stamps = ? WHERE id = ?", values)
        return is_readable

    def _write_log(self, connection: sqlite3.Connection, path: str, task_id: str, attempt: int) -> _Result:
        """Index the next part of a log, only its new lines if it only grew."""
        stamp = _read_stamp(str(self._paths.project), path)
        raw = read_file(f"{self._paths.project}/{path}", self._paths.aiwg, MAX_PATTERN_BYTES)
        columns = "id, end, lines, actions, checksum"
        before = connection.execute(f"SELECT {columns} FROM search_unit WHERE path = ?", (path,)).fetchone()
        if raw is None and stamp is None:
            _remove(connection, [before[0]] if before is not None else [])
            return _Result.DONE
        if not isinstance(raw, RawFile) or stamp is None:
            unit = _begin(connection, path, task_id, attempt)
            if stamp is None or (isinstance(raw, Problem) and raw.torn):
                return _Result.UNREADABLE
            connection.execute("UPDATE search_unit SET stamps = ? WHERE id = ?", (_encode([stamp]), unit))
            return _Result.DONE
        data = memoryview(raw.data)
        part = LogPart(path, task_id, attempt)
        start = checksum = 0
        if before is not None and before[1] and before[1] <= len(data) and crc32(data[: before[1]]) == before[4]:
            unit, start, part.lines, part.actions, checksum = before
        else:
            unit = _begin(connection, path, task_id, attempt)
        last = raw.data.rfind(b"\n") + 1
        end = min(last, (raw.data.find(b"\n", start + _PIECE_BYTES) + 1) or last)
        _insert(connection, unit, path, TaskRecords(self._paths).lines(bytes(data[start:end]), part))
        stamps = _encode([stamp]) if end == last else b""
        values = (end, part.lines, part.actions, crc32(data[start:end], checksum), stamps, unit)
        columns = "end = ?, lines = ?, actions = ?, checksum = ?, stamps = ?"
        connection.execute(f"UPDATE search_unit SET {columns} WHERE id = ?", values)
        return _Result.DONE if end == last else _Result.PARTLY


def _mark(connection: sqlite3.Connection, path: str, task_id: str, *, is_current: bool) -> None:
    sql = (
        "INSERT INTO search_unit (path, task, is_current, stamps) VALUES (?, ?, ?, x'')"
        " ON CONFLICT (path) DO UPDATE SET is_current = excluded.is_current"
    )
    connection.execute(sql, (path, task_id, is_current))


def _remove(connection: sqlite3.Connection, units: Iterable[int]) -> None:
    # Words of the removed blocks stay, but lead nowhere: a block never gets their numbers.
    for unit in units:
        connection.execute("DELETE FROM search_block WHERE unit = ?", (unit,))
        connection.execute("DELETE FROM search_unit WHERE id = ?", (unit,))


def _begin(connection: sqlite3.Connection, path: str, task_id: str, attempt: int | None) -> int:
    """Create a unit without records and stamps, and return its number."""
    _remove(connection, [id for (id,) in connection.execute("SELECT id FROM search_unit WHERE path = ?", (path,))])
    # A statement that may fail halfway, such as one with RETURNING, would make FTS5 write all that it has.
    sql = "INSERT INTO search_unit (path, task, attempt, is_current, stamps) VALUES (?, ?, ?, ?, x'')"
    return int(connection.execute(sql, (path, task_id, attempt, 0 if attempt is None else None)).lastrowid or 0)


def _insert(connection: sqlite3.Connection, unit: int, path: str, hits: Iterator[SearchHit]) -> None:
    for batch in _batches(hits):
        block, text = pack_block(batch, path)
        sql = "INSERT INTO search_block (unit, kinds, first, last, data, checksum) VALUES (?, ?, ?, ?, ?, ?)"
        number = connection.execute(sql, (unit, *block)).lastrowid
        connection.execute("INSERT INTO search_words (rowid, text) VALUES (?, ?)", (number, text))


def _are_readable(findings: Iterable[Finding]) -> bool:
    return all(finding.code != UNREADABLE for finding in findings)


# Trigrams


def indexed_text(texts: Iterable[str]) -> str:
    """Return the words of texts as they are indexed: without case, each once.

    Every character begins a trigram, so spaces follow the last one. Words of one or two ideographs are frequent, so
    ideographs are repeated with a break between them.
    """
    words = dict.fromkeys("\n".join(texts).casefold().split())
    text = f"{' '.join(words)}  "
    if not text.isascii() or "\x00" in text:
        text = _UNSAFE.sub(_REPLACEMENT, text)
    runs = (run for word in words if not word.isascii() for run in _IDEOGRAPHS.findall(word))
    return "".join((text, *dict.fromkeys(f"{_BREAK}{_BREAK.join(run)}{_BREAK}" for run in runs)))


def match_expression(words: Sequence[str], list_terms: Callable[[str], Iterable[str]]) -> str:
    """Return a full-text expression that every text with all these words matches.

    `list_terms` lists the indexed trigrams that begin with one or two characters; it is used if no word is longer. ""
    if there are none. The words are without case, as in `SearchWords`; none of them is parsed as syntax.
    """
    parts = [_UNSAFE.sub(_REPLACEMENT, part) for phrase in words for part in phrase.split(" ")]
    trigrams: dict[str, None] = {}
    for word in parts:
        if len(word) < _TRIGRAM_CHARS and _IDEOGRAPHS.fullmatch(word):
            word = f"{_BREAK}{word}{_BREAK}" if len(word) == 1 else _BREAK.join(word)
        trigrams |= dict.fromkeys(word[at : at + _TRIGRAM_CHARS] for at in range(len(word) - _TRIGRAM_CHARS + 1))
    if trigrams:
        return " ".join(map(_quote, islice(trigrams, _MAX_TRIGRAMS)))
    return " OR ".join(map(_quote, list_terms(max(parts, key=len))))


def _quote(term: str) -> str:
    return '"{}"'.format(term.replace('"', '""'))
