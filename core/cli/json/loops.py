"""JSON objects of loops, reflections, lessons, and reports on loops and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.base.settings import LearningSettings
    from core.decisions.use_counts import CountResult
    from core.index.project_state import ProjectState
    from core.learning.maturity import Assessment
    from core.learning.outcomes import CriterionWeight, OutcomeSignals
    from core.records.loops import Loop
    from core.show.needs import Need


from typing import Annotated

from core.cli.json.patterns import WorkVerdict
from core.cli.json.wire import Finding, Time, Wire


class ImprovementEstimate(Wire, frozen=True):
    """The improvement that a loop reports."""

    baseline_iterations: Annotated[float | None, "baseline"]
    actual_iterations: Annotated[float | None, "actual"]
    improvement: Annotated[float | None, "share"]


class PatternUse(Wire, frozen=True):
    """A pattern a loop got or applied; `inferred`: the result is the whole loop's."""

    id: Annotated[str, "pattern_id"]
    applied: bool
    success: bool | None
    inferred: bool
    iteration: int | None
    at: Time


class OutcomeScore(Wire, frozen=True):
    """The score of an outcome: when it was new (`raw`), and `decayed`."""

    verdict: str
    raw: float
    decayed: float
    parts: dict[str, float]
    reasoning: str


class LoopOutcome(OutcomeScore, frozen=True):
    """The score of a loop's outcome, with the counts behind it."""

    error_count: int
    retry_count: int


class Usage(Wire, frozen=True):
    """Tokens, without cached ones in `input`, and the cost that the runner reported."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    reasoning: int | None
    cost_usd: float | None


class LoopNeed(Wire, frozen=True):
    """Need of a loop: asks, same error (in `count` iterations), silent, tests failed."""

    kind: str
    since: Time
    count: int
    text: str | None


class LoopRow(Wire, frozen=True):
    """A loop; `raw_status` is the file's word, `source` the adapter that found it.

    `state_source` is reported, watched or inferred. `held_out` are the patterns that the experiment held out.
    """

    id: str
    task: str
    status: str
    raw_status: str
    sources: list[str]
    iteration: int | None
    max_iterations: int | None
    started_at: Time
    ended_at: Time
    archived: bool
    liveness: str
    liveness_reason: str
    last_sign: Annotated[Time, "last_activity"]
    ended_approximate: bool
    badges: list[str]
    aliases: list[str]
    quality: list[float]
    improvement_estimate: Annotated[ImprovementEstimate | None, "improvement"]
    injected: list[str]
    injected_reflections: list[str]
    uses: list[PatternUse]
    extracted: list[str]
    files: list[str]
    outcome: LoopOutcome | None
    source: Annotated[str, "source_name"]
    agent: str | None
    model: str | None
    usage: Usage
    state_source: str
    end_reason: str | None
    parent: str | None
    session_ids: list[str]
    result: str | None
    needs: LoopNeed | None
    verdicts: list[WorkVerdict]
    held_out: list[str]


class UsageGroup(Wire, frozen=True):
    """Usage of `loops` loops; `name` is the day (UTC), source, agent, model or loop."""

    name: str
    usage: Usage
    loops: int
    tokens: Annotated[int | None, "usage.total"]


class UsageList(Wire, frozen=True):
    """`cost --by`."""

    by: str
    groups: list[UsageGroup]
    total: UsageGroup
    findings: list[Finding]


class DeliveryDocument(Wire, frozen=True):
    """`loop inject --deliver`; `command` are words to run, `diff` a change to apply."""

    loop_id: str
    explanation: str
    command: list[str]
    diff: str | None
    findings: list[Finding]


class LoopIteration(Wire, frozen=True):
    """An iteration; `outcome`: success, partial, failure, timeout, skipped, unknown."""

    number: int | None
    at: Time
    action: str
    result: str
    outcome: str
    learnings: list[str]
    duration_ms: float | None
    quality: float | None
    files: list[str]
    failures: list[Failure]
    tools: list[str]


class LoopDocument(Wire, frozen=True):
    """`loop show`; `facts` are labels with values, `notes` are files with their text."""

    loop: LoopRow
    iterations: list[LoopIteration]
    facts: dict[str, str]
    notes: dict[str, str]
    checkpoints: list[str]
    findings: list[Finding]


class LoopList(Wire, frozen=True):
    """`loop list`."""

    loops: list[LoopRow]
    findings: list[Finding]


class InjectedPattern(Wire, frozen=True):
    """A pattern in the context with its score; `voice`: block approved or unreviewed."""

    id: Annotated[str, "pattern_id"]
    type: str
    score: float
    relevance: float
    effectiveness: float
    multiplier: float
    parts: dict[str, float]
    lower_bound: float
    voice: str


class OmittedPattern(Wire, frozen=True):
    """A pattern that is not in the context."""

    id: Annotated[str, "pattern_id"]
    reason: str
    score: float | None


class InjectedReflection(Wire, frozen=True):
    """A learning in the context; `matched_by` is meaning or words."""

    id: str
    learning: Annotated[str, "text"]
    task: Annotated[str | None, "title"]
    sources: list[str]
    same_ids: list[str]
    outcome: str
    draft: bool
    at: Time
    score: float
    relevance: float
    outcome_factor: float
    decay: float
    parts: dict[str, float]
    matched_by: str


class OmittedReflection(Wire, frozen=True):
    """A learning that is not in the context."""

    id: str
    learning: Annotated[str, "text"]
    reason: str
    score: float | None


class InjectionDocument(Wire, frozen=True):
    """`loop inject`; `token` is that of the fences in the context."""

    context: str
    token: str | None
    tokens: int
    bytes: int
    patterns: Annotated[list[InjectedPattern], "chosen"]
    left_out: list[OmittedPattern]
    reflections: list[InjectedReflection]
    reflections_left_out: Annotated[list[OmittedReflection], "reflections.left_out"]
    category: Annotated[str | None, "profile.category"]
    languages: Annotated[list[str], "profile.languages"]
    error_types: Annotated[list[str], "profile.error_types"]
    decomposition: Annotated[bool, "profile.decomposition"]
    matched_by: str
    findings: list[Finding]


class Reflection(Wire, frozen=True):
    """One reflection; `at_approximate`: the time is that of the file."""

    id: str
    loop_id: str | None
    task_id: str | None
    attempt: int | None
    iteration: int | None
    at: Time
    at_approximate: bool
    kind: str | None
    outcome: str
    trigger: str | None
    effectiveness: str | None
    observation: str
    analysis: str
    learning: str
    actions: list[str]
    shape: str
    file: str
    pointer: str
    also_in: list[str]
    draft: bool


class ReflectionList(Wire, frozen=True):
    """`lesson --reflections`."""

    reflections: list[Reflection]
    findings: list[Finding]


class RecurringLearning(Wire, frozen=True):
    """A learning of several loops; `loops` has the tasks whose loop is unknown, too."""

    id: str
    text: str
    loops: Annotated[list[str], "sources"]
    kinds: list[str]
    first_at: Time
    last_at: Time
    reflections: list[str]


class RecurringList(Wire, frozen=True):
    """`lesson --recurring`."""

    recurring: list[RecurringLearning]
    findings: list[Finding]


class LessonPlace(Wire, frozen=True):
    """A place where a lesson is written; `loaded`: the agent itself loads the file."""

    runner: str
    file: str
    line: int
    at: Time
    loop_id: str | None
    outcome: str
    loaded: bool
    uses: int | None
    text: str


class AgentLesson(Wire, frozen=True):
    """A lesson of agents or runners; `state` is open, accepted, rejected or known.

    `patterns` are those made of it, or the one that says the same; `contradicts` are approved patterns and
    `disagrees_with` other lessons that demand the opposite; `danger` is a finding of the safety scan.
    """

    id: str
    text: str
    kind: str
    title: str | None
    trigger: str | None
    why: str | None
    state: str
    runners: list[str]
    loaded: Annotated[bool, "is_loaded"]
    uses: int | None
    patterns: list[str]
    contradicts: list[str]
    disagrees_with: list[str]
    danger: str | None
    places: list[LessonPlace]


class PlacedInstruction(Wire, frozen=True):
    """An instruction for agents; `lines` are first and last, `tokens` is estimated.

    `loading` is start, path or request, `scope` are the globs of its files, `pattern_id` is the lesson that it is.
    """

    text: str
    place: str
    file: str
    lines: list[int]
    agents: list[str]
    loading: str
    scope: list[str]
    section: str | None
    pattern_id: str | None
    tokens: int


class InstructionPair(Wire, frozen=True):
    """Two instructions of which one `contradicts` or `repeats` the other.

    All repeats of two files have one ID. `kept` is the place of the one that a person chose.
    """

    id: str
    relation: str
    similarity: float
    shares_agent: bool
    fine: bool
    kept: str | None
    instructions: list[PlacedInstruction]


class InstructionPairList(Wire, frozen=True):
    """`review --conflicts`."""

    pairs: list[InstructionPair]
    findings: list[Finding]


class LessonList(Wire, frozen=True):
    """`lesson`."""

    lessons: list[AgentLesson]
    findings: list[Finding]


class LessonDocument(Wire, frozen=True):
    """`lesson ID`."""

    lesson: AgentLesson
    findings: list[Finding]


class Event(Wire, frozen=True):
    """A recorded event."""

    id: str
    at: Time
    kind: str
    loop_id: str
    pattern_id: str | None
    criterion: str | None
    success: bool | None
    weight: float
    iteration: int | None
    text: str
    by: str
    agent: str | None


class Effect(Wire, frozen=True):
    """The state of a pattern before and after a report."""

    id: Annotated[str, "pattern_id"]
    state: str
    state_before: str
    computed_state: Annotated[str, "computed"]
    helpful: float
    harmful: float
    successes: int
    failures: int
    inversion_due: bool


class Criterion(Wire, frozen=True):
    """Weight of an evaluation criterion; `effective_weight` is 0 if deprecated."""

    criterion: str
    weight: float
    effective_weight: float
    helpful: float
    harmful: float
    helpful_count: int
    harmful_count: int
    last_validated: Time
    half_life_days: float
    no_data: bool
    deprecated: bool


class RecordUpdate(Wire, frozen=True):
    """Counts of a pattern record; `written` is false if unchanged, or with `problem`."""

    id: Annotated[str, "pattern_id"]
    file: str
    written: bool
    problem: str | None
    successes: int | None
    failures: int | None
    usage_count: Annotated[int | None, "uses"]
    success_rate: float | None


class RecordDocument(Wire, frozen=True):
    """`loop record`; `held`: the report waits for a check of suspicious reports."""

    event: Event
    pattern: Effect | None
    criterion: Criterion | None
    held: bool
    records: list[RecordUpdate]
    warnings: list[str]


class Signals(Wire, frozen=True):
    """What an outcome is scored by."""

    success: bool
    partial: bool
    timestamp: Time
    duration_ms: float | None
    error_count: int
    retry_count: int
    files_touched: list[str]
    strategy: str
    failure_mode: str
    failure_details: str


class Outcome(OutcomeScore, frozen=True):
    """The scored outcome of a loop or an attempt."""

    id: str
    kind: str
    decay: float
    signals: Signals


class AppliedPattern(Wire, frozen=True):
    """A pattern that was applied."""

    id: Annotated[str, "pattern_id"]
    success: bool | None
    inferred: bool


class ScoredOutcome(Outcome, frozen=True):
    """The scored outcome of a loop or an attempt, with the patterns it applied."""

    patterns: list[AppliedPattern]


class OutcomeDocument(Wire, frozen=True):
    """`loop record --outcome`."""

    outcome: Outcome
    patterns: list[Effect]
    strategies: list[str]
    recorded: bool
    records: list[RecordUpdate]
    warnings: list[str]


class WeightedScore(Wire, frozen=True):
    """A score weighted by its criterion."""

    criterion: str
    weight: float
    weighted: float


class WeightedScores(Wire, frozen=True):
    """Scores weighted by their criteria."""

    scores: list[WeightedScore]
    total: float | None


class ScoreDocument(Wire, frozen=True):
    """`loop score`; `inversions` are patterns due for inversion."""

    outcomes: list[ScoredOutcome]
    criteria: list[Criterion]
    weighted: WeightedScores | None
    inversions: list[str]
    findings: list[Finding]


class LoggedError(Wire, frozen=True):
    """An error of a loop or an attempt."""

    id: str
    at: Time
    type: Annotated[str, "error_type"]
    message: str
    tool: Annotated[str, "tool_name"]
    context: str
    stack_trace: str
    resolved: bool


class ErrorCounts(Wire, frozen=True):
    """The number of errors."""

    total: int
    unresolved: int
    by_type: dict[str, int]


class ErrorList(Wire, frozen=True):
    """`loop score --errors`."""

    errors: list[LoggedError]
    stats: ErrorCounts


class WatchLine(Wire, frozen=True):
    """`watch`: one line for each event."""

    at: str
    what: str
    subject: str
    text: str
    severity: str


class Failure(Wire, frozen=True):
    """One failure; `source` is the file that raised it."""

    error_type: str
    message: str
    source: Annotated[str | None, "file"]
    line: int | None
    function: str | None
    test_name: str
    test_file: str | None
    test_line: int | None
    stack_trace: str
    expected: str
    actual: str


def loop_row(state: ProjectState, loop: Loop, need: Need | None) -> Wire:
    """Return a loop with its patterns and outcome, and why it `needs` a person."""
    from core.show.pages.loops import find_result

    patterns, scored, outcome = state.loop_patterns(loop.id), state.outcome(loop.id), None
    if scored is not None:
        signals, score = scored
        counts = {"error_count": signals.error_count, "retry_count": signals.retry_count}
        outcome = LoopOutcome.of(score, **counts)
    result = find_result(state, loop)
    return LoopRow.of(
        loop,
        injected=patterns.injected_ids,
        injected_reflections=patterns.reflections,
        uses=[PatternUse.of(use, applied=use.kind != "injected") for use in patterns.uses],
        extracted=[extracted.pattern_id for extracted in patterns.extracted],
        held_out=patterns.held_out,
        outcome=outcome,
        result=result.value if result is not None else None,
        verdicts=list(patterns.verdicts.values()),
        needs=LoopNeed.of(need, kind=need.kind.value) if need is not None else None,
    )


def effect(before: Assessment, after: Assessment) -> Wire:
    return Effect.of(after, state_before=before.state)


def criterion(weight: CriterionWeight, settings: LearningSettings) -> Wire:
    from core.learning.outcomes import effective_weight, should_deprecate_criterion

    return Criterion.of(
        weight,
        effective_weight=effective_weight(weight, settings),
        deprecated=should_deprecate_criterion(weight, settings),
    )


def record_update(counted: CountResult) -> Wire:
    """Return the new counts of a pattern record; null if it was not updated."""
    if counted.problem:
        unknown = dict.fromkeys(("successes", "failures", "usage_count", "success_rate"))
        return RecordUpdate.of(counted, written=False, **unknown)
    results = counted.successes + counted.failures
    rate = counted.successes / results if results else None
    return RecordUpdate.of(counted, written=counted.is_changed, success_rate=rate)


def outcome_values(kind: str, signals: OutcomeSignals) -> dict[str, Any]:
    """Return the fields of `Outcome` that its score does not have."""
    from core.learning.maturity import parse_moment

    timestamp = parse_moment(signals.timestamp, "timestamp")
    return {"id": signals.bead_id, "kind": kind, "signals": Signals.of(signals, timestamp=timestamp)}
