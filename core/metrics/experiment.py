"""What the experiment shows: the arms of each pattern, and a verdict that is valid at each moment.

docs/experiments.md describes the method; `core.learning.experiments` has its statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.learning.experiments import (
    Comparison,
    TrialResult,
    Verdict,
    compare_arms,
    describe_verdict,
    tally_trials,
)
from core.records.event_log import EventView
from core.records.events import ASSIGNED, Trial
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.state.project_state import ProjectState

POOLED_ONLY: Final = "has no error that could return; counts in task success alone"


class Unit(NamedTuple):
    """One task and one pattern of the experiment; `outcome` and `success` are None until the task is over."""

    pattern_id: str
    assigned: Trial
    outcome: Trial | None = None
    success: bool | None = None


class Medians(Struct, frozen=True):
    """Typical length of the tasks of both arms, to the check that passed; None without such a task."""

    given: float | None = None
    held_out: float | None = None


class PatternTrials(Struct, frozen=True, kw_only=True):
    """The arms of one pattern.

    `comparison` is that of returning errors, None for a pattern without an error. `given` and `held_out` are the
    numbers of tasks that were assigned, `open` those that are not over, `crossed` those that had the pattern although
    it was held out, or did not get it although it was not: they count in the arm that the coin chose.
    """

    pattern_id: str
    name: str  # its title: untrusted
    given: int
    held_out: int
    open: int
    crossed: int
    steps: Medians
    minutes: Medians
    comparison: Comparison | None = None

    @property
    def verdict(self) -> str:
        return describe_verdict(self.comparison) if self.comparison is not None else POOLED_ONLY

    @property
    def is_harmful(self) -> bool:
        return self.comparison is not None and self.comparison.verdict is Verdict.HURTS


class ExperimentReport(Struct, frozen=True, kw_only=True):
    """All trials of a project.

    `share` is that of the running experiment, None if there is none. `success` compares the share of tasks that
    succeeded over all patterns.
    """

    share: float | None
    patterns: tuple[PatternTrials, ...] = ()  # those with a verdict first, then those with most trials
    success: Comparison | None = None

    @property
    def trials(self) -> int:
        return sum(one.given + one.held_out for one in self.patterns)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if not self.patterns:
            return "no task was assigned yet" if self.share is not None else "not running"
        counts = dict.fromkeys((Verdict.HELPS, Verdict.HURTS, Verdict.NO_DIFFERENCE), 0)
        for one in self.patterns:
            if one.comparison is not None and one.comparison.verdict in counts:
                counts[one.comparison.verdict] += 1
        parts = [f"{plural(counts[Verdict.HELPS], 'lesson')} helped"] * bool(counts[Verdict.HELPS])
        parts += [f"{plural(counts[Verdict.HURTS], 'lesson')} hurt"] * bool(counts[Verdict.HURTS])
        parts += [f"{counts[Verdict.NO_DIFFERENCE]:,} made no difference"] * bool(counts[Verdict.NO_DIFFERENCE])
        undecided = len(self.patterns) - sum(counts.values())
        parts += [f"{undecided:,} not known yet"] * bool(undecided)
        return f"{', '.join(parts)} ({plural(self.trials, 'trial')} by chance)"


def measure_experiment(state: ProjectState) -> ExperimentReport:
    """Compare the tasks with and without each pattern that the experiment assigned."""
    units = list_units(state.snapshot)
    share = state.experiment.share if state.experiment is not None else None
    if not units:
        return ExperimentReport(share=share)
    by_pattern: dict[str, list[Unit]] = {}
    for unit in units:
        by_pattern.setdefault(unit.pattern_id, []).append(unit)
    patterns = state.snapshot.patterns
    found = [_measure_pattern(id, patterns.get(id), own) for id, own in by_pattern.items()]
    found.sort(key=lambda one: (not _has_verdict(one), -one.given - one.held_out, one.pattern_id))
    tally = tally_trials(list_results(units, is_far=True))
    success = compare_arms(tally, is_higher_better=True) if tally else None
    return ExperimentReport(share=share, patterns=tuple(found), success=success)


def list_units(snapshot: Snapshot) -> list[Unit]:
    """Return the trials of a project that happened here, in the order of their assignments, each once."""
    units: dict[tuple[str, str], Unit] = {}
    for event in EventView.of(snapshot.events).trials:
        trial = event.trial
        if trial is None or not snapshot.foreign.is_own_event(event):
            continue
        key = trial.task, event.pattern_id
        known = units.get(key)
        if event.kind == ASSIGNED:
            units.setdefault(key, Unit(event.pattern_id, trial))
        elif known is not None and known.outcome is None and _is_same_arm(known.assigned, trial):
            units[key] = Unit(event.pattern_id, known.assigned, trial, event.success)
    return list(units.values())


def _is_same_arm(assigned: Trial, outcome: Trial) -> bool:
    return assigned.is_held_out is outcome.is_held_out


def list_results(units: Iterable[Unit], *, is_far: bool) -> Iterator[TrialResult]:
    """Yield the outcomes that are known: whether the task succeeded (far), or whether the error returned."""
    for unit in units:
        if unit.outcome is not None and (outcome := unit.success if is_far else unit.outcome.returned) is not None:
            trial = unit.assigned
            yield TrialResult(
                task=trial.task,
                pattern=unit.pattern_id,
                share=trial.share,
                is_held_out=trial.is_held_out,
                outcome=float(outcome),
            )


def _measure_pattern(pattern_id: str, pattern: Pattern | None, units: list[Unit]) -> PatternTrials:
    has_error = any(unit.outcome is not None and unit.outcome.returned is not None for unit in units)
    has_error = has_error or (pattern is not None and pattern.type is PatternType.ERROR)
    comparison = compare_arms(tally_trials(list_results(units, is_far=False))) if has_error else None
    outcomes = [unit.outcome for unit in units if unit.outcome is not None]
    held_out = sum(unit.assigned.is_held_out for unit in units)
    return PatternTrials(
        pattern_id=pattern_id,
        name=pattern_title(pattern) if pattern is not None else pattern_id,
        given=len(units) - held_out,
        held_out=held_out,
        open=len(units) - len(outcomes),
        crossed=sum(one.crossed for one in outcomes),
        steps=Medians(*(_median(one.steps for one in outcomes if one.is_held_out is arm) for arm in (False, True))),
        minutes=Medians(*(_median(one.minutes for one in outcomes if one.is_held_out is arm) for arm in (False, True))),
        comparison=comparison,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _has_verdict(found: PatternTrials) -> bool:
    return found.comparison is not None and found.comparison.verdict is not Verdict.UNDECIDED
