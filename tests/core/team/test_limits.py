from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
import pytest

from core.decisions.commands import Note
from core.records.decisions import Decision, Verb
from core.records.team import Level
from core.team.connection import Joined, save_joined
from core.team.follow import SpaceConnection
from core.team.server import Space
from core.team.sync import Synchronizer
from tests.core.team.working_copy import (
    AT,
    PATTERN,
    Psql,
    WorkingCopy,
    call,
    decide,
    join,
    make_candidate,
    make_decision,
    make_record,
    make_text,
    make_use,
    make_use_event,
)
from tests.team_server import Team

A: Final = "pat-error-a-001"
MIB: Final = 1 << 20


@pytest.fixture
def carl(team: Team) -> Space:
    return team.space("carl")


def uses(number: int, **changes: Any) -> str:
    """JSON of uses with IDs of their own."""
    use = {"pattern_id": PATTERN, "kind": "applied", "at": str(AT), "success": False, "weight": 1, "count": 1}
    return json.dumps([{"id": str(uuid4()), **use, **changes} for _ in range(number)])


def test_a_use_with_a_value_out_of_range_is_refused(psql: Psql, carl: Space) -> None:
    project = join(carl)
    count, weight = "count of a use is not between 0 and 100", "weight of a use is not between 0 and 1"
    years, kind = "not in the years 2000 to 2099", "kind of a use is not applied or injected"
    rows: dict[str, list[dict[str, Any]]] = {
        count: [{"count": number} for number in (2_000_000_000, 101, -1)],
        weight: [{"weight": number} for number in (1.01, -1, "NaN", "Infinity")],
        years: [{"at": at} for at in ("0001-01-01", "1999-12-31", "2100-01-01", "infinity", "12000-01-01")],
        kind: [{"kind": "praise"}],
        "a time before the year 1": [{"at": "0044-03-15 BC"}],
    }
    for reason, refused in rows.items():
        for changes in refused:
            assert reason in psql("carl", call(carl.info.id, "add_events", project, uses(1, **changes))), changes
    assert carl.sums().sums == {}


def test_uses_for_a_project_that_the_member_has_not_joined_are_refused(psql: Psql, team: Team, carl: Space) -> None:
    ada = team.space("ada")
    project = join(ada)
    answer = psql("carl", call(carl.info.id, "add_events", project, uses(1)))
    assert f"you have not joined the project {project} to the space" in answer
    assert f"you have not joined the project {project}" in psql("carl", decide(carl.info.id, project, make_candidate()))
    assert ada.sums().sums == {}


def test_uses_of_one_pattern_are_limited_by_day(psql: Psql, team: Team, carl: Space) -> None:
    project, space = join(carl), carl.info.id
    for _ in range(2):
        psql("carl", call(space, "add_events", project, uses(8, kind="injected", count=100)))
    assert carl.sums().sums[PATTERN].injected_only == 1000
    psql("carl", call(space, "add_events", project, uses(8, kind="injected", pattern_id=A)))
    assert carl.sums().sums[A].injected_only == 8
    yesterday(team)
    psql("carl", call(space, "add_events", project, uses(1, kind="injected", count=100)))
    assert carl.sums().sums[PATTERN].injected_only == 1100


def yesterday(team: Team) -> None:
    """Let a day pass, as far as limits are concerned."""
    team.connect("postgres").execute("update ralphdeck.spent set day = day - 1")


def test_a_client_sends_what_is_above_the_limit_on_the_next_day(team: Team, tmp_path: Path) -> None:
    carl = WorkingCopy(tmp_path / "carl", team, "carl")
    carl.write(make_record(A))
    carl.log(*(make_use_event(n, A, f"loop-{n}", None, kind="injected", at=AT) for n in range(1_003)))
    cycle = carl.sync()
    assert cycle.sent_uses == 1_000
    assert cycle.notes == ("3 uses more than a member may send in a day: sent after midnight UTC",)
    assert carl.sync().sent_uses == 0
    yesterday(team)
    with closing(carl.local_state()) as state:
        state.set_facts(postponed="2026-01-01")
    assert carl.sync().sent_uses == 3
    assert team.space("ada").sums().sums[A].injected_only == 1_003


def test_a_contributor_withdraws_no_use_of_another_member(psql: Psql, team: Team, carl: Space) -> None:
    ada = team.space("ada")
    ada.add_events(join(ada), [make_use(1)])
    own = join(carl)
    withdrawal = [{"id": str(uuid4()), "pattern_id": PATTERN, "kind": "applied", "at": str(AT)}]
    for ended in (UUID(int=1), UUID(int=2)):
        withdrawal[0]["withdraws"] = str(ended)
        psql("carl", call(carl.info.id, "add_events", own, json.dumps(withdrawal)))
    ada.add_events(join(ada), [make_use(2)])
    assert ada.sums().sums[PATTERN].uses == 2


def test_a_decision_of_16_mb_is_refused(team: Team, carl: Space) -> None:
    large = make_candidate(1, "new", reason="x" * 16 * MIB)
    with pytest.raises(Exception, match="1 MiB"):
        carl.connection.execute(
            "select ralphdeck.decide(%s, %s, %s, '{x}', 0, '{}', '{}', '[]')", (carl.info.id, join(carl), large)
        )
    assert carl.head().seq == 0


def test_bytes_of_decisions_are_limited_by_day(team: Team, carl: Space) -> None:
    project = join(carl)
    plain = team.connect("carl")
    decision = "select ralphdeck.decide(%s, %s, %s, '{x}', 9, '{}', '{}', '[]')"
    for number in range(8):
        large = make_candidate(number, f"new-{number}", reason="x" * (MIB - 2000))
        plain.execute(decision, (carl.info.id, project, large))
    with pytest.raises(Exception, match="the limit of the space acme is 8388608 bytes of decisions a day"):
        plain.execute(decision, (carl.info.id, project, make_candidate(9, "new-9", reason="x" * (MIB - 2000))))
    assert carl.head().seq == 8
    rita = team.space("rita")
    assert rita.decide(join(rita), make_decision(10), ["y"], seen=9).seq == 9


def test_a_decision_is_not_about_any_number_of_subjects(team: Team, carl: Space) -> None:
    with pytest.raises(Exception, match="about too many subjects"):
        carl.decide(join(carl), make_candidate(), ["x" * 2 * MIB], seen=0)


def test_decisions_and_projects_of_a_member_are_limited_by_day(psql: Psql, team: Team, carl: Space) -> None:
    project = join(carl)
    carl.decide(project, make_candidate(1, "new-1"), ["new-1"], seen=0)
    team.connect("postgres").execute("update ralphdeck.spent set amount = 1000 where what in ('decisions', 'projects')")
    answer = psql("carl", decide(carl.info.id, project, make_candidate(2, "new-2")).replace("{x}", "{new-2}"))
    assert "the limit of the space acme is 1000 decisions a day for a contributor" in answer
    assert carl.head().seq == 1
    assert "1000 projects a day" in psql("carl", call(carl.info.id, "join_project", uuid4(), "more"))


def test_patterns_of_a_member_are_limited_in_size_and_by_day(team: Team, carl: Space) -> None:
    rows = {
        "the limit of the space acme is 2000 patterns a day": [make_text(f"p{n}") for n in range(2001)],
        "8388608 bytes of patterns a day": [make_text(f"p{n}", record="x" * 255_000) for n in range(33)],
        "a pattern has at most 256 KiB": [make_text(record="x" * 300_000)],
        "the type or hash of a pattern is too long": [make_text(type="x" * 300_000)],
        "the type or hash of a pattern is too lon": [make_text(content_hash="x" * 300_000)],
    }
    plain = team.connect("carl")
    for reason, texts in rows.items():
        sent = msgspec.json.encode(texts).decode()
        with pytest.raises(Exception, match=reason):
            plain.execute("select ralphdeck.put_patterns(%s, %s)", (carl.info.id, sent))
    assert carl.changed_patterns().ids == set()
    assert carl.put_patterns([make_text()]) == ()


def test_a_sync_goes_on_after_the_limit_of_patterns(team: Team, tmp_path: Path) -> None:
    carl = WorkingCopy(tmp_path / "carl", team, "carl")
    carl.write(make_record(A))
    carl.sync()
    team.connect("postgres").execute("update ralphdeck.spent set amount = 2000 where what = 'patterns'")
    carl.write(make_record(A), make_record("pat-error-b-001"))
    carl.log(make_use_event(1, A, "loop-1"))
    cycle = carl.sync()
    assert (cycle.sent_texts, cycle.sent_uses) == (0, 1)
    assert "the limit of the space acme is 2000 patterns a day" in cycle.notes[0]
    yesterday(team)
    assert carl.sync().sent_texts == 1


def test_a_client_leaves_out_what_an_older_space_has_above_the_limits(team: Team, tmp_path: Path) -> None:
    """Large decisions are verified, but not received; the rest arrives."""
    ada, rita = team.space("ada"), WorkingCopy(tmp_path / "rita", team)
    project = join(ada)
    first = replace_limit(team, 8 * MIB)
    ada.decide(project, make_decision(1, "Ada", reason="x" * 2 * MIB, at="2026-11-20T12:00:00Z"), ["x"], seen=0)
    replace_limit(team, MIB, first)
    ada.decide(project, make_decision(2, "Ada", at="2026-11-20T12:00:00Z"), ["y"], seen=1)
    administrator = team.connect("postgres")
    administrator.execute(
        "insert into ralphdeck.patterns (space_id, pattern_id, type, record, content_hash, changed_by)"
        " select space_id, %s, 'error', repeat('x', 300000), 'x', 'Ada' from ralphdeck.spaces where name = 'acme'",
        (A,),
    )
    cycle = rita.sync()
    assert cycle.received_decisions == 1
    assert cycle.notes == (
        "decision 1 of the space, by Ada, is larger than 1 MiB; it was verified and not received",
        f"the pattern {A} of Ada is larger than 256 KiB; it was not received",
    )


def replace_limit(team: Team, size: int, definition: str = "") -> str:
    """Replace the size of a decision in the function of the server, as that of an older schema; returns what it was."""
    administrator = team.connect("postgres")
    row = administrator.execute("select pg_get_functiondef('ralphdeck.decide'::regproc)").fetchone()
    assert row is not None
    changed = definition or row[0].replace("> 1 << 20", f"> {size}")
    assert changed != row[0]
    administrator.execute(changed.encode())
    return str(row[0])


def test_a_client_reads_large_decisions_in_pages(team: Team) -> None:
    ada = team.space("ada")
    project = join(ada)
    for number in range(20):
        ada.decide(project, make_decision(number, "Ada", reason="x" * (MIB - 2000)), [str(number)], seen=99)
    first = ada.decisions(0)
    assert len(first) == 16
    assert [one.seq for one in ada.decisions(first[-1].seq)] == [17, 18, 19, 20]


def test_a_removed_member_hears_nothing_on_the_channel(psql: Psql, team: Team) -> None:
    """LISTEN needs no right: who was removed knows the old channel, and cannot read the new one."""
    ada, carl, rita = team.space("ada"), team.space("carl"), team.space("rita")
    plain, colleague = team.connect("carl"), SpaceConnection(rita, no_synchronizer(), uuid4(), uuid4())
    plain.execute(f'listen "{carl.channel()}"'.encode())
    ada.set_member("carl", "Carl", None)
    assert [one.payload for one in plain.notifies(timeout=5, stop_after=1)] == ["channel"]
    assert next_hints(colleague) == ["channel"]
    assert psql("carl", "select channel from ralphdeck.spaces") == ""
    ada.put_patterns([make_text()])
    assert next_hints(colleague) == ["patterns"]
    plain.execute("select 1")
    assert list(plain.notifies(timeout=0)) == []
    ada.set_member("carl", "Carl", Level.READER)
    assert team.space("carl").channel() == ada.channel()


def next_hints(connection: SpaceConnection) -> list[str]:
    """Wait for hints, which arrive soon after a transaction."""
    assert select.select([connection.fileno()], [], [], 10)[0]
    return list(connection.hints())


def no_synchronizer() -> Synchronizer:
    return object.__new__(Synchronizer)


def test_a_member_gets_no_name_of_a_program(team: Team) -> None:
    ada = team.space("ada")
    for name in ("ralphdeck team sync", "agent:claude", "Rita (script)", "Rita (unattended)"):
        with pytest.raises(Exception, match="is reserved for programs"):
            ada.set_member("nora", name, Level.CONTRIBUTOR)


def test_a_decision_shows_the_member_who_sent_it(team: Team, tmp_path: Path) -> None:
    """The name in a decision of an older space may be any; the chain has that of the member."""
    carl, rita = team.space("carl"), WorkingCopy(tmp_path / "rita", team)
    candidate = json.loads(make_candidate(1, A)) | {"at": "2026-11-20T12:00:00Z", "by": "Rita"}
    candidate["effects"][0]["insert"] = make_record(A)
    administrator = team.connect("postgres")
    administrator.execute(
        "create or replace function ralphdeck._check_author(p_me ralphdeck.access, p_by text) returns void"
        " language sql as $$ select $$"
    )
    carl.decide(join(carl), json.dumps(candidate), ["loop-1"], seen=0)
    rita.sync()
    assert [one.by for one in rita.open().ledger.decisions()] == ["Carl"]


def test_a_decision_that_is_too_large_for_a_team_stays_in_the_project(team: Team, tmp_path: Path) -> None:
    rita = WorkingCopy(tmp_path / "rita", team)
    rita.write(make_record(A))
    rita.sync()
    rita.open().decide(Note(A, text="short"))
    large = Decision(id="large", at=AT, by="Rita", verb=Verb.NOTE, subject=A, after={"text": ["x" * 2_000] * 600})
    rita.open().ledger.append(large)
    cycle = rita.sync()
    assert cycle.sent_decisions == 1
    assert "more than the 1 MiB that a team takes" in cycle.notes[0]
    assert rita.sync().notes == ()
    assert [decision.id for decision in team.space("ada").decisions(0)] != ["large"]


ROOT = Path(__file__).parents[3]
IDS = ("pat-error-a-001", "pat-error-b-001")
LAST_MOMENT = 60
"""More moments than a sync has; then it ends by itself."""


@pytest.mark.crash
def test_nothing_is_lost_or_doubled_by_a_kill(team: Team, tmp_path: Path) -> None:
    ada, rita = WorkingCopy(tmp_path / "ada", team, "ada"), WorkingCopy(tmp_path / "rita", team, "rita")
    ada.write(*map(make_record, IDS))
    save_joined(ada.paths.project, Joined(space="acme", source="env", id=uuid4(), name="ada"))
    environment = {**os.environ, "RALPHDECK_TEAM_URL": team.url("ada"), "RALPHDECK_USER": "Ada"}
    command = [sys.executable, "-m", "tests.core.team.working_copy", str(ada.paths.project)]
    codes = set()
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdin and worker.stdout
        for number, moment in enumerate((*range(1, 34, 5), LAST_MOMENT)):
            ada.log(make_use_event(number, IDS[number % 2], f"loop-{number}", number % 3 > 0))
            print(moment, file=worker.stdin, flush=True)
            codes.add(int(worker.stdout.readline()))
        worker.stdin.close()
    assert codes == {0, -signal.SIGKILL}
    rita.sync()
    rita.clock = ada.clock
    own, others = ada.sums(IDS), rita.sums(IDS)
    assert sum(one["uses"] for one in own.values()) == number + 1
    for pattern_id in IDS:
        assert others[pattern_id]["uses"] == own[pattern_id]["uses"]
        assert others[pattern_id]["successes"] == own[pattern_id]["successes"]
