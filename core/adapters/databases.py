"""Read-only queries of SQLite databases of runners."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles
    from core.storage.file_reader import Stamp

MAX_ROWS: Final = 100_000  # of one query
MAX_QUERIES: Final = 256  # whose rows are kept, the last ones
MAX_VALUE: Final = 32 << 20  # bytes of one value; a query that meets a larger one fails
BUSY_SECONDS: Final = 0.2  # time that a locked database gets

_Rows = list[tuple[Any, ...]]


class Databases:
    """Rows of databases; a query is only repeated after a change of the files."""

    def __init__(self, files: RunnerFiles) -> None:
        self._files = files
        self._rows: dict[tuple[Path, str, tuple[Any, ...]], tuple[tuple[Stamp | None, ...], _Rows]] = {}

    def rows(self, path: Path, query: str, values: tuple[Any, ...]) -> _Rows:
        """Return the rows of a query; the last good ones, with a finding, while the database cannot be read."""
        suffixes = ("", "-wal", "-shm", "-journal")
        stamps = tuple(self._files.stamp(path.with_name(path.name + suffix)) for suffix in suffixes)
        key = path, query, values
        before, known = self._rows.get(key, ((), []))
        if stamps[0] is None or before == stamps or not path.is_file():
            return known if stamps[0] is not None else []
        _, log, shared, journal = stamps
        try:
            if log is not None and log.size and shared is None:
                raise sqlite3.OperationalError("unreadable while closed: its log has changes that only its owner reads")
            mode = "mode=ro" if journal is not None or (log is not None and log.size) else "mode=ro&immutable=1"
            with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
                connection.text_factory = _decode
                found = connection.execute(query, values).fetchmany(MAX_ROWS)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            self._files.report(path, f"cannot be read: {error}", "unreadable-database")
            return known
        self._rows.pop(key, None)
        self._rows[key] = stamps, found
        if len(self._rows) > MAX_QUERIES:
            del self._rows[next(iter(self._rows))]
        return found


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")
