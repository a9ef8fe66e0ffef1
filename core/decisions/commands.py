"""Decision commands: one frozen class per verb, carried out by `Project.decide`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Final

from msgspec import Struct

from core.base.errors import BadInput
from core.base.settings import PruningSettings
from core.learning.bursts import Burst
from core.records.decisions import Verb
from core.records.extractions import ALL_TYPES, Extraction
from core.records.patterns import PatternType, RecordRepair


class More(Struct, frozen=True):
    """The evidence that ends a snooze: `count` more than the `known` number."""

    known: int
    count: int


class Command(Struct, frozen=True, kw_only=True):
    """A decision to be made; its `reason` is stored in the ledger.

    `question` is the ID of the review question that it answers, or "". It is refused if that was dismissed meanwhile.
    """

    verb: ClassVar[Verb]
    reason: str = ""
    question: str = ""


class PatternCommand(Command, frozen=True):
    pattern_id: str


class Promote(PatternCommand, frozen=True, kw_only=True):
    """Pin a pattern as proven; `re_enable` resets a deprecated pattern first."""

    verb = Verb.PROMOTE
    re_enable: bool = False


class Deprecate(PatternCommand, frozen=True):
    """Pin a pattern as deprecated; requires a reason."""

    verb = Verb.DEPRECATE


class Reset(PatternCommand, frozen=True):
    """Remove the pin, so that the evidence decides the state again."""

    verb = Verb.RESET


class AcceptInversion(PatternCommand, frozen=True, kw_only=True):
    """Write an anti-pattern and deprecate the pattern.

    `text` is the text of the anti-pattern, `better` the ID of the pattern to use instead ("" for no pattern). None
    takes the proposed value.
    """

    verb = Verb.ACCEPT_INVERSION
    text: str | None = None
    better: str | None = None


class RejectInversion(PatternCommand, frozen=True):
    """Keep the pattern; the inversion is proposed again after further failures."""

    verb = Verb.REJECT_INVERSION


class Snooze(PatternCommand, frozen=True, kw_only=True):
    """Ask about a pattern again at a time or after a number of further uses."""

    verb = Verb.SNOOZE
    until: datetime | None = None
    uses: int | None = None


class Note(PatternCommand, frozen=True, kw_only=True):
    """Attach a remark to a pattern."""

    verb = Verb.NOTE
    text: str


class Quarantine(PatternCommand, frozen=True):
    """Keep a pattern out of every context until it is released; requires a reason."""

    verb = Verb.QUARANTINE


class Release(PatternCommand, frozen=True):
    """Allow the current text of a quarantined or held pattern to be injected."""

    verb = Verb.RELEASE


class RestoreText(PatternCommand, frozen=True):
    """Restore the text for which the pin of a pattern was set."""

    verb = Verb.EDIT


class TextEdit(Struct, frozen=True):
    """Changes of a pattern's texts in order: before and after, wherever the text is."""

    pattern_id: str
    texts: tuple[tuple[str, str], ...]


class EditTexts(Command, frozen=True, kw_only=True):
    """Take over texts edited in a file of agents, as approved; one undo reverses all.

    `answer` is the answer to the question about the file, which is recorded with them.
    """

    verb = Verb.EDIT
    edits: tuple[TextEdit, ...]
    answer: Dismiss


class Archive(PatternCommand, frozen=True):
    """Move a pattern from the registry into this month's archive."""

    verb = Verb.ARCHIVE


class Bulk(Command, frozen=True):
    """The same decision about many patterns; one undo reverses all."""

    commands: tuple[PatternCommand, ...]


class JudgeReports(Command, frozen=True, kw_only=True):
    """Judge suspicious reports of a source; without a `burst`, the current ones."""

    source: str
    burst: Burst | None = None


class DiscardReports(JudgeReports, frozen=True):
    verb = Verb.REVOKE


class CountReports(JudgeReports, frozen=True):
    verb = Verb.CONFIRM


class WithdrawMember(Command, frozen=True, kw_only=True):
    """Withdraw a member's uses until a time and these patterns; one undo reverses it."""

    verb = Verb.REVOKE
    member: str
    until: datetime
    pattern_ids: tuple[str, ...] = ()


class SnoozeQuestion(Command, frozen=True, kw_only=True):
    """Ask a question again at a time or after more evidence; see `ReviewItem`."""

    verb = Verb.SNOOZE
    key: str
    until: datetime | None = None
    more: More | None = None
    about: str = ""


class Dismiss(Command, frozen=True, kw_only=True):
    """Never ask a question again; the log shows `summary`. See `ReviewItem`."""

    verb = Verb.DISMISS
    key: str
    summary: str
    about: str = ""


class ApproveText(Command, frozen=True, kw_only=True):
    """Allow a held text that is not a pattern to be injected."""

    verb = Verb.RELEASE
    key: str
    text: str
    about: str = ""


class ApproveReflection(Command, frozen=True):
    """Allow a held reflection to be injected."""

    verb = Verb.RELEASE
    reflection_id: str


class Extract(Command, frozen=True):
    """Extract patterns from a loop, task, debug session or recurring learning.

    Adds only candidates of these `types`. Raises `Conflict` if the result is not the `expected` one that the user saw.
    If it is `unattended`, Review asks about each new pattern. `by` signs it, "" for the user who opened the project.
    """

    verb = Verb.EXTRACT
    source_id: str
    types: frozenset[PatternType] = ALL_TYPES
    expected: Extraction | None = None
    unattended: bool = False
    by: str = ""


class ExtractMany(Command, frozen=True):
    """Extract patterns from several sources; one undo reverses all."""

    verb = Verb.EXTRACT
    commands: tuple[Extract, ...]


class ImportPatterns(Command, frozen=True):
    """Import a file `name` (without folders); new texts are quarantined."""

    verb = Verb.IMPORT
    name: str
    data: bytes


class Merge(Command, frozen=True):
    """Merge a pattern into another one of the same type; the merged one is archived."""

    verb = Verb.MERGE
    target_id: str
    other_id: str


class PrunePatterns(Command, frozen=True):
    """Archive the patterns that a policy selects; None uses the project's policy."""

    verb = Verb.ARCHIVE
    policy: PruningSettings | None = None


class RepairPatterns(Command, frozen=True):
    """Change or archive patterns that break extraction rules; one undo reverses all."""

    verb = Verb.EDIT
    repairs: tuple[RecordRepair, ...]


class SetAnchors(Command, frozen=True):
    """Replace a pattern's anchors (`core.records.anchors`), as of the current commit.

    `renames` are files with their new paths, which replace the old ones in the text of the pattern, too. One undo
    reverses both.
    """

    verb = Verb.EDIT
    pattern_id: str
    anchors: tuple[str, ...]
    renames: tuple[tuple[str, str], ...] = ()


class Restore(Command, frozen=True):
    """Bring a pattern back from the archive."""

    verb = Verb.RESTORE
    pattern_id: str


class Undo(Command, frozen=True, kw_only=True):
    """Undo the newest act, or the decision or act with an ID.

    Undo by ID is refused if a later decision depends on that one. `any_author` allows undoing the newest decision of
    another person.
    """

    verb = Verb.UNDO
    decision_id: str = ""
    any_author: bool = False


class Redo(Command, frozen=True):
    """Repeat the act that was undone last; possible until a new decision is made."""

    verb = Verb.REDO


_OF_VERB: Final = {kind.verb: kind for kind in PatternCommand.__subclasses__()}


def command_for(verb: Verb, pattern_id: str, typed: str = "", **fields: Any) -> PatternCommand:
    """Make the command of a verb about one pattern.

    `typed` is the reason, or the text of a note. Raises `BadInput` if the verb is not about one pattern.
    """
    if verb not in _OF_VERB:
        raise BadInput(f"{verb.value} is not a decision about one pattern")
    field = "text" if verb is Verb.NOTE else "reason"
    return _OF_VERB[verb](pattern_id, **{field: typed}, **fields)


def bulk(verb: Verb, pattern_ids: Iterable[str], typed: str = "", **fields: Any) -> Bulk:
    """Make one command for many patterns, each only once; see `command_for`."""
    return Bulk(tuple(command_for(verb, id, typed, **fields) for id in dict.fromkeys(pattern_ids)))
