"""JSON of loops, and of reports on loops and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.cli.json import objects

if TYPE_CHECKING:
    from core.base.settings import LearningSettings
    from core.decisions.use_counts import CountResult
    from core.index.project_state import ProjectState
    from core.learning.assessment import Assessment
    from core.learning.outcomes import CriterionWeight, OutcomeSignals
    from core.records.loops import Loop
    from core.show.needs import Need


def loop_row(state: ProjectState, loop: Loop, need: Need | None) -> objects.Wire:
    """Return a loop with the patterns that it was given, its outcome, and why it `needs` a person."""
    from core.show.pages.loops import find_result

    patterns, scored, outcome = state.loop_patterns(loop.id), state.outcome(loop.id), None
    if scored is not None:
        signals, score = scored
        counts = {"error_count": signals.error_count, "retry_count": signals.retry_count}
        outcome = objects.LoopOutcome.of(score, **counts)
    result = find_result(state, loop)
    return objects.LoopRow.of(
        loop,
        injected=patterns.injected_ids,
        injected_reflections=patterns.reflections,
        uses=[objects.PatternUse.of(use, applied=use.kind != "injected") for use in patterns.uses],
        extracted=[extracted.pattern_id for extracted in patterns.extracted],
        held_out=patterns.held_out,
        outcome=outcome,
        result=result.value if result is not None else None,
        verdicts=list(patterns.verdicts.values()),
        needs=objects.LoopNeed.of(need, kind=need.kind.value) if need is not None else None,
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
    from core.learning.maturity import parse_moment

    timestamp = parse_moment(signals.timestamp, "timestamp")
    return {"id": signals.bead_id, "kind": kind, "signals": objects.Signals.of(signals, timestamp=timestamp)}
