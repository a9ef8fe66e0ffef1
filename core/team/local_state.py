"""SQLite file in the user's state folder: what a project sent and received.

Losing the file is safe: everything is sent again, where it arrives once by its ID, and received again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from core.base.errors import Unwritable
from core.base.paths import state_folder
from core.files import cache_database
from core.files.file_access import file_lock
from core.files.user_files import project_key
from core.records.team import COUNTS, SUMS, ChainHead, TeamSums

_VERSION: Final = 1
_LOCK_SECONDS: Final = 60.0
_SETTINGS: Final = ("journal_mode = WAL", "busy_timeout = 10000", "temp_store = MEMORY")
JOINED: Final = "joined"  # fact: the member who has joined the project to the space
DECISIONS_SEQ: Final = "decisions_seq"  # fact: number of the last decision up to which all were received
DECISIONS_HASH: Final = "decisions_hash"  # fact: its hash, in hexadecimal digits
LAST_SYNC: Final = "last_sync"  # fact: time of the last complete cycle
_UNSENT: Final = "status % 2 = 0"  # to send or to withdraw; see `Status`
_ASIDE: Final = "status > 4"  # not in the sums of the space
_COUNTED: Final = "o.status BETWEEN 1 AND 2"  # sent, and not withdrawn yet
_AMOUNTS: Final = ", ".join(f"{name} REAL NOT NULL" for name in SUMS)
_TABLES: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE uses (id BLOB PRIMARY KEY, pattern_id TEXT NOT NULL, slot BLOB NOT NULL, generation INTEGER NOT NULL,"
    f" status INTEGER NOT NULL, fields BLOB NOT NULL, {_AMOUNTS}) WITHOUT ROWID",
    "CREATE INDEX uses_of_pattern ON uses (pattern_id)",
    f"CREATE INDEX unsent_uses ON uses (status) WHERE {_UNSENT}",
    "CREATE TABLE compared (pattern_id TEXT PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID",
    f"CREATE TABLE sums (pattern_id TEXT PRIMARY KEY, {_AMOUNTS}, last_used REAL) WITHOUT ROWID",
    "CREATE TABLE changed (pattern_id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE texts (pattern_id TEXT PRIMARY KEY, local TEXT NOT NULL, shared TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE hashes (local TEXT NOT NULL, shared TEXT NOT NULL, PRIMARY KEY (local, shared)) WITHOUT ROWID",
    "CREATE INDEX hashes_by_shared ON hashes (shared)",
    "CREATE TABLE conflicts (pattern_id TEXT PRIMARY KEY, local TEXT NOT NULL, shared TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE decisions (id TEXT PRIMARY KEY, seq INTEGER) WITHOUT ROWID",
)


class Status(IntEnum):
    """How far a use has been sent; committed before and after each transfer."""

    TO_SEND = 0
    SENT = 1  # the server has confirmed it
    TO_WITHDRAW = 2
    WITHDRAWN = 3
    NOT_COUNTED = 5  # the server has it, but a reviewer has not confirmed it, or has discarded it
    TOMORROW = 7  # the server takes no more of them today


class StoredUse(NamedTuple):
    """A row of the table of uses.

    `slot` distinguishes equal uses of a pattern, and `fields` is the part that is sent.
    """

    id: bytes
    pattern_id: str
    slot: bytes
    generation: int
    status: Status
    fields: bytes


class TextBase(NamedTuple):
    """Content hashes of a pattern when local and space text were last the same."""

    local: str
    shared: str


def state_file(project: Path) -> Path:
    return state_folder() / "team" / f"{project_key(project)}.db"


def _stored(id: bytes, pattern_id: str, slot: bytes, generation: int, status: int, fields: bytes) -> StoredUse:
    return StoredUse(id, pattern_id, slot, generation, Status(status), fields)


def _parts(sums: TeamSums) -> tuple[float, ...]:
    return tuple(getattr(sums, name) for name in SUMS)


def _sums(pattern_id: str, parts: Sequence[float], last_used: float | None = None) -> TeamSums:
    """Return stored sums; `last_used` is in epoch seconds."""
    fields = dict(zip(SUMS, parts, strict=True))
    fields |= {name: round(fields[name]) for name in COUNTS}
    at = datetime.fromtimestamp(last_used, UTC) if last_used is not None else None
    return TeamSums(pattern_id=pattern_id, last_used=at, **fields)  # type: ignore[arg-type]


class LocalState:
    """The open file; close it with `close`. Raises `Unwritable` if it cannot be used."""

    def __init__(self, project: Path, file: Path | None = None) -> None:
        self.file = file or state_file(project)
        opened = cache_database.use(self.file, self._connect)
        if opened is None:
            raise Unwritable(f"cannot open {self.file}; check the folder's permissions and free space")
        self._db = opened

    def _connect(self) -> sqlite3.Connection:
        db = cache_database.connect(self.file, _VERSION, _SETTINGS, _TABLES)
        db.execute("PRAGMA synchronous = FULL")  # what is about to be sent must be known after a power cut
        db.execute(f"CREATE INDEX IF NOT EXISTS uses_aside ON uses (status) WHERE {_ASIDE}")
        db.execute("CREATE TABLE IF NOT EXISTS trials (id BLOB PRIMARY KEY) WITHOUT ROWID")  # that the space has
        return db

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def exclusive(self, seconds: float = _LOCK_SECONDS) -> Iterator[None]:
        """Let only one process synchronize the project; raises `Unwritable` after a wait."""
        with file_lock(self.file.with_suffix(".lock"), seconds):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes of the block, or none."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.rollback()
            raise
        self._db.commit()

    def clear(self) -> None:
        """Forget everything, as for another space."""
        with self.transaction():
            for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                self._db.execute(f"DELETE FROM {name}")

    def fact(self, name: str, default: str = "") -> str:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return default if row is None else str(row[0])

    def set_facts(self, **facts: object) -> None:
        with self.transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, str(value)) for name, value in facts.items()]
            )

    # Uses

    def digests(self, pattern_ids: Collection[str] | None = None) -> dict[str, bytes]:
        """Return the digests of these patterns' uses as last compared; None: all."""
        return dict(self._rows_of("SELECT pattern_id, digest FROM compared", pattern_ids))

    def _rows_of(self, query: str, pattern_ids: Collection[str] | None) -> sqlite3.Cursor:
        if pattern_ids is None:
            return self._db.execute(query)
        chosen = msgspec.json.encode(list(pattern_ids)).decode()
        return self._db.execute(f"{query} WHERE pattern_id IN (SELECT value FROM json_each(?))", (chosen,))

    def set_digests(self, digests: Mapping[str, bytes]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO compared VALUES (?, ?)", digests.items())

    def uses_of(self, pattern_id: str) -> list[StoredUse]:
        rows = self._db.execute(
            "SELECT id, pattern_id, slot, generation, status, fields FROM uses WHERE pattern_id = ?", (pattern_id,)
        )
        return [_stored(*row) for row in rows]

    def add_uses(self, uses: Iterable[StoredUse]) -> None:
        """Add uses that are to be sent."""
        zeros = (0.0,) * len(SUMS)
        marks = ", ".join("?" * (6 + len(SUMS)))
        self._db.executemany(f"INSERT OR IGNORE INTO uses VALUES ({marks})", ((*use, *zeros) for use in uses))

    def set_status(self, ids: Iterable[bytes], status: Status) -> None:
        self._db.executemany("UPDATE uses SET status = ? WHERE id = ?", ((int(status), id) for id in ids))

    def unsent(self, limit: int) -> list[StoredUse]:
        """Return uses to send or to withdraw, at most `limit`."""
        rows = self._db.execute(
            f"SELECT id, pattern_id, slot, generation, status, fields FROM uses WHERE {_UNSENT} LIMIT ?", (limit,)
        )
        return [_stored(*row) for row in rows]

    def count_unsent(self) -> int:
        """Return the number of uses to send or to withdraw."""
        (count,) = self._db.execute(f"SELECT count(*) FROM uses WHERE {_UNSENT}").fetchone()
        return int(count)

    def confirm(self, added: Mapping[bytes, TeamSums], withdrawn: Iterable[bytes]) -> None:
        """Record what the server has confirmed, with what each use added to the sums."""
        assignments = ", ".join(f"{name} = ?" for name in SUMS)
        ended = list(withdrawn)
        with self.transaction():
            self._db.executemany(
                f"UPDATE uses SET status = {int(Status.SENT)}, {assignments} WHERE id = ?",
                ((*_parts(sums), id) for id, sums in added.items()),
            )
            self.set_status(ended, Status.WITHDRAWN)
            self._db.executemany(
                "INSERT OR IGNORE INTO changed SELECT pattern_id FROM uses WHERE id = ?",
                [(id,) for id in (*added, *ended)],
            )

    def postpone(self, ids: Iterable[bytes]) -> None:
        """Record uses that the server takes at the earliest tomorrow."""
        with self.transaction():
            self.set_status(ids, Status.TOMORROW)

    def retry_postponed(self) -> None:
        with self.transaction():
            self._db.execute(
                f"UPDATE uses SET status = {int(Status.TO_SEND)} WHERE {_ASIDE} AND status = {int(Status.TOMORROW)}"
            )

    def count_postponed(self) -> int:
        query = f"SELECT count(*) FROM uses WHERE {_ASIDE} AND status = {int(Status.TOMORROW)}"
        return int(self._db.execute(query).fetchone()[0])

    def set_not_counted(self, ids: Collection[bytes]) -> None:
        """Record which sent uses are not in the sums of the space; all others are."""
        rows = self._db.execute(f"SELECT id FROM uses WHERE {_ASIDE} AND status = {int(Status.NOT_COUNTED)}")
        before = {row[0] for row in rows}
        changed = [(int(Status.NOT_COUNTED), id, int(Status.SENT)) for id in set(ids) - before]
        changed += [(int(Status.SENT), id, int(Status.NOT_COUNTED)) for id in before - set(ids)]
        if not changed:
            return
        with self.transaction():
            self._db.executemany("UPDATE uses SET status = ? WHERE id = ? AND status = ?", changed)
            self._db.executemany(
                "INSERT OR IGNORE INTO changed SELECT pattern_id FROM uses WHERE id = ?", [row[1:2] for row in changed]
            )

    def sent_trials(self) -> set[bytes]:
        """Return the IDs of the trials that the space has."""
        return {row[0] for row in self._db.execute("SELECT id FROM trials")}

    def add_sent_trials(self, ids: Iterable[bytes]) -> None:
        with self.transaction():
            self._db.executemany("INSERT OR IGNORE INTO trials VALUES (?)", ((id,) for id in ids))

    def counts(self) -> dict[Status, int]:
        """Return the number of uses of each status."""
        return {
            Status(status): n for status, n in self._db.execute("SELECT status, count(*) FROM uses GROUP BY status")
        }

    # Sums of the space

    def set_sums(self, sums: Iterable[TeamSums]) -> None:
        """Store sums of uses as the space has them; marks their patterns as changed."""
        marks = ", ".join("?" * (2 + len(SUMS)))
        found = [
            (one.pattern_id, *_parts(one), one.last_used.timestamp() if one.last_used is not None else None)
            for one in sums
        ]
        with self.transaction():
            self._db.executemany(f"INSERT OR REPLACE INTO sums VALUES ({marks})", found)
            self._db.executemany("INSERT OR IGNORE INTO changed VALUES (?)", ((row[0],) for row in found))

    def forget_sums(self) -> None:
        """Forget the space's sums and own parts in them, for a new epoch or half-life."""
        with self.transaction():
            self._db.execute("DELETE FROM sums")
            self._db.execute(
                f"UPDATE uses SET status = {int(Status.TO_SEND)} WHERE status = {int(Status.SENT)} OR {_ASIDE}"
            )

    def send_uses_again(self) -> None:
        """Forget what the server has confirmed; what it still has is not added twice."""
        self.forget_sums()
        with self.transaction():
            self._db.execute("DELETE FROM trials")
            self._db.execute(
                f"UPDATE uses SET status = {int(Status.TO_WITHDRAW)} WHERE status = {int(Status.WITHDRAWN)}"
            )

    def others(self, *, only_changed: bool = True) -> Iterator[TeamSums]:
        """Yield what other projects have added to the sums of patterns, ordered by ID."""
        own = ", ".join(f"total(o.{name})" for name in SUMS)
        parts = ", ".join(f"coalesce(s.{name}, 0)" for name in SUMS)
        chosen = "changed" if only_changed else "sums"
        found = self._db.execute(
            f"SELECT c.pattern_id, {parts}, s.last_used, {own} FROM {chosen} c LEFT JOIN sums s USING (pattern_id) "
            f"LEFT JOIN uses o ON o.pattern_id = c.pattern_id AND {_COUNTED} "
            "GROUP BY c.pattern_id ORDER BY c.pattern_id"
        )
        size = len(SUMS)
        for pattern_id, *values in found:
            yield _sums(pattern_id, values[:size], values[size]) - _sums(pattern_id, values[size + 1 :])

    def forget_changed(self) -> None:
        with self.transaction():
            self._db.execute("DELETE FROM changed")

    # Texts and hashes

    def text_bases(self, pattern_ids: Collection[str] | None = None) -> dict[str, TextBase]:
        """Return the last common texts of these patterns; None for all patterns."""
        rows = self._rows_of("SELECT pattern_id, local, shared FROM texts", pattern_ids)
        return {pattern_id: TextBase(*base) for pattern_id, *base in rows}

    def set_texts(self, texts: Mapping[str, TextBase]) -> None:
        """Record texts now equal here and in the space; local "": removed from the space."""
        rows = [(pattern_id, *base) for pattern_id, base in texts.items()]
        with self.transaction():
            self._db.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", rows)
            self._db.executemany("DELETE FROM conflicts WHERE pattern_id = ?", ((row[0],) for row in rows))
            self.add_hashes(base for base in texts.values() if base.local)

    def forget_texts(self, pattern_ids: Iterable[str]) -> None:
        with self.transaction():
            self._db.executemany("DELETE FROM texts WHERE pattern_id = ?", ((id,) for id in pattern_ids))

    def add_hashes(self, pairs: Iterable[TextBase]) -> None:
        """Record pairs of a local text and its masked form in the space."""
        self._db.executemany("INSERT OR IGNORE INTO hashes VALUES (?, ?)", pairs)

    def hash_pairs(self) -> dict[str, str]:
        """Return the hash of each masked text by the hash of its local text."""
        return dict(self._db.execute("SELECT local, shared FROM hashes WHERE local <> shared"))

    def to_shared(self, local: str) -> str:
        """Return the hash of a local text in the space, equal if nothing is masked."""
        row = self._db.execute("SELECT shared FROM hashes WHERE local = ? ORDER BY shared = local", (local,)).fetchone()
        return local if row is None else str(row[0])

    def to_local(self, shared: str) -> str:
        """Return the hash of the local text of a masked one, equal if none is known."""
        row = self._db.execute(
            "SELECT local FROM hashes WHERE shared = ? ORDER BY shared = local", (shared,)
        ).fetchone()
        return shared if row is None else str(row[0])

    def conflicts(self) -> dict[str, TextBase]:
        """Return the open conflicts: patterns whose text differs from the space."""
        rows = self._db.execute("SELECT pattern_id, local, shared FROM conflicts ORDER BY pattern_id")
        return {row[0]: TextBase(*row[1:]) for row in rows}

    def set_conflicts(self, found: Mapping[str, TextBase]) -> None:
        """Replace the list of conflicts."""
        with self.transaction():
            self._db.execute("DELETE FROM conflicts")
            self._db.executemany("INSERT INTO conflicts VALUES (?, ?, ?)", ((id, *base) for id, base in found.items()))

    # Decisions

    def received_head(self) -> ChainHead | None:
        """Return the last decision received from the space; None if there is none."""
        seq = int(self.fact(DECISIONS_SEQ, "0"))
        return ChainHead(seq=seq, hash=bytes.fromhex(self.fact(DECISIONS_HASH))) if seq else None

    def known_decisions(self) -> set[str]:
        """Return the IDs of decisions that are in the space."""
        return {row[0] for row in self._db.execute("SELECT id FROM decisions")}

    def decision_seqs(self) -> dict[str, int | None]:
        """Return space decision numbers by ID; None for one that stays in this project."""
        return dict(self._db.execute("SELECT id, seq FROM decisions"))

    def forget_decisions(self, after: int = -1) -> None:
        """Forget which decisions the space has: all, or those numbered above `after`."""
        with self.transaction():
            self._db.execute("DELETE FROM decisions WHERE ? < 0 OR seq > ?", (after, after))

    def add_decisions(self, decisions: Iterable[tuple[str, int | None]]) -> None:
        """Record decisions of the space: ID and sequence number."""
        with self.transaction():
            self._db.executemany("INSERT OR REPLACE INTO decisions VALUES (?, ?)", decisions)
