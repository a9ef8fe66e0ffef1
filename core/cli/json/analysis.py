"""JSON of metrics, changes, reviewer accuracy, what-if, vectors, the doctor and the safety scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.cli.json.decisions import Decision
from core.cli.json.patterns import ScanFinding, scan_finding
from core.cli.json.wire import Wire, wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.config.declaration import Setting
    from core.config.settings import Settings
    from core.history.changes import StateComparison
    from core.learning.threshold_replay import Replay
    from core.metrics.effectiveness import Comparison as ComparisonRecord
    from core.metrics.figures import Figure
    from core.records.suspicions import Suspicion
CategoryComparison: Final = wire(
    "CategoryComparison",
    "Iterations of loops with and without, in one category of tasks.",
    "category? loops_with:int loops_without:int average_with:number average_without:number",
)
Comparison: Final = wire(
    "Comparison",
    "Loops with and without injected patterns; `tells`: the interval does not contain 0.",
    """tells:bool difference:number? interval:[number]? level:number average_with:number? average_without:number?
    loops_with:int loops_without:int loops_needed:int? categories:[CategoryComparison]""",
)


def comparison(found: ComparisonRecord, level: float) -> Wire:
    """Loops with and without injected patterns."""
    having, lacking = found.loops
    return Comparison.of(
        found,
        tells=found.is_conclusive,
        interval=None if found.low is None or found.high is None else [found.low, found.high],
        level=level,
        average_with=found.having,
        average_without=found.lacking,
        loops_with=having,
        loops_without=lacking,
        loops_needed=found.needed,
        categories=[
            CategoryComparison.of(
                group,
                loops_with=len(group.having),
                loops_without=len(group.lacking),
                average_with=sum(group.having) / len(group.having),
                average_without=sum(group.lacking) / len(group.lacking),
            )
            for group in found.groups
        ],
    )


MetricDifference: Final = wire(
    "MetricDifference", "A number in a metrics file that differs from the evidence.", "key file:any evidence:any source"
)
SectionRow: Final = wire(
    "SectionRow",
    "A row of a section, with the interval of its rate.",
    "label values:[number] low:number? high:number? n:int",
)
Section: Final = wire("Section", "A section of the metrics.", "id title takeaway parts:[text] rows:[SectionRow]")


def section(figure: Figure) -> Wire:
    """A section of the metrics."""
    return Section.of(figure, rows=[SectionRow.of(row, n=row.count) for row in figure.rows])


PatternTypeCounts: Final = wire(
    "PatternTypeCounts",
    "Patterns by type.",
    "error_patterns:int success_patterns:int anti_patterns:int code_templates:int",
)
UsageStats: Final = wire(
    "UsageStats",
    "Applications with a result.",
    "total_applications:int successful_applications:int failed_applications:int overall_success_rate:number",
)
CrossLoopBenefit: Final = wire(
    "CrossLoopBenefit",
    "Iterations of loops with and without injected patterns.",
    """loops_with_pattern_injection:int loops_without_pattern_injection:int average_iterations_with:number?
    average_iterations_without:number? improvement_percentage:number?""",
)
Effectiveness: Final = wire(
    "Effectiveness",
    "The effectiveness metrics of the registry.",
    """total_patterns:int patterns_by_type:PatternTypeCounts pattern_usage_stats:UsageStats
    cross_loop_benefit:CrossLoopBenefit last_updated:time""",
)
MetricsDocument: Final = wire(
    "MetricsDocument",
    "`metrics`.",
    """effectiveness_metrics:Effectiveness states:{int} comparison:Comparison reflections:Comparison
    differences:[MetricDifference] weeks:int sections:[Section] exported? findings:[Finding]""",
)
ResultCounts: Final = wire("ResultCounts", "Results of uses.", "helped:int failed:int other:int")
StateCount: Final = wire("StateCount", "Patterns in a state, before and after.", "state before:int after:int")
PatternAt: Final = wire(
    "PatternAt",
    "A pattern at one moment.",
    "state success_rate:number? successes:int failures:int usage_count:int score:number injectable:bool",
)
PatternChange: Final = wire(
    "PatternChange",
    "A pattern that changed; before or after is null if it did not exist.",
    "id title kind because by weight:number before:PatternAt? after:PatternAt?",
)
LoopChange: Final = wire("LoopChange", "A loop that started or ended.", "id kind status task at:time")
QuestionChange: Final = wire("QuestionChange", "A question that is new or settled.", "kind subject text new:bool")
ChangesDocument: Final = wire(
    "ChangesDocument",
    "`changes`.",
    """since:time until:time results:ResultCounts states:[StateCount] patterns:[PatternChange] decisions:[Decision]
    loops:[LoopChange] questions:[QuestionChange] findings:[Finding]""",
    uses=[Decision],
)


def changes_document(found: StateComparison, findings: object) -> Wire:
    """What changed between two moments."""
    return ChangesDocument.of(
        found,
        results=ResultCounts.of(found),
        states=[
            StateCount.of(state=state, before=found.states_before[state], after=after)
            for state, after in found.states_after.items()
        ],
        patterns=[
            PatternChange.of(one, id=one.pattern_id, before=_pattern_at(one.before), after=_pattern_at(one.after))
            for one in found.patterns
        ],
        loops=[LoopChange.of(one, id=one.loop_id) for one in found.loops],
        findings=findings,
    )


def _pattern_at(found: Any) -> Wire | None:
    return None if found is None else PatternAt.of(found, success_rate=found.rate, usage_count=found.uses)


DecisionShare: Final = wire(
    "DecisionShare",
    "Decisions, those with enough later results, and how many of these held; null below the minimum.",
    "made:int followed:int held:int? rate:number? low:number? high:number?",
)
AccuracyDocument: Final = wire(
    "AccuracyDocument",
    "`accuracy`.",
    "by follow_up:int needed:int level:number promotions:DecisionShare deprecations:DecisionShare findings:[Finding]",
)
Threshold: Final = wire(
    "Threshold",
    "One threshold and its value; `replayed`: it changes states or inversions.",
    "name value:any unit label choices:[text] replayed:bool",
)
ThresholdList: Final = wire("ThresholdList", "`what-if` without arguments.", "thresholds:[Threshold]")


def threshold(record: Setting, settings: Settings) -> Wire:
    """One threshold and its value."""
    return Threshold.of(record, value=record.value(settings), label=record.help)


PatternTurn: Final = wire(
    "PatternTurn",
    "A pattern that would be in another state, or invert.",
    "id before after since:time inverts_before:bool inverts:bool inverted_at:time pinned:bool",
)
CriterionChange: Final = wire(
    "CriterionChange",
    "The weight of a criterion before and after.",
    """criterion weight_before:number weight:number effective_weight_before:number effective_weight:number
    deprecated_before:bool deprecated:bool""",
)
WhatIfDocument: Final = wire(
    "WhatIfDocument",
    "`what-if`.",
    """tried:[Threshold] counts:[StateCount] turns:[PatternTurn] events:int criteria:[CriterionChange]
    findings:[Finding]""",
)


def what_if_document(replay: Replay, **given: Any) -> Wire:
    """What other thresholds would have made of the history."""
    return WhatIfDocument.of(
        replay,
        counts=[
            StateCount.of(state=state, before=count, after=replay.after[state])
            for state, count in replay.before.items()
        ],
        turns=[
            PatternTurn.of(
                turn.after,
                id=turn.pattern_id,
                before=turn.before.state,
                after=turn.after.state,
                inverts_before=turn.before.inverts,
                pinned=turn.pinned,
            )
            for turn in replay.turns
        ],
        **given,
    )


VectorCounts: Final = wire("VectorCounts", "`embed`.", "made:int patterns:int tasks_made:int tasks:int model")
CheckResult: Final = wire("CheckResult", "One check; `status` is ok, note, warning or error.", "area name status text")
SettingValue: Final = wire("SettingValue", "A setting and where its value comes from.", "name value:any source")
DemoReport: Final = wire(
    "DemoReport",
    "`demo --check`; `findings` is a number.",
    """ok:bool loops:int patterns:int reflections:int findings:int changes:int changed_loops:int
    changed_patterns:int watch""",
)
DoctorDocument: Final = wire(
    "DoctorDocument", "`doctor`.", "verdict checks:[CheckResult] settings:[SettingValue] findings:[Finding]"
)
ScanResult: Final = wire(
    "ScanResult",
    "`scan --lines`: verdict is blocked, held, flagged or clean; `masked` is the text with its secrets masked.",
    "verdict marks:[ScanFinding] masked",
    uses=[ScanFinding],
)
FileScan: Final = wire("FileScan", "The scan of a file.", "file", ScanResult)
ScanDocument: Final = wire("ScanDocument", "`scan`.", "files:[FileScan]")


def scan_values(suspicions: Sequence[Suspicion], masked: str) -> dict[str, Any]:
    """The fields of `ScanResult`; the most severe finding is first."""
    return {
        "verdict": suspicions[0].severity if suspicions else "clean",
        "marks": list(map(scan_finding, suspicions)),
        "masked": masked,
    }
