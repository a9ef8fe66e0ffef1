"""JSON objects of metrics, changes, thresholds, experiments and the safety scan."""

from __future__ import annotations

from typing import Annotated, Any

from core.cli.json.decisions import Decision
from core.cli.json.patterns import ScanFinding
from core.cli.json.wire import Finding, Time, Wire


class CategoryComparison(Wire, frozen=True):
    """Iterations of loops with and without, in one category of tasks."""

    category: str | None
    loops_with: int
    loops_without: int
    average_with: float
    average_without: float


class Comparison(Wire, frozen=True):
    """Loops with and without injected patterns; `tells`: the interval excludes 0."""

    tells: Annotated[bool, "is_conclusive"]
    difference: float | None
    interval: Annotated[list[float] | None, "low,high"]
    level: float
    average_with: Annotated[float | None, "having"]
    average_without: Annotated[float | None, "lacking"]
    loops_with: int
    loops_without: int
    loops_needed: Annotated[int | None, "needed"]
    categories: list[CategoryComparison]


class PatternResult(Wire, frozen=True):
    """Results of a pattern, its success rate interval; `given`: agents still get it."""

    id: Annotated[str, "pattern_id"]
    name: str
    worked: int
    results: int
    low: float
    high: float
    given: Annotated[bool, "is_given"]


class LessonEffect(Wire, frozen=True):
    """Whether lessons help; `missing`: cases until known, `unit`: step or iteration."""

    answer: Annotated[str, "sentence"]
    known: bool
    unit: str
    cases_with: int
    cases_without: int
    average_with: float | None
    average_without: float | None
    interval: list[float] | None
    missing: int
    best: list[PatternResult]
    worst: list[PatternResult]


class MetricDifference(Wire, frozen=True):
    """A number in a metrics file that differs from the evidence."""

    key: str
    file: Annotated[Any, "claimed"]
    evidence: Annotated[Any, "evident"]
    source: Annotated[str, "file"]


class SectionRow(Wire, frozen=True):
    """A row of a section, with the interval of its rate."""

    label: str
    values: list[float]
    low: float | None
    high: float | None
    n: Annotated[int, "count"]


class Section(Wire, frozen=True):
    """A section of the metrics."""

    id: str
    title: str
    takeaway: str
    parts: list[str]
    rows: list[SectionRow]


class PatternTypeCounts(Wire, frozen=True):
    """Patterns by type."""

    error_patterns: int
    success_patterns: int
    anti_patterns: int
    code_templates: int


class UsageStats(Wire, frozen=True):
    """Applications with a result."""

    total_applications: int
    successful_applications: int
    failed_applications: int
    overall_success_rate: float


class CrossLoopBenefit(Wire, frozen=True):
    """Iterations of loops with and without injected patterns."""

    loops_with_pattern_injection: int
    loops_without_pattern_injection: int
    average_iterations_with: float | None
    average_iterations_without: float | None
    improvement_percentage: float | None
    completed_loops_with: int | None
    completed_loops_without: int | None
    failed_loops_with: int | None
    failed_loops_without: int | None
    average_iterations_failed_with: float | None
    average_iterations_failed_without: float | None


class Effectiveness(Wire, frozen=True):
    """The effectiveness metrics of the registry."""

    total_patterns: int
    patterns_by_type: PatternTypeCounts
    pattern_usage_stats: UsageStats
    cross_loop_benefit: CrossLoopBenefit
    last_updated: Time


class MetricsDocument(Wire, frozen=True):
    """`metrics`."""

    lessons: LessonEffect
    effectiveness_metrics: Effectiveness
    states: dict[str, int]
    comparison: Comparison
    reflections: Comparison
    differences: list[MetricDifference]
    weeks: int
    sections: list[Section]
    exported: str | None
    findings: list[Finding]


class ResultCounts(Wire, frozen=True):
    """Results of uses."""

    helped: int
    failed: int
    other: int


class StateCount(Wire, frozen=True):
    """Patterns in a state, before and after."""

    state: str
    before: int
    after: int


class PatternAt(Wire, frozen=True):
    """A pattern at one moment."""

    state: str
    success_rate: Annotated[float | None, "rate"]
    successes: int
    failures: int
    usage_count: Annotated[int, "uses"]
    score: float
    injectable: bool


class PatternChange(Wire, frozen=True):
    """A pattern that changed; before or after is null if it did not exist."""

    id: Annotated[str, "pattern_id"]
    title: str
    kind: str
    because: str
    by: str
    weight: float
    before: PatternAt | None
    after: PatternAt | None


class LoopChange(Wire, frozen=True):
    """A loop that started or ended."""

    id: Annotated[str, "loop_id"]
    kind: str
    status: str
    task: str
    at: Time


class QuestionChange(Wire, frozen=True):
    """A question that is new or settled."""

    kind: str
    subject: str
    text: str
    new: bool


class ChangesDocument(Wire, frozen=True):
    """`changes`."""

    since: Time
    until: Time
    results: ResultCounts
    states: list[StateCount]
    patterns: list[PatternChange]
    decisions: list[Decision]
    loops: list[LoopChange]
    questions: list[QuestionChange]
    findings: list[Finding]


class DecisionShare(Wire, frozen=True):
    """Decisions, those with enough later results, those that held; null if too few."""

    made: int
    followed: int
    held: int | None
    rate: float | None
    low: float | None
    high: float | None


class AccuracyDocument(Wire, frozen=True):
    """`accuracy`."""

    by: str
    follow_up: int
    needed: int
    level: float
    promotions: DecisionShare
    deprecations: DecisionShare
    findings: list[Finding]


class Threshold(Wire, frozen=True):
    """One threshold and its value; `replayed`: it changes states or inversions."""

    name: str
    value: Any
    unit: str
    label: Annotated[str, "help"]
    choices: list[str]
    replayed: bool


class ThresholdList(Wire, frozen=True):
    """`changes --thresholds`."""

    thresholds: list[Threshold]


class PatternTurn(Wire, frozen=True):
    """A pattern that would be in another state, or invert."""

    id: Annotated[str, "pattern_id"]
    before: Annotated[str, "before.state"]
    after: Annotated[str, "after.state"]
    since: Annotated[Time, "after.since"]
    inverts_before: Annotated[bool, "before.inverts"]
    inverts: Annotated[bool, "after.inverts"]
    inverted_at: Annotated[Time, "after.inverted_at"]
    pinned: bool


class CriterionChange(Wire, frozen=True):
    """The weight of a criterion before and after."""

    criterion: str
    weight_before: float
    weight: float
    effective_weight_before: float
    effective_weight: float
    deprecated_before: bool
    deprecated: bool


class WhatIfDocument(Wire, frozen=True):
    """`changes NAME=VALUE`."""

    tried: list[Threshold]
    counts: list[StateCount]
    turns: list[PatternTurn]
    events: int
    criteria: list[CriterionChange]
    findings: list[Finding]


class ExperimentSetting(Wire, frozen=True):
    """`experiment start` and `stop`; `file` are the user's own settings."""

    share: float | None
    file: str


class Medians(Wire, frozen=True):
    """Medians of tasks with and without a lesson, up to the check that passed."""

    given: float | None
    held_out: float | None


class ArmComparison(Wire, frozen=True):
    """Tasks with and without a lesson; rates and `interval` are of the outcome, 0..1.

    `needed` is the number of further tasks until a verdict, `harm_e_value` the evidence that the lesson hurts.
    """

    verdict: str
    trials_with: int
    trials_without: int
    rate_with: float | None
    rate_without: float | None
    difference: float | None
    interval: list[float]
    needed: int
    harm_e_value: float


class PatternTrials(Wire, frozen=True):
    """The experiment with one pattern; `errors` is null if the pattern has no error.

    `errors` compares whether the error returned. `steps_ratio` is typical steps with it divided by those without it.
    `crossed` counts tasks that had the pattern although it was held out, or did not get it although it was not.
    """

    id: str
    name: str
    given: int
    held_out: int
    open: int
    crossed: int
    verdict: str
    errors: ArmComparison | None
    steps: Medians
    minutes: Medians
    steps_ratio: float | None
    steps_interval: list[float] | None


class TeamTrials(Wire, frozen=True):
    """Trials of a pattern in all projects of a space; `kind` is the outcome compared."""

    pattern: Annotated[str, "pattern_id"]
    kind: str
    projects: int
    members: int
    comparison: ArmComparison


class ExperimentDocument(Wire, frozen=True):
    """`experiment`; `share` is null if none is running.

    `problem` is why a started one holds nothing out. `not_counted` is the number of trials in the event log that are
    not the user's own. `success` compares task success over all patterns. `not_by_chance` is the comparison of sessions
    that happened to have a lesson. `team` has the trials of all projects of the team, as of its last sync.
    """

    share: float | None
    forbidden: bool
    problem: str
    summary: str
    not_counted: int
    patterns: list[PatternTrials]
    success: ArmComparison | None
    not_by_chance: str
    team: list[TeamTrials]
    findings: list[Finding]


class NowLine(Wire, frozen=True):
    """A line; `sign` is its glyph as a word, `place` and `id` are where it leads."""

    sign: str
    title: str
    facts: list[str]
    text: str | None
    place: str | None
    id: str | None


class NowSection(Wire, frozen=True):
    """A section; `total` counts also the lines that are left out."""

    id: str
    title: str
    note: str | None
    total: int
    lines: list[NowLine]


class NowDocument(Wire, frozen=True):
    """`now`; `since` is the last visit, or a week ago without one."""

    since: Time
    sections: list[NowSection]
    findings: list[Finding]


class ScanResult(Wire, frozen=True):
    """`scan --lines`; verdict is blocked, held, flagged or clean, `masked` the text."""

    verdict: str
    marks: list[ScanFinding]
    masked: str


class FileScan(ScanResult, frozen=True):
    """The scan of a file."""

    file: str


class ScanDocument(Wire, frozen=True):
    """`scan`."""

    files: list[FileScan]
