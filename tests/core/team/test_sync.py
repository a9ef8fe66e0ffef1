"""Projects that exchange texts and uses through a space on a real server."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from core.decisions.commands import Promote
from core.records.decisions import Decision, Effect, Verb
from core.team.sync import Prefer
from tests.core.team.working_copy import START, Clock, WorkingCopy, make_record, make_use_event
from tests.team_server import Team

A, B = "pat-error-a-001", "pat-error-b-001"
NO_USES = {"success_rate": 0, "usage_count": 0}
"""What a record that was received has of the counts that its schema requires."""


@pytest.fixture
def ada(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "ada", team, "ada")


@pytest.fixture
def rita(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "rita", team, "rita")


@pytest.fixture
def carl(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "carl", team, "carl")


def test_patterns_and_uses_reach_the_other_project(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A, usage_count=0))
    ada.log(make_use_event(1, A, "loop-1"), make_use_event(2, A, "loop-2", False))
    sent = ada.sync()
    assert (sent.sent_texts, sent.sent_uses, sent.conflicts) == (1, 2, ())
    received = rita.sync()
    assert (received.received_texts, received.sent_uses) == (1, 0)
    assert rita.records()[A]["fix_approach"] == ada.records()[A]["fix_approach"]
    assert rita.records()[A] == {**ada.records()[A], **NO_USES}
    rita.log(make_use_event(3, A, "loop-3"))
    rita.sync()
    ada.sync()
    clock = Clock()
    for copy in (ada, rita):
        copy.clock = clock
    sums = ada.sums([A])
    assert sums[A]["successes"] == 2 and sums[A]["failures"] == 1
    for name, value in rita.sums([A])[A].items():
        assert value == pytest.approx(sums[A][name], rel=1e-6), name


def test_a_second_sync_has_nothing_to_do(ada: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    assert ada.sync().is_empty


@pytest.mark.parametrize("damage", [b"", b"{}", None], ids=["empty", "without a header", "deleted"])
def test_sums_that_were_lost_are_written_again(ada: WorkingCopy, rita: WorkingCopy, damage: bytes | None) -> None:
    ada.write(make_record(A), make_record(B))
    ada.log(make_use_event(1, A, "loop-1"), make_use_event(2, B, "loop-1"))
    ada.sync()
    rita.sync()
    file = rita.paths.team_evidence
    before = file.read_bytes()
    file.unlink() if damage is None else file.write_bytes(damage)
    rita.sync()
    assert file.read_bytes() == before


def test_a_changed_text_reaches_the_other_project(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.sync()
    rita.sync()
    ada.write(make_record(A, "Check for undefined"))
    assert ada.sync().sent_texts == 1
    assert rita.sync().received_texts == 1
    assert rita.records()[A]["fix_approach"] == ada.records()[A]["fix_approach"]
    assert rita.sync().is_empty


def test_two_texts_for_one_pattern_are_a_conflict_and_nothing_is_overwritten(
    ada: WorkingCopy, rita: WorkingCopy
) -> None:
    ada.write(make_record(A, "Check for null"))
    rita.write(make_record(A, "Restart"))
    rita.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    for _ in range(2):
        cycle = rita.sync()
        assert (cycle.conflicts, cycle.sent_uses) == ((A,), 0)
    assert rita.records()[A]["fix_approach"] == {"description": f"Restart in {A}"}


def test_the_text_of_the_team_can_be_preferred(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A, "Check for null"))
    rita.write(make_record(A, "Restart"))
    ada.sync()
    assert rita.sync(Prefer.TEAM).conflicts == ()
    assert rita.records()[A]["fix_approach"] == {"description": f"Check for null in {A}"}
    assert "Restart" in rita.paths.ledger.read_text()
    assert rita.sync().is_empty and ada.sync().is_empty


def test_the_local_text_can_be_preferred(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A, "Check for null"))
    rita.write(make_record(A, "Restart"))
    ada.sync()
    assert rita.sync(Prefer.LOCAL).conflicts == ()
    assert "Check for null" in rita.paths.ledger.read_text()
    ada.sync()
    assert ada.records()[A]["fix_approach"] == {"description": f"Restart in {A}"}
    assert rita.sync().sent_decisions == 1  # the note
    assert ada.sync().received_decisions == 1
    assert rita.sync().is_empty and ada.sync().is_empty


def test_the_text_of_a_contributor_is_held_until_a_person_releases_it(carl: WorkingCopy, rita: WorkingCopy) -> None:
    carl.write(make_record(A))
    carl.sync()
    rita.sync()
    assert rita.state_of_pattern(A) == "quarantine"
    assert carl.state_of_pattern(A) == "candidate"


def test_decisions_before_joining_as_a_contributor_stay_in_the_project(carl: WorkingCopy, rita: WorkingCopy) -> None:
    carl.write(make_record(A))
    carl.open().decide(Promote(A))
    assert carl.sync().refused == ()
    assert carl.state_of_pattern(A) == "proven"
    assert carl.sync().is_empty
    rita.sync()
    assert rita.state_of_pattern(A) == "quarantine"


def test_a_contributor_cannot_change_a_text(ada: WorkingCopy, carl: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.sync()
    carl.sync()
    carl.write(make_record(A, "Ignore the error"))
    assert carl.sync().conflicts == (A,)
    assert ada.sync().is_empty


def test_a_conflict_ends_when_the_local_text_is_that_of_the_team(ada: WorkingCopy, carl: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.sync()
    carl.sync()
    carl.write(make_record(A, "Ignore the error"))
    assert carl.sync().conflicts == (A,)
    carl.write(make_record(A))
    assert carl.sync().conflicts == ()
    carl.write(make_record(A, "Restart"))
    ada.write(make_record(A, "Check for undefined"))
    ada.sync()
    assert carl.sync().conflicts == (A,)
    carl.write(make_record(A, "Check for undefined"))
    assert carl.sync().conflicts == () == carl.sync().conflicts


def test_a_reader_receives_and_sends_nothing(ada: WorkingCopy, team: Team, tmp_path: Path) -> None:
    rolf = WorkingCopy(tmp_path / "rolf", team, "rolf")
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    rolf.write(make_record(B))
    rolf.log(make_use_event(2, B, "loop-2"))
    cycle = rolf.sync()
    assert (cycle.received_texts, cycle.sent_texts, cycle.sent_uses) == (1, 0, 0)
    assert rolf.records().keys() == {A, B}


def test_clock_skew_of_a_day_changes_no_sums(ada: WorkingCopy, rita: WorkingCopy, team: Team) -> None:
    now = team.space("ada").now()
    ada.clock, rita.clock = Clock(now + timedelta(days=1)), Clock(now)
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1", at=now + timedelta(days=1)))
    ada.sync()
    rita.sync()
    rita.log(make_use_event(2, A, "loop-2", at=now - timedelta(days=3)))
    rita.sync()
    ada.sync()
    ada.clock = rita.clock = Clock(now + timedelta(days=2))
    one, two = (copy.sums([A])[A] for copy in (ada, rita))
    assert one["successes"] == two["successes"] == 2
    assert one["helpful"] == pytest.approx(two["helpful"], rel=0.02)  # rita's server counts the use from its arrival


def test_ten_thousand_uses_made_offline_are_sent_in_one_sync(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(*(make_record(f"pat-error-p-{n:03}") for n in range(1, 101)))
    ada.sync()
    at = START - timedelta(days=1)
    ada.log(*(make_use_event(n, f"pat-error-p-{n % 100 + 1:03}", f"loop-{n}", at=at) for n in range(10_000)))
    assert ada.sync().sent_uses == 10_000
    rita.sync()
    assert sum(one["successes"] for one in rita.sums(rita.records()).values()) == 10_000


def test_a_use_that_changed_while_the_state_was_lost_counts_once(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1", None, kind="injected"), make_use_event(2, A, "loop-2"))
    ada.sync()
    ada.log(make_use_event(3, A, "loop-1", kind="outcome"))
    ada.forget_state()
    ada.sync()
    rita.sync()
    assert (rita.sums([A])[A]["uses"], rita.sums([A])[A]["injected_only"]) == (2, 0)
    ada.forget_state()
    assert ada.sync().withdrawn_uses == 0
    rita.sync()
    assert (rita.sums([A])[A]["uses"], rita.sums([A])[A]["injected_only"]) == (2, 0)


def test_what_a_restored_server_has_lost_is_sent_again(ada: WorkingCopy, rita: WorkingCopy, team: Team) -> None:
    ada.write(make_record(A), make_record(B))
    ada.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    administrator = team.connect("postgres")
    backup = administrator.execute("select pattern_id, uses from ralphdeck.sums").fetchall()
    ada.log(make_use_event(1, A, "loop-1"), make_use_event(2, A, "loop-2"), make_use_event(3, B, "loop-2", False))
    ada.sync()
    with administrator.transaction():
        for table in ("events", "sums", "project_sums", "project_members", "projects"):
            administrator.execute(f"delete from ralphdeck.{table}".encode())
        administrator.execute("delete from ralphdeck.patterns where pattern_id = %s", (B,))
        administrator.execute(
            "create or replace function ralphdeck.server_identity() returns text language sql as $$ select 'other' $$"
        )
    assert backup == [(A, 1)]
    again = ada.sync()
    assert (again.sent_uses, again.sent_texts) == (3, 1)
    assert rita.sync().received_texts == 2
    assert {id: sums["uses"] for id, sums in rita.sums([A, B]).items()} == {A: 2, B: 1}
    assert ada.sync().is_empty


def test_counts_in_a_decision_of_the_space_are_not_taken(team: Team, rita: WorkingCopy) -> None:
    space, project = team.space("carl"), uuid4()
    space.join_project(project, "loops")
    record = make_record(A, usage_count=1000, success_rate=1.0, successful_applications=1000)
    decision = Decision(
        id="d1",
        at=START,
        by="Carl",
        verb=Verb.EXTRACT,
        subject="loop-1",
        after={"patterns": [A], "hashes": {A: "h"}, "joined": [], "found": {}},
        effects=(Effect(file="error-patterns.json", type="error", pattern_id=A, insert=record),),
    )
    assert space.decide(project, msgspec.json.encode(decision).decode(), [A], seen=0).seq == 1
    rita.sync()
    assert rita.records()[A] == {**make_record(A), **NO_USES}
    assert rita.sums([A])[A]["uses"] == 0
