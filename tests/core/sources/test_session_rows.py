"""Sessions of hooks and loops of adapters are joined to rows, and each change costs what it affects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from core.sources.session_rows import SessionRows
from msgspec.structs import replace

from core.records.agent_sessions import HOOKS, SESSION_TAG, AgentSession
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Loop, LoopStatus, Outcome
from core.sources.session_states import Moment
from tests.factories import RunningProcesses

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Project:
    """Tasks, attempts and session records, and the rows that are made of them."""

    def __init__(self) -> None:
        self.rows = SessionRows()
        self.tasks: dict[str, Task] = {}
        self.attempts: dict[str, Attempt] = {}
        self.records: dict[str, AgentSession] = {}
        self.adapted: Mapping[str, Loop] = {}
        self.now = NOW

    def join(self, *changed: Task | Attempt | AgentSession) -> Mapping[str, Loop]:
        for one in changed:
            known: dict[str, Any] = (
                self.tasks if isinstance(one, Task) else self.attempts if isinstance(one, Attempt) else self.records
            )
            known[one.id] = one
        return self._join([one.id for one in changed])

    def remove(self, *ids: str) -> Mapping[str, Loop]:
        for id in ids:
            for known in (self.tasks, self.attempts, self.records):
                known.pop(id, None)
        return self._join(ids)

    def _join(self, ids: Iterable[str]) -> Mapping[str, Loop]:
        touched = self.rows.replace_attempts([id for id in ids if "." in id], self.attempts)
        affected = self.rows.replace_tasks({*touched, *(id for id in ids if id.startswith("task-"))}, self.tasks)
        moment = Moment(self.now, timedelta(minutes=30), RunningProcesses(), "here")
        return self.rows.join(self.adapted, {*affected, *(id for id in ids if ":" in id)}, self.records, moment)


def task(id: str = "task-001", session: str = "claude:s1", **values: Any) -> Task:
    return Task(id=id, description=f"Do {id}", tags=(SESSION_TAG,), loop_id=session, created_at=NOW, **values)


def attempt(number: int = 1, outcome: Outcome = Outcome.UNKNOWN, task_id: str = "task-001", **values: Any) -> Attempt:
    started_at = NOW + timedelta(minutes=number)
    return Attempt(task_id=task_id, number=number, started_at=started_at, outcome=outcome, **values)


def session(id: str = "claude:s1", **values: Any) -> AgentSession:
    agent, _, session_id = id.partition(":")
    return AgentSession(id=id, agent=agent, session_id=session_id, last_event_at=NOW, prompt="Do it", **values)


def adapter_loop(id: str = "claude:s1", **values: Any) -> Loop:
    runner = id.partition(":")[0]
    return Loop(id=id, **{"runner": runner, "owner": runner, "sources": (runner,), "iteration": 7, **values})


def test_a_task_of_a_session_is_a_row_and_other_tasks_are_not() -> None:
    rows = Project().join(task(), attempt(), replace(task("task-002", "x:1"), tags=()), attempt(task_id="task-002"))
    assert [*rows] == ["claude:s1"]
    assert (rows["claude:s1"].task, rows["claude:s1"].runner, rows["claude:s1"].sources) == (
        "Do task-001",
        "claude",
        (HOOKS,),
    )


def test_a_prompt_is_a_row_before_the_first_tool_call() -> None:
    assert Project().join(session(is_turn_open=True))["claude:s1"].status is LoopStatus.RUNNING
    assert not Project().join(replace(session(), prompt=""))


def test_the_loop_of_an_adapter_and_the_session_are_one_row() -> None:
    project = Project()
    project.join(task(status=TaskStatus.COMPLETED), attempt(1, Outcome.SUCCESS))
    project.adapted = {"claude:s1": adapter_loop(), "codex:s2": adapter_loop("codex:s2")}
    rows = project.join()
    assert [*rows] == ["claude:s1", "codex:s2"]
    assert (rows["claude:s1"].iteration, rows["claude:s1"].status) == (7, LoopStatus.COMPLETED)
    project.adapted = {}
    assert project.join()["claude:s1"].sources == (HOOKS,)


def test_attempts_of_several_sessions_are_in_the_rows_of_their_sessions() -> None:
    project = Project()
    rows = project.join(task(), attempt(1, Outcome.FAILURE), attempt(2, Outcome.SUCCESS, loop_id="claude:s2"))
    assert {id: row.iterations[0].outcome for id, row in rows.items()} == {
        "claude:s1": Outcome.FAILURE,
        "claude:s2": Outcome.SUCCESS,
    }
    assert rows["claude:s2"].started_at == NOW + timedelta(minutes=2), "not when its task was created"
    project.adapted = {"claude:s1": adapter_loop(aliases=("claude:s2",), session_ids=("s1", "s2"))}
    (row,) = project.join().values()
    assert (row.status, row.iteration) == (LoopStatus.COMPLETED, 7), "the newest session decides"


def test_a_row_is_the_same_until_it_changes_and_ends_when_its_records_are_removed() -> None:
    project = Project()
    before = project.join(task(), attempt(), task("task-002", "claude:s2"), attempt(task_id="task-002"))
    assert project.join() is before
    after = project.join(attempt(1, Outcome.SUCCESS))
    assert after["claude:s2"] is before["claude:s2"]
    assert after["claude:s1"] != before["claude:s1"]
    assert [*project.remove("task-001", "task-001.1")] == ["claude:s2"]


def test_a_session_ends_with_time_alone() -> None:
    project = Project()
    assert project.join(session())["claude:s1"].status is LoopStatus.PAUSED
    project.now += timedelta(minutes=11)
    assert project.join()["claude:s1"].status is LoopStatus.COMPLETED
