"""Parse many files in this process and in worker processes; see docs/performance.md#workers.

A worker imports no numpy, never writes, and ends when its parent does. What a worker could not parse, for whatever
reason, this process parses itself, so the results do not depend on the workers.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from core.sources.parsed_file import ParsedFile, condense_in_file, parse_file
from core.sources.patterns import EarlierPatterns, PatternPart, PatternReader, join_parts
from core.sources.record_kinds import PATTERN_COPIES, PATTERNS, Format, kind_of
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp, read_file

if TYPE_CHECKING:
    from core.sources.shared_values import SharedValues

MIN_BYTES: Final = 3 << 20  # files that together have fewer bytes take less time than the start of a worker
_MAX_WORKERS: Final = 3
_BATCH_BYTES: Final = 128 << 10  # about 20 ms of work
_BATCH_FILES: Final = 100
_BATCHES_AHEAD: Final = 3  # batches that a worker has got, so that it need not wait for this process
_MAX_REPLY: Final = 1 << 30
_PIPE_BYTES: Final = 1 << 20
_HUNG_SECONDS: Final = 3.0  # a worker that answers nothing longer than this and the time for its files is ended
_SLOW_BYTES: Final = 20 << 20  # per second, of a slow disk
_FORMATS: Final = frozenset({Format.DOCUMENT, Format.PATTERNS, Format.CRASH_LOG})
_LENGTH: Final = 4  # bytes of the length before a message
_ENVIRONMENT: Final = ("LANG", "LC_", "LD_", "DYLD_")  # names of the variables that a worker gets start with these
_COMMAND: Final = (
    "import json, sys; project, *sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from core.sources.parallel_parser import serve; serve(project)"
)
_ERRORS: Final = (OSError, EOFError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)


class _Unit(NamedTuple):
    """A file, or one of equal parts of a pattern file."""

    file: str
    part: int = 0
    parts: int = 1


class Outcome(Struct, frozen=True, array_like=True):
    """What parsing a unit gave; without a `stamp` and a `problem`, the file does not exist.

    Pattern files give a `part`, and the `count` of records in the whole file.
    """

    stamp: Stamp | None = None
    problem: Problem | None = None
    parsed: ParsedFile | None = None
    part: PatternPart | None = None
    count: int = 0


class UnitParser:
    """Parses units below a project folder, one after the other; opens a file once for consecutive parts."""

    def __init__(self, project: str) -> None:
        self._project, self._aiwg = project, Path(project) / ".aiwg"
        self._opened: tuple[str, Outcome, PatternReader | None] | None = None

    def parse(self, unit: _Unit) -> Outcome:
        file, part, parts = unit
        if self._opened is None or self._opened[0] != file:
            self._opened = None  # frees its memory
            self._opened = file, *self._open(file)
        _, outcome, reader = self._opened
        if reader is None:
            return outcome
        return Outcome(outcome.stamp, part=reader.read(part, parts), count=reader.count)

    def _open(self, file: str) -> tuple[Outcome, PatternReader | None]:
        """Return the outcome of a file; of a pattern file its stamp and its reader."""
        kind = kind_of(file)
        raw = read_file(f"{self._project}/{file}", self._aiwg, kind.limit) if kind is not None else None
        if kind is None or raw is None:
            return Outcome(), None
        if isinstance(raw, Problem):
            return Outcome(problem=raw), None
        if kind.format is not Format.PATTERNS:
            parsed = parse_file(file, kind, raw)
            if isinstance(parsed, Problem):
                return Outcome(raw.stamp, parsed), None
            return Outcome(raw.stamp, parsed=parsed), None
        copy_folder = file.rpartition("/")[0] if kind is PATTERN_COPIES else ""
        reader = PatternReader(file, raw.data, copy_folder, with_schema=kind is PATTERNS)
        return Outcome(raw.stamp, reader.problem), reader if reader.problem is None else None


_encoder: Final = msgspec.msgpack.Encoder()
_unit_decoder: Final = msgspec.msgpack.Decoder(list[_Unit])
_reply_decoder: Final = msgspec.msgpack.Decoder(list[bytes])
_outcome_decoder: Final = msgspec.msgpack.Decoder(Outcome)


class ParallelParser:
    """Parses `files` (with their stamps) in this process and in workers.

    Small totals start no worker; then it parses nothing. `outcome` has to be called for each file for which `parses` is
    True, in the order of `files`. The records share `values`. `on_records` is called with file, number of records read
    and their total after each part of a large pattern file.
    """

    def __init__(
        self,
        project: Path,
        files: Mapping[str, Stamp],
        values: SharedValues,
        on_records: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._project, self._files, self._values = str(project), files, values
        self._on_records = on_records
        units = {file: found for file, stamp in files.items() if (found := _units(file, stamp))}
        workers = count_workers(sum(files[file].size for file in units))
        self._units = units if workers else {}
        self._batches = list(_batches(self._units.values(), files))
        self._unclaimed = deque(range(len(self._batches)))
        self._failed: set[str] = set()  # divided files whose other parts are not parsed
        self._found: dict[int, bytes | list[Outcome]] = {}
        self._condition = threading.Condition()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._parser = UnitParser(self._project)
        self._outcomes = self._in_order()
        self._threads = [threading.Thread(target=self._feed_worker, daemon=True) for _ in range(workers)]

    def __enter__(self) -> ParallelParser:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._unclaimed.clear()
        self._kill()
        for thread in self._threads:
            thread.join()

    def parses(self, file: str) -> bool:
        """Return whether this parses the file, so that `outcome` has to be called."""
        return file in self._units

    def outcome(self, file: str, known: EarlierPatterns) -> Outcome | None:
        """Return the outcome of the next file; None if it changed meanwhile and must be read as a whole.

        `known` receives the records of a pattern file.
        """
        units = self._units[file]
        outcomes = []
        done = 0
        for found in islice(self._outcomes, len(units)):
            outcomes.append(found)
            if found.part is None:
                break
            done += len(found.part.records)
            if self._on_records is not None and len(units) > 1:
                self._on_records(file, done, found.count)
        first = outcomes[0]
        if any((one.stamp, one.problem) != (first.stamp, first.problem) for one in outcomes):
            return None
        if first.part is None:
            if first.parsed is not None:
                self._values.share(first.parsed)
            return first
        joined = join_parts((one.part for one in outcomes if one.part is not None), known)
        parsed = self._values.share(ParsedFile(patterns=joined.patterns, findings=joined.findings))
        return Outcome(first.stamp, parsed=condense_in_file(file, parsed))

    def _in_order(self) -> Iterator[Outcome]:
        """Parse all batches; those that workers did not claim in this process.

        After a part with a problem, the other parts of its file are left out.
        """
        for number, batch in enumerate(self._batches):
            if batch[0].file in self._failed:
                continue
            while (found := self._take(number)) is None:
                own = self._claim()
                if own is not None:
                    self._put(own, list(map(self._parser.parse, self._batches[own])))
                else:
                    self._wait(number)
            for unit, outcome in zip(batch, self._decoded(found, batch), strict=True):
                if unit.parts > 1 and outcome.part is None:
                    self._failed.add(unit.file)
                yield outcome

    def _decoded(self, found: bytes | list[Outcome], batch: list[_Unit]) -> Iterator[Outcome]:
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

    def _claim(self) -> int | None:
        with self._condition:
            while self._unclaimed:
                number = self._unclaimed.popleft()
                if self._batches[number][0].file not in self._failed:
                    return number
        return None

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
            if not self._condition.wait_for(lambda: number in self._found or self._unclaimed, seconds):
                self._kill()

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()

    def _feed_worker(self) -> None:
        """Give batches to one worker until none is left or it fails; its unfinished ones are free again."""
        claimed: deque[int] = deque()
        with contextlib.suppress(*_ERRORS), _start_worker(self._project) as (process, requests, replies):
            self._processes.append(process)
            _receive(replies)  # it is ready; until then it gets nothing that this process could parse
            while True:
                while len(claimed) < _BATCHES_AHEAD and (number := self._claim()) is not None:
                    claimed.append(number)
                    _send(requests, _encoder.encode(self._batches[number]))
                if not claimed:
                    break
                found = _receive(replies)
                self._put(claimed.popleft(), found)
        with self._condition:
            self._unclaimed.extendleft(reversed(claimed))
            self._condition.notify_all()


def count_workers(size: int) -> int:
    """Return the number of workers for files of this size: this process has a processor of its own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, _MAX_WORKERS) if size >= MIN_BYTES and sys.executable else 0


def _units(file: str, stamp: Stamp) -> list[_Unit]:
    kind = kind_of(file)
    if kind is None or kind.format not in _FORMATS:
        return []
    is_divisible = kind.format is Format.PATTERNS and not file.endswith((".yaml", ".yml"))
    parts = max(stamp.size // _BATCH_BYTES, 1) if is_divisible and stamp.size <= kind.limit else 1
    return [_Unit(file, part, parts) for part in range(parts)]


def _batches(units: Iterable[list[_Unit]], files: Mapping[str, Stamp]) -> Iterator[list[_Unit]]:
    """Group consecutive units that take about the same time together."""
    batch: list[_Unit] = []
    size = 0
    for unit in chain.from_iterable(units):
        batch.append(unit)
        size += files[unit.file].size // unit.parts
        if size >= _BATCH_BYTES or len(batch) == _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextlib.contextmanager
def _start_worker(project: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Start a worker; it is killed at the end. Gives the process, its input and its output."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.sep,
        env={name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)},
        process_group=0,  # an interrupt in the terminal is not for it, and a stopped one ends when its parent is killed
    )
    assert process.stdin is not None and process.stdout is not None
    with process:
        try:
            with contextlib.suppress(ImportError, AttributeError, OSError):  # only Linux has larger pipes
                import fcntl

                fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            setup = [project, *(str(Path(entry).absolute()) for entry in sys.path)]
            process.stdin.write(json.dumps(setup).encode() + b"\n")
            process.stdin.flush()
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


def serve(project: str) -> None:
    """Answer the requests of another process until it ends or closes the input."""
    gc.disable()  # nothing that a request leaves refers to itself
    parser = UnitParser(project)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    _send(replies, b"")
    while True:
        try:
            batch = _unit_decoder.decode(_receive(requests))
        except EOFError:
            return
        _send(replies, _encoder.encode([_encode(parser.parse(unit)) for unit in batch]))


def _encode(outcome: Outcome) -> bytes:
    """Encode an outcome; empty if MessagePack cannot (as with 30-digit integers)."""
    try:
        return _encoder.encode(outcome)
    except _ERRORS:
        return b""


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH) + message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """Read one message; raises EOFError at the end, ValueError if it is too large to be one."""
    size = int.from_bytes(_read(stream, _LENGTH))
    if size > _MAX_REPLY:
        raise ValueError
    return _read(stream, size)


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
