"""JSON of patterns: lists, details, explanations, and what the archive, duplicates and exchange commands print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.cli.json import objects
from core.cli.json.wire import Wire
from core.state.findings import all_findings, count_conflicts
from core.state.history import explain_pattern

if TYPE_CHECKING:
    from core.learning.assessment import Assessment
    from core.learning.explanation import WeightedUse
    from core.records.patterns import Pattern
    from core.records.suspicions import Suspicion
    from core.state.project_state import ProjectState


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


def scan_finding(suspicion: Suspicion) -> Wire:
    """One finding of the safety scan."""
    from core.scanning.messages import describe_rule  # the scan is slow to load, and hooks never print this

    return objects.ScanFinding.of(
        suspicion,
        severity="critical" if suspicion.critical else "warning",
        tier=suspicion.severity,
        meaning=describe_rule(suspicion),
    )


def pattern_details(pattern: Pattern, assessment: Assessment) -> Wire:
    """One pattern with all its content."""
    is_anti = pattern.type == "anti"
    return objects.PatternDetails.of(
        pattern,
        **pattern_values(pattern, assessment),
        template=objects.Template.of(
            language=pattern.template_language, code=pattern.template_code, placeholders=dict(pattern.placeholders)
        ),
        source_loops=[
            objects.SourceLoop.of(
                source,
                iterations_required=None if is_anti else source.iteration,
                failure_iteration=source.iteration if is_anti else None,
            )
            for source in pattern.source_loops
        ],
        mirrors=pattern.copies,
        suspicions=list(map(scan_finding, pattern.suspicions)),
    )


def explanation_document(state: ProjectState, pattern: Pattern) -> Wire:
    """The explanation of a pattern's state."""
    assessment, explanation = state.assessment(pattern.id), explain_pattern(state, pattern.id)
    change = assessment.next_change
    return objects.Explanation.of(
        assessment,
        id=pattern.id,
        computed_state=assessment.computed,
        success_rate=assessment.rate,
        next_change=None if change is None else objects.StateAt.of(at=change[0], state=change[1]),
        rules=explanation.lines,
        events=list(map(_weighed_event, explanation.events)),
        steps=[
            objects.NextState.of(step, result="success" if step.helpful else "failure") for step in explanation.steps
        ],
        loops=explanation.loops,
        calendar=[objects.StateAt.of(at=at, state=maturity) for at, maturity in explanation.calendar],
        set_aside=_ignored_reports(state, pattern.id),
        doubts=count_conflicts(state, pattern.id),
        findings=all_findings(state),
    )


def _weighed_event(weighed: WeightedUse) -> Wire:
    return objects.WeighedEvent.of(weighed.observation, raw=weighed.raw, today=weighed.today)


def _ignored_reports(state: ProjectState, pattern_id: str) -> Sequence[Wire]:
    from core.learning.bursts import known_time

    return [
        objects.IgnoredReport.of(one, at=known_time(one.report.at)) for one in state.board.ignored_reports(pattern_id)
    ]
