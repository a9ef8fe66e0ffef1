"""The newest decision of this user about each text (docs/safety.md#decisions-made-elsewhere).

A repository can remove the line of a decision from the log, move it, or put another one with its ID in front. Then a
text that this user withheld would be given again. A decision that withholds is therefore not lost with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.base.errors import Unwritable
from core.records.decisions import TURNS, Verb
from core.storage.locks import open_regular
from core.trust.own_records import own_records_path, record_digest

if TYPE_CHECKING:
    from core.records.decisions import Decision


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
    """The newest decision about `subject`, the ID of a pattern; `digest` is that of the decision."""

    subject: str
    effect: Effect
    id: str
    digest: str
    at: datetime
    by: str


class LastWords:
    """The last words about the texts of one project; several processes may add at once."""

    def __init__(self, project: Path) -> None:
        self._path = own_records_path(project, "words")
        self._words: dict[str, LastWord] = {}
        self._end = 0

    def add(self, decisions: Iterable[Decision], known: Mapping[str, Decision]) -> None:
        """Record what own decisions say; `known` has the decisions that others undo or redo. Raises Unwritable."""
        words = [word for decision in decisions if (word := _word_of(decision, known)) is not None]
        if not words:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = open_regular(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # The first line feed ends a line that a killed process left incomplete.
                os.write(handle, b"".join(b"\n" + msgspec.json.encode(word) for word in words) + b"\n")
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unwritable(f"cannot write {self._path}: {error.strerror}") from None

    def find_lost(self, decisions: Mapping[str, Decision]) -> dict[str, LastWord]:
        """Return by subject the words whose decision is not in the log as it was made."""
        self._refresh()
        return {
            word.subject: word
            for word in self._words.values()
            if (decision := decisions.get(word.id)) is None or record_digest(decision).decode() != word.digest
        }

    def _refresh(self) -> None:
        try:
            handle = open_regular(self._path, os.O_RDONLY)
        except OSError:
            self._words, self._end = {}, 0
            return
        with os.fdopen(handle, "rb") as file:
            if os.fstat(file.fileno()).st_size < self._end:
                self._words, self._end = {}, 0
            file.seek(self._end)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._end += len(whole)
        for line in filter(None, whole.split(b"\n")):
            try:
                word = msgspec.json.decode(line, type=LastWord)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            self._words[word.subject] = word


def _word_of(decision: Decision, known: Mapping[str, Decision]) -> LastWord | None:
    effect, subject = _EFFECTS.get(decision.verb), decision.subject
    if decision.verb in TURNS and (turned := known.get(subject)) is not None:
        effect, subject = _EFFECTS.get(turned.verb), turned.subject
        if effect is not None and decision.verb is Verb.UNDO:
            effect = _UNDONE[effect]
    if effect is None:
        return None
    digest = record_digest(decision).decode()
    return LastWord(subject, effect, decision.id, digest, decision.at, decision.by)
