"""Verdicts of the searches for review questions in the index, so that they are kept between runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from core.base.errors import DamagedError
from core.index.database import pack, unpack
from core.storage.user_cache import code_digest

if TYPE_CHECKING:
    from core.index.refresh import Index

_MOST: Final = 100_000  # Verdicts of a kind; if there are more, all are made again.
_AT_ONCE: Final = 500  # Keys of one query.


class IndexVerdicts:
    """Verdicts made by the present code of some `packages` of `core` with encoded `settings`; others are replaced.

    The index is opened when it is first used. If it cannot be used, nothing is stored.
    """

    def __init__(self, index: Index, packages: Sequence[str], settings: bytes) -> None:
        self._index = index
        self._packages = packages
        self._settings = settings

    @cached_property
    def _owner(self) -> bytes:
        return blake2b(code_digest(self._packages) + self._settings, digest_size=16).digest()

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """Return the stored verdicts of these keys; a damaged one counts as not stored."""
        wanted, found = list(keys), dict[str, bytes]()
        if not wanted:
            return found
        with suppress(OSError, sqlite3.Error, DamagedError):
            connection = self._index.database.read()
            try:
                for start in range(0, len(wanted), _AT_ONCE):
                    part = wanted[start : start + _AT_ONCE]
                    query = (
                        "SELECT key, data FROM verdict WHERE kind = ? AND owner = ?"
                        f" AND key IN ({', '.join('?' * len(part))})"
                    )
                    for key, data in connection.execute(query, (kind, self._owner, *part)):
                        with suppress(DamagedError):
                            found[key] = bytes(unpack(data))
            finally:
                connection.close()
        return found

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        """Store verdicts, in place of those with the same keys."""
        with suppress(OSError, sqlite3.Error, DamagedError), self._index.database.transaction() as connection:
            connection.execute("DELETE FROM verdict WHERE kind = ? AND owner <> ?", (kind, self._owner))
            (count,) = connection.execute("SELECT count(*) FROM verdict WHERE kind = ?", (kind,)).fetchone()
            if count > _MOST:
                connection.execute("DELETE FROM verdict WHERE kind = ?", (kind,))
            rows = ((kind, key, self._owner, pack(data)) for key, data in verdicts.items())
            connection.executemany("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?)", rows)
