"""Stored results of slow searches for questions, to skip what has not changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from core.base.errors import DamagedError
from core.files.user_files import code_digest
from core.index.database import pack, unpack

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.records import Reader
    from core.index.refresh import Index

FOUND: Final = "found"
"""Kind of the one verdict on the whole project, which depends on all others."""
_MOST: Final = 100_000  # Verdicts of a kind; if there are more, all are made again.
_AT_ONCE: Final = 500  # Keys of one query.
_DIGEST_BYTES: Final = 16
_Verdict = TypeVar("_Verdict", bound=Struct)


class StoredVerdicts(Protocol):
    """Verdicts as bytes by kind and key, made by the same code and settings.

    They are derived: one that is lost is made again. Both methods are called by one thread at a time.
    """

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """Return the stored verdicts of these keys, without those that are not stored."""

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        """Store verdicts, in place of those with the same keys."""


class VerdictsInMemory:
    """Verdicts of one process."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, str], bytes] = {}

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        found = ((key, self._verdicts.get((kind, key))) for key in keys)
        return {key: data for key, data in found if data is not None}

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        self._verdicts.update(((kind, key), data) for key, data in verdicts.items())


class IndexVerdicts:
    """Verdicts in the index, valid for the present code and settings.

    `rooms` are the packages whose code counts, `settings` the encoded settings. Verdicts made with others are replaced.
    The index is opened when it is first used. If it cannot be used, nothing is stored.
    """

    def __init__(self, index: Index, rooms: Sequence[str], settings: bytes) -> None:
        self._index = index
        self._rooms = rooms
        self._settings = settings

    @cached_property
    def _owner(self) -> bytes:
        return _find_owner(self._rooms, self._settings)

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """Return the stored verdicts of these keys; a damaged one counts as not stored."""
        wanted = list(keys)
        if not wanted:
            return {}
        owner = self._owner
        with suppress(OSError, sqlite3.Error, DamagedError), closing(self._index.database.read()) as connection:
            return _select(connection, kind, owner, wanted)
        return {}

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        """Store verdicts, replacing equal keys; removes `FOUND`, which depends on them."""
        owner = self._owner
        with suppress(OSError, sqlite3.Error, DamagedError), self._index.database.transaction() as connection:
            connection.execute("DELETE FROM verdict WHERE kind = ?", (FOUND,))
            connection.execute("DELETE FROM verdict WHERE kind = ? AND owner <> ?", (kind, owner))
            (count,) = connection.execute("SELECT count(*) FROM verdict WHERE kind = ?", (kind,)).fetchone()
            if count > _MOST:
                connection.execute("DELETE FROM verdict WHERE kind = ?", (kind,))
            rows = ((kind, key, owner, pack(data)) for key, data in verdicts.items())
            connection.executemany("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?)", rows)


class ViewVerdicts:
    """The verdicts of one view of an index, read-only; see `IndexVerdicts`."""

    def __init__(self, reader: Reader, rooms: Sequence[str], settings: bytes) -> None:
        self._reader = reader
        self._owner = _find_owner(rooms, settings)

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        with self._reader.lock:
            return _select(self._reader.connection, kind, self._owner, list(keys))

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        pass


def read_verdicts(
    stored: StoredVerdicts, kind: str, keys: Iterable[str], verdict_type: type[_Verdict]
) -> dict[str, _Verdict]:
    """Return the stored verdicts of these keys, without those that cannot be decoded."""
    decoder, found = msgspec.msgpack.Decoder(verdict_type), dict[str, _Verdict]()
    for key, data in stored.get(kind, keys).items():
        try:
            found[key] = decoder.decode(data)
        except msgspec.MsgspecError:
            continue
    return found


def write_verdicts(stored: StoredVerdicts, kind: str, verdicts: Mapping[str, Struct]) -> None:
    encode = msgspec.msgpack.encode
    if verdicts:
        stored.put(kind, {key: encode(verdict) for key, verdict in verdicts.items()})


def read_in_steps(
    stored: StoredVerdicts, kind: str, keys: Iterable[str], verdict_type: type[_Verdict]
) -> Steps[dict[str, _Verdict]]:
    """Do `read_verdicts` step by step."""
    left, found = iter(keys), dict[str, _Verdict]()
    while batch := list(islice(left, _AT_ONCE)):
        found |= read_verdicts(stored, kind, batch, verdict_type)
        yield
    return found


def write_in_steps(stored: StoredVerdicts, kind: str, verdicts: Mapping[str, Struct]) -> Steps[None]:
    """Do `write_verdicts` step by step."""
    left = iter(verdicts.items())
    while batch := dict(islice(left, _AT_ONCE)):
        write_verdicts(stored, kind, batch)
        yield


def digest_of(*values: Any) -> bytes:
    """Return a digest of values that msgspec can encode, 16 bytes."""
    return blake2b(msgspec.msgpack.encode(values), digest_size=_DIGEST_BYTES).digest()


def _find_owner(rooms: Sequence[str], settings: bytes) -> bytes:
    return blake2b(code_digest(rooms) + settings, digest_size=16).digest()


def _select(connection: sqlite3.Connection, kind: str, owner: bytes, keys: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for start in range(0, len(keys), _AT_ONCE):
        part = keys[start : start + _AT_ONCE]
        query = f"SELECT key, data FROM verdict WHERE kind = ? AND owner = ? AND key IN ({', '.join('?' * len(part))})"
        for key, data in connection.execute(query, (kind, owner, *part)):
            with suppress(DamagedError):
                found[key] = bytes(unpack(data))
    return found
