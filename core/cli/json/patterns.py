"""JSON of patterns: lists, details, explanations, and what the archive, duplicates and exchange commands print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from core.cli.json.decisions import Decision
from core.cli.json.wire import Wire, wire
from core.state.findings import all_findings, count_conflicts
from core.state.history import explain_pattern

if TYPE_CHECKING:
    from core.learning.assessment import Assessment
    from core.learning.explanation import WeightedUse
    from core.records.patterns import Pattern
    from core.records.suspicions import Suspicion
    from core.state.project_state import ProjectState
PatternRow: Final = wire(
    "PatternRow",
    "One pattern; counts and rate are those of the evidence.",
    """id type title state computed_state pinned:bool success_rate:number? claimed_rate:number? interval:[number]
    usage_count:int successes:int failures:int last_used:time tags:[text] mirror_of? score:number exposures:int
    decided_by faded:bool contradicted:bool inversion_due:bool injectable:bool quarantined:bool held:bool file
    pointer""",
)


def pattern_values(pattern: Pattern, assessment: Assessment) -> dict[str, Any]:
    """The fields of `PatternRow` that come from an assessment."""
    return {
        "state": assessment.state,
        "computed_state": assessment.computed,
        "pinned": assessment.pin is not None,
        "success_rate": assessment.rate,
        "claimed_rate": assessment.claimed_rate,
        "interval": assessment.interval,
        "usage_count": assessment.uses,
        "successes": assessment.successes,
        "failures": assessment.failures,
        "last_used": assessment.last_used,
        "mirror_of": pattern.copy_folder,
        "score": assessment.score,
        "exposures": assessment.injected_only,
        "decided_by": assessment.decided_by,
        "faded": assessment.faded,
        "contradicted": assessment.contradicted,
        "inversion_due": assessment.inversion_due,
        "injectable": assessment.injectable,
        "quarantined": assessment.quarantined,
        "held": assessment.held,
    }


PatternList: Final = wire("PatternList", "`pattern list`.", "patterns:[PatternRow] findings:[Finding]")
Template: Final = wire("Template", "Code of a pattern.", "language code placeholders:{text}")
TypicalIterations: Final = wire(
    "TypicalIterations", "How many iterations loops took.", "average:number? minimum:number? maximum:number?"
)
SourceLoop: Final = wire(
    "SourceLoop",
    "A loop that a pattern names as its source.",
    "loop_id at:time contributed_by outcome? iterations_required:int? failure_iteration:int?",
)
PatternCopy: Final = wire("PatternCopy", "A copy of the record in another file.", "file pointer differs:bool")
ScanFinding: Final = wire(
    "ScanFinding", "What the safety scan found in a text.", "rule severity tier meaning field? excerpt"
)


def scan_finding(suspicion: Suspicion) -> Wire:
    """One finding of the safety scan."""
    from core.scanning.messages import describe_rule  # the scan is slow to load, and hooks never print this

    return ScanFinding.of(
        suspicion,
        severity="critical" if suspicion.critical else "warning",
        tier=suspicion.severity,
        meaning=describe_rule(suspicion),
    )


PatternDetails: Final = wire(
    "PatternDetails",
    "One pattern with all its content.",
    """description use_case category error_type error_pattern location_hints:[text] task_pattern template:Template
    diff_pattern steps:[text] tools:[text] preconditions:[text] benefits:[text] limitations:[text]
    average_iterations:number? typical_iterations:TypicalIterations? symptoms:[text] why_it_fails better_alternative
    better_pattern_id source_loops:[SourceLoop] related:[text] first_discovered:time inverted_from aliases:[text]
    mirrors:[PatternCopy] content_hash suspicions:[ScanFinding]""",
    PatternRow,
)
Observation: Final = wire(
    "Observation",
    "One piece of evidence; `count` is above 1 where only a sum is known.",
    "kind source loop_id? at:time success:bool? weight:number count:int iteration:int? derived:bool inferred:bool",
)
LineageEvent: Final = wire(
    "LineageEvent", "One event in the history of a pattern.", "at:time kind loop_id? success:bool? text"
)
PatternDocument: Final = wire(
    "PatternDocument",
    "`pattern show`.",
    "pattern:PatternDetails evidence:[Observation] lineage:[LineageEvent] findings:[Finding]",
)


def pattern_details(pattern: Pattern, assessment: Assessment) -> Wire:
    """One pattern with all its content."""
    is_anti = pattern.type == "anti"
    return PatternDetails.of(
        pattern,
        **pattern_values(pattern, assessment),
        template=Template.of(
            language=pattern.template_language, code=pattern.template_code, placeholders=dict(pattern.placeholders)
        ),
        source_loops=[
            SourceLoop.of(
                source,
                iterations_required=None if is_anti else source.iteration,
                failure_iteration=source.iteration if is_anti else None,
            )
            for source in pattern.source_loops
        ],
        mirrors=pattern.copies,
        suspicions=list(map(scan_finding, pattern.suspicions)),
    )


Pin: Final = wire("Pin", "The pinned state of a pattern.", "state at:time by reason decision_id")
StateAt: Final = wire("StateAt", "A state from a time on.", "at:time state")
Rule: Final = wire(
    "Rule",
    "One rule of the explanation of a state.",
    "rule text holds:bool? fired:bool state? value:number? threshold:number? distance:number?",
)
WeighedEvent: Final = wire(
    "WeighedEvent",
    "One result: its weight when it was new (`raw`), and `today`.",
    "kind source loop_id? at:time success:bool? inferred:bool raw:number today:number iteration:int? count:int",
)
NextState: Final = wire(
    "NextState", "The fewest further results of one kind that lead to another state.", "state result count:int"
)
LoopShare: Final = wire(
    "LoopShare", "What one loop contributes to the evidence.", "loop_id helpful:number harmful:number state_without"
)
IgnoredReport: Final = wire("IgnoredReport", "A harmful report that does not count.", "source at:time revoked:bool")
Explanation: Final = wire(
    "Explanation",
    "`pattern why`; `helpful` and `harmful` are decayed sums.",
    """id state computed_state decided_by pin:Pin? pin_stale:bool contradicted:bool faded:bool injectable:bool
    success_rate:number? claimed_rate:number? interval:[number] successes:int failures:int helpful:number
    harmful:number next_change:StateAt? rules:[Rule] events:[WeighedEvent] steps:[NextState] loops:[LoopShare]
    calendar:[StateAt] set_aside:[IgnoredReport] doubts:[Finding] findings:[Finding]""",
)
DuplicatePair: Final = wire("DuplicatePair", "Two similar patterns.", "kept other similarity:number")
DuplicateList: Final = wire("DuplicateList", "`pattern duplicates`.", "duplicates:[DuplicatePair] findings:[Finding]")
RecordedCounts: Final = wire(
    "RecordedCounts", "The counts in a record.", "successes:int failures:int usage_count:int success_rate:number?"
)
MergePreview: Final = wire(
    "MergePreview", "`pattern merge --dry-run`.", "kept other before:RecordedCounts after:RecordedCounts aliases:[text]"
)
PrunedPattern: Final = wire(
    "PrunedPattern",
    "A pattern that the policy would archive.",
    "id type title rules:[text] reason success_rate:number? uses:int last_used:time",
)
PruneList: Final = wire(
    "PruneList", "`pattern prune --dry-run`, or without anything to prune.", "prune:[PrunedPattern] findings:[Finding]"
)
ArchivedPattern: Final = wire(
    "ArchivedPattern", "A pattern in an archive file.", "id type title at:time by? reason? source? file"
)
ArchivedPatternList: Final = wire(
    "ArchivedPatternList", "`pattern archived`.", "archived:[ArchivedPattern] findings:[Finding]"
)
MaskedText: Final = wire("MaskedText", "A text of which a part was masked.", "id pointer kind")
Export: Final = wire(
    "Export", "`pattern export`.", "file exported:int left_out:[text] masked:[MaskedText] findings:[Finding]"
)
SimilarPattern: Final = wire("SimilarPattern", "A similar pattern of this project.", "id similarity:number")
ImportRow: Final = wire(
    "ImportRow",
    "What an import does with one record.",
    "action id type target? quarantined:bool changes:[text] similar:[SimilarPattern] why?",
)
ImportPlan: Final = wire(
    "ImportPlan", "`pattern import --dry-run`, or without a change.", "rows:[ImportRow] findings:[Finding]"
)
ImportResult: Final = wire(
    "ImportResult",
    "`pattern import`.",
    "decision:Decision summary warnings:[text] written:bool",
    ImportPlan,
    uses=[Decision],
)
InversionProposal: Final = wire(
    "InversionProposal",
    "A pattern that is due for inversion, and what it would become.",
    """id text reason failures:int total:int failure_mode why_it_fails better_alternative better_pattern_id?
    source_loops:[text] lint:[text]""",
)
InversionList: Final = wire("InversionList", "`pattern invert`.", "proposals:[InversionProposal] findings:[Finding]")


def explanation_document(state: ProjectState, pattern: Pattern) -> Wire:
    """The explanation of a pattern's state."""
    assessment, explanation = state.assessment(pattern.id), explain_pattern(state, pattern.id)
    change = assessment.next_change
    return Explanation.of(
        assessment,
        id=pattern.id,
        computed_state=assessment.computed,
        success_rate=assessment.rate,
        next_change=None if change is None else StateAt.of(at=change[0], state=change[1]),
        rules=explanation.lines,
        events=list(map(_weighed_event, explanation.events)),
        steps=[NextState.of(step, result="success" if step.helpful else "failure") for step in explanation.steps],
        loops=explanation.loops,
        calendar=[StateAt.of(at=at, state=maturity) for at, maturity in explanation.calendar],
        set_aside=_ignored_reports(state, pattern.id),
        doubts=count_conflicts(state, pattern.id),
        findings=all_findings(state),
    )


def _weighed_event(weighed: WeightedUse) -> Wire:
    return WeighedEvent.of(weighed.observation, raw=weighed.raw, today=weighed.today)


def _ignored_reports(state: ProjectState, pattern_id: str) -> Sequence[Wire]:
    from core.learning.bursts import known_time

    return [IgnoredReport.of(one, at=known_time(one.report.at)) for one in state.board.ignored_reports(pattern_id)]
