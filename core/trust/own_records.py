"""Digests of the records that this user's program wrote into a project, or that the user confirmed.

They are in the user's state folder, where no repository can write, one file per project and kind of record. A digest
depends on the whole record, so a record that another program changes is no longer an own one, and one that a rebase or
a merge moves still is. Files of at most 50 bytes a record; a file that is lost makes its records ones from elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import platformdirs
from msgspec import Struct

from core.base.errors import Unwritable
from core.storage.locks import open_regular
from core.storage.user_cache import project_key
from core.trust.worktrees import trust_root

_DIGEST_BYTES: Final = 12
_HEAD: Final = re.compile(rb"^@([0-9]{1,12}) ([0-9a-f]{64}) ([0-9]{1,12})$", re.MULTILINE)


def own_records_path(project: Path, kind: str) -> Path:
    """Return the file of the user about one kind of record of a project, in the user's state folder."""
    return platformdirs.user_state_path("ralphdeck") / "origins" / f"{project_key(trust_root(project))}.{kind}"


class KnownHead(NamedTuple):
    """An end of the decision log at which all its decisions were own ones.

    `lines` is the number of its lines, `chain` the hash of its end, `decisions` the number of its decisions.
    """

    lines: int
    chain: str
    decisions: int


def record_digest(record: Struct) -> bytes:
    """Return the digest of a record as JSON."""
    return text_digest(msgspec.json.encode(record))


def text_digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest().encode()


class OwnRecords:
    """The own records of one `kind` in one project; several processes may add at once."""

    def __init__(self, project: Path, kind: str) -> None:
        self.path = own_records_path(project, kind)
        self.head: KnownHead | None = None
        self._digests: set[bytes] = set()
        self._end = 0
        self._inode = 0

    def __contains__(self, digest: object) -> bool:
        return digest in self._digests

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def refresh(self) -> bool:
        """Read what this and other processes added; returns whether there is anything new."""
        try:
            handle = open_regular(self.path, os.O_RDONLY)
        except OSError:  # nothing was added yet, or the file was removed
            is_changed = bool(self._digests)
            self._forget()
            return is_changed
        try:
            status = os.fstat(handle)
            is_replaced = status.st_ino != self._inode or status.st_size < self._end
            if is_replaced:
                self._forget()
            data = os.pread(handle, status.st_size - self._end, self._end)
        finally:
            os.close(handle)
        whole = data[: data.rfind(b"\n") + 1]
        self._inode, self._end = status.st_ino, self._end + len(whole)
        for found in _HEAD.finditer(whole):
            self.head = KnownHead(int(found[1]), found[2].decode(), int(found[3]))
        self._digests.update(line for line in whole.split(b"\n") if len(line) == 2 * _DIGEST_BYTES)
        return is_replaced or bool(whole)

    def add(self, digests: Iterable[bytes], *, is_durable: bool = True) -> None:
        """Add digests; with `is_durable` they are on disk on return. Raises Unwritable."""
        self._append(b"".join(digest + b"\n" for digest in digests), is_durable=is_durable)

    def add_head(self, head: KnownHead) -> None:
        """Record the end of the decision log; it saves time only, so it need not reach the disk."""
        self._append(b"@%d %b %d\n" % (head.lines, head.chain.encode(), head.decisions), is_durable=False)

    def _append(self, lines: bytes, *, is_durable: bool) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # The first line feed ends a line that a killed process left incomplete.
                os.write(handle, b"\n" + lines)
                if is_durable:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror}") from None

    def _forget(self) -> None:
        self._digests, self._end, self._inode, self.head = set(), 0, 0, None
