"""JSON of loops, and of reports on loops and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.cli.json import objects

if TYPE_CHECKING:
    from core.config.settings import LearningSettings
    from core.curation.use_counts import CountResult
    from core.learning.assessment import Assessment
    from core.learning.evidence import LoopPatterns
    from core.learning.outcomes import CriterionWeight, Outcome, OutcomeSignals
    from core.records.loops import Loop


def loop_row(loop: Loop, patterns: LoopPatterns, scored: tuple[OutcomeSignals, Outcome] | None) -> objects.Wire:
    outcome = None
    if scored is not None:
        signals, score = scored
        counts = {"error_count": signals.error_count, "retry_count": signals.retry_count}
        outcome = objects.LoopOutcome.of(score, **counts)
    return objects.LoopRow.of(
        loop,
        injected=patterns.injected_ids,
        injected_reflections=patterns.reflections,
        uses=[objects.PatternUse.of(use, applied=use.kind != "injected") for use in patterns.uses],
        extracted=[extracted.pattern_id for extracted in patterns.extracted],
        outcome=outcome,
    )


def effect(before: Assessment, after: Assessment) -> objects.Wire:
    return objects.Effect.of(after, state_before=before.state)


def criterion(weight: CriterionWeight, settings: LearningSettings) -> objects.Wire:
    from core.learning.outcomes import effective_weight, should_deprecate_criterion

    return objects.Criterion.of(
        weight,
        effective_weight=effective_weight(weight, settings),
        deprecated=should_deprecate_criterion(weight, settings),
    )


def record_update(counted: CountResult) -> objects.Wire:
    """Return the new counts of a pattern record; null if it was not updated."""
    if counted.problem:
        unknown = dict.fromkeys(("successes", "failures", "usage_count", "success_rate"))
        return objects.RecordUpdate.of(counted, written=False, **unknown)
    results = counted.successes + counted.failures
    rate = counted.successes / results if results else None
    return objects.RecordUpdate.of(counted, written=counted.is_changed, success_rate=rate)


def outcome_values(kind: str, signals: OutcomeSignals) -> dict[str, Any]:
    """Return the fields of `Outcome` that its score does not have."""
    from core.learning.states import parse_moment

    timestamp = parse_moment(signals.timestamp, "timestamp")
    return {"id": signals.bead_id, "kind": kind, "signals": objects.Signals.of(signals, timestamp=timestamp)}
