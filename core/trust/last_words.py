"""The newest decision of this user about each text (docs/safety.md#decisions-made-elsewhere).

A repository can remove the line of a decision from the log, move it, or put another one with its ID in front. Then a
text that this user withheld would be given again. A decision that withholds is therefore not lost with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.records.decisions import TURNS, Verb
from core.trust.own_records import OwnLines, record_digest

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
        self._lines = OwnLines(project, "words")
        self._words: dict[str, LastWord] = {}

    def add(self, decisions: Iterable[Decision], known: Mapping[str, Decision]) -> None:
        """Record what own decisions say; `known` has the decisions that others undo or redo. Raises Unwritable."""
        if words := [word for decision in decisions if (word := _word_of(decision, known)) is not None]:
            self._lines.append(map(msgspec.json.encode, words))

    def find_lost(self, decisions: Iterable[Decision]) -> list[LastWord]:
        """Return the words whose decision is not among own `decisions` as it was made, without a later one there."""
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
    """Return what a decision means for a text, None if nothing, and the ID of the pattern."""
    if decision.verb not in TURNS or (turned := known.get(decision.subject)) is None:
        return _EFFECTS.get(decision.verb), decision.subject
    effect = _EFFECTS.get(turned.verb)
    return _UNDONE[effect] if effect is not None and decision.verb is Verb.UNDO else effect, turned.subject
