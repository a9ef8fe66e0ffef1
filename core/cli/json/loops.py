"""JSON of loops, injections, reflections, and reports on loops and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.cli.json.wire import Wire, wire

if TYPE_CHECKING:
    from core.config.settings import LearningSettings
    from core.curation.use_counts import CountResult
    from core.extraction.clustering import Cluster
    from core.learning.assessment import Assessment
    from core.learning.criteria import CriterionWeight
    from core.learning.outcomes import OutcomeSignals
    from core.learning.recorded_uses import LoopPatterns
    from core.records.events import Event as EventRecord
    from core.records.loops import Loop
    from core.records.reflections import Reflection as ReflectionRecord
    from core.retrieval.injection import Injection
ImprovementEstimate: Final = wire(
    "ImprovementEstimate",
    "The improvement that a loop reports.",
    "baseline_iterations:number? actual_iterations:number? improvement:number?",
)
PatternUse: Final = wire(
    "PatternUse",
    "A pattern that a loop got or applied; `inferred`: the result is that of the whole loop.",
    "id applied:bool success:bool? inferred:bool iteration:int? at:time",
)
OutcomeScore: Final = wire(
    "OutcomeScore",
    "The score of an outcome: when it was new (`raw`), and `decayed`.",
    "verdict raw:number decayed:number parts:{number} reasoning",
)
LoopOutcome: Final = wire(
    "LoopOutcome",
    "The score of a loop's outcome, with the counts behind it.",
    "error_count:int retry_count:int",
    OutcomeScore,
)
LoopRow: Final = wire(
    "LoopRow",
    "One loop; `raw_status` is the word of the file.",
    """id task status raw_status sources:[text] iteration:int? max_iterations:int? started_at:time ended_at:time
    archived:bool liveness liveness_reason last_sign:time ended_approximate:bool badges:[text] aliases:[text]
    quality:[number] improvement_estimate:ImprovementEstimate? injected:[text] injected_reflections:[text]
    uses:[PatternUse] extracted:[text] files:[text] outcome:LoopOutcome?""",
)
LoopList: Final = wire("LoopList", "`loop list`.", "loops:[LoopRow] findings:[Finding]")


def loop_row(loop: Loop, patterns: LoopPatterns, outcome: Wire | None) -> Wire:
    """One loop with the patterns it got and its outcome."""
    estimate = loop.improvement
    return LoopRow.of(
        loop,
        last_sign=loop.last_activity,
        improvement_estimate=None
        if estimate is None
        else ImprovementEstimate.of(
            baseline_iterations=estimate.baseline, actual_iterations=estimate.actual, improvement=estimate.share
        ),
        injected=patterns.injected_ids,
        injected_reflections=patterns.reflections,
        uses=[PatternUse.of(use, id=use.pattern_id, applied=use.kind != "injected") for use in patterns.uses],
        extracted=[extracted.pattern_id for extracted in patterns.extracted],
        outcome=outcome,
    )


InjectedPattern: Final = wire(
    "InjectedPattern",
    "A pattern in the context, and what its score is made of.",
    "id type score:number relevance:number effectiveness:number multiplier:number parts:{number} lower_bound:number",
)
OmittedPattern: Final = wire("OmittedPattern", "A pattern that is not in the context.", "id reason score:number?")
InjectedReflection: Final = wire(
    "InjectedReflection",
    "A learning in the context; `matched_by` is meaning or words.",
    """id learning task? sources:[text] same_ids:[text] outcome draft:bool at:time score:number relevance:number
    outcome_factor:number decay:number parts:{number} matched_by""",
)
OmittedReflection: Final = wire(
    "OmittedReflection", "A learning that is not in the context.", "id learning reason score:number?"
)
InjectionDocument: Final = wire(
    "InjectionDocument",
    "`loop inject`.",
    """context tokens:int bytes:int patterns:[InjectedPattern] left_out:[OmittedPattern]
    reflections:[InjectedReflection] reflections_left_out:[OmittedReflection] category? languages:[text]
    error_types:[text] decomposition:bool matched_by findings:[Finding]""",
)


def injection_document(injection: Injection, findings: object) -> Wire:
    """The context of a task, and what was left out of it."""
    profile, reflections = injection.profile, injection.reflections
    return InjectionDocument.of(
        injection,
        patterns=[InjectedPattern.of(one, id=one.pattern_id, type=str(one.type)) for one in injection.chosen],
        left_out=[OmittedPattern.of(one, id=one.pattern_id) for one in injection.left_out],
        reflections=[
            InjectedReflection.of(
                one, learning=one.text, task=one.title, matched_by="meaning" if one.is_semantic else "words"
            )
            for one in reflections.chosen
        ],
        reflections_left_out=[OmittedReflection.of(one, learning=one.text) for one in reflections.left_out],
        category=profile.category,
        languages=profile.languages,
        error_types=profile.error_types,
        decomposition=profile.decomposition,
        findings=findings,
    )


Reflection: Final = wire(
    "Reflection",
    "One reflection; `at_approximate`: the time is that of the file.",
    """id loop_id? task_id? attempt:int? iteration:int? at:time at_approximate:bool kind? outcome trigger?
    effectiveness? observation analysis learning actions:[text] shape file pointer also_in:[text] draft:bool""",
)
ReflectionList: Final = wire("ReflectionList", "`reflection list`.", "reflections:[Reflection] findings:[Finding]")
RecurringLearning: Final = wire(
    "RecurringLearning",
    "A learning that several loops report; `loops` has tasks too where their loop is unknown.",
    "id text loops:[text] kinds:[text] first_at:time last_at:time reflections:[text]",
)
RecurringList: Final = wire(
    "RecurringList", "`reflection list --recurring`.", "recurring:[RecurringLearning] findings:[Finding]"
)


def recurring_learning(cluster: Cluster) -> Wire:
    """A learning that several loops report."""
    return RecurringLearning.of(
        cluster, loops=cluster.sources, reflections=[member.reflection.id for member in cluster.members]
    )


def reflection(record: ReflectionRecord) -> Wire:
    """One reflection."""
    return Reflection.of(record)


Event: Final = wire(
    "Event",
    "A recorded event.",
    "id at:time kind loop_id pattern_id? criterion? success:bool? weight:number iteration:int? text by agent?",
)
Effect: Final = wire(
    "Effect",
    "The state of a pattern before and after a report.",
    "id state state_before computed_state helpful:number harmful:number successes:int failures:int inversion_due:bool",
)


def effect(before: Assessment, after: Assessment) -> Wire:
    """The state of a pattern before and after a report."""
    return Effect.of(after, id=after.pattern_id, state_before=before.state, computed_state=after.computed)


Criterion: Final = wire(
    "Criterion",
    "The weight of an evaluation criterion; `effective_weight` is 0 if it is deprecated.",
    """criterion weight:number effective_weight:number helpful:number harmful:number helpful_count:int
    harmful_count:int last_validated:time half_life_days:number no_data:bool deprecated:bool""",
)


def criterion(weight: CriterionWeight, settings: LearningSettings) -> Wire:
    """The weight of an evaluation criterion."""
    from core.learning.criteria import effective_weight, should_deprecate_criterion

    return Criterion.of(
        weight,
        effective_weight=effective_weight(weight, settings),
        deprecated=should_deprecate_criterion(weight, settings),
    )


RecordUpdate: Final = wire(
    "RecordUpdate",
    "The counts that a pattern record has now, or the problem that kept it from being updated.",
    "id file written:bool problem? successes:int? failures:int? usage_count:int? success_rate:number?",
)


def record_update(counted: CountResult) -> Wire:
    """The counts that a pattern record has now."""
    results = counted.successes + counted.failures
    known: dict[str, Any] = dict.fromkeys(("successes", "failures", "usage_count", "success_rate"))
    if not counted.problem:
        rate = counted.successes / results if results else None
        known = {
            "successes": counted.successes,
            "failures": counted.failures,
            "usage_count": counted.uses,
            "success_rate": rate,
        }
    return RecordUpdate.of(counted, id=counted.pattern_id, written=not counted.problem, **known)


RecordDocument: Final = wire(
    "RecordDocument",
    "`loop record`; `held`: the report waits for a check of suspicious reports.",
    "event:Event pattern:Effect? criterion:Criterion? held:bool records:[RecordUpdate] warnings:[text]",
)


def record_document(event: EventRecord, **given: Any) -> Wire:
    """A recorded use of a pattern, or feedback on a criterion."""
    absent: dict[str, Any] = {"pattern": None, "criterion": None, "held": False, "records": []}
    return RecordDocument.of(event=Event.of(event), **{**absent, **given})


Signals: Final = wire(
    "Signals",
    "What an outcome is scored by.",
    """success:bool partial:bool timestamp:time duration_ms:number? error_count:int retry_count:int
    files_touched:[text] strategy failure_mode failure_details""",
)
Outcome: Final = wire(
    "Outcome", "The scored outcome of a loop or an attempt.", "id kind decay:number signals:Signals", OutcomeScore
)
AppliedPattern: Final = wire("AppliedPattern", "A pattern that was applied.", "id success:bool? inferred:bool")
ScoredOutcome: Final = wire(
    "ScoredOutcome",
    "The scored outcome of a loop or an attempt, with the patterns it applied.",
    "patterns:[AppliedPattern]",
    Outcome,
)


def outcome_values(kind: str, signals: OutcomeSignals) -> dict[str, Any]:
    """The fields of `Outcome` that its score does not have."""
    from core.learning.decay import parse_moment

    return {
        "id": signals.bead_id,
        "kind": kind,
        "signals": Signals.of(signals, timestamp=parse_moment(signals.timestamp, "timestamp")),
    }


OutcomeDocument: Final = wire(
    "OutcomeDocument",
    "`loop outcome`.",
    "outcome:Outcome patterns:[Effect] strategies:[text] recorded:bool records:[RecordUpdate] warnings:[text]",
)
WeightedScore: Final = wire(
    "WeightedScore", "A score weighted by its criterion.", "criterion weight:number weighted:number"
)
WeightedScores: Final = wire(
    "WeightedScores", "Scores weighted by their criteria.", "scores:[WeightedScore] total:number?"
)
ScoreDocument: Final = wire(
    "ScoreDocument",
    "`loop score`; `inversions` are patterns due for inversion.",
    "outcomes:[ScoredOutcome] criteria:[Criterion] weighted:WeightedScores? inversions:[text] findings:[Finding]",
)
LoggedError: Final = wire(
    "LoggedError", "An error of a loop or an attempt.", "id at:time type message tool context stack_trace resolved:bool"
)
ErrorCounts: Final = wire("ErrorCounts", "The number of errors.", "total:int unresolved:int by_type:{int}")
ErrorList: Final = wire("ErrorList", "`loop errors`.", "errors:[LoggedError] stats:ErrorCounts")
WatchLine: Final = wire("WatchLine", "`watch`: one line for each event.", "at what subject text severity")
