"""A member who calls the server's functions with odd values harms no other member."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import UUID

import pytest

from core.records.decisions import TEXT_HASH, Decision, Verb
from core.team.connection import InvalidCall, LevelTooLow
from core.team.local_state import LocalState
from tests.core.team.working_copy import START, WorkingCopy, join, make_candidate, make_record, make_text
from tests.team_server import Team

A: Final = "pat-error-a-001"
COUNTS: Final[dict[str, Any]] = {"usage_count": 900, "success_rate": 1.0, "successful_applications": 900}


def candidate(number: int = 1, **changes: Any) -> dict[str, Any]:
    found = json.loads(make_candidate(number, A))
    found["effects"][0]["insert"] = make_record(A, **COUNTS)
    return {**found, "at": "2026-11-20T12:00:00Z", **changes}


def send(team: Team, payload: str) -> None:
    carl = team.space("carl")
    carl.decide(join(carl), payload, ["loop-1"], seen=9)


def with_more(text: str) -> str:
    return json.dumps(candidate())[:-1] + f", {text}}}"


def test_a_decision_that_programs_read_differently_is_refused(team: Team) -> None:
    payloads = (
        json.dumps(candidate(id=5)),
        json.dumps(candidate(id="line\nbreak")),
        json.dumps(candidate(by=5)),
        json.dumps([candidate()]),
        with_more('"id": "other"'),
        with_more('"\\u0069d": "other"'),
        with_more('"effects": []'),
        with_more('"reason": "\\ud800"'),
    )
    carl = team.space("carl")
    project = join(carl)
    for payload in payloads:
        with pytest.raises((InvalidCall, LevelTooLow)):
            carl.decide(project, payload, ["loop-1"], seen=9)
    assert carl.head().seq == 0


def test_a_decision_that_no_client_can_read_stops_no_sync(team: Team, rita: WorkingCopy) -> None:
    payloads = (
        with_more('"more": ' + "[" * 3000 + "]" * 3000),
        with_more('"before": ' + '{"a":' * 200 + "1" + "}" * 200),
        with_more('"reason": 1e400'),
        with_more('"group": 5'),
        json.dumps(candidate(at=None)),
        json.dumps(candidate(effects=[{**candidate()["effects"][0], "file": 1}])),
    )
    for number, payload in enumerate(payloads):
        send(team, payload.replace('"id": "d1"', f'"id": "odd-{number}"'))
    send(team, json.dumps(candidate(2)))
    assert team.space("ada").head().seq == len(payloads) + 1
    assert rita.sync().received_decisions == 1
    log = rita.open().ledger.log
    assert [*log.by_id] == ["d2"]
    assert log.findings == ()


def test_a_candidate_of_a_contributor_is_always_held(team: Team, rita: WorkingCopy) -> None:
    rows: tuple[dict[str, Any], ...] = (
        {"proposed": True},
        {"hashes": {}},
        {"hashes": {A: "x"}},
        {"hashes": {}, "joined": [A], "patterns": []},
    )
    ids = [f"pat-error-a-00{number}" for number in range(1, len(rows) + 1)]
    for number, (pattern_id, after) in enumerate(zip(ids, rows, strict=True), 1):
        send(team, json.dumps(candidate(number, after=after)).replace(A, pattern_id))
    rita.sync()
    decisions = rita.open().ledger.decisions()
    assert [(one.by, one.is_proposal) for one in decisions] == [("Carl", True)] * len(rows)
    for pattern_id in ids:
        assert rita.records()[pattern_id] == make_record(pattern_id, usage_count=0, success_rate=0)
        assert rita.state_of_pattern(pattern_id) == "quarantine"


def test_a_candidate_of_a_contributor_does_not_hold_a_pattern_of_this_project(team: Team, rita: WorkingCopy) -> None:
    send(team, json.dumps(candidate()))
    rita.write(make_record(A, "Retry"))
    rita.sync()
    assert rita.records()[A] == make_record(A, "Retry")
    assert rita.state_of_pattern(A) == "candidate"


def test_a_text_with_the_hash_of_another_text_is_not_taken(team: Team, rita: WorkingCopy) -> None:
    carl = team.space("carl")
    carl.put_patterns([make_text(A, "f" * 64, record=json.dumps(make_record(A)))])
    rita.sync()
    assert rita.records() == {}
    assert LocalState(rita.paths.project).to_local("f" * 64) == "f" * 64


def test_a_contributor_does_not_join_the_project_of_another_member(team: Team) -> None:
    rita, carl = team.space("rita"), team.space("carl")
    project, own = join(rita, name="web"), join(carl, name="jobs")
    with pytest.raises(LevelTooLow, match="the project was joined by Rita; joining it, too, needs reviewer"):
        carl.join_project(project, "other")
    carl.join_project(own, "nightly")
    assert [(one.name, one.joined_by) for one in rita.projects()] == [("nightly", "Carl"), ("web", "Rita")]


def test_presence_and_questions_are_bounded(team: Team) -> None:
    rolf = team.space("rolf")
    with pytest.raises(InvalidCall, match="at most 200 characters"):
        rolf.heartbeat(UUID(int=0), question="x" * 201)
    for number in range(500):
        rolf.heartbeat(UUID(int=number))
    with pytest.raises(InvalidCall, match="a member 500 clients"):
        rolf.heartbeat(UUID(int=1001))
    rolf.heartbeat(UUID(int=1))
    team.space("rita").heartbeat(UUID(int=1001))


def test_what_a_project_decides_for_itself_is_not_received(team: Team, rita: WorkingCopy) -> None:
    rows: tuple[dict[str, Any], ...] = (
        {"verb": "release", "subject": "lesson-1", "after": {TEXT_HASH: "a" * 64}},
        {"verb": "revoke", "subject": "loop-1"},
        {"verb": "dismiss", "subject": "escalation of session-1"},
        {"verb": "undo", "subject": "own"},
    )
    approval = Decision(id="own", at=START, by="Rita", verb=Verb.RELEASE, subject="lesson", after={TEXT_HASH: "b" * 64})
    rita.open().ledger.append(approval)
    ada = team.space("ada")
    project = join(ada)
    for number, changes in enumerate(rows):
        decision = {"id": f"d{number}", "at": "2026-11-20T12:00:00Z", "by": "Ada", **changes}
        assert ada.decide(project, json.dumps(decision), [f"x{number}"], seen=0).seq
    assert rita.sync().received_decisions == 0
    assert rita.open().ledger.state().approved_texts == {"b" * 64}
