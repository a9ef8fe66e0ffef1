"""JSON objects of patterns and what is known about them."""

from __future__ import annotations

from typing import Annotated

from core.cli.json.decisions import Decision
from core.cli.json.wire import Finding, Time, Wire


class PatternRow(Wire, frozen=True):
    """One pattern; counts and rate are those of the evidence."""

    id: str
    type: str
    title: str
    name: str
    state: str
    computed_state: Annotated[str, "computed"]
    pinned: bool
    success_rate: Annotated[float | None, "rate"]
    claimed_rate: float | None
    interval: list[float]
    usage_count: Annotated[int, "uses"]
    given: int
    applied: Annotated[int, "uses"]
    worked: Annotated[int, "successes"]
    seen: int
    successes: int
    failures: int
    last_used: Time
    tags: list[str]
    mirror_of: Annotated[str | None, "copy_folder"]
    score: float
    exposures: Annotated[int, "injected_only"]
    decided_by: str
    faded: bool
    contradicted: bool
    inversion_due: bool
    injectable: bool
    warned_by: Annotated[str | None, "warning_id"]
    quarantined: bool
    held: bool
    stale: bool
    file: str
    pointer: str


class PatternList(Wire, frozen=True):
    """`pattern list`."""

    patterns: list[PatternRow]
    findings: list[Finding]


class Template(Wire, frozen=True):
    """Code of a pattern."""

    language: Annotated[str, "template_language"]
    code: Annotated[str, "template_code"]
    placeholders: dict[str, str]


class TypicalIterations(Wire, frozen=True):
    """How many iterations loops took."""

    average: float | None
    minimum: float | None
    maximum: float | None


class SourceLoop(Wire, frozen=True):
    """A loop that a pattern names as its source."""

    loop_id: str
    at: Time
    contributed_by: str
    outcome: str | None
    iterations_required: int | None
    failure_iteration: int | None


class PatternCopy(Wire, frozen=True):
    """A copy of the record in another file."""

    file: str
    pointer: str
    differs: bool


class ScanFinding(Wire, frozen=True):
    """What the safety scan found in a text."""

    rule: str
    severity: str
    tier: Annotated[str, "severity"]
    meaning: str
    field: str | None
    excerpt: str


class Anchor(Wire, frozen=True):
    """A file, or a name in it (`file#name`), that a pattern is about.

    If it is gone, `change` is removed, renamed or moved, `commit` what did that, and `to` the new name.
    """

    anchor: str
    change: str | None
    commit: str | None
    at: Time
    to: str | None


class PatternAnchors(Wire, frozen=True):
    """The anchors of a pattern, and the commit at which they were known to be there."""

    id: str
    title: str
    anchor_commit: str | None
    anchors: list[Anchor]


class AnchorList(Wire, frozen=True):
    """`pattern anchors`; `problem` is why the history of Git is not known, or empty."""

    patterns: list[PatternAnchors]
    problem: str


class PatternDetails(PatternRow, frozen=True):
    """One pattern with all its content."""

    description: str
    use_case: str
    category: str
    error_type: str
    error_message: str
    error_pattern: str
    places: list[str]
    location_hints: list[str]
    task_pattern: str
    template: Template
    diff_pattern: str
    steps: list[str]
    tools: list[str]
    preconditions: list[str]
    benefits: list[str]
    limitations: list[str]
    average_iterations: float | None
    typical_iterations: TypicalIterations | None
    symptoms: list[str]
    why_it_fails: str
    better_alternative: str
    better_pattern_id: str
    source_loops: list[SourceLoop]
    related: list[str]
    first_discovered: Time
    inverted_from: str
    aliases: list[str]
    mirrors: Annotated[list[PatternCopy], "copies"]
    content_hash: str
    suspicions: list[ScanFinding]
    anchors: list[Anchor]
    anchor_commit: str | None


class Observation(Wire, frozen=True):
    """One piece of evidence; `count` is above 1 where only a sum is known."""

    kind: str
    source: str
    loop_id: str | None
    at: Time
    success: bool | None
    weight: float
    count: int
    iteration: int | None
    derived: bool
    inferred: bool
    claimed: Annotated[bool, "is_claim"]
    given: int
    seen: int


class LineageEvent(Wire, frozen=True):
    """One event in the history of a pattern."""

    at: Time
    kind: str
    loop_id: str | None
    success: bool | None
    text: str


class FollowCounts(Wire, frozen=True):
    """In how many loops and attempts a pattern was given, and how many followed it."""

    given: int
    followed: int
    not_followed: int
    unclear: int


class WorkVerdict(Wire, frozen=True):
    """Whether work followed a pattern, null if unclear; `action` in the log shows it."""

    pattern_id: str
    work_id: str
    followed: Annotated[bool | None, "is_followed"]
    at: Time
    action: int | None
    iteration: int | None
    evidence: str | None


class LessonCost(Wire, frozen=True):
    """Tokens of a lesson in all contexts; `estimated`: some are of today's text.

    `share` is of all lessons' tokens, `prevented` the sessions that followed it and in which its error did not return.
    """

    id: Annotated[str, "pattern_id"]
    name: str
    given: int
    tokens: int
    estimated: Annotated[bool, "is_estimated"]
    weekly: float
    share: float
    followed: FollowCounts
    prevented: int


class SessionCost(Wire, frozen=True):
    """The tokens of the lessons that a loop or attempt was given."""

    id: Annotated[str, "work_id"]
    lessons: int
    tokens: int


class RepeatedLine(Wire, frozen=True):
    """A line that repeats another one, FILE:LINE, or a lesson, by its ID."""

    line: int
    other: str


class FileCost(Wire, frozen=True):
    """A file that agents load: `tokens` at each start, `on_demand` in some sessions."""

    file: str
    agents: list[str]
    loading: str
    lines: int
    tokens: int
    on_demand: int
    repeated: list[RepeatedLine]


class AgentCost(Wire, frozen=True):
    """The tokens of all files that an agent loads in each session from the start."""

    agent: str
    tokens: int


class CostDocument(Wire, frozen=True):
    """`cost`; those with most tokens first.

    `since` is the beginning of the period, `weeks` its length from the first context, `agents` are those of the files.
    """

    since: Time
    weeks: float
    given: int
    tokens: int
    lessons: list[LessonCost]
    sessions: list[SessionCost]
    files: list[FileCost]
    agents: list[AgentCost]
    findings: list[Finding]


class PatternDocument(Wire, frozen=True):
    """`pattern show`."""

    pattern: PatternDetails
    evidence: list[Observation]
    followed: FollowCounts
    verdicts: list[WorkVerdict]
    claimed_uses: int
    from_elsewhere: bool
    team: TeamSums | None
    lineage: list[LineageEvent]
    loop_results: list[LoopResult]
    findings: list[Finding]


class LoopResult(Wire, frozen=True):
    """A loop that discovered or applied a pattern, with the results of its uses."""

    loop_id: str
    result: str


class TeamSums(Wire, frozen=True):
    """Uses in other projects of a team; `helpful` and `harmful` are decayed to today."""

    successes: int
    failures: int
    uses: int
    injected_only: int
    helpful: float
    harmful: float
    last_used: Time


class Pin(Wire, frozen=True):
    """The pinned state of a pattern."""

    state: str
    at: Time
    by: str
    reason: str
    decision_id: str
    decided_by: str


class StateAt(Wire, frozen=True):
    """A state from a time on."""

    at: Time
    state: str


class Rule(Wire, frozen=True):
    """One rule of the explanation of a state."""

    rule: str
    text: str
    holds: bool | None
    fired: bool
    state: str | None
    value: float | None
    threshold: float | None
    distance: float | None


class WeighedEvent(Wire, frozen=True):
    """One result: its weight when it was new (`raw`), and `today`."""

    kind: str
    source: str
    loop_id: str | None
    at: Time
    success: bool | None
    inferred: bool
    raw: float
    today: float
    iteration: int | None
    count: int


class NextState(Wire, frozen=True):
    """The fewest further results of one kind that lead to another state."""

    state: str
    result: str
    count: int


class LoopShare(Wire, frozen=True):
    """What one loop contributes to the evidence."""

    loop_id: str
    helpful: float
    harmful: float
    state_without: str


class IgnoredReport(Wire, frozen=True):
    """A harmful report that does not count."""

    source: str
    at: Time
    revoked: bool


class Explanation(Wire, frozen=True):
    """`pattern show --why`; `helpful` and `harmful` are decayed sums."""

    id: Annotated[str, "pattern_id"]
    state: str
    computed_state: Annotated[str, "computed"]
    decided_by: str
    pin: Pin | None
    pin_stale: bool
    contradicted: bool
    faded: bool
    injectable: bool
    warned_by: Annotated[str | None, "warning_id"]
    success_rate: Annotated[float | None, "rate"]
    claimed_rate: float | None
    interval: list[float]
    successes: int
    failures: int
    given: int
    applied: Annotated[int, "uses"]
    worked: Annotated[int, "successes"]
    seen: int
    helpful: float
    harmful: float
    next_change: StateAt | None
    rules: Annotated[list[Rule], "lines"]
    events: list[WeighedEvent]
    steps: list[NextState]
    loops: list[LoopShare]
    calendar: list[StateAt]
    set_aside: list[IgnoredReport]
    doubts: list[Finding]
    findings: list[Finding]


class DuplicatePair(Wire, frozen=True):
    """Two similar patterns."""

    kept: str
    other: str
    similarity: float


class DuplicateList(Wire, frozen=True):
    """`pattern merge`."""

    duplicates: list[DuplicatePair]
    findings: list[Finding]


class RecordedCounts(Wire, frozen=True):
    """The counts in a record."""

    successes: int
    failures: int
    usage_count: Annotated[int, "uses"]
    success_rate: float | None


class MergePreview(Wire, frozen=True):
    """`pattern merge --dry-run`."""

    kept: str
    other: str
    before: RecordedCounts
    after: RecordedCounts
    aliases: list[str]


class PrunedPattern(Wire, frozen=True):
    """A pattern that the policy would archive."""

    id: str
    type: str
    title: str
    rules: list[str]
    reason: str
    success_rate: Annotated[float | None, "rate"]
    uses: int
    last_used: Annotated[Time, "last_activity"]


class PruneList(Wire, frozen=True):
    """`pattern prune --dry-run`, or without anything to prune."""

    prune: list[PrunedPattern]
    findings: list[Finding]


class PatternPart(Wire, frozen=True):
    """A part of a pattern before and after a repair."""

    part: str
    before: str | None
    after: str | None


class PatternRepair(Wire, frozen=True):
    """Repair or archiving of an outdated pattern; `other_sources` have another fix."""

    id: str
    type: str
    title: str
    action: str
    problems: list[str]
    reason: str
    changes: list[PatternPart]
    other_sources: list[str]


class RepairList(Wire, frozen=True):
    """`doctor --repair`; `left` are bad patterns that a person decided on or edited."""

    repairs: list[PatternRepair]
    left: list[str]
    findings: list[Finding]


class ArchivedPattern(Wire, frozen=True):
    """A pattern in an archive file."""

    id: Annotated[str, "pattern.id"]
    type: Annotated[str, "pattern.type"]
    title: Annotated[str, "pattern.title"]
    at: Time
    by: str | None
    reason: str | None
    source: str | None
    file: str


class ArchivedPatternList(Wire, frozen=True):
    """`pattern list --archived`."""

    archived: list[ArchivedPattern]
    findings: list[Finding]


class MaskedText(Wire, frozen=True):
    """A text of which a part was masked."""

    id: Annotated[str, "pattern_id"]
    pointer: str
    kind: str


class Export(Wire, frozen=True):
    """`pattern export`."""

    file: str
    exported: int
    left_out: list[str]
    masked: list[MaskedText]
    findings: list[Finding]


class SimilarPattern(Wire, frozen=True):
    """A similar pattern of this project."""

    id: str
    similarity: float


class ImportRow(Wire, frozen=True):
    """What an import does with one record."""

    action: str
    id: Annotated[str, "pattern_id"]
    type: str
    target: str | None
    quarantined: bool
    changes: list[str]
    similar: list[SimilarPattern]
    why: str | None


class ImportPlan(Wire, frozen=True):
    """`pattern import --dry-run`, or without a change."""

    written: bool
    rows: list[ImportRow]
    findings: list[Finding]


class ImportResult(ImportPlan, frozen=True):
    """`pattern import`."""

    decision: Decision
    summary: str
    warnings: list[str]
    written: bool


class InversionProposal(Wire, frozen=True):
    """A pattern that is due for inversion, and what it would become."""

    id: Annotated[str, "pattern_id"]
    text: str
    reason: str
    failures: int
    total: int
    failure_mode: str
    why_it_fails: str
    better_alternative: str
    better_pattern_id: str | None
    source_loops: list[str]
    lint: list[str]


class InversionList(Wire, frozen=True):
    """`pattern invert`."""

    proposals: list[InversionProposal]
    findings: list[Finding]
