"""Find escalated sessions, and save their context."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from core.index.texts import Texts
from core.records.debug_sessions import Analysis, DebugSession, Escalation, Execution, Failure
from core.records.decisions import CurationState
from core.records.episodes import Attempt
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.snapshot import Snapshot
from core.tasks.escalations import EscalatedSession, find_escalation, find_recent_escalations
from tests.factories import DEBUG_NOW, make_session, sessions_by_id

HOUR = timedelta(hours=1)


def call(id: str, at: datetime = DEBUG_NOW) -> dict[str, Escalation]:
    return {id: Escalation(session_id=id, at=at, reason="why", file="f")}


def recent(since: datetime | None = None, calls: dict[str, Escalation] | None = None) -> list[str]:
    sessions = sessions_by_id(
        *(make_session(f"s{d}", days=d, status="escalated") for d in (3, 1, 2)), make_session("failed", days=9)
    )
    found = find_recent_escalations(
        Texts(Snapshot(debug_sessions=sessions)).debug, Snapshot(escalations=calls or {}), since
    )
    return [one.session.id for one in found]


def test_recent_escalations_newest_first() -> None:
    assert recent() == ["s1", "s2", "s3"]
    assert recent(DEBUG_NOW - timedelta(days=2)) == ["s1"]


def test_call_escalates_a_session_and_unknown_sessions_are_ignored() -> None:
    assert recent(calls=call("failed", DEBUG_NOW - 36 * HOUR) | call("gone")) == ["s1", "failed", "s2", "s3"]
    assert recent(DEBUG_NOW - HOUR, call("s3")) == ["s3"]


@pytest.mark.parametrize(
    ("status", "called", "at"),
    [
        ("escalated", None, DEBUG_NOW),
        ("failed", DEBUG_NOW - HOUR, DEBUG_NOW - HOUR),
        ("escalated", DEBUG_NOW + HOUR, DEBUG_NOW + HOUR),
    ],
)
def test_each_escalation_has_its_own_question(status: str, called: datetime | None, at: datetime) -> None:
    known: dict[str, Any] = {"escalations": call("s", called) if called else {}}
    found = find_escalation(make_session("s", status=status), Snapshot(**known))
    assert found is not None and found.at == at
    dismissed = CurationState(dismissed=frozenset({found.question}))
    answered = find_escalation(make_session("s", status=status), Snapshot(**known, curation=dismissed))
    assert (answered is None) is (status != "escalated")


def going_on(succeeded_at: datetime) -> Loop:
    step = Iteration(number=1, at=succeeded_at, outcome=Outcome.SUCCESS)
    return Loop(id="loop-1", status=LoopStatus.RUNNING, iterations=(step,))


def test_an_escalation_ends_with_its_loop_or_attempt_or_with_a_later_success() -> None:
    session = make_session("s", status="escalated", loop_id="loop-1")
    attempt = Attempt(task_id="task-001", number=1, outcome=Outcome.FAILURE)
    of_attempt = make_session("s", status="escalated", task_id="task-001", attempt=1)
    for one, records, has_ended in (
        (session, {"loops": {"loop-1": Loop(id="loop-1", status=LoopStatus.RUNNING)}}, False),
        (session, {"loops": {"loop-1": Loop(id="loop-1", status=LoopStatus.FAILED)}}, True),
        (session, {"loops": {"loop-1": going_on(DEBUG_NOW - HOUR)}}, False),
        (session, {"loops": {"loop-1": going_on(DEBUG_NOW + HOUR)}}, True),
        (of_attempt, {"attempts": {attempt.id: attempt}}, True),
        (session, {}, False),
    ):
        found = find_escalation(one, Snapshot(**records))
        assert found is not None and found.has_ended is has_ended


def test_reason_is_from_the_call_else_the_last_cause_else_the_failure() -> None:
    failed = Execution(failures=(Failure(error_type="TypeError", message="boom"),))
    analysed = Execution(analysis=Analysis(root_cause="no right to the database"))
    alone = DebugSession(id="s", executions=(failed,))
    assert EscalatedSession(session=alone).reason == "TypeError: boom"
    known = DebugSession(id="s", executions=(failed, analysed))
    assert EscalatedSession(session=known).reason == "no right to the database"
    assert EscalatedSession(session=known, call=call("s")["s"]).reason == "why"
    assert EscalatedSession(session=DebugSession(id="s")).reason == "the agent gave up"
