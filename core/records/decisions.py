"""Decisions: what a person (or `invert --auto`) decided, and what follows from all of them (semantics 4)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, Literal

from msgspec import Struct

from core.records.patterns import Maturity


def text_hash(text: str) -> str:
    """SHA-256 of a text that is not a pattern, in hex: an approval is bound to it."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


class Verb(StrEnum):
    """What can be decided."""

    PROMOTE = "promote"
    DEPRECATE = "deprecate"
    RESET = "reset"
    ACCEPT_INVERSION = "accept_inversion"
    REJECT_INVERSION = "reject_inversion"
    SNOOZE = "snooze"
    NOTE = "note"
    REVOKE = "revoke"
    """The harmful marks of a burst do not count."""
    CONFIRM = "confirm"
    """The harmful marks of a burst count."""
    EXTRACT = "extract"
    """What a loop has learned goes into the registry."""
    MERGE = "merge"
    """Two patterns that say the same become one."""
    ARCHIVE = "archive"
    RESTORE = "restore"
    IMPORT = "import"
    QUARANTINE = "quarantine"
    """Not injected until somebody has seen the exact text."""
    RELEASE = "release"
    """This text was seen and may be injected."""
    DISMISS = "dismiss"
    """A question is not asked again."""
    EDIT = "edit"
    """The text of a record was changed."""
    UNDO = "undo"
    REDO = "redo"


TURNS: Final = frozenset({Verb.UNDO, Verb.REDO})
"""Decisions about decisions: their subject is the one taken back or repeated."""


class Effect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a decision changes in one pattern file; idempotent, so that it can be applied again after a crash.

    Attributes:
        file: Project-relative pattern file.
        type: Pattern type, which names the list that an inserted record goes into.
        pattern_id: The record that is changed, inserted or removed.
        set: Keys to put into the record (an existing value is replaced, other keys stay).
        seen: What those keys held when it was decided. Where a file holds something else by now, counts go on from
            that and lists are joined; a key that is missing here held nothing.
        text: The same, as the JSON text to write: what another program had written comes back byte for byte.
        unset: Keys to remove from the record.
        insert: A whole record to add if no record has its id; None otherwise.
        keep_id: Of an insert: only under this id, or not at all.
        beside: Of an insert: also beside another record of this id, as archives may hold.
        remove: Take the record out (the ledger keeps it whole).
        was: Of a removal: the record as it was seen; one that has changed since stays.
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
    """One entry of the ledger; never changed afterwards. Undo and redo are decisions themselves.

    Attributes:
        id: Unique, sorts by time.
        at: UTC.
        by: Who decided.
        verb: What was decided.
        subject: Pattern id; for revoke and confirm the source of the burst; for undo and redo the id of the
            decision taken back or repeated. Of what is decided about many patterns at once, where they come from:
            a loop or debug session, the name of a file, `prune`.
        reason: Why, as typed; required for deprecate.
        before, after: What was known and what holds now, for people and for undo. Keys used: `state`, `computed`,
            `content_hash`, `seen_text` (the keys of the record that hold that text), `successes`, `failures`, `text`,
            `anti_id`, `until`, `beyond`; of a burst `first`, `last`,
            `patterns`; of what is decided about many patterns `patterns`, and `hashes` of those that somebody still
            has to look at; of an extraction the known ones in `joined`, and in `found` which loop came upon each, and
            when; of a merge the other pattern in `merged`.
        effects: What to write into pattern files; `inverse` undoes it.
        group: What the decisions share that were made by one act; "" where that was this one alone.
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
        """The act that it belongs to: its group, else itself."""
        return self.group or self.id


_PINNED: Final = {
    Maturity.PROVEN: "promoted",
    Maturity.DEPRECATED: "deprecated",
    Maturity.ESTABLISHED: "accepted",
    Maturity.CANDIDATE: "made a candidate",
}


class Pin(Struct, frozen=True, kw_only=True):
    """A human decision on a pattern's state; it outlives arithmetic until reset.

    Attributes:
        state: proven (promoted), deprecated, or established (an anti-pattern that an accepted inversion made: it
            must be injected although its counts, 60 to 70 % failures, would deprecate it by rule).
        content_hash: The text that was seen. A pattern whose text differs now has a *stale* pin.
        successes, failures: The evidence that was seen, raw counts; later evidence is what came beyond it.
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
        """What was done to the pattern, in the past tense."""
        return _PINNED[self.state]


class InversionVerdict(Struct, frozen=True, kw_only=True):
    """The standing verdict on a proposed inversion: accepted, or rejected / snoozed for now."""

    verdict: str
    """`accepted`, `rejected` or `snoozed`."""
    at: datetime
    failures: int = 0
    """Raw failures when it was rejected; it comes back after some more (setting)."""
    until: datetime | None = None
    """End of a snooze."""
    beyond: int | None = None
    """Evidence that ends a snooze, as `ReviewItem.evidence` counts it; with `until`, what comes first ends it."""
    anti_id: str = ""
    decision_id: str = ""

    def is_snoozed(self, now: datetime, evidence: int) -> bool:
        """Whether a snooze holds at `now`, with so much evidence."""
        if self.until is None and self.beyond is None:
            return False
        return (self.until is None or self.until > now) and (self.beyond is None or evidence < self.beyond)


class Arrival(Struct, frozen=True, kw_only=True):
    """A pattern's text that came in without a person having read it.

    Attributes:
        kind: `import`, `extraction` (unattended) or `quarantine` (somebody put it there).
        blocks: Whether it is kept out of every loop's context until its text was seen.
        seen: Hashes of the texts that a person released. Another text of the same pattern was not seen.
        reason: Why it is in quarantine.
    """

    kind: str
    at: datetime
    by: str
    decision_id: str
    blocks: bool
    seen: frozenset[str] = frozenset()
    reason: str = ""

    def waits(self, content_hash: str) -> bool:
        """Whether nobody has released this text."""
        return content_hash not in self.seen


class BurstVerdict(Struct, frozen=True, kw_only=True):
    """What was decided on the harmful marks that one source gave within a time."""

    verdict: str
    """`revoked` or `confirmed`."""
    first: datetime
    last: datetime
    decision_id: str
    patterns: tuple[str, ...] = ()
    """The patterns that were blamed."""


class CurationState(Struct, frozen=True, kw_only=True):
    """What all decisions together amount to now; made by folding the ledger in order."""

    pins: dict[str, Pin] = {}
    inversions: dict[str, InversionVerdict] = {}
    notes: dict[str, tuple[Decision, ...]] = {}
    bursts: dict[str, tuple[BurstVerdict, ...]] = {}
    """By source."""
    arrivals: dict[str, Arrival] = {}
    """By pattern id."""
    cleared: dict[str, frozenset[str]] = {}
    """By pattern id the hashes of texts that a person released or promoted for a reason, whatever the scan says."""
    approved: dict[str, frozenset[str]] = {}
    """By pattern ID the hashes of texts that a person released or promoted, with a reason or without."""
    approved_texts: frozenset[str] = frozenset()
    """Hashes (`text_hash`) of texts that are not patterns and that a person approved."""
    extracted: frozenset[str] = frozenset()
    """IDs of patterns that an extraction made."""
    dismissed: frozenset[str] = frozenset()
    """Questions that are not asked again, by what snoozes name them, too."""
    imported: dict[str, dict[str, Any]] = {}
    """Records as they were imported last, by pattern id."""
    undone: frozenset[str] = frozenset()
    """Ids of decisions that do not hold now."""
    undoable: tuple[str, ...] = ()
    """Decision ids that undo would take back, next one last."""
    redoable: tuple[str, ...] = ()
    """Decision ids that redo would repeat, next one last."""
    acts: dict[str, str] = {}
    """By decision id, the act that it was made, taken back or repeated by last: that is undone or redone as one."""
    reset: frozenset[str] = frozenset()
    """Patterns on whose state the last decision that holds is a reset."""

    def clears(self, pattern_id: str, content_hash: str) -> bool:
        """Whether a person released this very text for a reason, whatever the scan says of it."""
        return content_hash in self.cleared.get(pattern_id, frozenset())

    def approves(self, pattern_id: str, content_hash: str) -> bool:
        """Whether a person released or promoted this very text."""
        return content_hash in self.approved.get(pattern_id, frozenset())

    def approves_text(self, text: str) -> bool:
        """Whether a person approved this very text, which is not a pattern."""
        return text_hash(text) in self.approved_texts

    def origin(self, pattern_id: str) -> Literal["imported", "extracted", ""]:
        """How the pattern came into the registry; "" where the log of decisions does not contain it."""
        if pattern_id in self.imported:
            return "imported"
        return "extracted" if pattern_id in self.extracted else ""
