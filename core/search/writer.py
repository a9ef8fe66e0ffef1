"""Writes the records of task folders into the search index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from core.episodes.history import TaskFiles
from core.records.episodes import Task
from core.search.blocks import pack
from core.search.scan import make_owner
from core.search.stamps import NamedStamp, read_stamp, read_stamps
from core.search.task_records import LogPart, TaskRecords
from core.sources import episodes as sources
from core.sources.episodes import join_attempts
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_PATTERN_BYTES, UNREADABLE, RawFile, read_file

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.findings import Finding
    from core.search.stamps import Freshness
    from core.search.words import SearchHit

_BLOCK_CHARS: Final = 8_000  # of texts in a block: small blocks compress badly, large ones take longer to search
_SETTLED_NS: Final = 50_000_000  # time in which a file may change again without another time stamp


class IndexWriter:
    """Writes inside a transaction of the caller, who may commit after each step.

    A unit is a task without its logs, or one log. It is marked as outdated until all of its records are written.
    """

    def __init__(self, connection: sqlite3.Connection, paths: ProjectPaths, clock: Callable[[], int]) -> None:
        self._connection = connection
        self._paths = paths
        self._clock = clock
        self._project = str(paths.project)
        self._tasks = paths.relative(paths.tasks)

    def write(self, fresh: Freshness) -> Iterator[None]:
        """Index everything that is not fresh, that of tasks that changed last at the end, and update `fresh`.

        What may change again unnoticed stays in `fresh`, so that it is still read from the files.
        """
        outdated = list(fresh.other_logs.items())
        for task_id in fresh.removed:
            self._remove(self._units(task_id))
            yield
        for task_id in sorted(fresh.tasks, key=self._changed_at):
            yield from self._write_task(task_id, fresh)
        for path, (task_id, attempt) in outdated:
            if (yield from self._write_log(path, task_id, attempt)):
                fresh.logs.add(path)
                del fresh.other_logs[path]
        fresh.removed.clear()

    def _changed_at(self, task_id: str) -> int:
        stamp = read_stamp(f"{self._project}/{self._tasks}/{task_id}", sources.METADATA)
        return stamp[3] if stamp is not None else 0

    def _write_task(self, task_id: str, fresh: Freshness) -> Iterator[None]:
        begin = self._clock()
        path = f"{self._tasks}/{task_id}"
        files = TaskFiles(self._paths, task_id)
        stamps = read_stamps(f"{self._project}/{path}", files)
        if not _are_readable(files.findings):  # its attempts are unknown
            return
        records = TaskRecords(self._paths)
        unit = self._begin(path, task_id, None)
        yield from self._insert(unit, records.documents(files))
        [task, *_], parts = records.read[0] or [Task(id=task_id)], records.read[1]
        attempts = {attempt.number: attempt for attempt in join_attempts(parts).values()}
        owner = msgspec.msgpack.encode(make_owner(task, attempts))
        self._connection.execute("UPDATE unit SET owner = ? WHERE id = ?", (owner, unit))
        is_settled = _are_readable([*records.findings, *files.findings]) and self._finish(unit, stamps, begin)
        logs = {files.path(sources.ACTIONS, number): number for number in files.numbers}
        outdated = [unit for unit, path in self._units(task_id, logs=True) if path not in logs]
        self._remove((unit, "") for unit in outdated)
        for log, number in logs.items():
            if log not in fresh.logs:
                if (yield from self._write_log(log, task_id, number)):
                    fresh.logs.add(log)
                elif is_settled:
                    fresh.other_logs[log] = task_id, number
        if is_settled:
            del fresh.tasks[task_id]

    def _write_log(self, path: str, task_id: str, attempt: int) -> Generator[None, None, bool]:
        """Index a log, only its new lines if it only grew; the result is that of `_finish`."""
        begin = self._clock()
        stamp = read_stamp(self._project, path)
        raw = read_file(f"{self._project}/{path}", self._paths.aiwg, MAX_PATTERN_BYTES)
        if raw is None and stamp is None:
            self._remove(unit for unit in self._units(task_id, logs=True) if unit[1] == path)
            return True
        if not isinstance(raw, RawFile) or stamp is None:
            unit = self._begin(path, task_id, attempt)
            is_unreadable = isinstance(raw, Problem) and raw.torn
            return stamp is not None and not is_unreadable and self._finish(unit, [stamp], begin)
        columns = "id, end, lines, actions, checksum"
        before = self._connection.execute(f"SELECT {columns} FROM unit WHERE path = ?", (path,)).fetchone()
        end = raw.data.rfind(b"\n") + 1
        data = memoryview(raw.data)
        part = LogPart(path, task_id, attempt)
        start = checksum = 0
        if before is not None and before[1] and before[1] <= end and crc32(data[: before[1]]) == before[4]:
            unit, start, part.lines, part.actions, checksum = before
            self._connection.execute("UPDATE unit SET stamps = x'', end = 0 WHERE id = ?", (unit,))
        else:
            unit = self._begin(path, task_id, attempt)
        yield from self._insert(unit, TaskRecords(self._paths).lines(bytes(data[start:end]), part))
        values = (end, part.lines, part.actions, crc32(data[start:end], checksum), unit)
        self._connection.execute("UPDATE unit SET end = ?, lines = ?, actions = ?, checksum = ? WHERE id = ?", values)
        return self._finish(unit, [stamp], begin)

    def _units(self, task_id: str, *, logs: bool = False) -> list[tuple[int, str]]:
        only = " AND attempt IS NOT NULL" if logs else ""
        return self._connection.execute(f"SELECT id, path FROM unit WHERE task = ?{only}", (task_id,)).fetchall()

    def _remove(self, units: Iterable[tuple[int, str]]) -> None:
        # Entries of the removed blocks stay in the word index, but lead nowhere: a block never gets their numbers.
        for unit, _path in units:
            self._connection.execute("DELETE FROM block WHERE unit = ?", (unit,))
            self._connection.execute("DELETE FROM unit WHERE id = ?", (unit,))

    def _begin(self, path: str, task_id: str, attempt: int | None) -> int:
        """Create a unit without records and stamps, and return its number."""
        self._remove(self._connection.execute("SELECT id, path FROM unit WHERE path = ?", (path,)).fetchall())
        # A statement that may fail halfway, such as one with RETURNING, would make the word index write all it has.
        sql = "INSERT INTO unit (path, task, attempt, stamps) VALUES (?, ?, ?, x'')"
        return int(self._connection.execute(sql, (path, task_id, attempt)).lastrowid or 0)

    def _finish(self, unit: int, stamps: Sequence[NamedStamp], begin: int) -> bool:
        """Mark a unit as complete, unless a file has just changed and may change again unnoticed."""
        is_settled = all(begin - changed > _SETTLED_NS for *_, changed in stamps)
        if is_settled:
            packed = msgspec.msgpack.encode(stamps)
            self._connection.execute("UPDATE unit SET stamps = ? WHERE id = ?", (packed, unit))
        return is_settled

    def _insert(self, unit: int, hits: Iterator[SearchHit]) -> Iterator[None]:
        [(own_path,)] = self._connection.execute("SELECT path FROM unit WHERE id = ?", (unit,))
        for batch in _batches(hits):
            block, text = pack(batch, own_path)
            sql = "INSERT INTO block (unit, kinds, first, last, data, checksum) VALUES (?, ?, ?, ?, ?, ?)"
            number = self._connection.execute(sql, (unit, *block)).lastrowid
            self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))
            yield


def _are_readable(findings: Iterable[Finding]) -> bool:
    return all(finding.code != UNREADABLE for finding in findings)


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
