"""Debug sessions of an index by what they record, and sums of the results of their fixes (docs/debug-memory.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from core.debug_memory.index import (
    KEYS,
    NAMES,
    DebugIndex,
    FixCounts,
    FixResults,
    Postings,
    count_fixes,
    error_sources,
    key_values,
    newest_first,
)
from core.index.terms import from_key, to_key

if TYPE_CHECKING:
    from core.index.records import Reader
    from core.records.debug_sessions import DebugSession

_SOURCE: Final = len(KEYS)  # number of the key whose values are an error type, with the file of the error
TABLES: Final = (
    # Sessions by the value of each key, newest first: `changed` is the negative time of the last change.
    "CREATE TABLE debug_value (key INT, value BLOB, file BLOB, changed REAL, id BLOB,"
    " PRIMARY KEY (key, value, changed, id, file)) WITHOUT ROWID",
    "CREATE INDEX debug_value_by_id ON debug_value (id)",
    # What each session adds to the sums of the results of fixes.
    "CREATE TABLE debug_fix (kind TEXT, category BLOB, text BLOB, id BLOB, passed INT, failed INT,"
    " PRIMARY KEY (kind, category, text, id)) WITHOUT ROWID",
    "CREATE INDEX debug_fix_by_id ON debug_fix (id)",
)


class _Values(Mapping[str, tuple[str, ...]]):
    """Session IDs by the value of one key, newest session first; keys in the order of their newest sessions."""

    def __init__(self, reader: Reader, key: int) -> None:
        self._reader = reader
        self._key = key

    def __getitem__(self, value: str) -> tuple[str, ...]:
        sql = "SELECT id FROM debug_value WHERE key = ? AND value = ? ORDER BY changed, id"
        rows = self._reader.rows(sql, self._key, to_key(value))
        if not rows:
            raise KeyError(value)
        return tuple(from_key(id) for (id,) in rows)

    def __iter__(self) -> Iterator[str]:
        sql = "SELECT value FROM debug_value WHERE key = ? ORDER BY changed, id, value"
        return iter(dict.fromkeys(from_key(value) for (value,) in self._reader.rows(sql, self._key)))

    def __len__(self) -> int:
        row = self._reader.row("SELECT count(DISTINCT value) FROM debug_value WHERE key = ?", self._key)
        return int(row[0]) if row is not None else 0


class _Sources(Mapping[str, Postings]):
    """Session IDs by error type and file of the error, newest session first."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __getitem__(self, error_type: str) -> Postings:
        sql = "SELECT file, id FROM debug_value WHERE key = ? AND value = ? ORDER BY changed, id, file"
        found: dict[str, list[str]] = {}
        for file, id in self._reader.rows(sql, _SOURCE, to_key(error_type)):
            found.setdefault(from_key(file), []).append(from_key(id))
        if not found:
            raise KeyError(error_type)
        return {file: tuple(ids) for file, ids in found.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(_Values(self._reader, _SOURCE))

    def __len__(self) -> int:
        return len(_Values(self._reader, _SOURCE))


class _Totals:
    """Sums of the results of fixes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find(self, kind: str, category: str, text: str = "") -> FixCounts:
        sql = "SELECT total(passed), total(failed) FROM debug_fix WHERE kind = ? AND category = ? AND text = ?"
        row = self._reader.row(sql, kind, to_key(category), to_key(text)) or (0, 0)
        return FixCounts(passed=int(row[0]), failed=int(row[1]))

    def names(self, category: str) -> Mapping[str, int]:
        sql = "SELECT text, sum(passed) FROM debug_fix WHERE kind = ? AND category = ? GROUP BY text"
        return {from_key(text): count for text, count in self._reader.rows(sql, NAMES, to_key(category))}


class StoredDebugIndex(DebugIndex):
    """Index of the debug sessions of one view."""

    reader: Reader

    @classmethod
    def open(cls, reader: Reader, sessions: Mapping[str, DebugSession]) -> StoredDebugIndex:
        found = cls(sessions, {key: _Values(reader, number) for number, key in enumerate(KEYS)}, _Sources(reader))
        object.__setattr__(found, "reader", reader)
        return found

    @cached_property
    def fix_results(self) -> FixResults:
        return FixResults(_Totals(self.reader))


def fill_debug_sessions(writer: Reader, sessions: Mapping[str, DebugSession]) -> None:
    """Index all sessions; takes about 50 us each. The tables must be empty."""
    _add(writer, sessions.values())


def update_debug_sessions(writer: Reader, sessions: Mapping[str, DebugSession], changed: Iterable[str]) -> None:
    """Index the changed sessions again."""
    for id in changed:
        for table in ("debug_value", "debug_fix"):
            writer.connection.execute(f"DELETE FROM {table} WHERE id = ?", (to_key(id),))
    _add(writer, (session for id in changed if (session := sessions.get(id)) is not None))


def _add(writer: Reader, sessions: Iterable[DebugSession]) -> None:
    values: list[tuple[object, ...]] = []
    fixes: list[tuple[object, ...]] = []
    for session in sessions:
        key, changed = to_key(session.id), newest_first(session)[0]
        for number, found in enumerate(key_values(session)):
            values += ((number, to_key(value), b"", changed, key) for value in found)
        values += ((_SOURCE, to_key(name), to_key(file), changed, key) for name, file in error_sources(session))
        for (kind, category, text), counts in count_fixes(session).items():
            fixes.append((kind, to_key(category), to_key(text), key, counts.passed, counts.failed))
    writer.connection.executemany("INSERT INTO debug_value VALUES (?, ?, ?, ?, ?)", sorted(values))
    writer.connection.executemany("INSERT INTO debug_fix VALUES (?, ?, ?, ?, ?, ?)", sorted(fixes))
