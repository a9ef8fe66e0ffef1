"""JSON of the task memory: tasks, attempts, actions, reports, search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from core.cli.json.loops import Reflection
from core.cli.json.wire import Wire, wire

if TYPE_CHECKING:
    from core.episodes.history import AttemptDetail, WholeHistory
    from core.episodes.loop_links import LoopLink
    from core.episodes.plan_file import AttemptLessons
    from core.episodes.replay import ReplayStep as StepRecord
    from core.episodes.search_reader import SearchHit as HitRecord
    from core.episodes.success_metrics import AttemptGroup, GroupComparison, SuccessMetrics
    from core.records.episodes import Action as ActionRecord
    from core.records.episodes import Attempt as AttemptRecord
Task: Final = wire(
    "Task",
    "One task; `raw_status` is the word of the file.",
    """id description criteria status raw_status created_at:time updated_at:time completed_at:time current_attempt:int?
    total_attempts:int? tags:[text] related:[text] agent? loop_id? file""",
)
TaskRow: Final = wire(
    "TaskRow",
    "One task with the state of its attempts.",
    "state attempts:int last_outcome open_attempt:int? open_state? open_reason?",
    Task,
)
TaskList: Final = wire("TaskList", "`task list`.", "tasks:[TaskRow] findings:[Finding]")
Quality: Final = wire("Quality", "The quality after an iteration.", "iteration:int quality:number? delta:number?")
Attempt: Final = wire(
    "Attempt",
    "One attempt; null where nothing is recorded.",
    """id task_id number:int started_at:time ended_at:time open:bool outcome reason plan agent? iterations:int?
    actions:int? errors:int? last_action_at:time quality:[Quality] final_quality:number? completion:number?
    worked:[text] failed:[text] suggestions:[text] file""",
)


def attempt(record: AttemptRecord) -> Wire:
    """One attempt."""
    return Attempt.of(record, open=record.is_open)


TaskReflection: Final = wire(
    "TaskReflection",
    "A reflection on an attempt.",
    "attempt:int? at:time kind? trigger? observation analysis learning actions:[text] draft:bool",
)
AttemptLesson: Final = wire(
    "AttemptLesson",
    "An earlier attempt in the plan of a new one.",
    "attempt:int outcome reason plan worked:[text] failed:[text] suggestions:[text] reflections:[TaskReflection]",
)


def attempt_lesson(lesson: AttemptLessons) -> Wire:
    """An earlier attempt in the plan of a new one."""
    return AttemptLesson.of(lesson.attempt, attempt=lesson.attempt.number, reflections=lesson.reflections)


TaskCreated: Final = wire("TaskCreated", "`task init`.", "id")
TaskPaused: Final = wire("TaskPaused", "`task pause`.", "id status")
AttemptStarted: Final = wire(
    "AttemptStarted", "`task start`.", "id attempt:int resumed:bool plan_path plan learnings:[AttemptLesson]"
)
ActionsLogged: Final = wire("ActionsLogged", "`task log`.", "id attempt:int added:int actions:int")
AttemptCompleted: Final = wire(
    "AttemptCompleted",
    "`task complete`; `derived`: the outcome comes from the log, `again`: the attempt was closed before.",
    """id attempt:int outcome derived:bool again:bool status actions:int errors:int iterations:int
    reflections:[TaskReflection]""",
)
ReflectionWritten: Final = wire("ReflectionWritten", "`task reflect`.", "reflection:TaskReflection")
AttemptLearning: Final = wire("AttemptLearning", "A learning of an attempt.", "attempt:int? text")
SimilarTask: Final = wire(
    "SimilarTask",
    "A similar past task; `matched_by` is meaning or words.",
    "id description score:number matched_by outcome learnings:[AttemptLearning]",
)
SimilarTaskList: Final = wire("SimilarTaskList", "`task similar`.", "similar:[SimilarTask] findings:[Finding]")
OutcomeGroup: Final = wire(
    "OutcomeGroup",
    "Outcomes of a group of attempts, with the interval of the success rate.",
    "successes:int failures:int rate:number? interval:[number]",
)
RateDifference: Final = wire(
    "RateDifference",
    "A difference of success rates; 0.2 is 20 percentage points. `tells`: the interval does not contain 0.",
    "tells:bool difference:number? interval:[number]? relative:number? needed:int?",
)
RetryImprovement: Final = wire(
    "RetryImprovement",
    "Retries with and without reflections; `level` is the probability of all intervals.",
    """first:OutcomeGroup with_reflections:OutcomeGroup without_reflections:OutcomeGroup against_first:RateDifference
    against_without:RateDifference level:number""",
)
OmittedAttempts: Final = wire(
    "OmittedAttempts", "Ids of attempts that no rate counts.", "running:[text] paused:[text] left:[text] unclear:[text]"
)
TaskLink: Final = wire("TaskLink", "A task and its loop.", "task loop how")
TrackingCoverage: Final = wire(
    "TrackingCoverage",
    "Loops with a task record.",
    "met:bool? loops:int tracked:[text] remembered:[text] missing:[text] share:number? links:[TaskLink]",
)
ReadLatency: Final = wire(
    "ReadLatency",
    "The time to read a history.",
    "met:bool? limit_ms:number tasks:int median_ms:number? slowest_ms:number? slowest_task?",
)
RetryTarget: Final = wire(
    "RetryTarget",
    "The improvement by reflections against its target.",
    "met:bool? target:number difference:number? interval:[number]?",
)
AuditTrail: Final = wire(
    "AuditTrail",
    "Closed attempts with a complete record.",
    "met:bool? ended:int complete:int without_actions:[text] without_outcome:[text] without_reflection:[text]",
)
TaskMetrics: Final = wire(
    "TaskMetrics",
    "The success metrics; `met` is null if there is not enough data.",
    "tracking_coverage:TrackingCoverage read_latency:ReadLatency retry_improvement:RetryTarget audit_trail:AuditTrail",
)
TaskReport: Final = wire(
    "TaskReport",
    "`task report`.",
    "tasks:int improvement:RetryImprovement left_out:OmittedAttempts metrics:TaskMetrics findings:[Finding]",
)


def task_report(found: SuccessMetrics, links: Iterable[LoopLink], level: float, **given: Any) -> Wire:
    """How retries with reflections do, and the success metrics."""
    from core.episodes.success_metrics import READ_LATENCY_SECONDS, TARGET_IMPROVEMENT

    improvement, latency = found.improvement, found.latency
    return TaskReport.of(
        **given,
        improvement=RetryImprovement(
            first=_outcome_group(improvement.first),
            with_reflections=_outcome_group(improvement.reflected),
            without_reflections=_outcome_group(improvement.unreflected),
            against_first=_rate_difference(improvement.against_first),
            against_without=_rate_difference(improvement.against_unreflected),
            level=level,
        ),
        left_out=OmittedAttempts.of(found, unclear=improvement.unclear),
        metrics=TaskMetrics(
            tracking_coverage=TrackingCoverage.of(
                found.coverage,
                met=found.covers,
                links=[TaskLink(task=link.task_id, loop=link.loop_id, how=link.how) for link in links],
            ),
            read_latency=ReadLatency.of(
                latency,
                limit_ms=READ_LATENCY_SECONDS * 1000,
                median_ms=None if latency.median is None else latency.median * 1000,
                slowest_ms=None if latency.slowest is None else latency.slowest * 1000,
            ),
            retry_improvement=RetryTarget(
                met=found.improves,
                target=TARGET_IMPROVEMENT,
                difference=improvement.against_unreflected.difference,
                interval=_interval(improvement.against_unreflected),
            ),
            audit_trail=AuditTrail.of(found.audit),
        ),
    )


def _outcome_group(group: AttemptGroup) -> Wire:
    return OutcomeGroup.of(group, interval=[group.low, group.high])


def _rate_difference(found: GroupComparison) -> Wire:
    return RateDifference.of(found, tells=found.is_conclusive, interval=_interval(found))


def _interval(found: GroupComparison) -> list[float] | None:
    return None if found.low is None or found.high is None else [found.low, found.high]


Milestone: Final = wire(
    "Milestone", "A milestone; `attempt` is null for one of the whole task.", "at:time event details attempt:int?"
)
NamedText: Final = wire("NamedText", "A text with its name.", "name text")
Action: Final = wire(
    "Action",
    "One action; long texts are shortened.",
    "number:int at:time iteration:int? type tool params:[NamedText] success:bool? output error reasoning expected",
)


def action(record: ActionRecord) -> Wire:
    """One action."""
    return Action.of(record, params=_named_texts(record.params))


def _named_texts(pairs: Iterable[tuple[str, str]]) -> list[Wire]:
    return [NamedText(name=name, text=text) for name, text in pairs]


AttemptHistory: Final = wire(
    "AttemptHistory",
    "One attempt with its plan and its actions (`log`; `actions` is their number).",
    "plan_text plan_steps:[text] estimated_iterations:int? results:[text] log:[Action]",
    Attempt,
)
HistoryDocument: Final = wire(
    "HistoryDocument",
    "`history` of a task.",
    """task:Task attempts:[AttemptHistory] milestones:[Milestone] final_quality:number? completion:number?
    summary:[NamedText] reflections:[Reflection] findings:[Finding]""",
    uses=[Reflection],
)


def history_document(whole: WholeHistory, findings: object) -> Wire:
    """All attempts at a task."""
    history = whole.task
    return HistoryDocument.of(
        history,
        attempts=[
            AttemptHistory.of(
                detail.attempt,
                open=detail.attempt.is_open,
                plan_text=detail.plan_text,
                plan_steps=detail.steps,
                estimated_iterations=detail.estimated_iterations,
                results=detail.results,
                log=list(map(action, detail.actions)),
            )
            for detail in whole.attempts
        ],
        summary=_named_texts(history.summary),
        findings=findings,
    )


AttemptDocument: Final = wire(
    "AttemptDocument",
    "`history --attempt`.",
    """attempt:Attempt plan_text plan_steps:[text] estimated_iterations:int? actions:[Action] results:[text]
    milestones:[Milestone] reflections:[Reflection] findings:[Finding]""",
    uses=[Reflection],
)


def attempt_document(detail: AttemptDetail, findings: object) -> Wire:
    """Everything about one attempt."""
    return AttemptDocument.of(
        detail,
        attempt=attempt(detail.attempt),
        plan_steps=detail.steps,
        actions=list(map(action, detail.actions)),
        findings=findings,
    )


ReplayStep: Final = wire(
    "ReplayStep",
    "One action in its place; `elapsed` since the start and `pause` until the next one are seconds.",
    "verdict real elapsed:number? pause:number? begins_iteration:bool quality:number? diff:[text]",
    Action,
)
ReplayDocument: Final = wire("ReplayDocument", "`replay`.", "attempt:Attempt steps:[ReplayStep] findings:[Finding]")


def replay_step(step: StepRecord) -> Wire:
    """One action in its place."""
    return ReplayStep.of(
        step.action,
        params=_named_texts(step.action.params),
        verdict="not told" if step.verdict.value == "unknown" else step.verdict,  # the documented value
        real=step.real,
        elapsed=step.elapsed,
        pause=step.pause,
        begins_iteration=step.begins_iteration,
        quality=step.quality,
        diff=step.diff,
    )


SearchHit: Final = wire(
    "SearchHit",
    "A record that contains all words.",
    "in task_id? attempt:int? action:int? subject? at:time snippet file pointer",
)
SearchResult: Final = wire("SearchResult", "`search`.", "hits:[SearchHit] total:int findings:[Finding]")


def search_hit(hit: HitRecord, snippet: str) -> Wire:
    """A record that contains all words."""
    return SearchHit.of(hit, snippet=snippet, **{"in": hit.place})
