"""Review questions, their kinds, and the agenda: the best, and rows for the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.formatting import shorten_id
from core.base.text import visible_line
from core.records.anchors import AnchorChange, newest_change
from core.records.decisions import (
    anchor_question_id,
    burst_question_id,
    duplicate_question_id,
    edited_file_question_id,
    extraction_question_id,
    further_question_id,
    held_text_question_id,
    lesson_question_id,
    weakened_test_question_id,
)
from core.records.patterns import Suspicion

if TYPE_CHECKING:
    from core.learning.bursts import Burst
    from core.learning.inversion import Inversion
    from core.records.debug_sessions import DebugSession
    from core.records.decisions import CurationState, ProposedDecision
    from core.records.extractions import Extraction
    from core.records.instructions import InstructionPair
    from core.records.reflections import JoinedLesson
    from core.tasks.escalations import EscalatedSession

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
LESSON: Final = "lesson"
BROAD: Final = "broad"
SELDOM: Final = "seldom-followed"
UNRECONCILED: Final = "unreconciled"
WEAKENED: Final = "weakened"
STALE: Final = "stale"
RENAMED: Final = "renamed"
PROPOSAL: Final = "proposal"
HARMFUL: Final = "harmful"
EDITED: Final = "edited"
CONFLICT: Final = "conflict"
FURTHER: Final = "further"
"""Kind of a row that groups several questions of another kind; the queue does not contain such rows."""


class HeldText(Struct, frozen=True, kw_only=True):
    """A held reflection, which would be injected if a person approved it.

    `text` and `title` (the task of the reflection) are untrusted. `does` says what the text does, in words that follow
    "this text". `sources` are IDs of source loops and tasks, `readers` those of running loops and past tasks that would
    get it. `marks` are the results of the safety scan.
    """

    id: str
    text: str
    does: str
    title: str = ""
    sources: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    marks: tuple[Suspicion, ...] = ()


class WeakenedTest(Struct, frozen=True, kw_only=True):
    """A test that failed and passed because it checks less. All texts are untrusted.

    `change` says what was done to it, in words that follow "was". `number` is that of the action that passed.
    """

    attempt_id: str
    task_id: str
    number: int
    change: str
    diff: str = ""
    files: tuple[str, ...] = ()
    command: str = ""
    failure: str = ""
    words: str = ""
    agent: str = ""


class EditedFile(Struct, frozen=True, kw_only=True):
    """A file of agents in which someone edited lessons. All texts are untrusted.

    `digest` is that of the edited lessons, `diff` how they differ from the approved ones. `edits` are the changes of
    texts of patterns (ID, before, after); `problem` is why there are none, "" if there are.
    """

    path: str
    digest: str
    diff: str
    edits: tuple[tuple[str, str, str], ...] = ()
    problem: str = ""


class Kind(NamedTuple):
    """A kind of question; `name` is what its questions are called, in the plural."""

    name: str
    noun: str
    verb: str
    """With `noun` what the questions are about, both in the plural."""
    seconds: float
    """Time that a decision takes besides reading its texts: to check the evidence and press a key."""
    is_urgent: bool = False
    """A new question is a warning."""
    is_optional: bool = False
    """It does no harm while it waits: no text is wrongly injected or withheld."""
    must_read: bool = False
    """It counts whatever its impact: agents get a text that no evidence judges, or an agent asks."""
    beside: str = ""
    """Names the question in its key, if it is not the question about the whole pattern."""
    is_dated: bool = True
    """False: a search finds it in the present state, so that it is unknown since when it is open."""


KINDS: Final = {
    INVERSION: Kind("inversions", "lessons", "fail often", 15.0, is_urgent=True),
    CONTRADICTED: Kind("contradicted pins", "decisions", "are contradicted by later results", 10.0, is_urgent=True),
    STALE_PIN: Kind("stale pins", "decisions", "are about a text that has changed", 12.0, is_urgent=True),
    BORDERLINE: Kind("borderline states", "lessons", "are close to another state", 10.0, beside="state"),
    DUPLICATE: Kind("near-duplicates", "pairs of lessons", "are similar", 12.0, is_optional=True, is_dated=False),
    EXTRACTED: Kind("unreviewed extractions", "new lessons", "wait to be read", 8.0, is_urgent=True, must_read=True),
    QUARANTINE: Kind("quarantined texts", "texts", "are held back", 10.0, is_urgent=True),
    HELD: Kind("held texts", "texts", "are held", 10.0, is_urgent=True),
    BURST: Kind("suspicious reports", "sources", "sent suspicious reports", 20.0, is_urgent=True),
    RECURRING: Kind(
        "recurring learnings", "notes", "were reported by several sessions", 12.0, is_optional=True, is_dated=False
    ),
    LESSON: Kind("lessons of agents", "notes of agents", "may become lessons", 12.0, is_optional=True, is_dated=False),
    OFFER: Kind("sessions to read", "recent sessions", "may hold lessons", 12.0, is_optional=True, is_dated=False),
    BROAD: Kind(
        "broad triggers",
        "lessons",
        "have a trigger that is too broad",
        8.0,
        is_optional=True,
        beside="trigger",
        is_dated=False,
    ),
    SELDOM: Kind(
        "seldom followed lessons",
        "lessons",
        "are seldom followed",
        8.0,
        is_optional=True,
        beside="followed",
        is_dated=False,
    ),
    STALE: Kind(
        "removed anchors",
        "lessons",
        "are about files or names that were removed",
        8.0,
        is_optional=True,
        must_read=True,
        is_dated=False,
    ),
    RENAMED: Kind(
        "renamed anchors",
        "lessons",
        "name files by their old paths",
        4.0,
        is_optional=True,
        must_read=True,
        is_dated=False,
    ),
    UNRECONCILED: Kind(
        "disagreeing counts",
        "lessons",
        "have counts that contradict their results",
        8.0,
        is_optional=True,
        beside="counts",
        is_dated=False,
    ),
    WEAKENED: Kind("weakened tests", "tests", "check less than before", 8.0, must_read=True, is_dated=False),
    EDITED: Kind(
        "edited files of agents",
        "files of agents",
        "have lessons that someone edited",
        8.0,
        must_read=True,
        is_dated=False,
    ),
    PROPOSAL: Kind(
        "proposed decisions",
        "decisions",
        "are proposed by agents",
        10.0,
        is_urgent=True,
        must_read=True,
        is_dated=False,
    ),
    ESCALATION: Kind("escalations", "debug sessions", "were escalated", 10.0, is_urgent=True, must_read=True),
    HARMFUL: Kind(
        "lessons that hurt",
        "lessons",
        "hurt in an experiment",
        10.0,
        is_urgent=True,
        must_read=True,
        beside="experiment",
        is_dated=False,
    ),
    CONFLICT: Kind(
        "instructions in conflict",
        "instructions",
        "contradict or repeat each other",
        12.0,
        is_urgent=True,
        is_optional=True,
    ),
}
"""Every kind of question; `core.questions.kinds.TABLE` has how each is asked and answered."""


class QuestionGroup(Struct, frozen=True):
    """Questions of one kind that share a row, best first."""

    kind: str
    items: tuple[ReviewItem, ...]

    @property
    def noun(self) -> str:
        return KINDS[self.kind].noun

    @property
    def verb(self) -> str:
        return KINDS[self.kind].verb


@dataclass(frozen=True, kw_only=True)
class ReviewItem:
    """One review question. Its priority and impact do not affect equality.

    `kind` is one of `KINDS`; see docs/curation.md#review. `subject` is the ID of the pattern, or of the loop of an
    offer, the task of a weakened test, the debug session of an escalation, the recurring learning, the lesson, or the
    source of a burst. `question` and `reason` have one line. `asks` is the question without the name of its subject.
    The end of `reason` explains its position in the queue.

    `priority` is 0..1, from `impact` minus the cost of `seconds`, the estimated time to read and decide (see
    `core.questions.impact.priority`). `impact` is the failures a week that a good decision is expected to prevent; 0 if
    it changes no injection. `is_urgent` means that an agent is blocked until it is answered. `evidence` is an amount
    that ends a snooze: uses, reports, proposals, runs or reflections. `risk` counts the marks of a text that is held or
    in quarantine: those that block it, those that hold it and others; () for other questions.

    `propose` makes the proposed inversion. `other` is the pattern to merge into the subject of a duplicate question,
    with `similarity`, 0..1. `offer` is that of an extraction offer, a recurring learning or a `lesson`. `pairs` are
    instructions of which one contradicts or repeats the other. `proposed` is a decision of an agent; unless it is about
    one pattern, its ID is the subject. `anchors` are those that were removed,
    or all that were renamed. `sources` are the IDs of the loops that
    offer the same lesson, that of the subject first. `group` has the questions of a row.
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
    evidence: int = 0
    risk: tuple[int, ...] = ()
    propose: Callable[[], Inversion] | None = field(default=None, compare=False, repr=False)
    burst: Burst | None = None
    other: str = ""
    similarity: float = 0.0
    offer: Extraction | None = None
    escalated: EscalatedSession | None = None
    held_text: HeldText | None = None
    weakened: WeakenedTest | None = None
    edited: EditedFile | None = None
    proposed: ProposedDecision | None = None
    lesson: JoinedLesson | None = None
    anchors: tuple[AnchorChange, ...] = ()
    pairs: tuple[InstructionPair, ...] = ()
    sources: tuple[str, ...] = ()
    group: QuestionGroup | None = None

    def with_impact(self, impact: float, priority: float, propose: Callable[[], Inversion] | None) -> ReviewItem:
        """Return the same question with another impact; faster than `replace`."""
        item = object.__new__(ReviewItem)
        item.__dict__.update(self.__dict__, impact=impact, priority=priority, propose=propose)
        item.__dict__.pop("inversion", None)
        return item

    @property
    def session(self) -> DebugSession | None:
        return self.escalated.session if self.escalated is not None else None

    @cached_property
    def question_key(self) -> str:
        """ID to snooze or dismiss; the pattern's ID if the whole pattern is asked about."""
        if self.group is not None:
            return further_question_id(self.group.kind)
        if self.proposed is not None:
            return self.proposed.question
        if self.pairs:
            return self.pairs[0].question
        if self.burst is not None:
            return burst_question_id(self.burst.source)
        if self.other:
            return duplicate_question_id(self.subject, self.other)
        if self.escalated is not None:
            return self.escalated.question
        if self.lesson is not None:
            return lesson_question_id(self.lesson.lesson.text)
        if self.offer is not None:
            return extraction_question_id(self.subject)
        if self.held_text is not None:
            return held_text_question_id(self.subject, self.held_text.text)
        if self.weakened is not None:
            return weakened_test_question_id(self.weakened.attempt_id, self.weakened.number)
        if self.edited is not None:
            return edited_file_question_id(self.edited.path, self.edited.digest)
        if self.anchors:
            newest = newest_change(self.anchors)
            return anchor_question_id(self.subject, newest.is_removed, newest.commit)
        beside = KINDS[self.kind].beside
        return f"{beside} of {self.subject}" if beside else self.subject

    @property
    def about(self) -> str:
        """A short name of the subject if `question_key` is too long to read, else ""."""
        if self.group is not None:
            return f"the {self.group.noun} that {self.group.verb}"
        if self.proposed is not None:
            return f"the proposal to {self.proposed.verb} {shorten_id(self.subject)}"
        if self.pairs:
            return f"the instructions in {visible_line(' and '.join(one.place for one in self.pairs[0].both), 160)}"
        if self.held_text is not None:
            return f"the reflection {shorten_id(self.held_text.id)}"
        if self.lesson is not None and self.offer is not None:
            return self.offer.about
        if self.weakened is not None:
            return f"the test that was {self.weakened.change} in {visible_line(self.weakened.attempt_id, 80)}"
        if self.edited is not None:
            return f"the lessons in {visible_line(self.edited.path, 120)}"
        if self.session is None:
            return ""
        return f"escalation at {visible_line(self.session.file_path, 200) or shorten_id(self.session.id)}"

    @property
    def is_about_pattern(self) -> bool:
        others = (self.burst, self.offer, self.escalated, self.held_text, self.weakened, self.edited, self.group)
        is_of_agent = self.proposed is not None and not self.proposed.pattern_id
        return not is_of_agent and not self.pairs and all(other is None for other in others)

    @property
    def is_worth_reading(self) -> bool:
        """Whether the impact is worth the time, an agent waits, or a person must read it."""
        kind = self.group.kind if self.group is not None else self.kind
        return self.is_urgent or self.priority > 0 or KINDS[kind].must_read

    @property
    def has_strong_lesson(self) -> bool:
        """Whether it is an offer of several loops or with a fix that passed the check."""
        return self.kind == OFFER and (len(self.sources) > 1 or (self.offer is not None and self.offer.has_checked_fix))

    @property
    def short_name(self) -> str:
        """Untrusted text for a row: first lesson of an offer, else the subject's name."""
        if self.offer is not None and self.offer.new:
            return self.offer.new[0].headline
        if self.other:
            return f"{shorten_id(self.other)} into {shorten_id(self.subject)}"
        return self.about or shorten_id(self.subject)

    @cached_property
    def inversion(self) -> Inversion | None:
        """The proposed inversion, made on first use."""
        return self.propose() if self.propose else None


BEST: Final = 5  # Questions that a row names, and that its answer opens.
MOST_OF_KIND: Final = 20  # Questions of one kind that are asked one by one.
MOST_OPTIONAL: Final = 5  # The same for optional
_MAX_NAME: Final = 70  # Characters of a question that is named in a row.


def make_agenda(
    queue: Sequence[ReviewItem], curation: CurationState, now: datetime, asked: Collection[tuple[str, str]] = ()
) -> tuple[ReviewItem, ...]:
    """Return the questions to ask, and a row for the others of each kind, in order.

    A row has the place of its best question. If there are more than `MOST_OPTIONAL` questions of an optional kind, all
    are in its row, except extraction offers with a strong lesson. Urgent questions are never in a row, nor are those
    that were `asked` already, by kind and key; these count also after they are closed, so that a review session ends.
    A snoozed row is left out; its questions are still in the queue.
    """
    counts = Counter(item.kind for item in queue)
    crowded = {kind for kind, count in counts.items() if count > _most(kind)}
    taken = Counter(kind for kind, _ in asked)
    agenda: list[ReviewItem | str] = []  # questions, and the kinds whose rows have this place
    rest: dict[str, list[ReviewItem]] = defaultdict(list)
    for item in queue:
        kind = item.kind
        if kind not in crowded or item.is_urgent or (kind, item.question_key) in asked:
            agenda.append(item)
        elif taken[kind] < _most(kind) and (not KINDS[kind].is_optional or item.has_strong_lesson):
            taken[kind] += 1
            agenda.append(item)
        else:
            if kind not in rest:
                agenda.append(kind)
            rest[kind].append(item)
    rows = {kind: items[0] if len(items) == 1 else _row(kind, items, counts[kind]) for kind, items in rest.items()}
    found = (rows[item] if isinstance(item, str) else item for item in agenda)
    return tuple(item for item in found if item.group is None or not _is_snoozed(item, curation, now))


def _most(kind: str) -> int:
    return MOST_OPTIONAL if KINDS[kind].is_optional else MOST_OF_KIND


def _row(kind: str, items: Sequence[ReviewItem], count: int) -> ReviewItem:
    """Make the row of questions of one kind, of which `count` are open."""
    group, best = QuestionGroup(kind, tuple(items)), items[:BEST]
    which = f"the top {len(best)}" if len(items) > len(best) else "them"
    more = " more" if len(items) < count else ""
    return ReviewItem(
        kind=FURTHER,
        subject=kind,
        question=f"{len(items):,}{more} {group.noun} {group.verb}. Answer {which}?",
        reason="best: " + "; ".join(visible_line(item.short_name, _MAX_NAME) for item in best),
        priority=best[0].priority,
        impact=sum(item.impact for item in best),
        seconds=sum(item.seconds for item in best),
        evidence=len(items),
        group=group,
    )


def _is_snoozed(row: ReviewItem, curation: CurationState, now: datetime) -> bool:
    verdict = curation.inversions.get(further_question_id(row.subject))
    return verdict is not None and verdict.is_snoozed(now, row.evidence)
