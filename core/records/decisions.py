"""Decisions, their results and authors, agents' proposals (docs/curation.md)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from core.records.patterns import Maturity
from core.records.times import iso

AGENT: Final = "agent:"  # start of the signature of an agent's command
CLIENT: Final = "mcp:"  # start of the signature of a client of the MCP server
_SCRIPT: Final = " (script)"  # end of the signature of a process without a terminal
_UNATTENDED: Final = " (unattended)"  # end of the signature of an extraction when work ended


class Author(StrEnum):
    """What made a decision."""

    PERSON = "person"
    SCRIPT = "script"
    AGENT = "agent"


def sign(author: Author, name: str) -> str:
    """Return the signature of an author: `ada`, `ada (script)` or `agent:claude`."""
    if author is Author.AGENT:
        return f"{AGENT}{name}"
    return f"{name}{_SCRIPT}" if author is Author.SCRIPT else name


def sign_unattended(by: str) -> str:
    """Return the signature of a program's own decision for the author `by`."""
    return f"{by}{_UNATTENDED}"


def is_signed_unattended(by: str) -> bool:
    """Return whether a program made a decision with this signature by itself."""
    return by.endswith(_UNATTENDED)


def author_of(by: str) -> Author:
    """Return what made a decision with this signature."""
    if by.startswith((AGENT, CLIENT)):
        return Author.AGENT
    return Author.SCRIPT if by.endswith((_SCRIPT, _UNATTENDED)) else Author.PERSON


def name_of(by: str) -> str:
    """Return the name, such as `ada` of `ada (script)`, `claude` of `agent:claude`."""
    return by.removeprefix(AGENT).removeprefix(CLIENT).removesuffix(_UNATTENDED).removesuffix(_SCRIPT)


def is_same_user(by: str, other: str) -> bool:
    """Return whether one user signed both, by hand or by a script."""
    is_of_user = all(author_of(one) is not Author.AGENT and not is_signed_unattended(one) for one in (by, other))
    return by == other or (is_of_user and name_of(by) == name_of(other))


def sign_as_member(by: str, member: str) -> str:
    """Return a decision's signature for the team: the member's name, not the local."""
    return member if author_of(by) is Author.PERSON else sign(Author.SCRIPT, member)


_QUESTION: Final = "proposal "


class ProposedDecision(Struct, frozen=True, kw_only=True):
    """Entry of the decision log that changes nothing: an agent asks for a decision.

    `id` sorts by time among those of decisions. `verb` is that of the decision, and `subjects` are what it would be
    about (see `Decision.subject`). `command` has the name of a decision command and its fields. `texts` has the content
    hashes, by pattern ID, of the texts that it was proposed for.
    """

    id: str
    at: datetime
    by: str
    verb: str
    subjects: tuple[str, ...]
    command: dict[str, Any]
    reason: str = ""
    texts: dict[str, str] = {}

    @property
    def pattern_id(self) -> str:
        """ID of the only pattern that the decision would be about, else ""."""
        return self.subjects[0] if len(self.subjects) == 1 and self.subjects[0] in self.texts else ""

    @property
    def question(self) -> str:
        """ID of the question whether a person accepts it."""
        return f"{_QUESTION}{self.id}"


EDIT_ANSWERS: Final = "keep", "restore", "take"
"""Answers to the question about an edited file: leave the file alone, let the next run replace this edit, or change
the lessons to the edited texts."""
ESCALATION_PREFIX: Final = "escalation of "
LESSON_PREFIX: Final = "lesson "
INSTRUCTIONS_PREFIX: Final = "instructions "
PAIR_ANSWERS: Final = "first", "second"
"""Answers to the question about a pair of instructions: which one is right, in the order of files and texts."""
SYNC: Final = "ralphdeck team sync"
"""Author of decisions that bring a project to the state of its team's space; each project has its own."""


def text_hash(text: str) -> str:
    """SHA-256 (hex) that identifies an approved text that is not a pattern."""
    from hashlib import sha256  # loads OpenSSL, which the help of a command and the first frame do not need

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
    REVOKE = "revoke"  # Do not count the reports of a burst.
    CONFIRM = "confirm"  # Count the reports of a burst.
    EXTRACT = "extract"  # Add patterns of a loop to the registry.
    MERGE = "merge"  # Merge two similar patterns into one.
    ARCHIVE = "archive"
    RESTORE = "restore"
    IMPORT = "import"
    QUARANTINE = "quarantine"  # Do not inject the pattern until a person releases its exact text.
    RELEASE = "release"  # Allow the reviewed text to be injected.
    DISMISS = "dismiss"  # Do not ask a question again.
    EDIT = "edit"  # Change the text of a record: restore it, or repair it.
    UNDO = "undo"
    REDO = "redo"


TURNS: Final = frozenset({Verb.UNDO, Verb.REDO})
"""Decisions about decisions: their subject is the undone or redone decision."""


class Effect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of a project-relative pattern file.

    It is idempotent, so that it can be applied again after a crash. `pattern_id` is the record that is changed,
    inserted or removed; `type` is its pattern type, which selects the list to insert into.

    `set` contains keys to set, and `seen` their previous values, without keys that were missing. If the file now has
    other values, counts are added up and lists are joined. `text` contains the JSON text of these values, to restore
    the formatting of other programs byte for byte. `unset` contains keys to remove.

    `insert` is a record to add. If its ID is in use, it gets another ID, or is not added if `keep_id` is set, or is
    added with the same ID if `beside` is set (as in archives). `remove` removes the record, which the decision log
    contains, but only if it still equals `was`.
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
    """Entry of the decision log; it is never changed.

    Undo and redo are decisions as well. `id` is unique and sorts by time. `subject` is a pattern ID; for revoke and
    confirm, the source of the reports; for undo and redo, the ID of the other decision; for decisions about many
    patterns, their origin: a loop, a debug session, a file name or `prune`. `reason` is required for deprecate.
    `effects` are the changes of pattern files, and `inverse` undoes them. Decisions made by one act share a `group`.

    `before` and `after` describe the state, for people and for undo. Keys: `state`, `computed`, `content_hash`,
    `seen_text` (keys of the record that contain the text), `successes`, `failures`, `text`, `anti_id`, `until`,
    `beyond`; for a burst `first`, `last`, `patterns`, and `sent` if all uses of a member are withdrawn; for many
    patterns `patterns`, and `hashes` of unreviewed ones; for an extraction `joined` (known patterns) and `found` (loop
    and time of each), and `proposed` if an agent proposed the pattern; for a merge `merged` (the other pattern).
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
    def is_unattended(self) -> bool:
        """Whether this added patterns without a person: at a loop's end or for an agent."""
        return self.verb is Verb.EXTRACT and "hashes" in self.after

    @property
    def is_proposal(self) -> bool:
        """Whether an agent proposed the pattern that this added."""
        return self.verb is Verb.EXTRACT and self.after.get("proposed") is True

    @property
    def decided_by(self) -> Author:
        """Maker of the decision; team sync and unattended extractions count as scripts."""
        author = author_of(self.by)
        is_program = self.by == SYNC or self.is_unattended
        return Author.SCRIPT if author is Author.PERSON and is_program else author

    @property
    def act(self) -> str:
        """ID of the act that made the decision: its group, or its own ID."""
        return self.group or self.id


_PINNED: Final = {
    Maturity.PROVEN: "promoted",
    Maturity.DEPRECATED: "deprecated",
    Maturity.ESTABLISHED: "accepted",
    Maturity.CANDIDATE: "made a candidate",
}


class Pin(Struct, frozen=True, kw_only=True):
    """Pinned state: set by a decision, overrides the computed state until reset.

    `state` is proven (promoted), deprecated, or established: an anti-pattern from an accepted inversion, which must be
    injected although its 60 to 70 % failures would deprecate it, or a re-enabled pattern. `content_hash` identifies the
    reviewed text; if the pattern's text has changed, the pin is *stale*. `successes` and `failures` count the evidence
    when it was pinned.
    """

    state: Maturity
    at: datetime
    by: str
    reason: str
    content_hash: str
    decision_id: str
    successes: int = 0
    failures: int = 0
    scan_rules: int = 1  # Version of the scan rules when it was set.
    approves: bool = True  # Whether a person here read the text; False for a decision made elsewhere.

    @property
    def verb(self) -> str:
        """The decision in the past tense, such as `promoted`."""
        return _PINNED[self.state]

    @property
    def decided_by(self) -> Author:
        """What set the pin."""
        return author_of(self.by)


class InversionVerdict(Struct, frozen=True, kw_only=True):
    """Decision in effect on a proposed inversion."""

    verdict: str  # `accepted`, `rejected` or `snoozed`.
    at: datetime
    failures: int = 0  # Number of failures at the rejection; more failures (see the settings) ask the question again.
    until: datetime | None = None  # End of a snooze.
    beyond: int | None = None  # Amount of evidence (`ReviewItem.evidence`) that ends a snooze, even before `until`.
    anti_id: str = ""
    decision_id: str = ""

    def is_snoozed(self, now: datetime, evidence: int) -> bool:
        """Whether the question is snoozed at `now` with this amount of evidence."""
        if self.until is None and self.beyond is None:
            return False
        return (self.until is None or self.until > now) and (self.beyond is None or evidence < self.beyond)


class UnreviewedText(Struct, frozen=True, kw_only=True):
    """Requirement that a person reviews the text of a pattern.

    `kind` is its cause: `import`, `extraction` (unattended), `proposal` (by an agent, with its evidence as `reason`) or
    `quarantine` (by a person, for `reason`). If `blocks` is set, the pattern is not injected until its text is
    reviewed. `reviewed` contains hashes of the reviewed texts; any other text of the pattern needs a review.
    """

    kind: str
    at: datetime
    by: str
    decision_id: str
    blocks: bool
    reviewed: frozenset[str] = frozenset()
    reason: str = ""

    def needs_review(self, content_hash: str) -> bool:
        """Whether the text with this hash still needs a review."""
        return content_hash not in self.reviewed


class BurstVerdict(Struct, frozen=True, kw_only=True):
    """Decision about one source's reports in a period: harmful, or all of a member."""

    verdict: str  # `revoked` or `confirmed`.
    first: datetime
    last: datetime
    decision_id: str
    patterns: tuple[str, ...] = ()  # IDs of the reported patterns.


class CurationState(Struct, frozen=True, kw_only=True):
    """Result of all decisions; its mappings are by pattern ID unless noted."""

    pins: dict[str, Pin] = {}
    inversions: dict[str, InversionVerdict] = {}
    notes: dict[str, tuple[Decision, ...]] = {}
    bursts: dict[str, tuple[BurstVerdict, ...]] = {}  # By source of the reports.
    arrivals: dict[str, UnreviewedText] = {}
    cleared: dict[str, dict[str, int]] = {}
    """Hashes of texts that a person released or promoted with a reason, despite the safety scan.

    With the version of its rules (`SCAN_RULES`) that the person saw.
    """
    approved: dict[str, frozenset[str]] = {}
    """Hashes of texts that a person or a script released or promoted, with or without a reason."""
    guidance: dict[str, frozenset[str]] = {}
    """Those of `approved` that a person released or promoted, so that agents get them as guidance."""
    approved_texts: frozenset[str] = frozenset()  # Hashes (`text_hash`) of approved texts that are not patterns.
    scripts: frozenset[str] = frozenset()  # Scripts other than Latin of texts that a person approved.
    extracted: frozenset[str] = frozenset()  # IDs of patterns created by an extraction.
    dismissed: frozenset[str] = frozenset()  # IDs of questions that are not asked again.
    imported: dict[str, dict[str, Any]] = {}  # Records as last imported.
    undone: frozenset[str] = frozenset()  # IDs of undone decisions.
    undoable: tuple[str, ...] = ()  # IDs of decisions that can be undone; undo takes the last one first.
    redoable: tuple[str, ...] = ()  # IDs of decisions that can be redone; redo takes the last one first.
    acts: dict[str, str] = {}
    """By decision ID: the act that last made, undid or redid it. An act is undone or redone as a whole."""
    reset: frozenset[str] = frozenset()  # IDs of patterns whose last decision about their state was a reset.
    claims: frozenset[str] = frozenset()  # IDs of decisions made elsewhere and not confirmed here; see docs/safety.md.
    pending_claims: frozenset[str] = frozenset()
    """Those of `claims` that have no effect until they are confirmed; without undone ones, undo and redo."""
    do_claims_count: bool = False  # Whether `claims` decide all the same, in a trusted path.
    proposed: tuple[ProposedDecision, ...] = ()  # Decisions that agents proposed and no person has answered.

    @property
    def own_patterns(self) -> frozenset[str]:
        """IDs of the patterns that decisions in effect added or pinned."""
        return self.extracted | self.imported.keys() | self.pins.keys()

    def clears(self, pattern_id: str, content_hash: str, since: int = 1) -> bool:
        """Whether a person with a reason released this text under scan rules >= `since`."""
        return self.cleared.get(pattern_id, {}).get(content_hash, 0) >= since

    def approves(self, pattern_id: str, content_hash: str) -> bool:
        """Whether a person or a script released or promoted this exact text."""
        return content_hash in self.approved.get(pattern_id, frozenset())

    def approves_as_guidance(self, pattern_id: str, content_hash: str) -> bool:
        """Whether a person released, promoted or pinned this exact text as guidance."""
        if content_hash in self.guidance.get(pattern_id, frozenset()):
            return True
        pin = self.pins.get(pattern_id)
        if pin is None or pin.decided_by is not Author.PERSON:
            return False
        return pin.state is not Maturity.DEPRECATED and pin.content_hash == content_hash

    def approves_text(self, text: str) -> bool:
        """Whether a person approved this exact text, which is not a pattern."""
        return text_hash(text) in self.approved_texts

    def origin(self, pattern_id: str) -> Literal["imported", "extracted", ""]:
        """How the pattern came into the registry; "" if not by a decision."""
        if pattern_id in self.imported:
            return "imported"
        return "extracted" if pattern_id in self.extracted else ""


class VerbInfo(Struct, frozen=True):
    """Texts and properties of a verb of the decision log.

    `word` is the imperative on keys and buttons, in the log, and in "Undone: ..." and "Would ..."; `past` is used to
    confirm the decision. `key` is the default key in the TUI, or "". `effect` is a sentence about the effect on the
    pattern, or "". `asks` is the name of the text that the verb requires, or "". `is_bulk` means that one decision can
    apply to several patterns. `own_only` means that decisions of other people need a confirmation.
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
    Verb.PROMOTE: _bulk("promote", "promoted", "p", "Pinned as proven until reset, regardless of later evidence."),
    Verb.DEPRECATE: _bulk("deprecate", "deprecated", "d", "Not given to any session until reset.", "reason"),
    Verb.RESET: _bulk("reset", "reset", "r", "The state is computed from the evidence again."),
    Verb.QUARANTINE: _bulk("quarantine", "quarantined", "Q", "Not given to any session until released.", "reason"),
    Verb.RELEASE: _bulk("release", "released", "a", "This text may be injected; a changed text is held again."),
    Verb.ARCHIVE: _bulk(
        "archive", "archived", "D", "Moved from the registry to this month's archive; it can be restored.", "reason"
    ),
    Verb.RESTORE: VerbInfo("restore", "restored"),
    Verb.NOTE: _bulk(
        "note", "noted on", "c", "Added to the decision log and the history; the state does not change.", "note"
    ),
    Verb.SNOOZE: _bulk("snooze", "snoozed", "s"),
    Verb.ACCEPT_INVERSION: _bulk("accept inversion", "inverted"),
    Verb.REJECT_INVERSION: _bulk("reject inversion", "rejected the inversion of"),
    Verb.EDIT: VerbInfo("restore text", "restored the text of"),
    Verb.DISMISS: VerbInfo("dismiss", "dismissed"),
    Verb.REVOKE: VerbInfo("discard reports", "discarded the reports of"),
    Verb.CONFIRM: VerbInfo("count reports", "confirmed the reports of"),
    Verb.EXTRACT: VerbInfo("extract", "extracted", "e"),
    Verb.IMPORT: VerbInfo("import", "imported"),
    Verb.MERGE: VerbInfo("merge", "merged"),
    Verb.UNDO: VerbInfo("undo", "undone", "u", own_only=True),
    Verb.REDO: VerbInfo("redo", "redone", "U"),
}
"""Information about each verb; `Verb` is the value stored in the ledger."""

ACKNOWLEDGE: Final = VerbInfo("acknowledge", "acknowledged")
"""Used instead of `dismiss` for the question about an escalation."""
REJECT: Final = VerbInfo("reject", "rejected")
"""Used instead of `dismiss` for the question about a lesson of an agent."""
FINE: Final = VerbInfo("mark as fine", "marked as fine")
"""Used instead of `dismiss` for the question about instructions that contradict or repeat each other."""
CHOOSE: Final = VerbInfo("choose", "chose")
"""Used instead of `dismiss` for the answer which of two instructions is right."""
APPROVE: Final = VerbInfo("approve", "approved", "a", VERBS[Verb.RELEASE].effect, is_bulk=True)
"""Used instead of `release` for a text that was not in quarantine."""
RE_ENABLE: Final = VerbInfo("re-enable", "re-enabled", is_bulk=True)
"""Used instead of `release` for a pattern that the rules deprecate."""
REPAIR: Final = VerbInfo("repair", "repaired")
"""Used instead of `edit` for a pattern that did not keep today's rules of extraction."""
EDIT_TEXT: Final = VerbInfo("edit text", "edited the text of")
"""Used instead of `edit` for a text that a person edited in a file of agents."""
SET_ANCHORS: Final = VerbInfo("set anchors", "set the anchors of")
"""Used instead of `edit` for other anchors of a pattern."""
WITHDRAW: Final = VerbInfo("withdraw uses", "withdrew the uses of")
"""Used instead of `discard reports` for everything that a member sent to the team."""
SENT: Final = "sent"  # Key in `after` of a revocation: which uses of a member it is about; without it, the held ones.
ALL_USES: Final = "all"  # Value of `sent`.
REPAIRED: Final = "repaired"  # Key in `after` of an edit: the problems of the pattern that it repaired.
EDITED: Final = "edited"  # Key in `after` of a new text: whether a person wrote it or saw the change, and approves it.
ANCHORS: Final = "anchors"  # Key in `before` and `after` of an edit: the anchors of the pattern.
WAS_QUARANTINED: Final = "quarantined"  # Key in `before` of a release: the pattern was in quarantine.
WAS_HELD: Final = "held"  # Key in `before` of a release: the text was held.
RE_ENABLED: Final = (
    "re_enabled"  # Key in `after` of a release: the rules deprecate the pattern; it is pinned as established.
)
SCAN_RULES: Final = "scan_rules"  # Key in `after`: version of the scan rules by which the text was judged; else 1.
SCRIPTS: Final = "scripts"  # Key in `after` of an approval: scripts of the text other than Latin.
TEXT_HASH: Final = "text_hash"  # Key in `after` of the approval of a text that is not a pattern.


_KEEP: Final = VerbInfo("keep", "kept")
_LEAVE: Final = VerbInfo("leave", "left")
_DISMISSALS: Final = {
    _QUESTION: REJECT,
    ESCALATION_PREFIX: ACKNOWLEDGE,
    LESSON_PREFIX: REJECT,
    INSTRUCTIONS_PREFIX: FINE,
    **{f"{answer} {INSTRUCTIONS_PREFIX}": CHOOSE for answer in PAIR_ANSWERS},
    "extraction of ": VerbInfo("never extract", "never extracted"),
    "likeness of ": VerbInfo("keep both", "kept both"),
    "text ": VerbInfo("leave out", "left out"),
    "take edit of ": VerbInfo("take over", "took over"),
    "restore edit of ": VerbInfo("restore", "restored"),
    **dict.fromkeys(("keep edit of ", "renamed anchors of ", "counts of "), _LEAVE),
    **dict.fromkeys(("removed anchors of ", "trigger of ", "state of ", "experiment of "), _KEEP),
}
"""Words used instead of `dismiss`, by what the ID of the question begins with: those of the answers in Review."""


def verb_info(decision: Decision) -> VerbInfo:
    """Return the words for a decision; some with the same verb have their own."""
    if decision.verb is Verb.DISMISS:
        words = (info for start, info in _DISMISSALS.items() if decision.subject.startswith(start))
        return next(words, VERBS[Verb.DISMISS])
    if decision.verb is Verb.REVOKE and decision.after.get(SENT) == ALL_USES:
        return WITHDRAW
    if decision.verb is Verb.EDIT and REPAIRED in decision.after:
        return REPAIR
    if decision.verb is Verb.EDIT and EDITED in decision.after:
        return EDIT_TEXT
    if decision.verb is Verb.EDIT and ANCHORS in decision.after:
        return SET_ANCHORS
    if decision.verb is Verb.RELEASE and decision.after.get(RE_ENABLED) is True:
        return RE_ENABLE
    if decision.verb is Verb.RELEASE and decision.before.get(WAS_QUARANTINED) is not True:
        return APPROVE
    return VERBS[decision.verb]


def extraction_question_id(source_id: str) -> str:
    """Return the ID of the question whether to extract patterns from a source."""
    return f"extraction of {source_id}"


def further_question_id(kind: str) -> str:
    """Return the ID of the row of Review with the further questions of a kind."""
    return f"further {kind}"


def escalation_question_id(session_id: str, at: datetime | None) -> str:
    """Return the ID of the question about an escalation; a later one differs."""
    return f"{ESCALATION_PREFIX}{session_id}" + (f" at {iso(at)}" if at is not None else "")


def weakened_test_question_id(attempt_id: str, number: int) -> str:
    """Return the ID of the question about a weakened test, by the run that passed."""
    return f"weakened test of {attempt_id} at {number}"


def edited_file_question_id(path: str, digest: str = "", *, answer: str = "") -> str:
    """Return the ID of a question or answer about a lesson file a person edited.

    Without the `digest` of the edited text, it is what the IDs about all edits of the file begin with.
    """
    return f"{answer} edit of {path} at {digest}".lstrip()


def anchor_question_id(pattern_id: str, is_removed: bool, commit: str) -> str:
    """Return the ID of the question on removed or renamed anchors, one per commit."""
    return f"{'removed' if is_removed else 'renamed'} anchors of {pattern_id} at {commit[:12]}"


def held_text_question_id(text_id: str, text: str) -> str:
    """Return the ID of the question about a held text that is not a pattern."""
    return f"text {text_hash(text)[:12]} of {text_id}"


def lesson_question_id(text: str) -> str:
    """Return a lesson's question ID; equal for texts that differ in spaces or case."""
    return f"{LESSON_PREFIX}{text_hash(' '.join(text.split()).casefold())[:16]}"


def duplicate_question_id(one: str, other: str) -> str:
    """Return the ID of the question about two similar patterns, in any order."""
    return f"likeness of {min(one, other)} and {max(one, other)}"


def burst_question_id(source: str) -> str:
    """Return the ID of the question about suspicious reports."""
    return f"burst of {source}"


def instruction_question_id(texts: Iterable[str]) -> str:
    """Return the ID of the question about a pair of instructions, in any order."""
    return f"{INSTRUCTIONS_PREFIX}{text_hash(chr(0).join(sorted(texts)))[:16]}"
