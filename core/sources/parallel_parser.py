"""Parse many files in this process and in worker processes; see docs/performance.md#workers.

A worker imports no numpy, never writes, and ends when its parent does. What a worker could not parse, for whatever
reason, this process parses itself, so the results do not depend on the workers.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.config.paths import ProjectPaths
from core.sources.parse_units import Unit, divide, group_units, has_patterns, is_parsed, small_pattern_units
from core.sources.parsed_file import ParsedFile, parse_file
from core.sources.record_kinds import encode_kinds, kind_of, remember_kinds
from core.sources.sweep import Listing, scan
from core.sources.worker_process import SWEEP, EarlySweep, WorkerProcess, count_cores, receive, send
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp, open_ahead, open_file, read_opened

if TYPE_CHECKING:
    from core.sources.shared_values import SharedValues

MIN_BYTES: Final = 3 << 20  # files that together have fewer bytes take less time than the start of a worker
_MAX_WORKERS: Final = 3
_OPENED_FILES: Final = 32
_BATCHES_AHEAD: Final = 3  # batches that a worker has got, so that it need not wait for this process
_HUNG_SECONDS: Final = 3.0  # a worker that answers nothing longer than this and the time for its files is ended
_SWEEP_SECONDS: Final = 15.0  # an early sweep that finds nothing for longer than this is ended
_COUNTED_FILES: Final = 100  # files of a sweep between two counts
_SLOW_BYTES: Final = 20 << 20  # per second, of a slow disk
_ERRORS: Final = (OSError, EOFError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)


class Outcome(Struct, frozen=True, array_like=True):
    """What parsing a file gave; without a `stamp` and a `problem`, the file does not exist."""

    stamp: Stamp | None = None
    problem: Problem | None = None
    parsed: ParsedFile | None = None


class Sweep(Struct, frozen=True, array_like=True):
    """What `scan` found in a project; `kinds` are those of the files in `stamps`, encoded."""

    stamps: dict[str, Stamp]
    unreadable: dict[str, Problem]
    listings: dict[str, Listing]
    kinds: bytes


class UnitParser:
    """Parses files below a project folder, one after the other."""

    def __init__(self, project: str) -> None:
        self._project, self._aiwg = project, Path(project) / ".aiwg"
        self._ahead: dict[str, int | Problem | None] = {}

    def parse_all(self, units: Sequence[Unit]) -> Generator[Outcome, None, None]:
        """Parse units; their files are opened ahead, so that the disk reads several at the same time."""
        for start in range(0, len(units), _OPENED_FILES):
            several = units[start : start + _OPENED_FILES]
            self._ahead = {unit.file: open_ahead(f"{self._project}/{unit.file}", self._aiwg) for unit in several}
            try:
                yield from map(self.parse, several)
            finally:
                while self._ahead:
                    if isinstance(left := self._ahead.popitem()[1], int):
                        os.close(left)

    def parse(self, unit: Unit) -> Outcome:
        file = unit.file
        path = f"{self._project}/{file}"
        opened = self._ahead.pop(file) if file in self._ahead else open_file(path, self._aiwg)
        kind = kind_of(file)
        raw = read_opened(opened, kind.limit if kind is not None else 0)
        if kind is None or raw is None:
            return Outcome()
        if isinstance(raw, Problem):
            return Outcome(problem=raw)
        parsed = parse_file(file, kind, raw)
        return Outcome(raw.stamp, parsed) if isinstance(parsed, Problem) else Outcome(raw.stamp, parsed=parsed)


_encoder: Final = msgspec.msgpack.Encoder()
_unit_decoder: Final = msgspec.msgpack.Decoder(list[Unit])
_reply_decoder: Final = msgspec.msgpack.Decoder(list[bytes])
_outcome_decoder: Final = msgspec.msgpack.Decoder(Outcome)
_sweep_decoder: Final = msgspec.msgpack.Decoder(Sweep)


class ParallelParser:
    """Parses `files` (with their stamps) in this process and in workers.

    Small totals start no worker; then it parses nothing. `outcome` has to be called for each file for which `parses` is
    True, in the order of `files`. The records share `values`. `on_records` is called with file, number of records read
    and their total after each pattern file. `running` is a worker that is ready. `use_pause` is called
    until it returns False before this process parses what it would otherwise wait for.
    """

    def __init__(
        self,
        project: Path,
        files: Mapping[str, Stamp],
        values: SharedValues,
        on_records: Callable[[str, int, int], None] | None = None,
        running: WorkerProcess | None = None,
        use_pause: Callable[[], bool] = lambda: False,
    ) -> None:
        self._project, self._files, self._values = str(project), files, values
        self._on_records, self._use_pause = on_records, use_pause
        sizes = {file: stamp.size for file, stamp in files.items() if is_parsed(file)}
        workers = count_workers(sum(sizes.values()))
        self._units = divide(sizes) if workers else {}
        self._batches = list(group_units(self._units, sizes))
        self._unclaimed: tuple[deque[int], deque[int]] = deque(), deque()  # batches of records, and of patterns
        self._release(range(len(self._batches)))
        self._found: dict[int, bytes | list[Outcome]] = {}
        self._condition = threading.Condition()
        self._workers: list[WorkerProcess] = []
        self._parser = UnitParser(self._project)
        self._outcomes = self._in_order()
        self._threads = [
            threading.Thread(target=self._feed_worker, args=[running if number == 0 else None], daemon=True)
            for number in range(workers)
        ]

    def __enter__(self) -> ParallelParser:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            for batches in self._unclaimed:
                batches.clear()
        self._kill()
        self._outcomes.close()  # it refers to this object, which is not collected after loading
        for thread in self._threads:
            thread.join()

    @property
    def has_workers(self) -> bool:
        return bool(self._units)

    @property
    def left(self) -> float:
        """Share of the work that no process has begun, 0..1; batches take about the same time."""
        return sum(map(len, self._unclaimed)) / len(self._batches) if self._batches else 0.0

    def parses(self, file: str) -> bool:
        """Return whether this parses the file, so that `outcome` has to be called."""
        return file in self._units

    def outcome(self, file: str) -> Outcome:
        """Return the outcome of the next file, `file`."""
        outcome = next(self._outcomes)
        if outcome.parsed is not None:
            self._values.share(outcome.parsed)
            if self._on_records is not None and has_patterns(file):
                count = len(outcome.parsed.patterns)
                self._on_records(file, count, count)
        return outcome

    def _in_order(self) -> Generator[Outcome, None, None]:
        """Parse all batches; those that workers did not claim in this process."""
        for number, batch in enumerate(self._batches):
            while (found := self._take(number)) is None:
                if self._use_pause():
                    continue
                own = self._claim(is_own=True)
                if own is not None:
                    self._put(own, list(self._parser.parse_all(self._batches[own])))
                else:
                    self._wait(number)
            yield from self._decoded(found, batch)

    def _decoded(self, found: bytes | list[Outcome], batch: list[Unit]) -> Iterator[Outcome]:
        """Decode the reply of a worker; parses what it cannot contain or is damaged."""
        if isinstance(found, list):
            yield from found
            return
        encoded: list[bytes] = []
        with contextlib.suppress(*_ERRORS):
            encoded = _reply_decoder.decode(found)
        if len(encoded) != len(batch):
            encoded = [b""] * len(batch)
        for unit, one in zip(batch, encoded, strict=True):
            try:
                outcome = _outcome_decoder.decode(one)
            except _ERRORS:
                outcome = self._parser.parse(unit)
            yield outcome

    def _claim(self, *, is_own: bool = False) -> int | None:
        """Return the next batch to parse; workers parse patterns first: their scan is compiled."""
        with self._condition:
            if any(self._unclaimed):
                records, patterns = self._unclaimed
                is_pattern = bool(patterns) and not (is_own and records and records[0] < patterns[0])
                return self._unclaimed[is_pattern].popleft()
        return None

    def _release(self, batches: Iterable[int]) -> None:
        """Let any process claim these batches, before others."""
        for number in sorted(batches, reverse=True):
            self._unclaimed[has_patterns(self._batches[number][0].file)].appendleft(number)

    def _put(self, number: int, found: bytes | list[Outcome]) -> None:
        with self._condition:
            self._found[number] = found
            self._condition.notify_all()

    def _take(self, number: int) -> bytes | list[Outcome] | None:
        with self._condition:
            return self._found.pop(number, None)

    def _wait(self, number: int) -> None:
        """Wait until a batch is parsed or free again; ends workers that answer nothing."""
        size = sum(self._files[unit.file].size for unit in self._batches[number])
        seconds = _HUNG_SECONDS + size / _SLOW_BYTES
        with self._condition:
            if not self._condition.wait_for(lambda: number in self._found or any(self._unclaimed), seconds):
                self._kill()

    def _kill(self) -> None:
        for worker in self._workers:
            worker.kill()

    def _feed_worker(self, running: WorkerProcess | None) -> None:
        """Give batches to one worker until none is left or it fails; its unfinished ones are free again."""
        claimed: deque[int] = deque()
        with contextlib.suppress(*_ERRORS), running or WorkerProcess(self._project) as worker:
            self._workers.append(worker)
            if running is None:
                worker.receive()  # it is ready; until then it gets nothing that this process could parse
            while True:
                while len(claimed) < _BATCHES_AHEAD and (number := self._claim()) is not None:
                    claimed.append(number)
                    worker.send(_encoder.encode(self._batches[number]))
                if not claimed:
                    break
                found = worker.receive()
                self._put(claimed.popleft(), found)
        with self._condition:
            self._release(claimed)
            self._condition.notify_all()


def count_workers(size: int) -> int:
    """Return the number of workers for files of this size: this process has a processor of its own."""
    return min(count_cores() - 1, _MAX_WORKERS) if size >= MIN_BYTES and sys.executable else 0


def serve(project: str) -> None:
    """Answer the requests of another process until it ends or closes the input."""
    gc.disable()  # nothing that a request leaves refers to itself
    parser = UnitParser(project)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    ahead: dict[Unit, bytes] = {}  # encoded outcomes of units that were not requested yet
    send(replies, b"")
    while True:
        try:
            request = receive(requests)
        except EOFError:
            return
        if request == SWEEP:
            found = _sweep(project, partial(send, replies))
            send(replies, _encode(found))
            # The other process prepares the first request, which will be for patterns.
            pending = small_pattern_units(found.stamps)
            while not select.select([requests], [], [], 0)[0] and (unit := next(pending, None)) is not None:
                ahead[unit] = _encode(parser.parse(unit))
        else:
            batch = _unit_decoder.decode(request)
            others = parser.parse_all([unit for unit in batch if unit not in ahead])
            answers = [ahead.pop(unit) if unit in ahead else _encode(next(others)) for unit in batch]
            send(replies, _encoder.encode(answers))


def _sweep(project: str, send_count: Callable[[bytes], None]) -> Sweep:
    """Sweep a project; sends the number of files found at intervals, and an empty message at the end."""
    counts = [0]

    def count(found: int) -> None:
        if found >= counts[-1] + _COUNTED_FILES:
            counts.append(found)
            send_count(found.to_bytes(8))

    unreadable: dict[str, Problem] = {}
    listings: dict[str, Listing] = {}
    found = scan(ProjectPaths(Path(project)), unreadable, listings, count)
    send_count(b"")
    return Sweep(found, unreadable, listings, encode_kinds(found))


def take_sweep(early: EarlySweep, progress: Callable[[int], None] | None = None) -> Sweep | None:
    """Return the result of an early sweep; None if it gave none. `progress` gets the number of files found."""
    try:
        sweep = _sweep_decoder.decode(early.reply(_SWEEP_SECONDS, progress))
        remember_kinds(sweep.stamps, sweep.kinds)
        return sweep
    except _ERRORS:
        return None


def _encode(reply: Outcome | Sweep) -> bytes:
    """Encode a reply; empty if MessagePack cannot (as with 30-digit integers)."""
    try:
        return _encoder.encode(reply)
    except _ERRORS:
        return b""
