"""The JSON of outcomes, feedback, bursts, thresholds and explanations; see `core.cli.json.shapes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.json.shapes import Shape, number
from core.learning.bursts import known_time
from core.learning.criteria import CriterionWeight, effective_weight, should_deprecate_criterion
from core.learning.decay import parse_moment
from core.records.times import iso

if TYPE_CHECKING:
    from core.cli.support.work_options import Effect
    from core.config.declaration import Setting
    from core.config.settings import LearningSettings, Settings
    from core.learning.bursts import Burst
    from core.learning.errors import ErrorEntry, ErrorStats
    from core.learning.evidence_inputs import IgnoredReport
    from core.learning.explanation import LoopShare, StepToState, WeightedUse
    from core.learning.outcomes import Outcome, OutcomeSignals
    from core.learning.threshold_replay import Replay, Turn
    from core.project.scoring import Scored
    from core.records.events import Event


def event_json(event: Event) -> Shape:
    """One event as `record` writes it."""
    return {
        "id": event.id,
        "at": iso(event.at),
        "kind": event.kind,
        "loop_id": event.loop_id,
        "pattern_id": event.pattern_id or None,
        "criterion": event.criterion or None,
        "success": event.success,
        "weight": number(event.weight),
        "iteration": event.iteration,
        "text": event.text,
        "by": event.by,
        "agent": event.agent or None,
    }


def effect_json(effect: Effect) -> Shape:
    """What became of one pattern."""
    before, after = effect
    return {
        "id": after.pattern_id,
        "state": after.state.value,
        "state_before": before.state.value,
        "computed_state": after.computed.value,
        "helpful": number(after.helpful),
        "harmful": number(after.harmful),
        "successes": after.successes,
        "failures": after.failures,
        "inversion_due": after.inversion_due,
    }


def criterion_json(weight: CriterionWeight, settings: LearningSettings) -> Shape:
    """The weight of one criterion; `effective_weight` is 0 where it is deprecated."""
    return {
        "criterion": weight.criterion,
        "weight": number(weight.weight),
        "effective_weight": number(effective_weight(weight, settings)),
        "helpful": number(weight.helpful),
        "harmful": number(weight.harmful),
        "helpful_count": weight.helpful_count,
        "harmful_count": weight.harmful_count,
        "last_validated": iso(weight.last_validated),
        "half_life_days": weight.half_life_days,
        "no_data": weight.no_data,
        "deprecated": should_deprecate_criterion(weight, settings),
    }


def score_json(outcome: Outcome) -> Shape:
    """How something that came out is scored."""
    return {
        "verdict": outcome.verdict.value,
        "raw": number(outcome.raw),
        "decayed": number(outcome.decayed),
        "parts": {name: number(part) for name, part in outcome.parts.items()},
        "reasoning": outcome.reasoning,
    }


def outcome_json(kind: str, signals: OutcomeSignals, outcome: Outcome) -> Shape:
    """How one loop or attempt came out."""
    return {
        "id": signals.bead_id,
        "kind": kind,
        **score_json(outcome),
        "decay": number(outcome.decay),
        "signals": {
            "success": signals.success,
            "partial": signals.partial,
            "timestamp": iso(parse_moment(signals.timestamp, "timestamp")),
            "duration_ms": number(signals.duration_ms),
            "error_count": signals.error_count,
            "retry_count": signals.retry_count,
            "files_touched": list(signals.files_touched),
            "strategy": signals.strategy,
            "failure_mode": signals.failure_mode,
            "failure_details": signals.failure_details,
        },
    }


def scored_json(scored: Scored) -> Shape:
    """How one loop or attempt came out, with the patterns that it applied."""
    return {
        **outcome_json(scored.kind, scored.signals, scored.outcome),
        "patterns": [
            {"id": seen.pattern_id, "success": seen.success, "inferred": seen.inferred} for seen in scored.applied
        ],
    }


def error_json(entry: ErrorEntry) -> Shape:
    """One error."""
    return {
        "id": entry.id,
        "at": iso(parse_moment(entry.timestamp, "timestamp")),
        "type": entry.error_type.value,
        "message": entry.message,
        "tool": entry.tool_name,
        "context": entry.context,
        "stack_trace": entry.stack_trace,
        "resolved": entry.resolved,
    }


def stats_json(stats: ErrorStats) -> Shape:
    """How many errors there were."""
    return {"total": stats.total, "unresolved": stats.unresolved, "by_type": stats.by_type}


def burst_json(burst: Burst) -> Shape:
    """Harmful marks that wait for a verdict."""
    return {
        "source": burst.source,
        "patterns": list(burst.patterns),
        "never_applied": burst.never_applied,
        "first": iso(known_time(burst.first)),
        "last": iso(known_time(burst.last)),
    }


def threshold_json(threshold: Setting, settings: Settings) -> Shape:
    """One threshold and its value."""
    return {
        "name": threshold.name,
        "value": threshold.value(settings),
        "unit": threshold.unit.value,
        "label": threshold.help,
        "choices": list(threshold.choices),
        "replayed": threshold.replayed,
    }


def replay_json(replay: Replay) -> Shape:
    """What other thresholds would have made of the history."""
    return {
        "counts": [
            {"state": state.value, "before": count, "after": replay.after[state]}
            for state, count in replay.before.items()
        ],
        "turns": [_turn_json(turn) for turn in replay.turns],
        "events": replay.events,
    }


def _turn_json(turn: Turn) -> Shape:
    return {
        "id": turn.pattern_id,
        "before": turn.before.state.value,
        "after": turn.after.state.value,
        "since": iso(turn.after.since),
        "inverts_before": turn.before.inverts,
        "inverts": turn.after.inverts,
        "inverted_at": iso(turn.after.inverted_at),
        "pinned": turn.pinned,
    }


def weighed_json(weighed: WeightedUse) -> Shape:
    """One piece of evidence with a result: its worth when it was new, and today."""
    seen = weighed.observation
    return {
        "kind": seen.kind,
        "source": seen.source,
        "loop_id": seen.loop_id or None,
        "at": iso(seen.at),
        "success": seen.success,
        "inferred": seen.inferred,
        "raw": number(weighed.raw),
        "today": number(weighed.today),
        "iteration": seen.iteration,
        "count": seen.count,
    }


def step_json(step: StepToState) -> Shape:
    """The fewest further results of one kind that lead to another state."""
    return {"state": step.state.value, "result": "success" if step.helpful else "failure", "count": step.count}


def share_json(share: LoopShare) -> Shape:
    """What rests on one loop."""
    return {
        "loop_id": share.loop_id,
        "helpful": number(share.helpful),
        "harmful": number(share.harmful),
        "state_without": share.state_without.value,
    }


def set_aside_json(aside: IgnoredReport) -> Shape:
    """A harmful mark that does not count."""
    return {"source": aside.source, "at": iso(known_time(aside.report.at)), "revoked": aside.revoked}
