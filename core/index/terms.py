"""Posting lists, and the indexes of patterns and learnings that read them.

A posting list is stored in chunks of `CHUNK` rows, so that a changed pattern rewrites a few kilobytes for each word
that it gained or lost. Patterns are numbered by their place, learnings and works by their row. See
docs/architecture.md#index, docs/retrieval.md#reflections and docs/retrieval.md#past-tasks.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import numpy as np

from core.base.text import from_bytes, to_bytes
from core.index.columns import CHUNK, Numbering, PatternIds, RowsById, find_place, read_cells, write_cells
from core.index.database import count_change, pack, unpack
from core.index.records import Decoder, Reader, encode
from core.retrieval.embeddings import Closeness, ComparableWork, Floats, scale_closeness, task_text
from core.retrieval.reflections import (
    UNTITLED_WEIGHTS,
    WEIGHTS,
    Learning,
    LearningMatch,
    describe_work,
    find_work,
    iterate_learnings,
    list_needs,
    memory_source,
    work_title,
)
from core.retrieval.relevance import FOUND_IN, TAG, TYPES, PatternIndex, Term, count_tags, of_kind, pattern_terms
from core.retrieval.task import TaskProfile, content_words

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import (
        NDArray,
    )

    from core.index.snapshot import IndexedSnapshot
    from core.records.patterns import (
        Pattern,
    )
    from core.records.snapshot import (
        Delta,
        Snapshot,
    )
    from core.retrieval.relevance import (
        Rows,
    )

_MAX_KEPT_ROWS: Final = 500_000  # of posting lists that are kept after they were read: 2 MB
LEARNING, WORK, COMPARED = range(FOUND_IN + 1, FOUND_IN + 4)  # kinds of terms, besides those of patterns
_TYPE, _TAG_COUNT = "pattern type", "tag count"


class TermWriter:
    """Changes of posting lists, collected and then written together."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # Rows by kind and term in the order of the changes; of a removed row, its complement.
        self._changes: defaultdict[Term, array[int]] = defaultdict(lambda: array("i"))

    def move(self, row: int, before: Set[Term], after: Set[Term]) -> None:
        """Change the terms of a row from `before` to `after`."""
        for term in after - before if before else after:
            self._changes[term].append(row)
        for term in before - after:
            self._changes[term].append(~row)

    def write(self) -> None:
        find = "SELECT rows FROM term WHERE kind = ? AND term = ? AND chunk = ?"
        any_of_kind = "SELECT 1 FROM term WHERE kind = ? LIMIT 1"
        kinds = {kind for kind, _ in self._changes}
        filled = {kind for kind in kinds if self._connection.execute(any_of_kind, (kind,)).fetchone() is not None}
        written, removed = [], []
        for (kind, term), changes in self._changes.items():
            for chunk, numbers in _split_chunks(changes):
                key, start = (kind, to_bytes(term), chunk), chunk * CHUNK
                stored = self._connection.execute(find, key).fetchone() if kind in filled else None
                rows = set(np.frombuffer(unpack(stored[0]), "<u2").tolist()) if stored is not None else set()
                for number in numbers:
                    if number >= 0:
                        rows.add(number - start)
                    else:
                        rows.discard(~number - start)
                if rows:
                    written.append((*key, pack(np.array(sorted(rows), "<u2").tobytes())))
                else:
                    removed.append(key)
        self._connection.executemany("DELETE FROM term WHERE kind = ? AND term = ? AND chunk = ?", removed)
        self._connection.executemany("INSERT OR REPLACE INTO term VALUES (?, ?, ?, ?)", sorted(written))
        for tag in [term for kind, term in self._changes if kind == TAG]:
            self._note_tag(tag)
        self._changes.clear()

    def _note_tag(self, tag: str) -> None:
        """Keep the tags by word: those that some pattern has."""
        key = to_bytes(tag)
        is_used = self._connection.execute("SELECT 1 FROM term WHERE kind = ? AND term = ?", (TAG, key)).fetchone()
        pairs = [(to_bytes(word), key) for word in content_words(tag)]
        sql = (
            "INSERT OR IGNORE INTO tag_word VALUES (?, ?)"
            if is_used
            else "DELETE FROM tag_word WHERE word = ? AND tag = ?"
        )
        self._connection.executemany(sql, pairs)


def _split_chunks(changes: array[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the changes of rows in each chunk."""
    first, last = min(changes), max(changes)
    if first >= 0 and first // CHUNK == last // CHUNK:
        yield first // CHUNK, changes
        return
    numbers = np.array(changes, np.int32)
    chunks = np.maximum(numbers, ~numbers) // CHUNK
    for chunk in np.unique(chunks).tolist():
        yield chunk, numbers[chunks == chunk].tolist()


class StoredPostings:
    """Posting lists, read on use; patterns have a `numbering`: rows are not places."""

    def __init__(self, reader: Reader, numbering: Numbering | None = None) -> None:
        self._reader = reader
        self._numbering = numbering
        self._kept: dict[Term, Rows | None] = {}
        self._kept_rows = 0

    def get(self, kind: int, text: str, /) -> Rows | None:
        term = kind, text
        if term in self._kept:
            return self._kept[term]
        rows = self._read(*term)
        size = 1 if rows is None else len(rows)
        if self._kept_rows + size < _MAX_KEPT_ROWS:
            self._kept[term] = rows
            self._kept_rows += size
        return rows

    def _read(self, kind: int, text: str) -> Rows | None:
        sql = "SELECT chunk, rows FROM term WHERE kind = ? AND term = ? ORDER BY chunk"
        found = self._reader.rows(sql, kind, to_bytes(text))
        return self._join(found) if found else None

    def read_all(self, kind: int) -> dict[str, Rows]:
        """Return the rows of all terms of a kind by text."""
        sql = "SELECT term, chunk, rows FROM term WHERE kind = ? ORDER BY term, chunk"
        found: defaultdict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
        for term, chunk, rows in self._reader.rows(sql, kind):
            found[term].append((chunk, rows))
        return {from_bytes(term): self._join(chunks) for term, chunks in found.items()}

    def _join(self, chunks: Iterable[tuple[int, bytes]]) -> Rows:
        parts = [np.frombuffer(unpack(rows), "<u2").astype(np.int32) + chunk * CHUNK for chunk, rows in chunks]
        rows = np.concatenate(parts)
        return rows if self._numbering is None else self._numbering.rows(rows)

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        # The size of a value is known without reading it: two bytes a row, behind the checksum.
        sql = (
            "SELECT term, sum((length(rows) - 4) / 2) FROM term"
            " WHERE kind = ? AND term IN (SELECT CAST(value AS BLOB) FROM json_each(?)) GROUP BY term"
        )
        asked = json.dumps(list(texts), ensure_ascii=False)
        return {from_bytes(term): count for term, count in self._reader.rows(sql, kind, asked)}

    def find_tags(self, word: str, /) -> Iterable[str]:
        rows = self._reader.rows("SELECT tag FROM tag_word WHERE word = ?", to_bytes(word))
        return [from_bytes(tag) for (tag,) in rows]


class StoredPatternIndex(PatternIndex):
    """Index of the patterns of one view; posting lists are read when they are needed."""

    @classmethod
    def open(cls, reader: Reader, patterns: Mapping[str, Pattern]) -> StoredPatternIndex:
        ids = PatternIds(reader)
        numbering = ids.numbering
        types, tag_counts = (
            numbering.select(read_cells(reader, name, np.int8, numbering.size)) for name in (_TYPE, _TAG_COUNT)
        )
        return cls(ids, types, tag_counts, StoredPostings(reader, numbering), patterns)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        assert isinstance(self.ids, PatternIds)
        return RowsById(self.ids)


def fill_terms(writer: Reader, patterns: Mapping[str, Pattern]) -> None:
    """Index all patterns; takes about 25 us each. The tables must be empty."""
    changes, places = _TermChanges(writer), dict(writer.rows("SELECT id, place FROM pattern"))
    for id, pattern in patterns.items():
        changes.replace(places[id], None, pattern)
    changes.write()


def update_terms(old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta) -> None:
    """Index changed patterns again; `new` is the view of the open transaction."""
    changes = _TermChanges(new.reader)
    for place, last, pattern in list_changes(old, new, delta):
        changes.replace(place, last, pattern)
    changes.write()


def list_changes(
    old: IndexedSnapshot, new: IndexedSnapshot, delta: Delta
) -> Iterator[tuple[int, Pattern | None, Pattern | None]]:
    """Yield place, old and new pattern of each change; see `update_terms`."""
    for id in sorted(delta.patterns):
        pattern, place, old_place = new.patterns.get(id), find_place(new.reader, id), find_place(old.reader, id)
        if old_place is not None:
            yield old_place, old.patterns.get(id), pattern if place == old_place else None
        if place is not None and place != old_place:
            yield place, None, pattern


class _TermChanges:
    """Collects changes of the terms of patterns by place."""

    def __init__(self, writer: Reader) -> None:
        self._connection = writer.connection
        self._terms = TermWriter(writer.connection)
        self._cells: dict[int, tuple[int, int]] = {}  # type and number of tags

    def replace(self, place: int, old: Pattern | None, new: Pattern | None) -> None:
        """Replace the terms at a place; None without a pattern."""
        before, after = (pattern_terms(one) if one is not None else set() for one in (old, new))
        self._terms.move(place, before, after)
        if new is not None:
            self._cells[place] = TYPES.index(new.type), count_tags(after)

    def write(self) -> None:
        self._terms.write()
        types, tag_counts = np.array(list(self._cells.values()), np.int8).reshape(-1, 2).T
        write_cells(self._connection, list(self._cells), {_TYPE: types, _TAG_COUNT: tag_counts})


_CHANGES: Final = "changes of learnings"  # name of a number in the table `meta`
_WORK_OF, _WORK_STATE = "work of learning", "state of work"
_ABSENT, _UNTITLED, _KNOWN = range(3)  # states of a work; an untitled one has no description
MAX_MATCHES: Final = 200  # most relevant learnings returned for a task
_MAX_TIED: Final = 5_000  # learnings with the relevance of the last match that are ordered by ID
_FLOOR: Final = 0.05  # lowest relevance of a match
_MAX_COMPARED: Final = 200  # tasks whose words are compared exactly, by the number of shared rare words
_SALIENT_WORDS: Final = 8  # number of rare words of a task that give full coverage

_Item = TypeVar("_Item")
_decode_words: Final = Decoder[tuple[str, ...]](tuple[str, ...])
_decode_learning: Final = Decoder[Learning](Learning)


class StoredRows(Sequence[_Item], Generic[_Item]):
    """Values of a table by row, read when needed; `empty` where there is none."""

    def __init__(self, reader: Reader, table: str, column: str, decode: Any, size: int, empty: _Item) -> None:
        self._reader = reader
        self._columns = f"row, {column} FROM {table}"
        self._decode = decode
        self._size = size
        self._empty = empty

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, row: int) -> _Item: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[_Item]: ...
    def __getitem__(self, row: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(row, slice):
            return list(self)[row]
        if not 0 <= row < self._size:
            raise IndexError(row)
        found = self._reader.row(f"SELECT {self._columns} WHERE row = ?", int(row))
        value: _Item = self._empty if found is None else self._decode(found[1])
        return value

    def __iter__(self) -> Iterator[_Item]:
        values = [self._empty] * self._size
        for row, data in self._reader.rows(f"SELECT {self._columns}"):
            values[row] = self._decode(data)
        return iter(values)


class _Works(Mapping[str, ComparableWork]):
    """Tasks and loops with a description, by key."""

    def __init__(self, snapshot: Snapshot, keys: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._keys = keys

    def __getitem__(self, key: str) -> ComparableWork:
        work = find_work(key, self._snapshot)
        if work is None:
            raise KeyError(key)
        return work

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._keys if key and find_work(key, self._snapshot) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LearningIndex:
    """Learnings of a view with what they are compared by, read when needed.

    Arrays and sequences of learnings, and of their tasks and loops, are by row; unused rows are "" or None.
    """

    def __init__(self, reader: Reader, snapshot: Snapshot) -> None:
        size, works = (_count_rows(reader, table) for table in ("learning", "work"))
        self._reader = reader
        self._changes = reader.meta(_CHANGES)
        self.work_keys = StoredRows[str](reader, "work", "key", from_bytes, works, "")
        """Keys of the tasks and loops: `task/<id>` or `loop/<id>`."""
        self.works = _Works(snapshot, self.work_keys)
        """The tasks and loops with a description, by key."""
        self._is_known = read_cells(reader, _WORK_STATE, np.int32, works) == _KNOWN
        self._words_of_works = StoredRows[tuple[str, ...]](reader, "work", "words", _decode_words, works, ())
        self._postings = StoredPostings(reader)
        self.learnings = StoredRows[Learning | None](reader, "learning", "data", _decode_learning, size, None)
        self._work_of: Rows = read_cells(reader, _WORK_OF, np.int32, size)  # 0 for an unused row
        self._is_live: NDArray[np.bool_] = self._work_of > 0

    def has_same(self, other: LearningIndex) -> bool:
        """Return whether `other`, of the same index, has the same learnings."""
        return self._changes == other._changes

    def find(self, learning_id: str) -> Learning | None:
        """Return the learning with an ID, or None."""
        row = self._reader.row("SELECT data FROM learning WHERE id = ? ORDER BY row", to_bytes(learning_id))
        return _decode_learning(row[0]) if row is not None else None

    def find_matches(self, profile: TaskProfile, closeness: Closeness | None = None) -> tuple[LearningMatch, ...]:
        """Return the learnings that fit a task, best first; at most `MAX_MATCHES`.

        `closeness` is the cosine of the task with each of `work_keys`, NaN where unknown; None compares words only.
        """
        if not self.learnings:
            return ()
        is_semantic = np.zeros(len(self.work_keys), np.bool_)
        similar = np.zeros(len(self.work_keys))
        if closeness is not None:
            is_semantic = ~np.isnan(closeness)
            similar = scale_closeness(closeness)
        for row, score in self._similar_by_words(profile.words):
            if not is_semantic[row]:
                similar[row] = score
        covered = self._covered(profile.words)
        task = similar[self._work_of]
        titled = self._is_known[self._work_of]
        relevance = np.where(
            titled, WEIGHTS["task"] * task + WEIGHTS["learning"] * covered, UNTITLED_WEIGHTS["learning"] * covered
        )
        rows = np.flatnonzero((relevance >= _FLOOR) & self._is_live)
        if len(rows) > MAX_MATCHES:
            least = np.partition(relevance[rows], -MAX_MATCHES)[-MAX_MATCHES]
            rows = rows[relevance[rows] >= least][:_MAX_TIED]
        found = [
            LearningMatch(
                learning=learning,
                relevance=float(relevance[row]),
                task=float(task[row]) if titled[row] else 0.0,
                words=float(covered[row]),
                is_semantic=bool(is_semantic[self._work_of[row]]),
            )
            for row in rows.tolist()
            if (learning := self.learnings[row]) is not None
        ]
        return tuple(sorted(found, key=lambda one: (-one.relevance, one.learning.id))[:MAX_MATCHES])

    @cached_property
    def _live_works(self) -> NDArray[np.bool_]:
        """Mask of the tasks and loops with a learning, which count for a word's rarity."""
        live = np.zeros(len(self.work_keys), np.bool_)
        live[self._work_of[self._is_live]] = True
        return live

    def _similar_by_words(self, asked: frozenset[str]) -> Iterator[tuple[int, float]]:
        """Yield (row, cosine) of tasks and loops that share words, weighted by rarity."""
        live = self._live_works
        size = int(np.count_nonzero(live))
        squares: dict[str, float] = {}

        def square(word: str) -> float:
            if word not in squares:
                squares[word] = math.log1p(size / max(_count(self._postings.get(WORK, word), live), 1)) ** 2
            return squares[word]

        shared = np.zeros(len(self.work_keys))
        for word in sorted(asked):  # sorted, so that every process gets the same sums
            if (holding := self._postings.get(WORK, word)) is not None:
                shared[holding] += square(word)
        rows = np.flatnonzero(shared * live)
        if len(rows) > _MAX_COMPARED:
            rows = rows[np.argsort(-shared[rows], kind="stable")[:_MAX_COMPARED]]
        length = math.sqrt(math.fsum(map(square, asked)))
        for row in rows.tolist():
            other = math.sqrt(math.fsum(map(square, self._words_of_works[row])))
            yield row, min(float(shared[row]) / (length * other), 1.0)

    def _covered(self, asked: frozenset[str]) -> Floats:
        """Return the share of the task's rare words that each learning contains."""
        part = np.zeros(len(self.learnings))
        size = int(np.count_nonzero(self._is_live))
        weights = []
        for word in sorted(asked):
            rows = self._postings.get(LEARNING, word)
            weights.append(math.log1p(size / max(_count(rows, self._is_live), 1)))
            if rows is not None:
                part[rows] += weights[-1]
        full = math.fsum(sorted(weights, reverse=True)[:_SALIENT_WORDS])
        return np.minimum(part / full, 1.0) if full else part


def _count(rows: Rows | None, live: NDArray[np.bool_]) -> int:
    """Return the number of rows that are live."""
    return 0 if rows is None else int(np.count_nonzero(live[rows]))


def fill_learnings(writer: Reader, snapshot: Snapshot) -> None:
    """Index learnings of all sources, about 40 us each; the tables must be empty."""
    sources = (*snapshot.reflections, *map(memory_source, snapshot.memory_tasks))
    _LearningWriter(writer, snapshot, is_empty=True).replace(sources)


def update_learnings(old: Snapshot, new: IndexedSnapshot, delta: Delta) -> None:
    """Index the learnings of changed sources again; `old` is the snapshot before."""
    writer = new.reader
    works = [f"task/{id}" for id in delta.tasks | delta.memory_tasks] + [f"loop/{id}" for id in delta.loops]
    needs = [f"attempt/{id}" for id in delta.attempts]
    needs += [key for key in works if _describe(key, old) != _describe(key, new)]
    sources = {*delta.reflections, *map(memory_source, delta.memory_tasks)}
    for need in needs:
        rows = writer.rows("SELECT source FROM learning_need WHERE need = ?", to_bytes(need))
        sources.update(from_bytes(source) for (source,) in rows)
    if sources:
        _LearningWriter(writer, new).replace(sorted(sources))


def _describe(key: str, snapshot: Snapshot) -> tuple[object, ...]:
    """Return what learnings depend on of a task or loop."""
    kind, _, id = key.partition("/")
    is_task = kind == "task" and (id in snapshot.tasks or id in snapshot.memory_tasks)
    work = find_work(key, snapshot)
    return is_task, work_title(work), describe_work(work)


class _LearningWriter:
    """Writes the learnings of sources, and the tasks and loops that they are about.

    `is_empty` is whether no learnings are stored, which saves many queries.
    """

    def __init__(self, writer: Reader, snapshot: Snapshot, *, is_empty: bool = False) -> None:
        self._is_empty = is_empty
        self._writer = writer
        self._snapshot = snapshot
        self._terms = TermWriter(writer.connection)
        self._work_of: dict[int, int] = {}
        self._states: dict[int, int] = {}
        self._works: dict[str, int] = {}  # row by key of the works that were written
        self._next_learning, self._next_work = (max(_count_rows(writer, table), 1) for table in ("learning", "work"))
        self._written_works: list[tuple[int, bytes, bytes]] = []

    def replace(self, sources: Iterable[str]) -> None:
        """Write the learnings of these sources instead of those that are stored."""
        connection, maybe_unused = self._writer.connection, set()
        learnings: list[tuple[int, bytes, bytes, int, bytes]] = []
        needs: list[tuple[bytes, bytes]] = []
        for source in sources:
            key = to_bytes(source)
            before: list[tuple[Any, ...]] = []
            if not self._is_empty:
                before = self._writer.rows("SELECT row, work, data FROM learning WHERE source = ? ORDER BY row", key)
                connection.execute("DELETE FROM learning_need WHERE source = ?", (key,))
            after = list(iterate_learnings(source, self._snapshot))
            needs += [(to_bytes(need), key) for need in set(list_needs(source, self._snapshot))] if after else []
            for stored, found in zip_longest(before, after):
                row, old_words = None, set[str]()
                if stored is not None:
                    row, old_words = stored[0], content_words(_decode_learning(stored[2]).text)
                    maybe_unused.add(stored[1])
                if found is None:
                    assert row is not None
                    connection.execute("DELETE FROM learning WHERE row = ?", (row,))
                    self._terms.move(row, of_kind(LEARNING, old_words), set())
                    self._work_of[row] = 0
                    continue
                learning, work_key = found
                work = self._write_work(work_key)
                if row is None:
                    row, self._next_learning = self._next_learning, self._next_learning + 1
                learnings.append((row, key, to_bytes(learning.id), work, encode(learning)))
                self._terms.move(row, of_kind(LEARNING, old_words), of_kind(LEARNING, content_words(learning.text)))
                self._work_of[row] = work
        connection.executemany("INSERT OR REPLACE INTO work VALUES (?, ?, ?)", self._written_works)
        connection.executemany("INSERT OR REPLACE INTO learning VALUES (?, ?, ?, ?, ?)", learnings)
        connection.executemany("INSERT INTO learning_need VALUES (?, ?)", sorted(needs))
        self._remove_unused(maybe_unused)
        count_change(connection, _CHANGES)
        self._terms.write()
        work_of, states = (np.array(list(one.values()), np.int32) for one in (self._work_of, self._states))
        write_cells(connection, list(self._work_of), {_WORK_OF: work_of})
        write_cells(connection, list(self._states), {_WORK_STATE: states})

    def _write_work(self, key: str) -> int:
        """Write a task or loop; return its row."""
        if key in self._works:
            return self._works[key]
        work = find_work(key, self._snapshot)
        words = content_words(task_text(work)) if work is not None else set()
        find = "SELECT row, words FROM work WHERE key = ?"
        stored = None if self._is_empty else self._writer.row(find, to_bytes(key))
        if stored is not None:
            row, before = int(stored[0]), of_kind(WORK, _decode_words(stored[1]))
        else:
            row, before, self._next_work = self._next_work, set(), self._next_work + 1
        self._written_works.append((row, to_bytes(key), encode(sorted(words))))
        self._terms.move(row, before, of_kind(WORK, words))
        self._works[key], self._states[row] = row, _UNTITLED if work is None else _KNOWN
        return row

    def _remove_unused(self, rows: set[int]) -> None:
        """Remove tasks and loops without a learning."""
        for row in rows:
            if self._writer.row("SELECT 1 FROM learning WHERE work = ?", row) is None:
                stored = self._writer.row("SELECT words FROM work WHERE row = ?", row)
                assert stored is not None
                self._terms.move(row, of_kind(WORK, _decode_words(stored[0])), set())
                self._writer.connection.execute("DELETE FROM work WHERE row = ?", (row,))
                self._states[row] = _ABSENT


def _count_rows(reader: Reader, table: str) -> int:
    """Return the size of arrays by row; row 0 is never used."""
    row = reader.row(f"SELECT max(row) FROM {table}")
    return row[0] + 1 if row is not None and row[0] is not None else 0
