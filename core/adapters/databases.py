"""Read-only queries of SQLite databases of runners."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from core.adapters.folders import Reports
    from core.storage.file_reader import Stamp

MAX_ROWS: Final = 100_000  # of one query
MAX_QUERIES: Final = 256  # whose rows are kept, the last ones
MAX_VALUE: Final = 32 << 20  # bytes of one value; a query that meets a larger one fails
MAX_BYTES: Final = 256 << 20  # of texts in the rows of one query
MAX_STEPS: Final = 300  # of a query, of `_STEP` instructions each: a view or a damaged index can go on forever
BUSY_SECONDS: Final = 0.2  # time that a locked database gets
_STEP: Final = 1_000_000

_Rows = list[tuple[Any, ...]]


class Databases:
    """Rows of databases; a query is only repeated after a change of the files."""

    def __init__(self, files: Reports) -> None:
        self._files = files
        self._rows: dict[tuple[Path, str, tuple[Any, ...]], tuple[tuple[Stamp | None, ...], _Rows]] = {}
        self._endless: dict[Path, tuple[Stamp | None, ...]] = {}  # databases of which a query was stopped

    def rows(self, path: Path, query: str, values: tuple[Any, ...]) -> _Rows:
        """Return the rows of a query; the last good ones, with a finding, while the database cannot be read."""
        names = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
        stamps = tuple(map(self._files.stamp, names))
        key = path, query, values
        before, known = self._rows.get(key, ((), []))
        if stamps[0] is None or before == stamps:
            return known if stamps[0] is not None else []
        try:
            found = self._query(names, stamps, query, values)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                self._endless[path] = stamps
            self._files.report(path, f"cannot be read: {error}", "unreadable-database")
            return known
        self._rows.pop(key, None)
        self._rows[key] = stamps, found
        if len(self._rows) > MAX_QUERIES:
            del self._rows[next(iter(self._rows))]
        return found

    def _query(
        self, names: Sequence[Path], stamps: tuple[Stamp | None, ...], query: str, values: tuple[Any, ...]
    ) -> _Rows:
        """Run a query; raises sqlite3.Error or ValueError."""
        path, (_, log, shared, journal) = names[0], stamps
        if any(stamp is not None and not name.is_file() for name, stamp in zip(names, stamps, strict=True)):
            raise ValueError("it or a file beside it is not a regular file")
        if self._endless.get(path) == stamps:
            raise ValueError("a query takes too long")
        if log is not None and log.size and shared is None:
            raise ValueError("unreadable while closed: its log has changes that only its owner reads")
        # With `readonly_shm`, the index of the log is neither written nor locked for writing.
        is_live = journal is not None or (log is not None and log.size)
        mode = "mode=ro&readonly_shm=1" if is_live else "mode=ro&immutable=1"
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.text_factory = _decode
            steps = count()
            connection.set_progress_handler(lambda: next(steps) >= MAX_STEPS, _STEP)
            found, size = [], 0
            for row in islice(connection.execute(query, values), MAX_ROWS):
                found.append(row)
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if size > MAX_BYTES:
                    raise ValueError("its rows are too large")
            return found


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")
