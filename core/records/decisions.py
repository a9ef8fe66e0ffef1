"""Decisions of people and of `invert --auto`, and the resulting state."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from functools import partial
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from core.records.patterns import Maturity
from core.records.times import iso

ESCALATION_PREFIX: Final = "escalation of "


def text_hash(text: str) -> str:
    """SHA-256 (hex) of a text that is not a pattern; its approval is bound to it."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


class Verb(StrEnum):
    """Kind of a decision, as stored in the decision log."""

    PROMOTE = "promote"
    DEPRECATE = "deprecate"
    RESET = "reset"
    ACCEPT_INVERSION = "accept_inversion"
    REJECT_INVERSION = "reject_inversion"
    SNOOZE = "snooze"
    NOTE = "note"
    REVOKE = "revoke"
    """The harmful reports of a burst do not count."""
    CONFIRM = "confirm"
    """The harmful reports of a burst count."""
    EXTRACT = "extract"
    """Patterns of a loop are added to the registry."""
    MERGE = "merge"
    """Two similar patterns become one."""
    ARCHIVE = "archive"
    RESTORE = "restore"
    IMPORT = "import"
    QUARANTINE = "quarantine"
    """Not injected until a person has released the exact text."""
    RELEASE = "release"
    """This text was reviewed and may be injected."""
    DISMISS = "dismiss"
    """A question is not asked again."""
    EDIT = "edit"
    """The text of a record was changed."""
    UNDO = "undo"
    REDO = "redo"


TURNS: Final = frozenset({Verb.UNDO, Verb.REDO})
"""Decisions about decisions: their subject is the undone or redone decision."""


class Effect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of a project-relative pattern file.

    It is idempotent, so that it can be applied again after a crash. `type` selects the list of an inserted record;
    `pattern_id` is the record that is changed, inserted or removed.

    `set` are keys to set, and `seen` their previous values; a missing key had none. If the file has other values now,
    counts are added up and lists are joined. `text` is the JSON text of these values, so that text of other programs is
    restored byte for byte. `unset` are keys to remove.

    `insert` is a record to add if no record has its ID; with `keep_id` only with this ID, or not at all; with `beside`
    also beside a record with this ID, as in archives. `remove` removes the record (the decision log contains it),
    unless it is no longer as in `was`.
    """

    file: str
    type: str
    pattern_id: str
    set: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    text: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    insert: dict[str, Any] | None = None
    keep_id: bool = False
    beside: bool = False
    remove: bool = False
    was: dict[str, Any] | None = None


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the decision log, never changed afterwards.

    Undo and redo are decisions themselves. `id` is unique and sorts by time. `subject` is a pattern ID; for revoke and
    confirm the source of the burst; for undo and redo the ID of the decision; for decisions about many patterns their
    origin: a loop, a debug session, a file name, `prune`. `reason` is required for deprecate. `effects` are changes of
    pattern files; `inverse` undoes them. Decisions of one act share a `group`.

    `before` and `after` are the state, for people and for undo. Keys: `state`, `computed`, `content_hash`, `seen_text`
    (the keys of the record with that text), `successes`, `failures`, `text`, `anti_id`, `until`, `beyond`; of a burst
    `first`, `last`, `patterns`; of decisions about many patterns `patterns`, and `hashes` of unreviewed ones; of an
    extraction `joined` (known patterns) and `found` (loop and time of each); of a merge the other pattern in `merged`.
    """

    id: str
    at: datetime
    by: str
    verb: Verb
    subject: str
    reason: str = ""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    effects: tuple[Effect, ...] = ()
    inverse: tuple[Effect, ...] = ()
    group: str = ""

    @property
    def act(self) -> str:
        """ID of its act: its group, else its own ID."""
        return self.group or self.id


_PINNED: Final = {
    Maturity.PROVEN: "promoted",
    Maturity.DEPRECATED: "deprecated",
    Maturity.ESTABLISHED: "accepted",
    Maturity.CANDIDATE: "made a candidate",
}


class Pin(Struct, frozen=True, kw_only=True):
    """A state of a pattern set by a person; overrides the computed state until reset.

    `state` is proven (promoted), deprecated, or established (an anti-pattern from an accepted inversion, which must be
    injected although 60 to 70 % failures would deprecate it by rule). `content_hash` is the reviewed text; if the
    pattern's text differs, the pin is *stale*. `successes` and `failures` count the evidence at that time.
    """

    state: Maturity
    at: datetime
    by: str
    reason: str
    content_hash: str
    decision_id: str
    successes: int = 0
    failures: int = 0

    @property
    def verb(self) -> str:
        """The decision in the past tense."""
        return _PINNED[self.state]


class InversionVerdict(Struct, frozen=True, kw_only=True):
    """The decision in effect on a proposed inversion: accepted, rejected or snoozed."""

    verdict: str
    """`accepted`, `rejected` or `snoozed`."""
    at: datetime
    failures: int = 0
    """Number of failures when it was rejected; the question returns after some more (setting)."""
    until: datetime | None = None
    """End of a snooze."""
    beyond: int | None = None
    """Amount of evidence that ends a snooze, as in `ReviewItem.evidence`; with `until`, the earlier one ends it."""
    anti_id: str = ""
    decision_id: str = ""

    def is_snoozed(self, now: datetime, evidence: int) -> bool:
        """Whether it is snoozed at `now` with this amount of evidence."""
        if self.until is None and self.beyond is None:
            return False
        return (self.until is None or self.until > now) and (self.beyond is None or evidence < self.beyond)


class UnreviewedText(Struct, frozen=True, kw_only=True):
    """A pattern whose text needs a review by a person.

    `kind` is `import`, `extraction` (unattended) or `quarantine` (by a person, for `reason`). If it `blocks`, it is not
    injected until its text is reviewed. `reviewed` are hashes of reviewed texts; another text of the pattern needs a
    new review.
    """

    kind: str
    at: datetime
    by: str
    decision_id: str
    blocks: bool
    reviewed: frozenset[str] = frozenset()
    reason: str = ""

    def waits(self, content_hash: str) -> bool:
        """Whether this text still needs a review."""
        return content_hash not in self.reviewed


class BurstVerdict(Struct, frozen=True, kw_only=True):
    """The decision about the harmful reports of one source within a period."""

    verdict: str
    """`revoked` or `confirmed`."""
    first: datetime
    last: datetime
    decision_id: str
    patterns: tuple[str, ...] = ()
    """The patterns in these reports."""


class CurationState(Struct, frozen=True, kw_only=True):
    """The state that all decisions result in, see `core.ledger.fold`."""

    pins: dict[str, Pin] = {}
    inversions: dict[str, InversionVerdict] = {}
    notes: dict[str, tuple[Decision, ...]] = {}
    bursts: dict[str, tuple[BurstVerdict, ...]] = {}
    """By source."""
    arrivals: dict[str, UnreviewedText] = {}
    """By pattern id."""
    cleared: dict[str, frozenset[str]] = {}
    """By pattern ID, hashes of texts that a person released or promoted with a reason, despite the safety scan."""
    approved: dict[str, frozenset[str]] = {}
    """By pattern ID, hashes of texts that a person released or promoted, with or without a reason."""
    approved_texts: frozenset[str] = frozenset()
    """Hashes (`text_hash`) of approved texts that are not patterns."""
    extracted: frozenset[str] = frozenset()
    """IDs of patterns created by an extraction."""
    dismissed: frozenset[str] = frozenset()
    """IDs of questions that are not asked again."""
    imported: dict[str, dict[str, Any]] = {}
    """Records as last imported, by pattern ID."""
    undone: frozenset[str] = frozenset()
    """IDs of undone decisions."""
    undoable: tuple[str, ...] = ()
    """IDs of decisions that can be undone, the next one last."""
    redoable: tuple[str, ...] = ()
    """IDs of decisions that can be redone, the next one last."""
    acts: dict[str, str] = {}
    """By decision ID, the act that last made, undid or redid it; an act is undone or redone as a whole."""
    reset: frozenset[str] = frozenset()
    """IDs of patterns whose state was last decided by a reset."""

    def clears(self, pattern_id: str, content_hash: str) -> bool:
        """Whether a person released this exact text with a reason."""
        return content_hash in self.cleared.get(pattern_id, frozenset())

    def approves(self, pattern_id: str, content_hash: str) -> bool:
        """Whether a person released or promoted this exact text."""
        return content_hash in self.approved.get(pattern_id, frozenset())

    def approves_text(self, text: str) -> bool:
        """Whether a person approved this exact text, which is not a pattern."""
        return text_hash(text) in self.approved_texts

    def origin(self, pattern_id: str) -> Literal["imported", "extracted", ""]:
        """How the pattern came into the registry; "" if not by a decision."""
        if pattern_id in self.imported:
            return "imported"
        return "extracted" if pattern_id in self.extracted else ""


class VerbInfo(NamedTuple):
    """One row of `VERBS`. No verb is possible in a read-only project.

    `word` is the imperative on keys and buttons, in the log, in "Undone: ..." and "Would ..."; `past` is for the line
    that confirms the decision. `key` is the default key in the TUI, `effect` what it does to patterns, in a sentence;
    "" for verbs that have none. `asks` is the prompt for the text that it always needs. `is_bulk` verbs can be decided
    about several patterns at once; `own_only` ones apply without further confirmation only to the user's own decisions.
    """

    word: str
    past: str
    key: str = ""
    effect: str = ""
    asks: str = ""
    is_bulk: bool = False
    own_only: bool = False


_bulk: Final = partial(VerbInfo, is_bulk=True)
VERBS: Final[dict[Verb, VerbInfo]] = {
    Verb.PROMOTE: _bulk("promote", "promoted", "p", "Pinned as proven until reset, whatever later evidence shows."),
    Verb.DEPRECATE: _bulk("deprecate", "deprecated", "d", "Never injected into any loop until reset.", "reason"),
    Verb.RESET: _bulk("reset", "reset", "r", "The evidence decides the state again."),
    Verb.QUARANTINE: _bulk("quarantine", "quarantined", "Q", "Not injected into any loop until released.", "reason"),
    Verb.RELEASE: _bulk("release", "released", "a", "This text may be injected; a changed text is held again."),
    Verb.ARCHIVE: _bulk(
        "archive", "archived", "D", "Moved from the registry to this month's archive; it can be restored.", "reason"
    ),
    Verb.RESTORE: VerbInfo("restore", "restored"),
    Verb.NOTE: _bulk(
        "note", "noted on", "c", "Kept in the decision log and the history; the state does not change.", "note"
    ),
    Verb.SNOOZE: _bulk("snooze", "snoozed", "s"),
    Verb.ACCEPT_INVERSION: _bulk("accept inversion", "inverted"),
    Verb.REJECT_INVERSION: _bulk("reject inversion", "rejected the inversion of"),
    Verb.EDIT: VerbInfo("restore text", "restored the text of"),
    Verb.DISMISS: VerbInfo("dismiss", "dismissed"),
    Verb.REVOKE: VerbInfo("discard reports", "discarded the harmful reports of"),
    Verb.CONFIRM: VerbInfo("count reports", "confirmed the harmful reports of"),
    Verb.EXTRACT: VerbInfo("extract", "extracted", "e"),
    Verb.IMPORT: VerbInfo("import", "imported"),
    Verb.MERGE: VerbInfo("merge", "merged"),
    Verb.UNDO: VerbInfo("undo", "undone", "u", own_only=True),
    Verb.REDO: VerbInfo("redo", "redone", "U"),
}
"""Every verb that the ledger stores; `Verb` is the stored value."""

ACKNOWLEDGE: Final = VerbInfo("acknowledge", "acknowledged")
"""Dismissing the question about an escalation."""
APPROVE: Final = VerbInfo("approve", "approved", "a", VERBS[Verb.RELEASE].effect, is_bulk=True)
"""Releasing a text that was held, not in quarantine."""
WAS_HELD: Final = "held"
"""Key in `before` of a release: the text was held."""
TEXT_HASH: Final = "text_hash"
"""Key in `after` of the approval of a text that is not a pattern."""


def verb_info(decision: Decision) -> VerbInfo:
    """The words for a decision in the log."""
    if decision.verb is Verb.DISMISS and decision.subject.startswith(ESCALATION_PREFIX):
        return ACKNOWLEDGE
    if decision.verb is Verb.RELEASE and (decision.before.get(WAS_HELD) is True or TEXT_HASH in decision.after):
        return APPROVE
    return VERBS[decision.verb]


def extraction_question_id(source_id: str) -> str:
    """ID of the question whether to extract patterns from a loop, task or session."""
    return f"extraction of {source_id}"


def escalation_question_id(session_id: str, at: datetime | None) -> str:
    """ID of the question about an escalation; a later escalation is a new question."""
    return f"{ESCALATION_PREFIX}{session_id}" + (f" at {iso(at)}" if at is not None else "")


def held_text_question_id(text_id: str, text: str) -> str:
    """ID of the question about a held text that is not a pattern; changes with it."""
    return f"text {text_hash(text)[:12]} of {text_id}"


def duplicate_question_id(one: str, other: str) -> str:
    """ID of the question about two similar patterns; the lower ID comes first."""
    return f"likeness of {min(one, other)} and {max(one, other)}"


def burst_question_id(source: str) -> str:
    """ID of the question about a burst of harmful reports from one source."""
    return f"burst of {source}"
