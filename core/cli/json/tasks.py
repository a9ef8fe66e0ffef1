"""JSON objects of the task memory."""

from __future__ import annotations

from typing import Annotated

from core.cli.json.loops import Reflection
from core.cli.json.wire import Finding, Time, Wire


class Task(Wire, frozen=True):
    """One task; `raw_status` is the word of the file."""

    id: str
    description: str
    criteria: str
    status: str
    raw_status: str
    created_at: Time
    updated_at: Time
    completed_at: Time
    current_attempt: int | None
    total_attempts: int | None
    tags: list[str]
    related: list[str]
    agent: str | None
    loop_id: str | None
    file: str


class TaskRow(Task, frozen=True):
    """One task with the state of its attempts."""

    state: str
    attempts: int
    last_outcome: str
    open_attempt: int | None
    open_state: str | None
    open_reason: str | None


class TaskList(Wire, frozen=True):
    """`task list`."""

    tasks: list[TaskRow]
    findings: list[Finding]


class Quality(Wire, frozen=True):
    """The quality after an iteration."""

    iteration: int
    quality: float | None
    delta: float | None


class Attempt(Wire, frozen=True):
    """One attempt; null where nothing is recorded."""

    id: str
    task_id: str
    number: int
    started_at: Time
    ended_at: Time
    open: Annotated[bool, "is_open"]
    outcome: str
    reason: str
    plan: str
    agent: str | None
    iterations: int | None
    actions: int | None
    errors: int | None
    last_action_at: Time
    quality: list[Quality]
    final_quality: float | None
    completion: float | None
    worked: list[str]
    failed: list[str]
    suggestions: list[str]
    file: str


class TaskReflection(Wire, frozen=True):
    """A reflection on an attempt."""

    attempt: int | None
    at: Time
    kind: str | None
    trigger: str | None
    observation: str
    analysis: str
    learning: str
    actions: list[str]
    draft: bool


class AttemptLesson(Wire, frozen=True):
    """An earlier attempt in the plan of a new one."""

    attempt: Annotated[int, "attempt.number"]
    outcome: Annotated[str, "attempt.outcome"]
    reason: Annotated[str, "attempt.reason"]
    plan: Annotated[str, "attempt.plan"]
    worked: Annotated[list[str], "attempt.worked"]
    failed: Annotated[list[str], "attempt.failed"]
    suggestions: Annotated[list[str], "attempt.suggestions"]
    reflections: list[TaskReflection]


class TaskCreated(Wire, frozen=True):
    """`task init`."""

    id: str


class TaskPaused(Wire, frozen=True):
    """`task complete --pause`."""

    id: str
    status: str


class AttemptStarted(Wire, frozen=True):
    """`task start`."""

    id: str
    attempt: Annotated[int, "number"]
    resumed: bool
    plan_path: str
    plan: str
    learnings: list[AttemptLesson]


class ActionsLogged(Wire, frozen=True):
    """`task log`."""

    id: str
    attempt: Annotated[int, "number"]
    added: int
    actions: int


class AttemptCompleted(Wire, frozen=True):
    """`task complete`; `derived`: outcome from the log, `again`: closed before."""

    id: str
    attempt: Annotated[int, "number"]
    outcome: str
    derived: bool
    again: bool
    status: str
    actions: Annotated[int, "log.actions"]
    errors: Annotated[int, "log.errors"]
    iterations: Annotated[int, "log.iterations"]
    reflections: list[TaskReflection]


class ReflectionWritten(Wire, frozen=True):
    """`task reflect`."""

    reflection: TaskReflection


class AttemptLearning(Wire, frozen=True):
    """A learning of an attempt."""

    attempt: int | None
    text: str


class SimilarTask(Wire, frozen=True):
    """A similar past task; `matched_by` is meaning or words."""

    id: Annotated[str, "task_id"]
    description: str
    score: float
    matched_by: str
    outcome: str
    learnings: list[AttemptLearning]


class SimilarTaskList(Wire, frozen=True):
    """`task list --similar`."""

    similar: list[SimilarTask]
    findings: list[Finding]


class OutcomeGroup(Wire, frozen=True):
    """Outcomes of a group of attempts, with the interval of the success rate."""

    successes: int
    failures: int
    rate: float | None
    interval: Annotated[list[float], "low,high"]


class RateDifference(Wire, frozen=True):
    """Rate difference; 0.2 is 20 percentage points. `tells`: interval excludes 0."""

    tells: Annotated[bool, "is_conclusive"]
    difference: float | None
    interval: Annotated[list[float] | None, "low,high"]
    relative: float | None
    needed: int | None


class RetryImprovement(Wire, frozen=True):
    """Retries with and without reflections; `level` is the intervals' probability."""

    first: OutcomeGroup
    with_reflections: Annotated[OutcomeGroup, "reflected"]
    without_reflections: Annotated[OutcomeGroup, "unreflected"]
    against_first: RateDifference
    against_without: Annotated[RateDifference, "against_unreflected"]
    level: float


class OmittedAttempts(Wire, frozen=True):
    """Ids of attempts that no rate counts."""

    running: list[str]
    paused: list[str]
    left: list[str]
    unclear: list[str]


class TaskLink(Wire, frozen=True):
    """A task and its loop."""

    task: Annotated[str, "task_id"]
    loop: Annotated[str, "loop_id"]
    how: str


class TrackingCoverage(Wire, frozen=True):
    """Loops with a task record."""

    met: bool | None
    loops: int
    tracked: list[str]
    remembered: list[str]
    missing: list[str]
    share: float | None
    links: list[TaskLink]


class ReadLatency(Wire, frozen=True):
    """The time to read a history."""

    met: bool | None
    limit_ms: float
    tasks: int
    median_ms: float | None
    slowest_ms: float | None
    slowest_task: str | None


class RetryTarget(Wire, frozen=True):
    """The improvement by reflections against its target."""

    met: bool | None
    target: float
    difference: float | None
    interval: Annotated[list[float] | None, "low,high"]


class AuditTrail(Wire, frozen=True):
    """Closed attempts with a complete record."""

    met: bool | None
    ended: int
    complete: int
    without_actions: list[str]
    without_outcome: list[str]
    without_reflection: list[str]


class TaskMetrics(Wire, frozen=True):
    """The success metrics; `met` is null if there is not enough data."""

    tracking_coverage: TrackingCoverage
    read_latency: ReadLatency
    retry_improvement: RetryTarget
    audit_trail: AuditTrail


class TaskReport(Wire, frozen=True):
    """`metrics --tasks`."""

    tasks: int
    improvement: RetryImprovement
    left_out: OmittedAttempts
    metrics: TaskMetrics
    findings: list[Finding]


class Milestone(Wire, frozen=True):
    """A milestone; `attempt` is null for one of the whole task."""

    at: Time
    event: str
    details: str
    attempt: int | None


class NamedText(Wire, frozen=True):
    """A text with its name."""

    name: str
    text: str


class Action(Wire, frozen=True):
    """One action; long texts are shortened."""

    number: int
    at: Time
    iteration: int | None
    type: str
    tool: str
    params: list[NamedText]
    success: bool | None
    output: str
    error: str
    reasoning: str
    expected: str


class AttemptHistory(Attempt, frozen=True):
    """One attempt with its plan and its actions (`log`; `actions` is their number)."""

    plan_text: str
    plan_steps: Annotated[list[str], "steps"]
    estimated_iterations: int | None
    results: list[str]
    log: list[Action]


class HistoryDocument(Wire, frozen=True):
    """`history` of a task."""

    task: Task
    attempts: list[AttemptHistory]
    milestones: list[Milestone]
    final_quality: float | None
    completion: float | None
    summary: list[NamedText]
    reflections: list[Reflection]
    findings: list[Finding]


class AttemptDocument(Wire, frozen=True):
    """`task show --attempt`."""

    attempt: Attempt
    plan_text: str
    plan_steps: Annotated[list[str], "steps"]
    estimated_iterations: int | None
    actions: list[Action]
    results: list[str]
    milestones: list[Milestone]
    reflections: list[Reflection]
    findings: list[Finding]


class ReplayStep(Action, frozen=True):
    """An action in its place; seconds `elapsed` from the start, `pause` to the next."""

    verdict: str
    real: str
    elapsed: float | None
    pause: float | None
    begins_iteration: bool
    quality: float | None
    diff: list[str]


class ReplayDocument(Wire, frozen=True):
    """`replay`."""

    attempt: Attempt
    steps: list[ReplayStep]
    findings: list[Finding]


class SearchHit(Wire, frozen=True, rename={"in_": "in"}):
    """A record that contains all words."""

    in_: Annotated[str, "place"]
    task_id: str | None
    attempt: int | None
    action: int | None
    subject: str | None
    at: Time
    snippet: str
    file: str
    pointer: str


class SearchResult(Wire, frozen=True):
    """`search`, best hits first; unless `is_exact`, there are more than `total` hits."""

    hits: list[SearchHit]
    total: int
    is_exact: bool
    findings: list[Finding]
