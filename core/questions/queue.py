"""The review queue: all pending questions in order; see docs/curation.md#review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.settings import Settings
from core.base.steps import Steps, run_all
from core.index.review_items import QUARANTINE, EditedFile, HeldText, ReviewItem, WeakenedTest
from core.index.trials import PatternTrials, find_harmful
from core.learning.scoreboard import Scoreboard
from core.questions.arrivals import arrivals
from core.questions.borderline import borderline
from core.questions.broad import broad
from core.questions.burst import bursts
from core.questions.conflict import conflicts
from core.questions.decided import decided_patterns
from core.questions.duplicate import duplicates
from core.questions.edited import edited_files
from core.questions.escalation import escalations
from core.questions.followed import seldom_followed
from core.questions.harmful import harmful
from core.questions.held import held_texts, suspected
from core.questions.impact import net
from core.questions.inversion import inversions
from core.questions.lesson import lessons
from core.questions.offer import JoinedOffer, offered
from core.questions.pins import pins
from core.questions.priority import ImpactEstimator, Questions
from core.questions.proposals import proposed_decisions
from core.questions.recurring import RecurringLearning, recurring
from core.questions.stale import stale
from core.questions.unreconciled import unreconciled
from core.questions.weakened import weakened_tests
from core.records.anchors import AnchorChange
from core.records.decisions import CurationState, Decision, Verb
from core.records.extractions import Extraction
from core.records.findings import Finding
from core.records.instructions import InstructionPair
from core.records.lessons import JoinedLesson
from core.records.patterns import Pattern
from core.tasks.escalations import EscalatedSession, find_escalation

if TYPE_CHECKING:
    from core.records.snapshot import Snapshot


class Found(Struct, frozen=True, kw_only=True):
    """What the searches for questions found, see `core.questions.question_search`."""

    alike: tuple[tuple[str, str, float], ...] = ()
    offers: tuple[JoinedOffer, ...] = ()
    recurring: tuple[tuple[RecurringLearning, Extraction], ...] = ()
    lessons: tuple[tuple[JoinedLesson, Extraction], ...] = ()
    held: tuple[HeldText, ...] = ()
    broad: dict[str, float] = {}
    weakened: tuple[WeakenedTest, ...] = ()
    unreconciled: dict[str, Finding] = {}
    stale: dict[str, tuple[AnchorChange, ...]] = {}
    pairs: tuple[InstructionPair, ...] = ()


NOTHING_FOUND: Final = Found()


class QueueRecords(Struct, frozen=True, kw_only=True):
    """What the queue of `reviewer` is made from at `now`.

    `decisions` are those of the log, oldest first: those of `reviewer` of the last day answer further questions, and a
    proposed undo names the one that it is about.
    """

    patterns: Mapping[str, Pattern]
    board: Scoreboard
    curation: CurationState
    now: datetime
    settings: Settings
    found: Found = NOTHING_FOUND
    escalated: Sequence[EscalatedSession] = ()
    edited: Sequence[EditedFile] = ()
    harmful: Sequence[PatternTrials] = ()
    decisions: Sequence[Decision] = ()
    reviewer: str = ""

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        board: Scoreboard,
        now: datetime,
        settings: Settings,
        found: Found = NOTHING_FOUND,
        reviewer: str = "",
        edited: Sequence[EditedFile] = (),
    ) -> QueueRecords:
        """Return the records of a project."""
        calls = (find_escalation(session, snapshot) for session in snapshot.debug_sessions.values())
        return cls(
            patterns=snapshot.patterns,
            board=board,
            curation=snapshot.curation,
            now=now,
            settings=settings,
            found=found,
            escalated=[call for call in calls if call is not None],
            edited=edited,
            harmful=find_harmful(snapshot, now),
            decisions=snapshot.decisions,
            reviewer=reviewer,
        )


def review_queue(records: QueueRecords, known: Questions | None = None) -> tuple[ReviewItem, ...]:
    """Return all questions that are pending, highest priority first; see `review_queue_in_steps`."""
    return run_all(review_queue_in_steps(records, known))


def review_queue_in_steps(records: QueueRecords, known: Questions | None = None) -> Steps[tuple[ReviewItem, ...]]:
    """Do `review_queue` step by step.

    `known` has the questions of an earlier queue with the same settings; those of unchanged patterns are not made
    again. It receives those of this queue at once, and in the end has no others.

    Blocked agents always come first. The others are sorted by `core.questions.impact.net`, then by kind and subject;
    the held texts among them take their places in the order of their risk. Of several questions with the same key, only
    the first is asked.
    """
    settings, curation = records.settings, records.curation
    scales = ImpactEstimator(records.patterns, records.board, settings, {} if known is None else known)
    items = []
    for item in _questions(scales, records):
        items.append(item)
        yield
    others = [item for item in items if not item.is_urgent]
    others.sort(key=lambda item: (-net(item.impact, item.seconds, settings), item.kind, item.subject))
    items = [*(item for item in items if item.is_urgent), *_with_risks_first(others)]
    if known is not None:
        known.clear()
        known.update(scales.asked)
    first = {item.question_key: item for item in reversed(items)}
    return tuple(item for item in _pending(items, curation, records.now) if first[item.question_key] is item)


def _with_risks_first(items: list[ReviewItem]) -> list[ReviewItem]:
    """Sort the held texts, blocked ones first, then by their marks and impact; other questions keep their places."""
    risky = (item for item in items if item.risk)
    by_risk = iter(sorted(risky, key=lambda item: (item.risk, item.impact), reverse=True))
    return [next(by_risk) if item.risk else item for item in items]


def _questions(scales: ImpactEstimator, records: QueueRecords) -> Iterator[ReviewItem]:
    curation, now, found, decisions = records.curation, records.now, records.found, records.decisions
    decided = decided_patterns(scales, curation, decisions, records.reviewer, now)
    asked = set(decided)
    of_decisions = inversions(scales, curation), pins(scales, curation)
    for item in chain(*of_decisions, arrivals(scales, curation), suspected(scales, curation)):
        # A text that was released is asked about again if later rules find more in it.
        if item.kind != QUARANTINE or decided.get(item.subject) is not Verb.QUARANTINE:
            yield item
        asked.add(item.subject)
    yield from harmful(scales, records.harmful)
    asked.update(one.pattern_id for one in records.harmful)
    for item in borderline(scales, asked):
        if net(item.impact, item.seconds, scales.settings) > 0:
            yield item
    yield from proposed_decisions(scales, curation, decisions)
    yield from bursts(scales)
    yield from duplicates(scales, found.alike)
    yield from offered(scales, found.offers)
    yield from recurring(scales, found.recurring)
    yield from lessons(scales, found.lessons)
    yield from held_texts(scales, curation, found.held)
    yield from broad(scales, curation, found.broad)
    yield from seldom_followed(scales)
    yield from unreconciled(scales, found.unreconciled)
    yield from stale(scales, found.stale, now)
    yield from weakened_tests(scales, found.weakened)
    yield from edited_files(scales, records.edited)
    yield from conflicts(scales, found.pairs, curation.dismissed)
    yield from escalations(scales, records.escalated, now)


def _pending(items: Iterable[ReviewItem], curation: CurationState, now: datetime) -> Iterator[ReviewItem]:
    """Yield questions that are neither dismissed nor snoozed."""
    for item in items:
        verdict = curation.inversions.get(item.question_key)
        snoozed = verdict is not None and verdict.is_snoozed(now, item.evidence)
        if not snoozed and item.question_key not in curation.dismissed:
            yield item
