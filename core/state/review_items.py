"""One thing to decide, and the kinds there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from core.base.formatting import short_id
from core.base.text import visible_line
from core.debug_memory.escalation_status import EscalatedSession
from core.learning.bursts import Burst
from core.learning.inversion_proposals import Inversion
from core.records.debug_sessions import DebugSession
from core.records.extractions import Extraction
from core.records.question_ids import (
    burst_question_id,
    duplicate_question_id,
    extraction_question_id,
    held_text_question_id,
)

INVERSION: Final = "inversion"
CONTRADICTED: Final = "contradicted"
STALE_PIN: Final = "stale-pin"
BURST: Final = "burst"
QUARANTINE: Final = "quarantine"
HELD: Final = "held"
EXTRACTED: Final = "extracted"
DUPLICATE: Final = "duplicate"
OFFER: Final = "offer"
ESCALATION: Final = "escalation"
BORDERLINE: Final = "borderline"
RECURRING: Final = "recurring"
BROAD: Final = "broad"
UNRECONCILED: Final = "unreconciled"
KINDS: Final = (
    *(INVERSION, CONTRADICTED, STALE_PIN, BORDERLINE, DUPLICATE, EXTRACTED, QUARANTINE, HELD),
    *(BURST, RECURRING, OFFER, BROAD, UNRECONCILED, ESCALATION),
)
"""Every kind of question."""
_BESIDE: Final = {BORDERLINE: "state", BROAD: "trigger", UNRECONCILED: "counts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldText:
    """A text that is not a pattern, gives orders, and would be injected if a person approved it.

    Attributes:
        id: Of the reflection.
        text: To be approved; untrusted.
        does: What it does, in words that follow "this text".
        title: The task that it comes from; untrusted.
        sources: IDs of the loops and tasks that learned it.
        readers: IDs of the running loops and last tasks that would get it.
    """

    id: str
    text: str
    does: str
    title: str = ""
    sources: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReviewItem:
    """One thing to decide. What decays from moment to moment, its weight, makes it no other question.

    Attributes:
        kind: `inversion`, `contradicted`, `stale-pin`, `burst`, `quarantine` (a text that nobody has seen, and no
            loop gets until then), `held` (one that gives orders, and no loop gets until a person approves it),
            `extracted` (one that loops get already), `duplicate`, `offer`, `escalation`,
            `borderline` (little would change the state), `recurring` (a learning that several loops told and no
            pattern covers), `broad` (a trigger that fits nearly everything), `unreconciled` (the record's counts
            and the evidence disagree).
        subject: Id of the pattern that it is about; of a burst its source; of an offer the loop; of an escalation
            the debug session; of a recurring learning its id.
        question: What is asked, one line.
        asks: The same of what is in front of the reader, without its name.
        reason: Why it is asked, and why at this place; one line.
        worth: 0..1, `stake` less the price of `seconds`, see `core.review.impact.worth`; the queue is sorted by it.
        stake: Failures a week that a good decision is expected to spare loops (`core.review.impact`); 0 for what
            changes nothing for them, such as an escalation.
        is_urgent: An agent waits for a person: it stands before all others, whatever they are worth.
        seconds: How long it takes to read and to decide, estimated.
        position_reason: The end of `reason`: why at this place.
        evidence: How much is known, of which a snooze until new evidence waits for more: uses of the pattern or of
            both, marks, proposals, runs, or reflections that say it.
        propose: Makes the proposal, for an inversion.
        burst: The marks that wait, for a burst.
        other: The pattern that would be merged into the subject, for a duplicate; with `likeness`, 0..1.
        offer: What could be extracted, for an offer and a recurring learning.
        escalated: The debug session that was escalated, for an escalation.
        held_text: The text to approve, for a held text that is not a pattern.
    """

    kind: str
    subject: str
    question: str
    reason: str
    priority: float = field(compare=False)
    impact: float = field(default=0.0, compare=False)
    is_urgent: bool = False
    asks: str = ""
    seconds: float = 0.0
    position_reason: str = ""
    evidence: int = 0
    propose: Callable[[], Inversion] | None = field(default=None, compare=False, repr=False)
    burst: Burst | None = None
    other: str = ""
    similarity: float = 0.0
    offer: Extraction | None = None
    escalated: EscalatedSession | None = None
    held_text: HeldText | None = None

    @property
    def session(self) -> DebugSession | None:
        """The debug session that was escalated, for an escalation."""
        return self.escalated.session if self.escalated is not None else None

    @property
    def question_key(self) -> str:
        """What a snooze or a dismissal of the question is filed under; no two questions of a queue share it.

        What asks for a verdict on one pattern as a whole is filed under its id. A question beside that has a name of
        its own, so that both can be asked at once.
        """
        if self.burst is not None:
            return burst_question_id(self.burst.source)
        if self.other:
            return duplicate_question_id(self.subject, self.other)
        if self.escalated is not None:
            return self.escalated.question
        if self.offer is not None:
            return extraction_question_id(self.subject)
        if self.held_text is not None:
            return held_text_question_id(self.subject, self.held_text.text)
        beside = _BESIDE.get(self.kind)
        return f"{beside} of {self.subject}" if beside else self.subject

    @property
    def about(self) -> str:
        """How people call what the question is about, where `question_key` says more than they want to read."""
        if self.held_text is not None:
            return f"the reflection {short_id(self.held_text.id)}"
        if self.session is None:
            return ""
        return f"escalation at {visible_line(self.session.file_path, 200) or short_id(self.session.id)}"

    @property
    def is_about_pattern(self) -> bool:
        """Whether the subject is a pattern."""
        others = (self.burst, self.offer, self.escalated, self.held_text)
        return all(other is None for other in others)

    @cached_property
    def inversion(self) -> Inversion | None:
        """The proposal, for an inversion. Made when it is looked at: a queue can be long, and is made often."""
        return self.propose() if self.propose else None
