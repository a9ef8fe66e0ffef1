"""Sessions of agents: read the records of hooks, and derive states from them.

Facts come before inference from the ages of files (docs/agents.md#sessions, docs/adapters.md#states).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.base.text import visible_line
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import (
    CHECK_FAILED,
    HOOKS,
    TESTS_FAILED,
    AgentSession,
    Iteration,
    Liveness,
    Loop,
    LoopStatus,
    Outcome,
    Progress,
    StateSource,
)
from core.records.times import minute_of, newest
from core.sources.liveness import Moment, State, is_running
from core.sources.normalize import document

if TYPE_CHECKING:
    from core.records.findings import Finding


_AGENT: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_MAX_ID: Final = 63  # characters of the ID of a loop in a task
_MAX_PROMPT: Final = 4_095
_MAX_SPACE: Final = 300


def parse_agent_sessions(file: str, value: Any) -> tuple[tuple[AgentSession, ...], tuple[Finding, ...]]:
    """Read the session of one record; none if it lacks the agent or the ID."""
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    agent, session_id = fields.text("agent"), fields.text("id")
    if _AGENT.fullmatch(agent) is None or not session_id:
        return (), ()
    process = fields.inside("process")
    session = AgentSession(
        id=loop_id_of(agent, session_id),
        agent=agent,
        session_id=session_id,
        prompt=mask_secrets(visible_line(fields.text("first_prompt", "prompt"), _MAX_PROMPT)),
        turns=fields.count("turns") or 0,
        started_at=fields.time("started"),
        last_event_at=fields.time("last_event"),
        ended_at=fields.time("ended"),
        is_turn_open=fields.mapping.get("is_turn_open") is True,
        pid=process.count("pid") if process is not None else None,
        process_started_at=process.time("started") if process is not None else None,
        space=process.text("space")[:_MAX_SPACE] if process is not None else "",
        file=file,
    )
    return (session,), tuple(findings)


def loop_id_of(agent: str, session_id: str) -> str:
    """Return the ID of a session's loop, which is that of the adapter of the agent."""
    return visible_line(f"{agent}:{session_id}", _MAX_ID)


def join_agent_sessions(sessions: Iterable[AgentSession]) -> dict[str, AgentSession]:
    """Return the sessions by ID; the last record of an ID counts."""
    return {session.id: session for session in sessions}


QUIET_AFTER: Final = timedelta(minutes=10)  # since its last turn, a session without a known process has ended
LOST_AFTER: Final = timedelta(hours=6)  # since its last event, nothing is known about a turn without an end
_LATER: Final = timedelta(minutes=2)  # after the last event, lines of a transcript show work without hooks
_RESULTS: Final = {
    Outcome.SUCCESS: LoopStatus.COMPLETED,
    Outcome.FAILURE: LoopStatus.FAILED,
    Outcome.TIMEOUT: LoopStatus.ABORTED,
}
_TASK_RESULTS: Final = {TaskStatus.COMPLETED: Outcome.SUCCESS, TaskStatus.FAILED: Outcome.FAILURE}
_REASONS: Final = {LoopStatus.COMPLETED: "a check passed", LoopStatus.FAILED: CHECK_FAILED}
_KEPT: Final = frozenset({LoopStatus.LIMIT, LoopStatus.ABORTED, LoopStatus.FAILED})
_MAX_FILES: Final = 10


class SessionWork(Struct, frozen=True):
    """Records of a session: its own if this machine has it, its tasks and attempts."""

    id: str  # of its loop
    record: AgentSession | None
    tasks: Sequence[tuple[Task, Sequence[Attempt]]]

    @property
    def attempts(self) -> list[Attempt]:
        """Attempts of the session, oldest first."""
        found = [attempt for _, attempts in self.tasks for attempt in attempts]
        return sorted(found, key=lambda one: (one.started_at is not None, one.started_at or one.number, one.number))

    @property
    def outcome(self) -> Outcome:
        """Outcome of its newest attempt; else that of its only task."""
        if attempts := self.attempts:
            return attempts[-1].outcome
        return _TASK_RESULTS.get(self.tasks[-1][0].status, Outcome.UNKNOWN) if self.tasks else Outcome.UNKNOWN

    @property
    def last_activity(self) -> datetime | None:
        if self.record is not None and self.record.last_event_at is not None:
            return self.record.last_event_at
        return newest(*(one.last_activity for one in self.attempts), *(task.updated_at for task, _ in self.tasks))


def build_session_loop(work: SessionWork, moment: Moment) -> Loop:
    """Return a session as a loop."""
    agent, _, session_id = work.id.partition(":")
    record, attempts = work.record, work.attempts
    state, last = decide(work, moment), work.last_activity
    is_over = state.status.ended or state.liveness is Liveness.ENDED
    started = [time for time in (record.started_at if record else None, *(one.started_at for one in attempts)) if time]
    started = started or [task.created_at for task, _ in work.tasks if task.created_at]  # of other sessions, too
    described = [task.description for task, _ in work.tasks if task.description]
    badges = {"crashed": state.status is LoopStatus.CRASHED, "stale": state.liveness is Liveness.STALE}
    return Loop(
        id=work.id,
        runner=agent,
        owner=agent,
        sources=(HOOKS,),
        task=described[0] if described else record.prompt if record else "",
        status=state.status,
        state_source=state.source,
        end_reason=state.reason if is_over else "",
        badges=tuple(badge for badge, applies in badges.items() if applies),
        iteration=(record.turns if record else 0) or len(attempts) or None,
        started_at=min(started, default=None),
        ended_at=((record.ended_at if record else None) or last) if is_over else None,
        ended_approximate=is_over and (record is None or record.ended_at is None),
        updated_at=last,
        last_activity=last,
        liveness=state.liveness,
        liveness_reason=state.why,
        pid=record.pid if record else None,
        iterations=tuple(_iterations(work)),
        last_result=attempts[-1].reason if attempts else "",
        session_ids=(record.session_id if record else session_id,),
        files=tuple(task.file for task, _ in work.tasks[-_MAX_FILES:] if task.file),
        progress=Progress(test_passed=True if work.outcome is Outcome.SUCCESS else None),
    )


def _iterations(work: SessionWork) -> list[Iteration]:
    """Return the attempts as iterations."""
    descriptions = {task.id: task.description for task, _ in work.tasks}
    return [
        Iteration(
            number=number,
            at=one.ended_at or one.started_at,
            action=descriptions.get(one.task_id, ""),
            is_prompt=True,
            result=one.reason,
            outcome=one.outcome,
            duration_ms=(one.ended_at - one.started_at).total_seconds() * 1000
            if one.ended_at and one.started_at and one.ended_at >= one.started_at
            else None,
        )
        for number, one in enumerate(work.attempts, start=1)
    ]


def decide(work: SessionWork, moment: Moment) -> State:
    """Return the state: the end of process or session decides first, then the turn."""
    record, last = work.record, work.last_activity
    quiet = moment.now - last if last is not None else LOST_AFTER
    since = f"last event {minute_of(last)} UTC" if last is not None else "no event has a time"
    if record is not None:
        is_open = record.is_turn_open
    else:
        attempts = work.attempts
        has_running = any(task.status is TaskStatus.RUNNING for task, _ in work.tasks)
        is_open = has_running and bool(attempts) and attempts[-1].is_open
    # On another machine, a pid means another process.
    pid = record.pid if record is not None and record.space == moment.space and record.space else None
    if record is not None and record.ended_at is not None:
        return _ended(work, f"the session ended; {since}", is_certain=True)
    if record is not None and pid is not None:
        if record.process_started_at is None or not is_running(pid, record.process_started_at, moment.processes):
            exited = f"process {pid} is gone"
            if is_open:
                return State(LoopStatus.CRASHED, "its process ended", Liveness.DEAD, exited, StateSource.REPORTED)
            return _ended(work, f"{exited}; {since}", is_certain=True)
        if is_open:
            return State(LoopStatus.RUNNING, "", Liveness.ALIVE, f"process {pid} runs", StateSource.REPORTED)
    if not is_open:
        if work.outcome in _RESULTS:
            return _ended(work, since, is_certain=True)
        if pid is not None:
            why = f"process {pid} waits for a prompt"
            return State(LoopStatus.PAUSED, "", Liveness.IDLE, why, StateSource.REPORTED)
        if quiet > QUIET_AFTER:
            return _ended(work, f"no event any more; {since}", is_certain=False)
        return State(LoopStatus.PAUSED, "", Liveness.IDLE, since)
    if quiet > LOST_AFTER:
        why = f"{since}; how it ended is not recorded"
        return State(LoopStatus.UNKNOWN, "", Liveness.ENDED, why)
    liveness = Liveness.STALE if quiet > moment.stale_after else Liveness.FRESH
    return State(LoopStatus.RUNNING, "", liveness, since, StateSource.REPORTED)


def _ended(work: SessionWork, why: str, *, is_certain: bool) -> State:
    """Return the state of an ended session; without an outcome, only that it ended."""
    status = _RESULTS.get(work.outcome)
    if status is None:
        return State(LoopStatus.COMPLETED, "ended without a check", Liveness.ENDED, why)
    source = StateSource.REPORTED if is_certain else StateSource.INFERRED
    return State(status, _REASONS.get(status, ""), Liveness.ENDED, why, source)


def join_session(loop: Loop, row: Loop) -> Loop:
    """Add what hooks recorded about a loop's newest session to the adapter's loop.

    `loop` is that of an adapter; `row` is of `build_session_loop`. The state of a runner's loop stays.
    """
    joined = replace(
        loop,
        sources=tuple(sorted({*loop.sources, HOOKS})),
        task=loop.task or row.task,
        started_at=loop.started_at or row.started_at,
        last_activity=newest(loop.last_activity, row.last_activity),
    )
    if not loop.is_agent_session or not _knows_more(row, loop):
        return joined
    passed = row.progress.test_passed
    others = {*loop.badges} - {"crashed", "stale"}
    return replace(
        joined,
        status=row.status,
        state_source=row.state_source,
        end_reason=row.end_reason,
        badges=tuple(sorted({*others, *row.badges} - ({"success-contradicted"} if passed else set()))),
        ended_at=row.ended_at,
        ended_approximate=row.ended_approximate,
        liveness=row.liveness,
        liveness_reason=row.liveness_reason,
        pid=row.pid if row.pid is not None else loop.pid,
        progress=loop.progress if passed is None else replace(loop.progress, test_passed=passed),
    )


def _knows_more(row: Loop, loop: Loop) -> bool:
    """Return whether hooks' state counts, not that from the agent's files."""
    has_ended = row.liveness in (Liveness.ENDED, Liveness.DEAD)
    if row.status is LoopStatus.UNKNOWN:
        return False
    is_certain = loop.state_source is StateSource.REPORTED
    if is_certain and loop.status in _KEPT and loop.end_reason != TESTS_FAILED:
        return False  # an error, a limit or an interruption, which fire no hook
    if is_certain and loop.criteria and loop.status.ended:  # a goal was judged
        return False
    if loop.liveness is Liveness.ALIVE and loop.status is not LoopStatus.UNKNOWN and row.liveness is not Liveness.DEAD:
        is_over = has_ended and row.end_reason != "" and not row.ended_approximate
        return is_over or loop.status is row.status
    if loop.status is LoopStatus.WAITING and not has_ended:
        return False
    times = loop.last_activity, row.last_activity
    if times[0] is not None and times[1] is not None and times[0] - times[1] > _LATER:
        return False  # it went on without hooks
    if len(loop.session_ids) > 1:  # between two runs of a loop no session is open
        return loop.status is LoopStatus.UNKNOWN or row.liveness is Liveness.DEAD
    return loop.status is not row.status or not is_certain
