"""A server that answers what no server of ours does: no traceback, no escape sequence, and decisions are made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.decisions.commands import Promote
from core.records.team import Level
from core.team.connection import Limits
from core.team.errors import AccessDenied, Offline, TeamError
from core.team.gate import TeamGate
from core.team.server import Space
from tests.core.team.exchange import Clock
from tests.core.team.test_gate import A, Reviewer
from tests.team_server import Team

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


@pytest.fixture
def rita(tmp_path: Path, team: Team) -> Iterator[Reviewer]:
    one = Reviewer(tmp_path / "rita", team, "rita", Clock())
    yield one
    one.close()


@pytest.mark.parametrize("result", NONSENSE)
def test_a_decision_is_made_here_if_the_answer_makes_no_sense(team: Team, rita: Reviewer, result: str) -> None:
    answer(team, "decide", result)
    rita.decide(Promote(A))
    assert rita.overrides() == {A: "proven"}
    assert rita.gate.note.startswith("not sent to the team yet: the team's server gave an answer that is not valid")
    assert "\x1b" not in rita.gate.note


@pytest.mark.parametrize("result", NONSENSE)
def test_an_answer_that_makes_no_sense_is_an_error_of_the_team(team: Team, result: str) -> None:
    space = team.space("rita")
    for function in ("heartbeat", "my_spaces"):
        answer(team, function, result)
    with pytest.raises(Offline) as error:
        space.heartbeat(space.info.id)
    assert "\x1b" not in str(error.value)
    with pytest.raises(TeamError):
        Space.connect(team.url("rita"), "", Limits(connect=2))


def test_another_space_of_the_same_name_gets_nothing(team: Team, rita: Reviewer) -> None:
    keeper = team.space("keeper", "other")
    keeper.set_member("rita", "Rita", Level.REVIEWER)
    with team.cluster.connect("postgres", team.database) as connection:
        connection.execute("update ralphdeck.spaces set name = 'old' where name = 'acme'")
        connection.execute("update ralphdeck.spaces set name = 'acme' where name = 'other'")
    with pytest.raises(AccessDenied, match="not the one that this project has joined"):
        rita.sync()
    rita.gate.close()
    rita.gate = rita.project.curator.gate = TeamGate(rita.project, rita.joined, lambda: rita.connect())
    rita.decide(Promote(A))
    assert "not the one that this project has joined" in rita.gate.note
    assert keeper.head().seq == 0
    assert keeper.changed_patterns().ids == set()


def test_a_decision_is_made_here_if_the_state_of_the_sync_is_damaged(rita: Reviewer) -> None:
    rita.gate._state.close()
    rita.decide(Promote(A))
    assert rita.overrides() == {A: "proven"}
    assert "not sent to the team yet: cannot use" in rita.gate.note
