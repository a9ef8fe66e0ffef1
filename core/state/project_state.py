"""All that a reader needs of a project at one moment: records, scores, index, and what waits for a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import msgspec
import numpy as np

from core.base.errors import UnknownRecord
from core.base.id_lookup import find_matching_ids, require_one
from core.base.text import visible_line
from core.config.settings import InjectionSettings, Settings
from core.debug_memory.escalation_status import EscalatedSession, find_recent_escalations
from core.debug_memory.index import DebugIndex, LazyDebugIndex
from core.learning.bursts import format_burst
from core.learning.explanation import Explanation, explain_state
from core.learning.inversion_proposals import Inversion
from core.learning.lineage import LineageEvent, build_lineage
from core.learning.loop_patterns import LoopPatterns
from core.learning.outcomes import Outcome, OutcomeSignals
from core.learning.scoreboard import Assessment, Scoreboard
from core.learning.threshold_replay import Replay, what_if
from core.ledger.decision_log import FILE as LEDGER
from core.records.debug_sessions import DebugSession
from core.records.decisions import Verb
from core.records.events import Observation
from core.records.extractions import Extraction
from core.records.findings import Finding, Severity
from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.records.suspicions import Suspicion
from core.retrieval.decomposition import Strategies, choose_strategies
from core.retrieval.embeddings import ComparableWork, Coverage, Embeddings
from core.retrieval.index import LazyPatternIndex, PatternIndex
from core.retrieval.injection import InjectedContext, Injection, prepare_context, prepare_injection
from core.retrieval.learnings import LazyLearnings, LearningIndex, LearningMatch
from core.retrieval.reflections import ChosenReflection, ReflectionChoice
from core.retrieval.relevance import Relevance, measure_relevance
from core.retrieval.similarity import LazySimilarity, SimilarityIndex
from core.retrieval.task import TaskProfile, analyse_task
from core.retrieval.vectors import Closeness
from core.scanning.messages import describe_suspicions
from core.scanning.rules import COUNTS
from core.state.review_items import ReviewItem

MANY_CLAIMED: Final = 20
"""Uses that a record claims, and none of which a loop or a report tells, that are suspect."""
_EVENTS: Final = ".aiwg/ralph/shared/curation/events.jsonl"


@dataclass(frozen=True, slots=True)
class ProjectState:
    """All that a reader needs at one moment: the records, their scores, and what waits for a decision.

    Attributes:
        snapshot: The records.
        board: Evidence and state of every pattern, as of `now`.
        lazy_index: What `index` comes from; so `likeness` and `debug` from theirs.
        queue: What a person should decide, most worth first.
        now: The moment the scores are for.
        offers: What could be extracted from loops that have ended, as far as somebody has looked.
        embeddings: What patterns mean, as far as their vectors are made; shared by all views of a deck. None: only
            words are compared. `task_embeddings` are those of past tasks and loops.
    """

    snapshot: Snapshot
    board: Scoreboard
    lazy_index: LazyPatternIndex
    lazy_likeness: LazySimilarity
    queue: tuple[ReviewItem, ...]
    settings: Settings
    now: datetime
    offers: Mapping[str, Extraction]
    embeddings: Embeddings[Pattern] | None = None
    lazy_debug: LazyDebugIndex = field(default_factory=lambda: LazyDebugIndex({}))
    lazy_learnings: LazyLearnings = field(default_factory=lambda: LazyLearnings(Snapshot()))
    task_embeddings: Embeddings[ComparableWork] | None = None

    @property
    def index(self) -> PatternIndex:
        """The patterns, searchable; the first to ask waits until it is made."""
        return self.lazy_index.get()

    def prepare(self) -> None:
        """Make in an idle moment what the first context of a task would wait for: the index, and the intervals of all
        rates together with what computes them.
        """
        self.lazy_index.get()
        self.lazy_learnings.get()
        _ = self.board.interval

    @property
    def likeness(self) -> SimilarityIndex:
        """Which patterns say nearly the same; the first to ask waits until it is made."""
        return self.lazy_likeness.get()

    @property
    def debug(self) -> DebugIndex:
        """The debug sessions, searchable; the first to ask waits until it is made."""
        return self.lazy_debug.get()

    @property
    def learnings(self) -> LearningIndex:
        """What tasks and loops have learned, searchable; the first call waits until it is indexed."""
        return self.lazy_learnings.get()

    @property
    def coverage(self) -> Coverage | None:
        """How far the meaning of patterns is known, as long as some lack a vector; see `Embeddings.coverage`."""
        return self.embeddings.coverage(self.snapshot.patterns) if self.embeddings else None

    def escalations(self, since: datetime | None = None) -> tuple[EscalatedSession, ...]:
        """The debug sessions that were escalated after `since`, newest first; of None all of them."""
        return find_recent_escalations(self.debug, self.snapshot, since)

    def pattern(self, pattern_id: str) -> Pattern:
        """The pattern with this id (or with this alias), else `UnknownRecord`."""
        found = self.snapshot.patterns.get(pattern_id)
        if found is None:
            found = next((p for p in self.snapshot.patterns.values() if pattern_id in p.aliases), None)
        if found is None:
            raise UnknownRecord(f"no pattern {visible_line(pattern_id, 80)!r}; see: ralphdeck patterns list")
        return found

    def loop(self, loop_id: str) -> Loop:
        """The loop with this id, alias or unambiguous beginning of one, else `UnknownRecord`."""
        loops = self.snapshot.loops
        if loop_id in loops:
            return loops[loop_id]
        found = [loop.id for loop in loops.values() if loop_id in loop.aliases] or find_matching_ids(loop_id, loops)
        return loops[require_one(found, loop_id, what="loop", ids="loop ids", command="loops")]

    def debug_session(self, session_id: str) -> DebugSession:
        """The debug session with this id, or the only one whose id begins so, else `UnknownRecord`."""
        sessions = self.snapshot.debug_sessions
        found, ids = find_matching_ids(session_id, sessions), "ids of debug sessions"
        return sessions[require_one(found, session_id, what="debug session", ids=ids, command="debug sessions")]

    def assessment(self, pattern_id: str) -> Assessment:
        """State and numbers of one pattern."""
        return self.board.assessment(pattern_id)

    def observations(self, pattern_id: str) -> tuple[Observation, ...]:
        """The evidence for one pattern, oldest first."""
        return self.board.observations(pattern_id)

    def work_id(self, work_id: str) -> str:
        """The id of the loop or the attempt at a task that is meant, else `UnknownRecord`."""
        return work_id if work_id in self.snapshot.attempts else self.loop(work_id).id

    def outcome(self, work_id: str) -> tuple[OutcomeSignals, Outcome] | None:
        """How a loop or attempt came out, and how that scores (semantics 2); None if it has not come out."""
        return self.board.outcome(work_id)

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        """Patterns that a loop got, used and gave, by its state file and the event log."""
        return self.board.loop_patterns(loop_id)

    def why(self, pattern_id: str) -> Explanation:
        """Why the pattern is in its state, rule by rule and event by event."""
        pattern = self.pattern(pattern_id)
        return explain_state(
            self.assessment(pattern.id),
            self.observations(pattern.id),
            self.now,
            self.settings,
            invertible=pattern.type is not PatternType.ANTI,
        )

    def was_reset(self, pattern_id: str) -> bool:
        """Whether the last decision on its state that holds was a reset, so that it may be promoted whatever it is."""
        curation = self.snapshot.curation
        deciding = {Verb.PROMOTE, Verb.DEPRECATE, Verb.ACCEPT_INVERSION, Verb.RESET}
        for decision in reversed(self.snapshot.decisions):
            if decision.subject == pattern_id and decision.verb in deciding and decision.id not in curation.undone:
                return decision.verb is Verb.RESET
        return False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong in the files, which marks are held because they come in a burst, which texts by the scan."""
        loops = self.snapshot.loops
        held = (
            Finding(
                loops[burst.source].files[0] if burst.source in loops and loops[burst.source].files else _EVENTS,
                "",
                Severity.WARNING,
                "burst",
                format_burst(burst),
            )
            for burst in self.board.bursts
        )
        return (*held, *self._scanned_out(), *self.snapshot.findings)

    def _scanned_out(self) -> Iterator[Finding]:
        board = self.board
        for flags, code, severity, text in (
            (board.blocked, "suspect", Severity.WARNING, "{} is kept out of every context"),
            (board.held, "held", Severity.INFO, "{} is kept out of every context until a person approves it"),
        ):
            for row in np.flatnonzero(flags).tolist():
                pattern = self.snapshot.patterns[board.ids[row]]
                kept = text.format(visible_line(pattern.id, 80))
                message = f"{kept}: this text {describe_suspicions(pattern.suspicions)}"
                yield Finding(pattern.file, pattern.pointer, severity, code, message)

    @property
    def undecided(self) -> str:
        """Why the ledger cannot be read, "" if it can: without it nobody knows what is in quarantine, so nothing is
        injected."""
        for finding in self.snapshot.findings:
            if finding.file == LEDGER and not finding.pointer and finding.severity is Severity.ERROR:
                return f"{finding.file}: {finding.message}"
        return ""

    def what_if(self, settings: Settings) -> Replay:
        """Replay all history under other thresholds."""
        return what_if(settings, self.board.history)

    def doubts(self, pattern_id: str) -> tuple[Finding, ...]:
        """Where the file's own counts and the evidence disagree."""
        return self.board.reconcile(self.pattern(pattern_id).id)

    def scan(self, pattern_id: str) -> tuple[Suspicion, ...]:
        """What the pattern might do to an agent that gets it, the critical first; see `core.scanning`."""
        pattern = self.pattern(pattern_id)
        claimed = pattern.recorded_counts.uses or 0
        if claimed < MANY_CLAIMED or any(one.loop_id for one in self.observations(pattern.id)):
            return pattern.suspicions
        excerpt = f"{claimed:,} uses"
        return (
            *pattern.suspicions,
            Suspicion(rule=COUNTS.id, severity=COUNTS.severity, field="claim", excerpt=excerpt),
        )

    def is_scanned_out(self, pattern_id: str) -> bool:
        """Whether the scan blocks the pattern: it is released or promoted only for a reason."""
        return self.assessment(pattern_id).blocked

    def lineage(self, pattern_id: str) -> tuple[LineageEvent, ...]:
        """The life of one pattern, oldest first."""
        return build_lineage(
            self.pattern(pattern_id),
            self.observations(pattern_id),
            self.snapshot.decisions,
            self.snapshot.loops,
        )

    def inversion(self, pattern_id: str) -> Inversion:
        """What the pattern would become as an anti-pattern."""
        return self.board.proposal(self.pattern(pattern_id).id)

    def injection(
        self,
        task: str,
        settings: InjectionSettings | None = None,
        category: str = "",
        decomposition: bool | None = None,
    ) -> Injection:
        """What a loop with this task would get injected; the preview and `inject` print the same bytes.

        Args:
            task: The task.
            settings: Other ones than those of the project.
            category: Of the task, instead of the recognised one.
            decomposition: Whether the task is a decomposition; None where its text decides.
        """
        profile = analyse_task(task)
        if category:
            profile = msgspec.structs.replace(profile, category=category)
        if decomposition is not None:
            profile = msgspec.structs.replace(profile, decomposition=decomposition)
        settings, strategies = self._with_strategies(self._injecting(settings), profile.decomposition)
        return prepare_injection(
            profile,
            self.index,
            self.snapshot.patterns,
            self.board,
            settings,
            self._closeness(task),
            self._reflections(self._learned(profile), settings),
            strategies,
        )

    def relevance(self, task: str) -> Relevance:
        """How relevant patterns and learnings are to a task: the part of `given` that no state and no count changes."""
        profile = analyse_task(task)
        found = measure_relevance(profile, self.index, self.snapshot.patterns, self._closeness(task))
        return replace(found, learnings=self._learned(profile), decomposition=profile.decomposition)

    def given(self, found: Relevance) -> InjectedContext:
        """The context of `injection` alone, many times as fast; `found` is the relevance for the task."""
        settings, strategies = self._with_strategies(self._injecting(None), found.decomposition)
        learned = self._reflections(found.learnings, settings)
        return prepare_context(found, self.index, self.snapshot.patterns, self.board, settings, learned, strategies)

    def _with_strategies(
        self, settings: InjectionSettings, decomposition: bool
    ) -> tuple[InjectionSettings, Strategies | None]:
        """The strategies for a task that is a decomposition, and the settings with the budget that they leave."""
        if not decomposition:
            return settings, None
        strategies = choose_strategies(self.index, self.snapshot.patterns, self.board, settings)
        left = max(settings.max_tokens - strategies.tokens, 0)
        return msgspec.structs.replace(settings, max_tokens=left), strategies

    def _learned(self, profile: TaskProfile) -> tuple[LearningMatch, ...]:
        index = self.learnings
        embeddings = self.task_embeddings
        close = embeddings.closeness(profile.text, index.work_keys, index.works) if embeddings is not None else None
        return index.matches(profile, close)

    def _reflections(self, matches: tuple[LearningMatch, ...], settings: InjectionSettings) -> ReflectionChoice:
        half_life, orders = self.settings.learning.half_life_days, self.settings.scan.holds_other_texts
        approved = self.snapshot.curation.approves_text
        return ReflectionChoice(matches, settings, self.now, half_life, orders=orders, approved=approved)

    def held_reflections(self, task: str) -> tuple[ChosenReflection, ...]:
        """The learnings that this task would get if a person approved the orders in them, best first."""
        return self._reflections(self._learned(analyse_task(task)), self._injecting(None)).held

    def _injecting(self, settings: InjectionSettings | None) -> InjectionSettings:
        settings = settings or self.settings.injection
        return msgspec.structs.replace(settings, enabled=False) if self.undecided else settings

    def _closeness(self, task: str) -> Closeness | None:
        return self.embeddings.closeness(task, self.index.ids, self.snapshot.patterns) if self.embeddings else None
