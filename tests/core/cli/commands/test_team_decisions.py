"""Decisions in joined projects on the command line: conflicts, levels, dead servers, and the chain of the space."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.sources.events import append_events
from tests.core.cli.conftest import Call, Result
from tests.core.team.working_copy import make_record, make_text, make_use_event
from tests.core.team.working_copy import write_patterns as write
from tests.team_server import Team

pytestmark = pytest.mark.slow
A, B, C = "pat-error-a-001", "pat-error-b-001", "pat-error-c-001"
Run = Callable[..., Result]


@pytest.fixture
def run(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, team: Team) -> Run:
    """Call a command as a member, in the project of that member, which joins first."""
    joined = set()

    def run_as(role: str, *words: str) -> Result:
        monkeypatch.setenv("RALPHDECK_TEAM_URL", team.url(role))
        folder = tmp_path / role
        if role not in joined:
            joined.add(role)
            write(ProjectPaths(folder), make_record(A), make_record(B))
            assert call("team", "join", "--yes", "--project", folder).code == 0
        monkeypatch.setenv("RALPHDECK_USER", role.capitalize())
        return call(*words, "--project", folder)

    return run_as


def decisions(run: Run, role: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = run(role, "log", "--json").document["decisions"]
    return found


def test_the_second_reviewer_reads_who_decided_when_and_what(run: Run) -> None:
    assert run("rita", "team", "sync").code == 0
    assert run("ada", "pattern", "promote", A, "--reason", "used daily").code == 0
    refused = run("rita", "pattern", "deprecate", A, "--reason", "hides the cause")
    assert refused.code == 1
    assert "Ada decided" in refused.err
    assert f"promote {A} (used daily); your decision was not made, review it again" in refused.err
    (received,) = decisions(run, "rita")
    assert (received["by"], received["verb"]) == ("Ada", "promote")


def test_a_contributor_reads_the_needed_level_and_nothing_is_written(run: Run) -> None:
    refused = run("carl", "pattern", "promote", A)
    assert refused.code == 1
    assert "your role in the space acme is contributor; promote needs reviewer" in refused.err
    assert decisions(run, "carl") == []


def test_a_contributor_extracts_candidates_that_are_held_at_the_others(
    run: Run, sample: Path, call: Call, team: Team
) -> None:
    """As README's script for CI does."""
    run("rita", "team", "sync")
    run("carl", "team", "sync")
    extracted = "pat-success-clean-up-lint-warnings-001"
    assert call("team", "join", "--yes").code == 0
    made = call("loop", "extract", "current-loop", "--json")
    assert made.code == 0, made.err
    assert team.space("ada").patterns([extracted])[0].changed_by == "Carl"
    run("rita", "team", "sync")
    shown = run("rita", "pattern", "show", extracted, "--json").document["pattern"]
    assert shown["quarantined"] is True
    assert "Carl" in [one["by"] for one in decisions(run, "rita") if one["verb"] == "extract"]


def test_what_a_contributor_extracts_while_the_space_has_it_stays_in_the_project(
    run: Run, sample: Path, call: Call, team: Team
) -> None:
    run("carl", "team", "sync")
    assert call("team", "join", "--yes").code == 0
    team.space("ada").put_patterns([make_text("pat-success-clean-up-lint-warnings-001", type="success")])
    made = call("loop", "extract", "current-loop")
    assert made.code == 0
    assert "not sent to the team: a contributor can add new candidates only" in made.err
    assert call("team", "sync").code == 0


def test_without_a_server_the_decision_is_made_with_a_warning(run: Run, team: Team) -> None:
    run("rita", "team", "sync")
    run("ada", "team", "sync")
    team.cluster.stop()
    try:
        made = run("rita", "pattern", "deprecate", A, "--reason", "hides the cause")
        unverified = run("rita", "log", "--verify")
    finally:
        team.cluster.start()
    assert unverified.code == 0 and "team acme: not verified: cannot reach" in unverified.out
    assert made.code == 0 and "not sent to the team yet: cannot reach" in made.err
    assert run("ada", "pattern", "promote", A).code == 0
    assert "Ada had decided on" in run("rita", "team", "sync").err
    log = {one["verb"]: one for one in decisions(run, "rita")}
    assert log.keys() == {"deprecate", "undo", "promote"}
    assert log["undo"]["by"] == "ralphdeck team sync" and log["undo"]["reason"].startswith("Ada had decided on ")
    assert log["promote"]["by"] == "Ada"


def test_verify_checks_the_chain_of_the_space(run: Run, team: Team) -> None:
    run("ada", "pattern", "promote", A)
    run("rita", "team", "sync")
    intact = run("rita", "log", "--verify")
    assert intact.code == 0
    assert "team acme: 1 decision: hash chain intact" in intact.out
    with closing(team.cluster.connect("postgres", team.database)) as connection:
        connection.execute("update ralphdeck.decisions set payload = replace(payload, 'promote', 'release')")
    changed = run("rita", "log", "--verify", "--json")
    assert changed.code == 3
    assert changed.document["problems"] == []
    assert "was changed after it was recorded" in changed.document["team"]["problem"]


def test_replaced_decisions_are_found_by_what_was_received(run: Run, team: Team) -> None:
    """Who owns the database can compute all hashes again, but not what members have received."""
    run("ada", "pattern", "promote", A)
    run("rita", "team", "sync")
    with closing(team.cluster.connect("postgres", team.database)) as connection:
        connection.execute("update ralphdeck.decisions set payload = replace(payload, 'promote', 'release')")
        connection.execute(
            "update ralphdeck.decisions d set hash = ralphdeck.link_hash(sha256(convert_to(s.id::text, 'UTF8')), d.seq,"
            " d.recorded_at, d.member, d.payload) from ralphdeck.spaces s where s.space_id = d.space_id"
        )
        connection.execute(
            "update ralphdeck.spaces s set head_hash = d.hash from ralphdeck.decisions d where s.space_id = d.space_id"
        )
    found = run("rita", "log", "--verify", "--json")
    assert found.code == 3
    assert "is not the one that this project received" in json.dumps(found.document["team"])


def test_what_a_removed_member_sent_is_withdrawn_and_one_undo_brings_it_back(
    run: Run, call: Call, team: Team, tmp_path: Path
) -> None:
    run("ada", "team", "sync")
    carl, project = team.space("carl"), tmp_path / "carl"
    run("carl", "team", "sync")
    write(ProjectPaths(project), make_record(A), make_record(B), make_record(C))
    append_events(ProjectPaths(project), make_use_event(1, A, "job-1"), make_use_event(2, A, "job-2"))
    run("carl", "team", "sync")
    assert carl.sums().sums[A].uses == 2
    before = set(patterns(run, "ada"))

    assert run("ada", "team", "member", "carl", "--level", "reader", "--withdraw").code == 2, "it needs --remove"
    removed = run("ada", "team", "member", "carl", "--remove", "--withdraw", "--reason", "made up", "--json")
    assert removed.code == 0, removed.err
    assert removed.document["decision"]
    ada = team.space("ada")
    assert (ada.sums().sums[A].uses, ada.patterns([C])[0].record) == (0, None)
    assert patterns(run, "ada") == before == {A, B}
    status = run("ada", "team", "status")
    assert "Removed    Carl, role carl; what it sent is withdrawn" in status.out
    assert run("ada", "team", "status", "--json").document["withdrawn"] == ["Carl"]

    assert run("ada", "undo").code == 0
    run("ada", "team", "sync")
    assert ada.sums().sums[A].uses == 2
    assert patterns(run, "ada") == {A, B, C}
    assert "what it sent is kept" in run("ada", "team", "status").out


def test_what_a_reviewer_has_read_stays_when_its_member_is_withdrawn_later(
    run: Run, team: Team, tmp_path: Path
) -> None:
    run("ada", "team", "sync")
    run("carl", "team", "sync")
    write(ProjectPaths(tmp_path / "carl"), make_record(A), make_record(B), make_record(C))
    run("carl", "team", "sync")
    run("ada", "team", "sync")
    assert run("ada", "pattern", "release", C, "--reason", "read").code == 0
    assert run("ada", "team", "member", "carl", "--remove").code == 0
    assert run("ada", "team", "member", "carl", "--remove", "--withdraw").code == 0
    assert C in patterns(run, "ada")


def patterns(run: Run, role: str) -> set[str]:
    return {one["id"] for one in run(role, "pattern", "list", "--json").document["patterns"]}
