"""JSON of loops, injections, reflections, and reports on loops and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.cli.json import objects
from core.cli.json.wire import Wire

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


def loop_row(loop: Loop, patterns: LoopPatterns, outcome: Wire | None) -> Wire:
    """One loop with the patterns it got and its outcome."""
    estimate = loop.improvement
    return objects.LoopRow.of(
        loop,
        last_sign=loop.last_activity,
        improvement_estimate=None
        if estimate is None
        else objects.ImprovementEstimate.of(
            baseline_iterations=estimate.baseline, actual_iterations=estimate.actual, improvement=estimate.share
        ),
        injected=patterns.injected_ids,
        injected_reflections=patterns.reflections,
        uses=[objects.PatternUse.of(use, id=use.pattern_id, applied=use.kind != "injected") for use in patterns.uses],
        extracted=[extracted.pattern_id for extracted in patterns.extracted],
        outcome=outcome,
    )


def injection_document(injection: Injection, findings: object) -> Wire:
    """The context of a task, and what was left out of it."""
    profile, reflections = injection.profile, injection.reflections
    return objects.InjectionDocument.of(
        injection,
        patterns=[objects.InjectedPattern.of(one, id=one.pattern_id, type=str(one.type)) for one in injection.chosen],
        left_out=[objects.OmittedPattern.of(one, id=one.pattern_id) for one in injection.left_out],
        reflections=[
            objects.InjectedReflection.of(
                one, learning=one.text, task=one.title, matched_by="meaning" if one.is_semantic else "words"
            )
            for one in reflections.chosen
        ],
        reflections_left_out=[objects.OmittedReflection.of(one, learning=one.text) for one in reflections.left_out],
        category=profile.category,
        languages=profile.languages,
        error_types=profile.error_types,
        decomposition=profile.decomposition,
        findings=findings,
    )


def recurring_learning(cluster: Cluster) -> Wire:
    """A learning that several loops report."""
    return objects.RecurringLearning.of(
        cluster, loops=cluster.sources, reflections=[member.reflection.id for member in cluster.members]
    )


def reflection(record: ReflectionRecord) -> Wire:
    """One reflection."""
    return objects.Reflection.of(record)


def effect(before: Assessment, after: Assessment) -> Wire:
    """The state of a pattern before and after a report."""
    return objects.Effect.of(after, id=after.pattern_id, state_before=before.state, computed_state=after.computed)


def criterion(weight: CriterionWeight, settings: LearningSettings) -> Wire:
    """The weight of an evaluation criterion."""
    from core.learning.criteria import effective_weight, should_deprecate_criterion

    return objects.Criterion.of(
        weight,
        effective_weight=effective_weight(weight, settings),
        deprecated=should_deprecate_criterion(weight, settings),
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
    return objects.RecordUpdate.of(counted, id=counted.pattern_id, written=not counted.problem, **known)


def record_document(event: EventRecord, **given: Any) -> Wire:
    """A recorded use of a pattern, or feedback on a criterion."""
    absent: dict[str, Any] = {"pattern": None, "criterion": None, "held": False, "records": []}
    return objects.RecordDocument.of(event=objects.Event.of(event), **{**absent, **given})


def outcome_values(kind: str, signals: OutcomeSignals) -> dict[str, Any]:
    """The fields of `Outcome` that its score does not have."""
    from core.learning.decay import parse_moment

    return {
        "id": signals.bead_id,
        "kind": kind,
        "signals": objects.Signals.of(signals, timestamp=parse_moment(signals.timestamp, "timestamp")),
    }
