from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from core.base.errors import Conflict, Refused
from core.decisions.commands import AcceptInversion, Archive, Command, Deprecate, Note, Promote, Restore, Undo, bulk
from core.project.project import Project
from core.records.decisions import SYNC, Decision, Verb
from core.records.team import Level
from core.team import gate
from core.team.connection import AccessDenied, ChainBroken, Joined, Limits, Offline, TeamError
from core.team.gate import TeamGate
from core.team.local_state import LocalState
from core.team.server import Space
from core.team.sync import Cycle, Synchronizer
from tests.core.team.exchange import IDS, comparable, write_project
from tests.core.team.working_copy import Clock
from tests.factories import NO_RETRY_SETTINGS
from tests.team_server import Team

A, B, C = IDS


class Reviewer:
    """A member with a project of their own that has joined the space."""

    def __init__(self, folder: Path, team: Team, role: str, clock: Callable[[], Any]) -> None:
        self.team, self.role = team, role
        self.paths = write_project(folder)
        by = role.capitalize()
        self.project = Project(self.paths, NO_RETRY_SETTINGS, by=by, clock=clock, cache=False, asks=False)
        self.project.load()
        self.state = LocalState(folder)
        self.joined = Joined(space="acme", source="env", id=uuid4(), name=folder.name)
        self.synchronizer = Synchronizer(self.project, self.state, self.joined.id)
        self.sync()
        self.connect: Callable[[], Space] = lambda: Space.connect(team.url(role), "acme", Limits(connect=2))
        self.open_gate()

    def open_gate(self) -> None:
        self.gate = self.project.curator.gate = TeamGate(self.project, self.joined, lambda: self.connect())

    def sync(self) -> Cycle:
        return self.synchronizer.run(self.team.space(self.role, "acme"))

    def decide(self, command: Command) -> Decision:
        return self.project.decide(command).decision

    def overrides(self) -> dict[str, str]:
        patterns = self.project.apply((self.paths.patterns,))[0].snapshot.curation.pins
        return {key: pin.state.value for key, pin in patterns.items()}

    @property
    def log(self) -> tuple[Decision, ...]:
        return self.project.ledger.decisions()

    def close(self) -> None:
        self.gate.close()
        self.state.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ada(tmp_path: Path, team: Team, clock: Clock) -> Iterator[Reviewer]:
    yield from _closed(Reviewer(tmp_path / "ada", team, "ada", clock))


@pytest.fixture
def rita(tmp_path: Path, team: Team, clock: Clock, ada: Reviewer) -> Iterator[Reviewer]:
    yield from _closed(Reviewer(tmp_path / "rita", team, "rita", clock))


def _closed(reviewer: Reviewer) -> Iterator[Reviewer]:
    yield reviewer
    reviewer.close()


def in_space(team: Team) -> list[tuple[str, str]]:
    return [(one.member, one.id) for one in team.space("ada", "acme").decisions(0)]


def assert_same(*reviewers: Reviewer) -> None:
    for reviewer in (*reviewers, *reviewers):
        reviewer.sync()
    first, *others = reviewers
    for other in others:
        assert comparable(other.project.ledger.state()) == comparable(first.project.ledger.state())
        assert other.project.view.snapshot.patterns.keys() == first.project.view.snapshot.patterns.keys()


def test_the_second_reviewer_gets_a_conflict_with_who_when_and_what(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    ada.decide(Promote(A, reason="used daily"))
    with pytest.raises(
        Conflict, match=r"^Ada decided .*: promote pat-error-a-001 \(used daily\); your decision was not made"
    ):
        rita.decide(Deprecate(A, reason="hides the cause"))
    assert rita.log == ()
    assert len(in_space(team)) == 1
    rita.gate.catch_up()
    assert rita.overrides() == {A: "proven"}
    rita.decide(Deprecate(A, reason="hides the cause"))
    assert_same(ada, rita)


def test_a_reviewer_can_decide_again_on_the_own_decision(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    rita.decide(Promote(B))
    ada.decide(Promote(A))
    ada.decide(Undo())
    ada.decide(Deprecate(A, reason="hides the cause"))
    assert len(in_space(team)) == 4
    assert_same(ada, rita)


def test_a_text_that_another_member_changed_is_a_conflict(ada: Reviewer, rita: Reviewer) -> None:
    file = ada.paths.pattern_file("error")
    file.write_text(file.read_text().replace(f"Check for null in {A}", f"Check for undefined in {A}"))
    ada.project.apply((file,))
    ada.sync()
    with pytest.raises(Conflict) as error:
        rita.decide(Promote(A))
    assert str(error.value).startswith(f"the text of {A} was changed by Ada ")
    assert f"'Check for null in {A}' → 'Check for undefined in {A}'; your decision was not made" in str(error.value)
    assert rita.log == ()
    rita.sync()
    rita.decide(Promote(A))
    assert_same(ada, rita)


def test_a_bulk_decision_leaves_out_what_another_member_decided(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    ada.decide(Promote(A))
    decided = rita.project.decide(bulk(Verb.DEPRECATE, (A, B), "hides the cause"))
    assert [one.subject for one in decided.decisions] == [B]
    assert "Ada decided" in decided.warnings[0]
    assert len(in_space(team)) == 2
    assert_same(ada, rita)


def test_an_undo_of_an_act_is_made_as_a_whole(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    ada.decide(bulk(Verb.PROMOTE, (A, B)))
    rita.sync()
    rita.decide(Deprecate(A, reason="hides the cause"))
    with pytest.raises(Conflict, match="Rita decided"):
        ada.decide(Undo())
    assert len(in_space(team)) == 3
    assert_same(ada, rita)


def test_records_follow_their_decisions(ada: Reviewer, rita: Reviewer) -> None:
    ada.decide(Archive(A, reason="outdated"))
    anti_id = ada.decide(AcceptInversion(C)).after["anti_id"]
    rita.sync()
    assert A not in rita.project.view.snapshot.patterns
    assert rita.project.view.pattern(anti_id).content_hash == ada.project.view.pattern(anti_id).content_hash
    rita.decide(Restore(A))
    assert_same(ada, rita)
    assert A in ada.project.view.snapshot.patterns


def test_a_contributor_is_refused_and_nothing_is_written(tmp_path: Path, team: Team, clock: Clock) -> None:
    carl = Reviewer(tmp_path / "carl", team, "carl", clock)
    before = carl.paths.pattern_file("error").read_bytes()
    with pytest.raises(Refused, match="your role in the space acme is contributor; promote needs reviewer"):
        carl.decide(Promote(A))
    assert carl.log == ()
    assert carl.paths.pattern_file("error").read_bytes() == before
    carl.close()


def test_a_reader_who_became_a_reviewer_decides_and_sends_it_with_the_next_sync(
    tmp_path: Path, team: Team, clock: Clock
) -> None:
    rolf = Reviewer(tmp_path / "rolf", team, "rolf", clock)
    team.space("ada").set_member("rolf", "Rolf", Level.REVIEWER)
    rolf.decide(Promote(A))
    assert rolf.sync().sent_decisions == 1
    rolf.close()


def test_what_a_contributor_decided_offline_is_undone(tmp_path: Path, team: Team, clock: Clock) -> None:
    carl = Reviewer(tmp_path / "carl", team, "carl", clock)
    carl.connect = lambda: Space.connect("host=127.0.0.1 port=1 user=carl", "acme")
    carl.decide(Promote(A))
    why = "your role in the space acme is contributor; promote needs reviewer"
    assert carl.sync().refused == (f"undone: promote {A}; {why}",)
    assert carl.overrides() == {}
    assert carl.log[-1].by == SYNC
    carl.close()


def test_without_a_server_decisions_are_made_here_and_sent_later(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    rita.decide(Promote(B))
    team.cluster.stop()
    try:
        made = [ada.decide(command) for command in (Promote(A), Deprecate(A, reason="odd"), Archive(A, reason="odd"))]
    finally:
        team.cluster.start()
    cycle = ada.sync()
    assert (cycle.sent_decisions, cycle.refused) == (3, ())
    assert [id for _, id in in_space(team)][1:] == [one.id for one in made]
    assert_same(ada, rita)
    assert A not in rita.project.view.snapshot.patterns


def test_a_connection_that_the_server_closed_is_opened_again(ada: Reviewer, team: Team) -> None:
    ada.decide(Promote(A))
    team.cluster.restart()
    ada.decide(Promote(B))
    assert len(in_space(team)) == 2


def test_a_connection_that_is_half_open_delays_one_decision_only(
    ada: Reviewer, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada.decide(Promote(A))
    monkeypatch.setattr(gate, "SECONDS", 0.6)
    assert ada.gate._space is not None
    server = ada.gate._space.connection.info.backend_pid
    os.kill(server, signal.SIGSTOP)
    try:
        began = monotonic()
        late = ada.decide(Promote(B))
        assert monotonic() - began < 5
    finally:
        os.kill(server, signal.SIGCONT)  # it records the decision now, when no one waits for it
    ada.decide(Note(A, text="known offline"))
    assert ada.sync().refused == ()
    assert [one for _, one in in_space(team)].count(late.id) == 1
    assert len(in_space(team)) == 3


def test_an_answer_that_was_lost_leaves_one_decision(
    ada: Reviewer, rita: Reviewer, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Space.decide

    def lost(self: Space, *arguments: Any, **options: Any) -> Any:
        real(self, *arguments, **options)
        self.connection.execute("commit")
        socket.socket(fileno=self.connection.fileno()).shutdown(socket.SHUT_RDWR)
        return real(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Space, "decide", lost)
        made = ada.decide(Promote(A))
    assert [id for _, id in in_space(team)] == [made.id]
    assert [one.id for one in ada.log] == [made.id]
    assert_same(ada, rita)
    assert [id for _, id in in_space(team)] == [made.id]
    assert [one.id for one in rita.log] == [made.id]


def test_a_decision_that_only_the_space_has_comes_back(
    ada: Reviewer, rita: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program ends between the answer of the server and the write."""
    with monkeypatch.context() as patch:
        patch.setattr(ada.project.ledger, "append", _fail)
        with pytest.raises(KeyboardInterrupt):
            ada.decide(Promote(A))
    assert ada.log == ()
    assert_same(ada, rita)
    assert ada.overrides() == rita.overrides() == {A: "proven"}


def _fail(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_server_that_does_not_answer_delays_one_decision_only(ada: Reviewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "SECONDS", 0.6)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and says nothing
        port = silent.getsockname()[1]
        connections: list[None] = []

        def connect() -> Space:
            connections.append(None)
            return Space.connect(f"host=127.0.0.1 port={port} user=ada", "acme", Limits(connect=30))

        ada.connect = connect
        began = monotonic()
        ada.decide(Promote(A))
        assert monotonic() - began < 5
        ada.decide(Promote(B))
        ada.decide(Note(A, text="decided without the server"))
        assert len(connections) == 1
    assert ada.sync().sent_decisions == 3


def test_after_a_loss_of_the_state_nothing_is_undone_or_doubled(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    ada.decide(Promote(A))
    rita.sync()
    rita.decide(Deprecate(A, reason="hides the cause"))
    ada.sync()
    ada.connect = lambda: Space.connect("host=127.0.0.1 port=1 user=ada", "acme")
    late = ada.decide(Archive(A, reason="odd"))
    for reviewer in (ada, rita):
        reviewer.state.clear()
    cycle = ada.sync()
    assert cycle.refused == ()
    assert [id for _, id in in_space(team)].count(late.id) == 1
    assert len(in_space(team)) == 3
    assert_same(ada, rita)


def test_a_new_project_gets_patterns_with_their_newest_text_and_state(
    ada: Reviewer, tmp_path: Path, team: Team, clock: Clock
) -> None:
    anti_id = ada.decide(AcceptInversion(C)).after["anti_id"]
    file = ada.paths.pattern_file("anti")
    file.write_text(file.read_text().replace("AVOID", "Avoid"))
    ada.project.apply((file,))
    ada.decide(Promote(A))
    ada.sync()
    rita = Reviewer(tmp_path / "new", team, "rita", clock)
    found = rita.sync()
    assert found.conflicts == ()
    assert rita.project.view.pattern(anti_id).content_hash == ada.project.view.pattern(anti_id).content_hash
    assert rita.overrides().keys() == ada.overrides().keys()
    rita.close()


def lose_last_decision(team: Team) -> None:
    """Bring the server to the state before its last decision, as a restore from a backup does."""
    with closing(team.cluster.connect("postgres", team.database)) as connection:
        connection.execute("delete from ralphdeck.decisions where seq = 2")
        connection.execute(
            "update ralphdeck.spaces s set head_seq = 1, head_hash = d.hash from ralphdeck.decisions d"
            " where s.space_id = d.space_id"
        )


def test_what_a_restored_server_has_lost_is_sent_again_by_its_author(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    made = [ada.decide(Promote(A)).id, ada.decide(Deprecate(B, reason="hides the cause")).id]
    ada.sync()
    rita.sync()
    lose_last_decision(team)
    for reviewer in (rita, ada):
        reviewer.state.set_facts(decisions_server="another cluster")
    assert_same(rita, ada)
    assert in_space(team) == [("Ada", made[0]), ("Ada", made[1])]
    assert rita.overrides() == {A: "proven", B: "deprecated"}


def test_an_own_decision_that_was_not_received_back_is_sent_again(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    made = [ada.decide(Promote(A)).id]
    rita.sync()
    made.append(rita.decide(Deprecate(B, reason="hides the cause")).id)
    lose_last_decision(team)
    rita.state.set_facts(decisions_server="another cluster")
    assert_same(rita, ada)
    assert in_space(team) == [("Ada", made[0]), ("Rita", made[1])]


def test_a_server_that_replaces_its_decisions_is_reported(ada: Reviewer, rita: Reviewer, team: Team) -> None:
    ada.decide(Promote(A))
    ada.decide(Deprecate(B, reason="hides the cause"))
    rita.sync()
    lose_last_decision(team)
    with pytest.raises(ChainBroken, match=r"decision 2 of the space acme is not the one .* log --verify"):
        rita.sync()


NONSENSE = ("null", "[]", '{"seq": "x"}', '"\\u001b]0;title"', "[[1]]", '{"at": 5, "present": "x"}', '{"new": [1]}')


def answer(team: Team, function: str, result: str) -> None:
    """Let a function of the server return some JSON, whatever it is given."""
    with team.cluster.connect("postgres", team.database) as connection:
        row = connection.execute(
            "select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'ralphdeck'::regnamespace"
            " and p.proname = %s",
            (function,),
        ).fetchone()
        assert row is not None
        head = row[0].partition("\nAS ")[0].replace("LANGUAGE plpgsql", "LANGUAGE sql")
        connection.execute(f"{head} as $x$ select $j${result}$j$::json $x$".encode())


def test_a_decision_is_made_here_if_the_answer_makes_no_sense(team: Team, ada: Reviewer) -> None:
    for number, result in enumerate(NONSENSE, 1):
        answer(team, "decide", result)
        ada.decide(Note(A, text=f"note {number}"))
        assert len(ada.log) == number
        note = ada.gate.note
        assert note.startswith("not sent to the team yet: the team's server gave an answer that is not valid"), result
        assert "\x1b" not in note
        ada.gate.close()
        ada.open_gate()


def test_an_answer_that_makes_no_sense_is_an_error_of_the_team(team: Team) -> None:
    space = team.space("rita")
    for result in NONSENSE:
        for function in ("heartbeat", "my_spaces"):
            answer(team, function, result)
        with pytest.raises(Offline) as error:
            space.heartbeat(space.info.id)
        assert "\x1b" not in str(error.value)
        with pytest.raises(TeamError):
            Space.connect(team.url("rita"), "", Limits(connect=2))


def test_another_space_of_the_same_name_gets_nothing(team: Team, ada: Reviewer) -> None:
    keeper = team.space("keeper", "other")
    keeper.set_member("ada", "Ada", Level.REVIEWER)
    with team.cluster.connect("postgres", team.database) as connection:
        connection.execute("update ralphdeck.spaces set name = 'old' where name = 'acme'")
        connection.execute("update ralphdeck.spaces set name = 'acme' where name = 'other'")
    with pytest.raises(AccessDenied, match="not the one that this project has joined"):
        ada.sync()
    ada.gate.close()
    ada.open_gate()
    ada.decide(Promote(A))
    assert "not the one that this project has joined" in ada.gate.note
    assert keeper.head().seq == 0
    assert keeper.changed_patterns().ids == set()


def test_a_decision_is_made_here_if_the_state_of_the_sync_is_damaged(ada: Reviewer) -> None:
    ada.gate._state.close()
    ada.decide(Promote(A))
    assert ada.overrides() == {A: "proven"}
    assert "not sent to the team yet: cannot use" in ada.gate.note
