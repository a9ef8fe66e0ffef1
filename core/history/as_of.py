"""A project as it was: what was known at a past moment, scored by the same rules as the present."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec.structs import replace as with_fields

from core.base.text import plural
from core.debug_memory.escalation_status import find_escalation
from core.debug_memory.index import LazyDebugIndex
from core.history.registry_rewind import Rewound, rewound
from core.learning.aggregate_evidence import AGGREGATE, TREND
from core.learning.evidence import DISCOVERY
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.scoreboard import Scoreboard
from core.ledger.fold import fold
from core.records.debug_sessions import IN_PROGRESS, DebugSession, Escalation
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.events import Event, Observation
from core.records.findings import Finding, Severity
from core.records.loops import InjectedUse, Iteration, Liveness, Loop, LoopStatus, Outcome
from core.records.patterns import Pattern, RecordedCounts
from core.records.snapshot import Snapshot
from core.retrieval.index import LazyPatternIndex
from core.retrieval.similarity import LazySimilarity
from core.review.queue import review_queue
from core.state.project_state import ProjectState

UNDATED: Final = "undated"
"""Code of the finding that tells what a past view cannot date."""
_PATTERNS: Final = ".aiwg/ralph/shared/patterns"
_BY_RECORD: Final = frozenset({DISCOVERY, TREND, AGGREGATE})
"""Sources of evidence that the pattern's own record tells of."""
_START: Final = datetime.min.replace(tzinfo=UTC)

_Record = TypeVar("_Record")


def view_at(view: ProjectState, when: datetime) -> ProjectState:
    """What a reader would have seen at `when`, under the thresholds of today.

    Evidence, loops, tasks and decisions up to then count, by the same code as now; patterns are as the ledger and
    their dated evidence tell. What has no time of its own is told in a finding of code `undated`: it counts at any
    time, and counts that only a record's sum tells of count from the last use on, which dates them.

    Takes up to twice as long as to score everything from scratch, the less the nearer the moment is: call it from a
    worker.

    Args:
        view: The present.
        when: Aware UTC; from the present on nothing is left out, and only time passes.
    """
    if when >= view.now:
        return replace(view, board=view.board.rescored(when), now=when)
    snapshot = _snapshot_at(view, when)
    board = Scoreboard.build(snapshot, when, view.settings)
    calls = (find_escalation(session, snapshot) for session in snapshot.debug_sessions.values())
    queue = review_queue(
        snapshot.patterns,
        board,
        snapshot.curation,
        when,
        view.settings,
        escalated=[call for call in calls if call is not None],
    )
    return ProjectState(
        snapshot,
        board,
        LazyPatternIndex(snapshot.patterns),
        LazySimilarity(snapshot.patterns),
        queue,
        view.settings,
        when,
        {},
        view.embeddings,
        lazy_debug=LazyDebugIndex(snapshot.debug_sessions),
    )


def _snapshot_at(view: ProjectState, when: datetime) -> Snapshot:
    now = view.snapshot
    decisions = tuple(decision for decision in now.decisions if decision.at <= when)
    later = tuple(decision for decision in now.decisions if decision.at > when)
    curation = fold(decisions)
    absent = curation.undone | {decision.id for decision in later}
    events = _merged(now.events, now.withdrawn)
    if absent and any(event.decision in absent for event in events):
        events = tuple(event for event in events if event.decision not in absent)
    patterns, counted, findings = _patterns_at(replace(now, events=events), rewound(now.patterns, later), view, when)
    lost = len([id for id in curation.pins if id not in patterns and id not in now.patterns])
    if lost:
        findings = (*findings, _told(f"{plural(lost, 'pattern')} that had a verdict by then left no record"))
    return replace(
        now,
        patterns=MappingProxyType(patterns),
        loops=_kept(now.loops, when, _loop_at),
        reflections=_kept(now.reflections, when, lambda one, when: one if _known(one.at, when) else None),
        memory_tasks=_kept(now.memory_tasks, when, lambda one, when: one if _known(one.at, when) else None),
        tasks=_kept(now.tasks, when, _task_at),
        attempts=_kept(now.attempts, when, _attempt_at),
        debug_sessions=_kept(now.debug_sessions, when, _session_at),
        escalations=_kept(now.escalations, when, _escalation_at),
        events=(*(event for event in events if event.at <= when), *counted),
        withdrawn=(),
        decisions=decisions,
        curation=curation,
        findings=(*now.findings, *findings),
    )


def _merged(events: tuple[Event, ...], withdrawn: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(sorted((*events, *withdrawn), key=lambda event: event.at)) if withdrawn else events


def _known(at: datetime | None, when: datetime) -> bool:
    """Whether something of this time was known; what has none always was."""
    return at is None or at <= when


def _kept(records: Mapping[str, _Record], when: datetime, at: Any) -> Mapping[str, _Record]:
    """Each record as `at(record, when)` has it, without those that it has none of."""
    found = {id: past for id, record in records.items() if (past := at(record, when)) is not None}
    return MappingProxyType(found)


# Patterns


def _patterns_at(
    snapshot: Snapshot, then: Rewound, view: ProjectState, when: datetime
) -> tuple[dict[str, Pattern], list[Event], tuple[Finding, ...]]:
    """The patterns that existed, each with the counts that its record told of by then.

    A record that went on since counted fewer uses then. Which of the present ones it counted is what the evidence
    made of it says, use by use; it is put into an event of kind `counted`, as where ralphdeck keeps the counts.

    Returns:
        The patterns by id, these events, and what could not be dated.
    """
    changed = {event.pattern_id for event in snapshot.events if event.at > when and event.kind == "counted"}
    changed |= then.counted_until.keys()
    found: dict[str, Pattern] = {}
    observe: Callable[[Pattern], tuple[Observation, ...]] | None = None
    counted: list[Event] = []
    undated = summed = 0
    for id, pattern in then.patterns.items():
        created = _created(pattern)
        if not _known(created, when):
            continue
        undated += created is None
        if pattern.last_used is not None and id not in changed and _newest(pattern) <= when:
            found[id] = pattern
            continue
        if observe is None:
            observe = _observer(snapshot, then, view)
        seen = observe(pattern)
        told = tuple(one for one in seen if one.source in _BY_RECORD and _known(one.at, when))
        summed += sum(one.count for one in seen if one.source == AGGREGATE and (one.at is None or one.at > when))
        found[id] = _pattern_at(pattern, seen, told, when)
        counted.append(Event(id="", at=when, kind="counted", pattern_id=id, unrecorded=told))
    findings = [_told(f"{plural(undated, 'pattern')} without a date: shown at every time")]
    if summed:
        count = plural(summed, "use")
        findings.append(_told(f"{count} that only the sum of a record tells of count from its last use on, or always"))
    return found, counted, tuple(findings[0 if undated else 1 :])


def _told(message: str) -> Finding:
    return Finding(_PATTERNS, "", Severity.INFO, UNDATED, message)


def _observer(snapshot: Snapshot, then: Rewound, view: ProjectState) -> Callable[[Pattern], tuple[Observation, ...]]:
    """What gives the evidence on patterns as the ledger tells them; made anew only where it brought something back."""
    if snapshot.events is view.snapshot.events and not then.counted_until and then.patterns == view.snapshot.patterns:
        return view.board.observations_of_record
    events = tuple(event for event in snapshot.events if not _counts_more(event, then))
    past = replace(snapshot, patterns=then.patterns, events=events)
    return EvidenceInputs.of(past, view.settings.learning).observations


def _counts_more(event: Event, then: Rewound) -> bool:
    """Whether an event says what a record counted after the counts that are brought back."""
    return event.kind == "counted" and event.at > then.counted_until.get(event.pattern_id, event.at)


def _times(pattern: Pattern) -> Iterable[datetime]:
    yield from (source.at for source in pattern.source_loops if source.at is not None)
    yield from (point.at for point in pattern.trend if point.at is not None)


def _created(pattern: Pattern) -> datetime | None:
    """When the pattern came to be, as far as its record tells; None if it does not.

    The time of its last use alone dates no beginning.
    """
    return pattern.first_discovered or min(_times(pattern), default=None)


def _newest(pattern: Pattern) -> datetime:
    return max((pattern.last_used or _START, *_times(pattern)))


def _pattern_at(pattern: Pattern, seen: Iterable[Observation], told: Sequence[Observation], when: datetime) -> Pattern:
    sums = [one for one in told if one.source != DISCOVERY]
    return with_fields(
        pattern,
        recorded_counts=RecordedCounts(
            uses=sum(one.count for one in sums),
            successes=sum(one.count for one in sums if one.success is True),
            failures=sum(one.count for one in sums if one.success is False),
        ),
        source_loops=tuple(source for source in pattern.source_loops if _known(source.at, when)),
        trend=tuple(point for point in pattern.trend if _known(point.at, when)),
        last_used=max(
            (one.at for one in seen if one.at is not None and one.at <= when and one.kind != "injected"), default=None
        ),
    )


# Loops, tasks, sessions: what had not come out yet is open again


def _loop_at(loop: Loop, when: datetime) -> Loop | None:
    times = (step.at for step in loop.iterations if step.at is not None)
    began = loop.started_at or min(times, default=loop.ended_at)
    if not _known(began, when):
        return None
    end = (loop.ended_at or loop.last_activity or loop.updated_at) if loop.status.ended else loop.last_activity
    if _known(end, when):
        return loop
    iterations = tuple(step for step in loop.iterations if step.at is not None and step.at <= when)
    signs = [step.at for step in iterations if step.at is not None]
    return with_fields(
        loop,
        status=LoopStatus.RUNNING,
        liveness=Liveness.UNKNOWN,
        liveness_reason="",
        badges=(),
        archived=False,
        iteration=_progress(iterations),
        ended_at=None,
        ended_approximate=False,
        updated_at=None,
        last_activity=max(signs, default=loop.started_at),
        iterations=iterations,
        quality=loop.quality[: len(iterations)],
        last_result=iterations[-1].result if iterations else "",
        injected=tuple(_use_at(use, loop, when) for use in loop.injected),
        extracted=(),
        duration_ms=None,
    )


def _progress(iterations: Sequence[Iteration]) -> int | None:
    return max((step.number for step in iterations if step.number is not None), default=None)


def _use_at(use: InjectedUse, loop: Loop, when: datetime) -> InjectedUse:
    """A loop gets its patterns when it begins; what it did with them later nobody knew."""
    if use.at is not None and use.at <= when:
        return use
    return InjectedUse(pattern_id=use.pattern_id, at=loop.started_at)


def _attempt_at(attempt: Attempt, when: datetime) -> Attempt | None:
    if not _known(attempt.started_at or attempt.ended_at, when):
        return None
    if _known(attempt.ended_at, when):
        return attempt
    return Attempt(
        task_id=attempt.task_id,
        number=attempt.number,
        started_at=attempt.started_at,
        outcome=Outcome.UNKNOWN,
        plan=attempt.plan,
        agent=attempt.agent,
        file=attempt.file,
    )


def _task_at(task: Task, when: datetime) -> Task | None:
    if not _known(task.created_at, when):
        return None
    if not task.status.ended or _known(task.completed_at or task.updated_at, when):
        return task
    return with_fields(task, status=TaskStatus.RUNNING, completed_at=None, updated_at=None)


def _session_at(session: DebugSession, when: datetime) -> DebugSession | None:
    if not _known(session.created_at, when):
        return None
    if _known(session.changed_at, when):
        return session
    return with_fields(
        session,
        status=IN_PROGRESS,
        updated_at=None,
        executions=tuple(run for run in session.executions if _known(run.at, when)),
        lessons=(),
        recurring=(),
        issues=(),
        recommendations=(),
    )


def _escalation_at(call: Escalation, when: datetime) -> Escalation | None:
    known = [one for one in (*call.earlier, call) if one.at <= when]
    if not known or known[-1] is call:
        return known[-1] if known else None
    return with_fields(known[-1], earlier=tuple(known[:-1]))
