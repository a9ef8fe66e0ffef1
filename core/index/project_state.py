"""State of a project: records, scores, indexes, queue, findings (docs/safety.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from core.base.errors import UnknownRecord
from core.base.scanning.engine import COUNTS
from core.base.scanning.verdict import describe_suspicions
from core.base.text import visible_line
from core.base.validation import find_matching_ids, require_one
from core.index.records import RecordMap
from core.learning.bursts import format_burst
from core.learning.outcomes import score_signals
from core.records.findings import Finding, Severity
from core.records.loops import Liveness
from core.records.patterns import PatternType, Suspicion
from core.sources.ledger import FILE as LEDGER

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.index.anchors import Stale
    from core.index.review_items import ReviewItem
    from core.index.similarity import SimilarityIndex
    from core.index.terms import LearningIndex
    from core.index.texts import Texts
    from core.learning.evidence import LoopPatterns
    from core.learning.evidence_inputs import EvidenceInputs
    from core.learning.experiments import Experiment
    from core.learning.explanation import Explanation, LineageEvent
    from core.learning.outcomes import Outcome, OutcomeSignals
    from core.learning.scoreboard import Assessment, Scoreboard
    from core.records.debug_sessions import DebugSession
    from core.records.episodes import Attempt
    from core.records.extractions import Extraction
    from core.records.instructions import PlacedInstruction
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import ComparableWork, Coverage, Embeddings
    from core.retrieval.past_tasks import PastTasks, WordWeights
    from core.retrieval.relevance import PatternIndex
    from core.tasks.debug_index import DebugIndex
    from core.tasks.escalations import EscalatedSession


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ProjectState:
    """The immutable state of a project, with look-ups.

    `board` has the evidence and state of every pattern as of `now`; `queue` has every open question, the highest impact
    first. `offers` are the possible extractions from finished loops found so far. `earlier_count` is the number of
    questions in the last run until the searches of this run have ended, else 0. `embeddings` are the vectors of
    patterns, shared by all states of a project, and `task_embeddings` those of past tasks and loops; None compares only
    words. `experiment` is that of the user in this project, None if there is none. `inputs` are the records that the
    evidence comes from. `stale` has what Git shows about files and names that patterns are about and the project no
    longer has, by pattern.
    """

    snapshot: Snapshot
    board: Scoreboard
    texts: Texts
    queue: tuple[ReviewItem, ...]
    settings: Settings
    now: datetime
    offers: Mapping[str, Extraction]
    embeddings: Embeddings[Pattern] | None = None
    task_embeddings: Embeddings[ComparableWork] | None = None
    instruction_embeddings: Embeddings[PlacedInstruction] | None = None
    earlier_count: int = 0
    experiment: Experiment | None = None
    inputs: EvidenceInputs = field(init=False, repr=False, compare=False)
    stale: Stale = field(init=False, repr=False, compare=False)

    @classmethod
    def open(cls, snapshot: Snapshot, settings: Settings, now: datetime) -> Self:
        """Return the state of a view; scores, texts and questions are made when used."""
        from core.index.evidence import find_inputs

        state = cls.__new__(cls)
        values = {"snapshot": snapshot, "settings": settings, "now": now, "offers": {}, "earlier_count": 0}
        values |= {
            "embeddings": None,
            "task_embeddings": None,
            "instruction_embeddings": None,
            "experiment": None,
            "inputs": find_inputs(snapshot, settings.learning),
        }
        for name, value in values.items():
            object.__setattr__(state, name, value)
        return state

    def __getattr__(self, name: str) -> Any:
        """Make a field that has no value yet; imports what it needs."""
        match name:
            case "board":
                from core.index.scores import find_board

                value: object = find_board(self.snapshot, self.now, self.settings)
            case "texts":
                from core.index.texts import find_texts

                value = find_texts(self.snapshot, self.board)
            case "queue":
                value = self._make_queue()
            case "inputs":
                value = self.board.inputs
            case "stale":
                value = self._find_stale()
            case _:
                raise AttributeError(name)
        object.__setattr__(self, name, value)
        return value

    def _find_stale(self) -> Stale:
        if not self.settings.review.check_anchors:
            return {}
        from core.index.anchors import find_stale

        return find_stale(self.snapshot)

    @property
    def has_checked_anchors(self) -> bool:
        """Whether the anchors of patterns were compared with the checked-out commit."""
        from core.index.anchors import is_checked

        return self.settings.review.check_anchors and is_checked(self.snapshot)

    @property
    def anchor_problem(self) -> str:
        """Why the anchors of patterns could not be checked with Git, or ""."""
        if not self.settings.review.check_anchors:
            return ""
        from core.index.anchors import find_problem

        return find_problem(self.snapshot)

    def _make_queue(self) -> tuple[ReviewItem, ...]:
        return ()

    @property
    def index(self) -> PatternIndex:
        """Word index of the patterns; built on first use."""
        return self.texts.index

    def prepare(self) -> None:
        """Open what the first context needs."""
        self.texts.prepare()
        _ = self.board.interval

    @property
    def similarity(self) -> SimilarityIndex:
        """Index of similar patterns; built on first use."""
        return self.texts.similarity

    @property
    def debug(self) -> DebugIndex:
        """Word index of the debug sessions; built on first use."""
        return self.texts.debug

    @property
    def learnings(self) -> LearningIndex:
        """Word index of the learnings of tasks and loops; built on first use."""
        return self.texts.learnings

    @property
    def past_tasks(self) -> PastTasks:
        """Tasks in which patterns worked; collected on first use."""
        return self.texts.past_tasks

    @property
    def word_weights(self) -> WordWeights:
        """Weights of the parts for patterns without a vector, fitted to past tasks."""
        return self.texts.word_weights

    @property
    def coverage(self) -> Coverage | None:
        """Embedding coverage if a pattern lacks a vector, else None."""
        return self.embeddings.coverage(self.snapshot.patterns) if self.embeddings else None

    def escalations(self, since: datetime | None = None) -> tuple[EscalatedSession, ...]:
        """Return debug sessions escalated after `since` (None: ever), newest first."""
        from core.tasks.escalations import find_recent_escalations

        return find_recent_escalations(self.debug, self.snapshot, since)

    def pattern(self, pattern_id: str) -> Pattern:
        """Return the pattern with this ID or alias; raise `UnknownRecord` if none."""
        found = self._named_pattern(pattern_id)
        if found is None:
            raise UnknownRecord(f"no pattern {visible_line(pattern_id, 80)!r}; see: ralphdeck pattern list")
        return found

    def _named_pattern(self, name: str) -> Pattern | None:
        patterns = self.snapshot.patterns
        return patterns.get(name) or next((one for one in patterns.values() if name in one.aliases), None)

    def find_pattern(self, name: str) -> Pattern:
        """Return the pattern with this ID, alias or unique part, else `UnknownRecord`."""
        if (named := self._named_pattern(name)) is not None:
            return named
        patterns = self.snapshot.patterns
        found = find_matching_ids(name, patterns, fragments=True)
        return patterns[require_one(found, name, what="pattern", command="pattern list", known=patterns)]

    def loop(self, loop_id: str) -> Loop:
        """Return the loop with this ID, alias or unique part, else `UnknownRecord`."""
        loops = self.snapshot.loops
        if loop_id in loops:
            return loops[loop_id]
        found = [loop.id for loop in loops.values() if loop_id in loop.aliases]
        found = found or find_matching_ids(loop_id, loops, fragments=True)
        return loops[require_one(found, loop_id, what="loop", command="loop list", known=loops)]

    @property
    def active_loops(self) -> list[Loop]:
        """Loops that run and had recent activity, newest first."""
        loops = self.snapshot.loops
        candidates = loops.open_values() if isinstance(loops, RecordMap) else loops.values()
        running = [loop for loop in candidates if loop.is_running and loop.liveness is not Liveness.STALE]
        running.sort(key=lambda loop: loop.id)
        return sorted(running, key=lambda loop: loop.started_at or _LONG_AGO, reverse=True)

    @property
    def own_active_loops(self) -> list[Loop]:
        """The active loops of `.aiwg`, newest first.

        Sessions of agents and loops of other runners depend on what was read last, and a loop starts such sessions.
        """
        return [loop for loop in self.active_loops if not loop.runner]

    def debug_session(self, session_id: str) -> DebugSession:
        """Return the debug session with this ID or unique part, else `UnknownRecord`."""
        sessions = self.snapshot.debug_sessions
        found = find_matching_ids(session_id, sessions, fragments=True)
        return sessions[require_one(found, session_id, what="debug session", command="debug list", known=sessions)]

    @property
    def agenda(self) -> tuple[ReviewItem, ...]:
        """What Review asks at present: the best questions, and rows for the others."""
        from core.index.review_items import make_agenda

        return make_agenda(self.queue, self.snapshot.curation, self.now)

    @property
    def worth_reading(self) -> tuple[ReviewItem, ...]:
        """Questions and rows of the agenda that are worth a person's time, in its order."""
        return tuple(item for item in self.agenda if item.is_worth_reading)

    @property
    def pending_count(self) -> int:
        """Number of questions and rows worth reading, at least `earlier_count`."""
        return max(len(self.worth_reading), self.earlier_count)

    @property
    def is_count_open(self) -> bool:
        """Whether `pending_count` waits for searches."""
        return self.earlier_count > len(self.worth_reading)

    @property
    def evidence(self) -> object:
        """The same object for all states with the same evidence; their times may differ."""
        return self.board.evidence

    def outcome(self, work_id: str) -> tuple[OutcomeSignals, Outcome] | None:
        """Return the signals and the score of a finished loop or attempt, or None.

        The attempts of an agent's session are scored: the session shows the outcome of the newest.
        """
        return score_signals(self.inputs.shown_signals(work_id), self.now, self.settings.learning)

    def attempts_of(self, loop: Loop) -> list[Attempt]:
        """Return the attempts that hooks recorded of a loop's sessions, oldest first."""
        return self.inputs.names.attempts_of(loop)

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        return self.inputs.loop_patterns(loop_id)

    def assessment(self, pattern_id: str) -> Assessment:
        return self.board.assessment(pattern_id)

    def count_tokens(self, pattern_ids: Iterable[str]) -> dict[str, int]:
        """Estimate the size of each pattern in a context."""
        from core.retrieval.rendering import count_entry_tokens

        items = {id: (self.snapshot.patterns[id], self.assessment(id)) for id in pattern_ids}
        return {id: count_entry_tokens(item, self.settings.injection) for id, item in items.items()}

    def has_low_rate(self, pattern_id: str) -> bool:
        """Return whether the success rate of a pattern is below the minimum for contexts."""
        board = self.board
        return bool(board.effectiveness[board.row(pattern_id)] < self.settings.injection.min_success_rate)

    def work_id(self, work_id: str) -> str:
        """Return the full ID of a loop or attempt; raise `UnknownRecord` if none."""
        return work_id if work_id in self.snapshot.attempts else self.loop(work_id).id


MANY_RECORDED: Final = 20  # Number of recorded uses that is suspicious without any observation from a loop.
_TEAM: Final = ".aiwg/ralph/shared/team/evidence.jsonl"
_EVENTS: Final = ".aiwg/ralph/shared/curation/events.jsonl"


def all_findings(state: ProjectState) -> tuple[Finding, ...]:
    """Return suspicious reports, blocked and held texts, and problems in files."""
    suspicious = []
    for burst in state.board.bursts:
        loop = state.snapshot.loops.get(burst.source)
        file = loop.files[0] if loop is not None and loop.files else _EVENTS
        suspicious.append(Finding(file, "", Severity.WARNING, "burst", format_burst(burst)))
    return (*suspicious, *_stopped_texts(state), *_half_lives(state), *_anchors(state), *state.snapshot.findings)


def _anchors(state: ProjectState) -> Iterator[Finding]:
    """Yield a finding if it is not known which files of lessons were removed."""
    if problem := state.anchor_problem:
        message = f"the files that lessons are about could not be checked: {problem}"
        yield Finding(".git", "", Severity.WARNING, "anchors-not-checked", visible_line(message, 300))


def _half_lives(state: ProjectState) -> Iterator[Finding]:
    """Yield a finding if the team's sums have another half-life than the project."""
    team, half_life = state.snapshot.team, state.settings.maturity.half_life_days
    if team.space and team.half_life_days != half_life:
        message = (
            f"the half-life of the team's sums is {team.half_life_days:g} days, that of this project is {half_life:g};"
            " set maturity.half_life_days to the same value, or its states differ from those of the other projects"
        )
        yield Finding(_TEAM, "line 1", Severity.INFO, "other-half-life", message)


def _stopped_texts(state: ProjectState) -> Iterator[Finding]:
    board = state.board
    for flags, code, severity, text in (
        (board.blocked, "suspect", Severity.WARNING, "{} is not injected"),
        (board.held, "held", Severity.INFO, "{} is not injected until a person approves it"),
    ):
        for row in flags.nonzero()[0].tolist():
            pattern = state.snapshot.patterns[board.ids[row]]
            stopped = text.format(visible_line(pattern.id, 80))
            message = f"{stopped}: this text {describe_suspicions(board.suspicions(pattern.id))}"
            yield Finding(pattern.file, pattern.pointer, severity, code, message)


def ledger_error(state: ProjectState) -> str:
    """Return why the decision log cannot be read, which stops injection, or ""."""
    for finding in state.snapshot.findings:
        if finding.file == LEDGER and not finding.pointer and finding.severity is Severity.ERROR:
            return f"{finding.file}: {finding.message}"
    return ""


def scan_pattern(state: ProjectState, pattern_id: str) -> tuple[Suspicion, ...]:
    """Return the scan results of a pattern, critical first; see docs/safety.md."""
    pattern = state.pattern(pattern_id)
    suspicions = state.board.suspicions(pattern.id)
    recorded = pattern.recorded_counts.uses or 0
    if recorded < MANY_RECORDED or any(one.loop_id for one in state.board.observations(pattern.id)):
        return suspicions
    excerpt = f"{recorded:,} uses"
    return (*suspicions, Suspicion(rule=COUNTS.id, severity=COUNTS.severity, field="claim", excerpt=excerpt))


def count_conflicts(state: ProjectState, pattern_id: str) -> tuple[Finding, ...]:
    """Return how the recorded counts of a pattern and its evidence disagree."""
    return state.board.reconcile(state.pattern(pattern_id).id)


def explain_pattern(state: ProjectState, pattern_id: str) -> Explanation:
    """Explain rule by rule and event by event why the pattern has its state."""
    from core.learning.explanation import explain_state  # contexts, which hooks render, explain nothing

    pattern = state.pattern(pattern_id)
    assessment, observations = state.assessment(pattern.id), state.board.all_results(pattern.id)
    is_invertible, team = pattern.type is not PatternType.ANTI, state.board.team_sums(pattern.id)
    return explain_state(assessment, observations, state.now, state.settings, invertible=is_invertible, team=team)


def pattern_lineage(state: ProjectState, pattern_id: str) -> tuple[LineageEvent, ...]:
    """Return the history of a pattern: its origin, uses, and decisions about it."""
    from core.learning.explanation import build_lineage

    snapshot, observations = state.snapshot, state.board.observations(pattern_id)
    return build_lineage(state.pattern(pattern_id), observations, snapshot.decisions, snapshot.loops)
