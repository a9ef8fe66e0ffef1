"""Texts, impact and priority of review questions; docs/curation.md#review-order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from msgspec import Struct

from core.base.formatting import shorten_id
from core.base.pattern_titles import pattern_title
from core.base.settings import Settings
from core.base.text import visible_line
from core.index.experiment import PatternTrials, find_harmful
from core.index.review_items import KINDS, EditedFile, HeldText, ReviewItem, WeakenedTest
from core.learning.maturity import describe_counts
from core.learning.scoreboard import Scoreboard
from core.questions.impact import PatternImpacts, good_enough, priority, weekly
from core.records.anchors import AnchorChange
from core.records.decisions import Author, CurationState, Decision, Verb
from core.records.extractions import Extraction
from core.records.findings import Finding
from core.records.instructions import InstructionPair
from core.records.patterns import Pattern, PatternType
from core.records.reflections import JoinedLesson
from core.tasks.escalations import EscalatedSession, find_escalation

if TYPE_CHECKING:
    from core.learning.inversion import Inversion
    from core.learning.scores import Ints
    from core.records.snapshot import Snapshot

Questions: TypeAlias = dict[tuple[str, str, str], tuple[tuple[object, ...], ReviewItem]]
"""Facts that a question was made from, and the question; by kind and IDs of patterns."""
CHARS_PER_SECOND: Final = 20.0  # About 240 words a minute, as people read technical text with care.
_SECONDS_EACH: Final = 6.0  # Seconds to read the headline of each further pattern that a question is about.
_MOST_CHARS: Final = 4000  # Maximum number of characters of a text that are read before deciding.
HOLDS: Final = timedelta(days=1)  # Time in which a decision answers further questions about the state of a pattern.
_DECIDES: Final = {Verb.RESET, Verb.PROMOTE, Verb.DEPRECATE, Verb.RELEASE, Verb.QUARANTINE}


class JoinedOffer(Struct, frozen=True):
    """An offer, with the IDs of its loop and of loops that offer nothing beyond it."""

    offer: Extraction
    sources: tuple[str, ...]


class RecurringLearning(Struct, frozen=True, array_like=True):
    """What a question shows of a recurring learning, without secrets.

    `text` is one line of at most 80 characters, `chars` the length of the whole learning. `times` has the
    time of each report, None where it is unknown.
    """

    id: str
    text: str
    chars: int
    sources: int
    times: tuple[datetime | None, ...]


class Found(Struct, frozen=True, kw_only=True):
    """Results of the searches in `core.questions.search`, in order of their turns."""

    offers: tuple[JoinedOffer, ...] = ()
    alike: tuple[tuple[str, str, float], ...] = ()
    broad: dict[str, float] = {}
    unreconciled: dict[str, Finding] = {}
    recurring: tuple[tuple[RecurringLearning, Extraction], ...] = ()
    held: tuple[HeldText, ...] = ()
    lessons: tuple[tuple[JoinedLesson, Extraction], ...] = ()
    weakened: tuple[WeakenedTest, ...] = ()
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


class Asker:
    """Makes the questions of one queue, with their impact.

    `known` are the questions of an earlier queue with the same settings, and those that `ask` returned: `asked`.
    `asked_about` are the subjects of the questions so far.
    """

    def __init__(self, records: QueueRecords, known: Questions | None = None) -> None:
        self.records = records
        self.patterns, self.board, self.settings = records.patterns, records.board, records.settings
        self.curation, self.found, self.now = records.curation, records.found, records.now
        self.known: Questions = {} if known is None else known
        self.asked: Questions = {}
        self.asked_about: set[str] = set()

    def ask(
        self,
        kind: str,
        subject: str,
        make: Callable[[], ReviewItem],
        *facts: object,
        impact: float,
        other: str = "",
        propose: Callable[[], Inversion] | None = None,
    ) -> ReviewItem:
        """Return the known question if its facts are unchanged, else that of `make`.

        Its texts may depend on the subject, the number of its injections and uses, and `facts`.
        """
        key = kind, subject, other
        facts = (self.patterns[subject], self.counts(subject), *facts)
        before, item = self.known.get(key, ((), None))
        if item is None or before != facts:
            item = make()
        if item.impact != impact:
            item = item.with_impact(impact, priority(impact, item.seconds, self.settings), None)
        self.asked[key] = self.known[key] = facts, item  # without `propose`, which needs the board
        return item if propose is None else item.with_impact(impact, item.priority, propose)

    @cached_property
    def _uses(self) -> Ints:
        return self.board.uses

    @cached_property
    def impacts(self) -> PatternImpacts:
        """The impacts of all patterns; computed once."""
        return PatternImpacts.of(self.board, self.settings)

    def item(
        self,
        kind: str,
        subject: str,
        *,
        question: str,
        reason: str,
        impact: float = 0.0,
        place: str | None = None,
        chars: int | None = None,
        further: int = 0,
        name: str = "",
        this: str = "this lesson",
        **more: Any,
    ) -> ReviewItem:
        """Make a question with its priority; see `ReviewItem`.

        In `question`, `{}` is replaced by `name` (the quoted title of the pattern by default) in a list, and by `this`
        on the card.
        `place` explains the position in the queue, by default by the counts of the pattern. `chars` is the length of
        the texts to read, by default those of the pattern, and `further` the number of patterns of which only the
        headline is read. The default of `evidence` is that of the pattern. The impact may be left to `ask`.
        """
        if subject in self.board:
            more.setdefault("evidence", self._uses.item(self.board.row(subject)))
        if not name:
            name = quoted_title(self.patterns[subject]) if subject in self.patterns else shorten_id(subject)
        place = self.describe_uses(subject) if place is None else place
        chars = chars_of(self.patterns[subject]) if chars is None else chars
        read = KINDS[kind].seconds + min(chars, _MOST_CHARS) / CHARS_PER_SECOND + further * _SECONDS_EACH
        return ReviewItem(
            kind=kind,
            subject=subject,
            question=question.replace("{}", name, 1),
            asks=question.replace("{}", this, 1),
            reason=f"{reason}; {place}" if place else reason,
            priority=priority(impact, read, self.settings),
            impact=impact,
            seconds=read,
            **more,
        )

    def current_impact(self, pattern_id: str) -> float:
        """Return the impact of a pattern in its present state, in failures a week."""
        return float(self.impacts.held[self.board.row(pattern_id)])

    def unjudged_impact(self, pattern_id: str, *, is_withheld: bool) -> float:
        """Return the impact of a text to which the pattern's evidence does not apply."""
        below, above = self.impacts.unjudged
        return self.uses(pattern_id) * (above if is_withheld else below)

    def new_text_impact(self, uses: float) -> float:
        """Return the impact of a new text that would have had `uses` (decayed) so far."""
        maturity = self.settings.maturity
        expected = weekly(np.array([uses * maturity.multiplier_candidate]), maturity.half_life_days)
        return float(expected[0]) * self.impacts.unjudged[1]

    def uses(self, pattern_id: str) -> float:
        """Return the uses expected in a week if the pattern may be injected."""
        return float(self.impacts.uses[self.board.row(pattern_id)])

    def describe_uses(self, pattern_id: str) -> str:
        """Describe how often a pattern was injected, applied and seen."""
        return describe_counts(*self.counts(pattern_id), is_warning=self.is_warning(pattern_id))

    def counts(self, pattern_id: str) -> tuple[int, int, int, int]:
        """Return how often a pattern was injected, used, used with success, and seen."""
        row, board = self.board.row(pattern_id), self.board
        return board.given.item(row), self._uses.item(row), board.successes.item(row), board.seen.item(row)

    def results(self, pattern_id: str) -> int:
        """Return the number of uses of a pattern with a result."""
        return self._uses.item(self.board.row(pattern_id))

    @cached_property
    def decided(self) -> dict[str, Verb]:
        """The reviewer's decisions within `HOLDS`, by pattern.

        Without those before a new result or another text. A later decision of another person opens the question again.
        """
        verbs, seen = dict[str, Verb](), set[str]()
        for decision in reversed(self.records.decisions):
            if self.now - decision.at > HOLDS:
                break
            if decision.verb not in _DECIDES or decision.id in self.curation.undone or decision.subject in seen:
                continue
            seen.add(decision.subject)
            is_own = decision.by == self.records.reviewer and decision.decided_by is Author.PERSON
            pattern = self.patterns.get(decision.subject)
            if pattern is None or decision.subject not in self.board or not is_own:
                continue
            results_before = decision.before.get("successes", 0) + decision.before.get("failures", 0)
            same_text = decision.before.get("content_hash", pattern.content_hash) == pattern.content_hash
            if same_text and self.results(decision.subject) <= results_before:
                verbs[decision.subject] = decision.verb
        return verbs

    def place(self, pattern_id: str) -> str:
        """Describe how often a pattern was given, and the rate needed to give it."""
        rate = "rate of right warnings" if self.is_warning(pattern_id) else "success rate"
        return f"{self.describe_uses(pattern_id)}; the limit of the {rate} is {good_enough(self.settings):.0%}"

    def is_warning(self, pattern_id: str) -> bool:
        """Whether the pattern is an anti-pattern, whose successes are right warnings."""
        pattern = self.patterns.get(pattern_id)
        return pattern is not None and pattern.type is PatternType.ANTI


def quoted_title(pattern: Pattern) -> str:
    """Return the title in quotes; one line of at most 80 characters."""
    return f"“{visible_line(pattern_title(pattern), 80)}”"


def chars_of(pattern: Pattern) -> int:
    """Return the number of characters to read of a pattern."""
    lists = (pattern.steps, pattern.preconditions, pattern.benefits, pattern.limitations, pattern.symptoms)
    texts = (
        *(pattern.title, pattern.description, pattern.use_case, pattern.error_pattern, pattern.task_pattern),
        *(pattern.template_code, pattern.why_it_fails, pattern.better_alternative),
        *(text for many in lists for text in many),
    )
    return sum(map(len, texts))
