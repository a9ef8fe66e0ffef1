from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import TESTS_FAILED, AgentSession, Liveness, Loop, LoopStatus, Outcome, Progress, StateSource
from core.sources.agent_sessions import SessionWork, build_session_loop, join_session, parse_agent_sessions
from core.sources.liveness import Moment, process_space, system_processes
from tests.factories import RunningProcesses

FILE = ".aiwg/ralph/sessions/0123456789abcdef01234567.json"
RECORD: dict[str, Any] = {
    "agent": "claude",
    "id": "s1",
    "started": "2026-11-20T09:00:00Z",
    "last_event": "2026-11-20T09:01:00Z",
    "is_turn_open": True,
    "turns": 2,
    "first_prompt": "Fix it",
    "process": {"pid": 42, "started": "2026-11-20T08:00:00Z", "space": "here"},
}


def test_a_record_has_the_facts_of_a_session() -> None:
    (session,), findings = parse_agent_sessions(FILE, RECORD)
    assert (session.id, session.prompt, session.turns, session.is_turn_open) == ("claude:s1", "Fix it", 2, True)
    assert (session.pid, session.space, findings) == (42, "here", ())
    secret = "ghp_" + "a1B2" * 9
    (session,), _ = parse_agent_sessions(FILE, RECORD | {"first_prompt": f"Use {secret}\u202e now"})
    assert secret not in session.prompt and "\u202e" not in session.prompt
    for field in ("started", "last_event", "ended", "turns", "process", "first_prompt"):
        (session,), _ = parse_agent_sessions(FILE, RECORD | {field: [{"x": -1}]})
        assert session.id == "claude:s1", field
    rows: list[Any] = [[], "x", {}, {"agent": "claude"}, {"agent": "../x", "id": "s1"}, {"id": "s1"}]
    for value in rows:
        assert parse_agent_sessions(FILE, value)[0] == (), value


NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
STARTED = NOW - timedelta(hours=1)
RUNNING = RunningProcesses({42: STARTED})
PROCESS: dict[str, Any] = {"pid": 42, "process_started_at": STARTED, "space": "here"}


def record(**values: Any) -> AgentSession:
    known = {"started_at": STARTED, "last_event_at": NOW - timedelta(minutes=1), "prompt": "Fix it", "turns": 1}
    return AgentSession(id="claude:s1", agent="claude", session_id="s1", **{**known, **values})


def row(
    outcome: Outcome | None = None,
    session: AgentSession | None = None,
    status: TaskStatus = TaskStatus.RUNNING,
    *,
    processes: RunningProcesses | None = None,
    now: datetime = NOW,
) -> Loop:
    """Build the row of a session with an attempt that has an outcome; None for a session without a task."""
    at = NOW - timedelta(minutes=2)
    attempt = Attempt(task_id="task-001", number=1, started_at=at, outcome=outcome or Outcome.UNKNOWN)
    task = Task(id="task-001", description="Fix the cart", status=status, loop_id="claude:s1")
    work = SessionWork("claude:s1", session, [] if outcome is None else [(task, [attempt])])
    return build_session_loop(
        work,
        Moment(now=now, processes=processes or RunningProcesses(), stale_after=timedelta(minutes=30), space="here"),
    )


def test_hooks_decide_the_state() -> None:
    rows: list[tuple[Outcome | None, dict[str, Any], LoopStatus, Liveness]] = [
        (None, {"is_turn_open": True}, LoopStatus.RUNNING, Liveness.FRESH),
        (Outcome.UNKNOWN, {"is_turn_open": True, **PROCESS}, LoopStatus.RUNNING, Liveness.ALIVE),
        (Outcome.SUCCESS, {}, LoopStatus.COMPLETED, Liveness.ENDED),
        (Outcome.FAILURE, {}, LoopStatus.FAILED, Liveness.ENDED),
        (Outcome.UNKNOWN, {}, LoopStatus.PAUSED, Liveness.IDLE),
        (None, PROCESS, LoopStatus.PAUSED, Liveness.IDLE),
        (Outcome.UNKNOWN, {"ended_at": NOW}, LoopStatus.COMPLETED, Liveness.ENDED),
        (Outcome.FAILURE, {"ended_at": NOW}, LoopStatus.FAILED, Liveness.ENDED),
    ]
    for outcome, values, expected, liveness in rows:
        loop = row(outcome, record(**values), processes=RUNNING)
        assert (loop.status, loop.liveness) == (expected, liveness), outcome


def test_the_end_of_a_process_ends_its_session_at_once() -> None:
    for is_turn_open, outcome, expected in (
        (True, Outcome.UNKNOWN, LoopStatus.CRASHED),
        (False, Outcome.SUCCESS, LoopStatus.COMPLETED),
        (False, Outcome.UNKNOWN, LoopStatus.COMPLETED),
    ):
        session = record(is_turn_open=is_turn_open, **PROCESS)
        loop = row(outcome, session)
        assert loop.status is expected and loop.ended_at is not None
        assert row(outcome, session, processes=RunningProcesses({42: NOW})).status is expected, "a later process"
    elsewhere = record(is_turn_open=True, **{**PROCESS, "space": "there"})
    assert row(Outcome.UNKNOWN, elsewhere).status is LoopStatus.RUNNING, "a pid of another machine is not checked"
    silent = record(is_turn_open=True)
    assert row(None, silent, now=NOW + timedelta(hours=1)).liveness is Liveness.STALE
    assert row(None, silent, now=NOW + timedelta(hours=7)).status is LoopStatus.UNKNOWN


def test_a_session_that_ended_without_a_check_has_no_result() -> None:
    loop = row(Outcome.UNKNOWN, record(ended_at=NOW))
    assert (loop.success, loop.state_source) == (None, StateSource.INFERRED)
    assert row(Outcome.SUCCESS, record(ended_at=NOW)).success is True
    assert row(Outcome.FAILURE, record(ended_at=NOW)).success is False


def test_without_the_record_of_the_session_its_task_decides() -> None:
    for status, outcome, expected in (
        (TaskStatus.COMPLETED, Outcome.SUCCESS, LoopStatus.COMPLETED),
        (TaskStatus.FAILED, Outcome.FAILURE, LoopStatus.FAILED),
        (TaskStatus.RUNNING, Outcome.UNKNOWN, LoopStatus.RUNNING),
        (TaskStatus.PAUSED, Outcome.UNKNOWN, LoopStatus.PAUSED),
    ):
        assert row(outcome, None, status).status is expected


TRANSCRIPT = Loop(
    id="claude:s1",
    runner="claude",
    owner="claude",
    sources=("claude",),
    session_ids=("s1",),
    iteration=3,
    last_activity=NOW - timedelta(minutes=1),
)


def test_a_transcript_gives_tokens_and_hooks_the_state() -> None:
    rows: list[tuple[dict[str, Any], LoopStatus, str]] = [
        ({"status": LoopStatus.UNKNOWN, "state_source": StateSource.INFERRED}, LoopStatus.COMPLETED, "completed"),
        ({"status": LoopStatus.PAUSED}, LoopStatus.COMPLETED, "completed"),
        ({"status": LoopStatus.COMPLETED}, LoopStatus.FAILED, "failed"),
        ({"status": LoopStatus.FAILED, "end_reason": TESTS_FAILED}, LoopStatus.COMPLETED, "completed"),
        ({"status": LoopStatus.FAILED, "end_reason": "billing_error"}, LoopStatus.COMPLETED, "failed"),
        ({"status": LoopStatus.ABORTED, "end_reason": "interrupted"}, LoopStatus.RUNNING, "aborted"),
        ({"status": LoopStatus.WAITING}, LoopStatus.RUNNING, "waiting"),
        ({"status": LoopStatus.RUNNING, "liveness": Liveness.ALIVE}, LoopStatus.PAUSED, "running"),
        ({"status": LoopStatus.RUNNING, "state_source": StateSource.INFERRED}, LoopStatus.CRASHED, "crashed"),
        ({"status": LoopStatus.RUNNING, "last_activity": NOW + timedelta(hours=1)}, LoopStatus.COMPLETED, "running"),
    ]
    for values, hooked, expected in rows:
        sessions = {
            LoopStatus.COMPLETED: (Outcome.SUCCESS, record()),
            LoopStatus.FAILED: (Outcome.FAILURE, record()),
            LoopStatus.RUNNING: (Outcome.UNKNOWN, record(is_turn_open=True)),
            LoopStatus.PAUSED: (Outcome.UNKNOWN, record()),
            LoopStatus.CRASHED: (Outcome.UNKNOWN, record(is_turn_open=True, **PROCESS)),
        }
        hooks = row(*sessions[hooked])
        assert hooks.status is hooked, values
        joined = join_session(replace(TRANSCRIPT, **values), hooks)
        assert (joined.status.value, joined.iteration, joined.sources) == (expected, 3, ("claude", "hooks")), values


def test_the_state_of_a_loop_that_started_the_session_stays() -> None:
    loop = replace(TRANSCRIPT, id="snarktank:1", runner="snarktank", status=LoopStatus.RUNNING)
    assert join_session(loop, row(Outcome.SUCCESS, record())).status is LoopStatus.RUNNING


def test_a_check_that_hooks_saw_pass_answers_a_contradiction() -> None:
    loop = replace(
        TRANSCRIPT,
        status=LoopStatus.COMPLETED,
        state_source=StateSource.INFERRED,
        badges=("success-contradicted",),
        progress=Progress(test_passed=False),
    )
    joined = join_session(loop, row(Outcome.SUCCESS, record()))
    assert (joined.badges, joined.success) == ((), True)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_agent_is_seen_within_one_check() -> None:
    processes = system_processes()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as agent:
        started = processes.started_at(agent.pid)
        session = record(is_turn_open=True, pid=agent.pid, process_started_at=started, space=process_space())
        work = SessionWork(session.id, session, [])
        moment = Moment(now=NOW, processes=processes, stale_after=timedelta(minutes=30), space=session.space)
        assert build_session_loop(work, moment).liveness is Liveness.ALIVE
        agent.kill()
        agent.wait()
        assert build_session_loop(work, moment).status is LoopStatus.CRASHED
