"""Digests of this user's records in a project, and newest decisions on texts.

They are in the user's state folder, where no repository can write, one file per project and kind of record. A digest
depends on the whole record, so a record that another program changes is no longer an own one, and one that a rebase or
a merge moves still is. Files of at most 50 bytes a record; a file that is lost makes its records ones from elsewhere.

A repository can remove the line of a decision from the log, move it, or put another one with its ID in front. Then a
text that this user withheld would be given again. A decision that withholds is therefore not lost with its line
(docs/safety.md#decisions-made-elsewhere).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from core.base.paths import state_folder
from core.base.regexes import lazy_regex
from core.files.file_access import as_unwritable, open_regular
from core.files.user_files import project_key
from core.records.decisions import TURNS, Verb
from core.trust.projects import trust_root

if TYPE_CHECKING:
    from core.records.decisions import Decision


_DIGEST_BYTES: Final = 12
_HEAD: Final = lazy_regex(rb"@([0-9]{1,12}) ([0-9a-f]{64}) ([0-9]{1,12})")


def own_records_path(project: Path, kind: str) -> Path:
    """Return the state-folder file about one kind of record of a project."""
    return state_folder() / "origins" / f"{project_key(trust_root(project))}.{kind}"


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


class OwnLines:
    """File of a project's lines in the user's state folder; processes may append."""

    def __init__(self, project: Path, kind: str) -> None:
        self.path = own_records_path(project, kind)
        self._end = 0
        self._inode = 0

    def append(self, lines: Iterable[bytes], *, is_durable: bool = True) -> None:
        """Append whole lines; `is_durable` waits for the disk. Raises Unwritable."""
        # The first line feed ends a line that a killed process left incomplete.
        data = b"\n" + b"".join(line + b"\n" for line in lines)
        with as_unwritable(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, data)
                if is_durable:
                    os.fsync(handle)
            finally:
                os.close(handle)

    def read_new(self) -> tuple[list[bytes], bool]:
        """Return lines added since the last call, and whether earlier ones are discarded."""
        try:
            handle = open_regular(self.path, os.O_RDONLY)
        except OSError:  # nothing was added yet, or the file was removed
            was_read, self._end, self._inode = self._end > 0, 0, 0
            return [], was_read
        try:
            status = os.fstat(handle)
            is_replaced = status.st_ino != self._inode or status.st_size < self._end
            start = 0 if is_replaced else self._end
            data = os.pread(handle, status.st_size - start, start)
        finally:
            os.close(handle)
        whole = data[: data.rfind(b"\n") + 1]
        self._inode, self._end = status.st_ino, start + len(whole)
        return list(filter(None, whole.split(b"\n"))), is_replaced


class OwnRecords:
    """Own records of one `kind` in a project; several processes may add at once."""

    def __init__(self, project: Path, kind: str) -> None:
        self._lines = OwnLines(project, kind)
        self.head: KnownHead | None = None
        self._digests: set[bytes] = set()

    def __contains__(self, digest: object) -> bool:
        return digest in self._digests

    @property
    def path(self) -> Path:
        return self._lines.path

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def refresh(self) -> bool:
        """Read what this and other processes added; return whether anything is new."""
        lines, is_discarded = self._lines.read_new()
        if is_discarded:
            self._digests, self.head = set(), None
        for line in lines:
            if len(line) == 2 * _DIGEST_BYTES:
                self._digests.add(line)
            elif (found := _HEAD.fullmatch(line)) is not None:
                self.head = KnownHead(int(found[1]), found[2].decode(), int(found[3]))
        return is_discarded or bool(lines)

    def add(self, digests: Iterable[bytes], *, is_durable: bool = True) -> None:
        """Add digests; with `is_durable` they are on disk on return. Raises Unwritable."""
        self._lines.append(digests, is_durable=is_durable)

    def add_head(self, head: KnownHead) -> None:
        """Record the end of the decision log; not durable, because it only saves time."""
        self._lines.append([b"@%d %b %d" % (head.lines, head.chain.encode(), head.decisions)], is_durable=False)


# The newest decision of this user about each text


class Effect(StrEnum):
    """What a decision means for whether agents may get a text."""

    APPROVES = "approves"
    UNAPPROVES = "unapproves"  # takes an approval back
    WITHHOLDS = "withholds"


_EFFECTS: Final = {
    Verb.RELEASE: Effect.APPROVES,
    Verb.PROMOTE: Effect.APPROVES,
    Verb.QUARANTINE: Effect.WITHHOLDS,
    Verb.DEPRECATE: Effect.WITHHOLDS,
    Verb.RESET: Effect.UNAPPROVES,
}
_UNDONE: Final = {
    Effect.APPROVES: Effect.UNAPPROVES,
    Effect.UNAPPROVES: Effect.APPROVES,
    Effect.WITHHOLDS: Effect.APPROVES,
}


class LastWord(Struct, frozen=True, array_like=True):
    """The newest decision about the pattern `subject`; `digest` is the decision's."""

    subject: str
    effect: Effect
    id: str
    digest: str
    at: datetime
    by: str


class LastWords:
    """Last words about the texts of a project; several processes may add at once."""

    def __init__(self, project: Path) -> None:
        self._lines = OwnLines(project, "words")
        self._words: dict[str, LastWord] = {}

    def add(self, decisions: Iterable[Decision], known: Mapping[str, Decision]) -> None:
        """Record own decisions; `known`: those undone or redone. Raises Unwritable."""
        if words := [word for decision in decisions if (word := _word_of(decision, known)) is not None]:
            self._lines.append(map(msgspec.json.encode, words))

    def find_lost(self, decisions: Iterable[Decision]) -> list[LastWord]:
        """Return words whose decision is lost or changed in `decisions`, with none later."""
        self._refresh()
        if not self._words:
            return []
        by_id = {decision.id: decision for decision in decisions}
        lost = {
            word.subject: word
            for word in self._words.values()
            if (decision := by_id.get(word.id)) is None or record_digest(decision).decode() != word.digest
        }
        for decision in by_id.values() if lost else ():
            effect, subject = _effect_of(decision, by_id)
            if effect is not None and subject in lost and decision.at > lost[subject].at:
                del lost[subject]
        return list(lost.values())

    def _refresh(self) -> None:
        lines, is_discarded = self._lines.read_new()
        if is_discarded:
            self._words = {}
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # left incomplete by a killed process
                word = msgspec.json.decode(line, type=LastWord)
                self._words[word.subject] = word


def _word_of(decision: Decision, known: Mapping[str, Decision]) -> LastWord | None:
    effect, subject = _effect_of(decision, known)
    if effect is None:
        return None
    digest = record_digest(decision).decode()
    return LastWord(subject, effect, decision.id, digest, decision.at, decision.by)


def _effect_of(decision: Decision, known: Mapping[str, Decision]) -> tuple[Effect | None, str]:
    """Return a decision's effect on a text, None if nothing, and the pattern ID."""
    if decision.verb not in TURNS or (turned := known.get(decision.subject)) is None:
        return _EFFECTS.get(decision.verb), decision.subject
    effect = _EFFECTS.get(turned.verb)
    return _UNDONE[effect] if effect is not None and decision.verb is Verb.UNDO else effect, turned.subject
