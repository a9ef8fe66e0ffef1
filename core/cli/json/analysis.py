"""JSON of metrics, changes, reviewer accuracy, what-if, vectors, the doctor and the safety scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.cli.json import objects
from core.cli.json.patterns import scan_finding
from core.cli.json.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.config.declaration import Setting
    from core.config.settings import Settings
    from core.history.changes import StateComparison
    from core.learning.threshold_replay import Replay
    from core.metrics.effectiveness import Comparison as ComparisonRecord
    from core.metrics.figures import Figure
    from core.records.suspicions import Suspicion


def comparison(found: ComparisonRecord, level: float) -> Wire:
    """Loops with and without injected patterns."""
    having, lacking = found.loops
    return objects.Comparison.of(
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
            objects.CategoryComparison.of(
                group,
                loops_with=len(group.having),
                loops_without=len(group.lacking),
                average_with=sum(group.having) / len(group.having),
                average_without=sum(group.lacking) / len(group.lacking),
            )
            for group in found.groups
        ],
    )


def section(figure: Figure) -> Wire:
    """A section of the metrics."""
    return objects.Section.of(figure, rows=[objects.SectionRow.of(row, n=row.count) for row in figure.rows])


def changes_document(found: StateComparison, findings: object) -> Wire:
    """What changed between two moments."""
    return objects.ChangesDocument.of(
        found,
        results=objects.ResultCounts.of(found),
        states=[
            objects.StateCount.of(state=state, before=found.states_before[state], after=after)
            for state, after in found.states_after.items()
        ],
        patterns=[
            objects.PatternChange.of(
                one, id=one.pattern_id, before=_pattern_at(one.before), after=_pattern_at(one.after)
            )
            for one in found.patterns
        ],
        loops=[objects.LoopChange.of(one, id=one.loop_id) for one in found.loops],
        findings=findings,
    )


def _pattern_at(found: Any) -> Wire | None:
    return None if found is None else objects.PatternAt.of(found, success_rate=found.rate, usage_count=found.uses)


def threshold(record: Setting, settings: Settings) -> Wire:
    """One threshold and its value."""
    return objects.Threshold.of(record, value=record.value(settings), label=record.help)


def what_if_document(replay: Replay, **given: Any) -> Wire:
    """What other thresholds would have made of the history."""
    return objects.WhatIfDocument.of(
        replay,
        counts=[
            objects.StateCount.of(state=state, before=count, after=replay.after[state])
            for state, count in replay.before.items()
        ],
        turns=[
            objects.PatternTurn.of(
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


def scan_values(suspicions: Sequence[Suspicion], masked: str) -> dict[str, Any]:
    """The fields of `ScanResult`; the most severe finding is first."""
    return {
        "verdict": suspicions[0].severity if suspicions else "clean",
        "marks": list(map(scan_finding, suspicions)),
        "masked": masked,
    }
