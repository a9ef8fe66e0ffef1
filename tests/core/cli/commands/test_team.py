"""The team commands, against a real server."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from core.base.paths import ProjectPaths
from core.sources.events import append_events
from core.team.connection import Joined, consent_file, save_joined
from core.team.local_state import state_file
from tests.core.cli.conftest import ROOT, Call, Result
from tests.core.team.working_copy import make_record, make_use_event
from tests.core.team.working_copy import write_patterns as write
from tests.team_server import Team

pytestmark = pytest.mark.slow
A = "pat-error-a-001"
Run = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    write(ProjectPaths(folder), make_record(A, fix="Use /home/ada/x", usage_count=0))
    return folder


@pytest.fixture
def run(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch, team: Team) -> Run:
    """Call a team command as a member, in the project."""

    def run_as(command: str, *args: str, role: str = "rita", at: Path = project) -> Result:
        monkeypatch.setenv("RALPHDECK_TEAM_URL", team.url(role))
        return call("team", command, "--project", at, *args)

    return run_as


def test_a_project_joins_synchronizes_and_leaves(run: Run, project: Path) -> None:
    joined = run("join", "--yes", "--json")
    assert joined.code == 0, joined.err
    assert (joined.document["space"], joined.document["sent_patterns"]) == ("acme", 1)
    assert stat.S_IMODE(consent_file().stat().st_mode) == 0o600
    assert not [path for path in (project / ".aiwg").rglob("*") if "team.json" in path.name]
    status = run("status", "--verify", "--json").document
    assert (status["member"], status["level"], status["online"], status["to_send"]) == ("Rita", "reviewer", True, 0)
    assert status["decisions"] == 0 and [one["name"] for one in status["projects"]] == ["shop"]
    left = run("join", "--leave")
    assert left.code == 0 and "stays in the space" in left.out
    assert not state_file(project).exists()
    again = run("sync")
    assert again.code == 1 and "has not joined a team" in again.err


def test_a_dry_run_prints_what_would_be_sent_and_nothing_is_sent_without_consent(
    run: Run, project: Path, team: Team
) -> None:
    append_events(ProjectPaths(project), make_use_event(1, A, "loop-1"))
    preview = run("sync", "--dry-run", "--json")
    assert preview.code == 0, preview.err
    (pattern,) = preview.document["patterns"]
    assert json.loads(pattern["record"])["fix_approach"] == {"description": f"Use «path» in {A}"}
    assert preview.document["masked"] == [{"pattern": A, "pointer": "/fix_approach/description", "kind": "path"}]
    (use,) = preview.document["uses"]
    assert (use["pattern"], use["success"], use["count"]) == (A, True, 1) and "loop-1" not in str(use)
    assert "would send 1 pattern" in run("sync", "--dry-run").out and not state_file(project).exists()
    assert "Nothing was sent" in run("join").err and run("status").code == 1
    password = run("join", "postgresql://rita:secret@127.0.0.1/x", "--yes")
    assert password.code == 1 and "visible to other users" in password.err and "secret@" not in password.err
    assert not consent_file().exists()
    assert run("join", "--yes").code == 0
    rows = team.connect("rita").execute("select pattern_id, record from ralphdeck.patterns").fetchall()
    assert [tuple(row) for row in rows] == [(pattern["id"], pattern["record"])]
    again = run("join", "--yes")
    assert again.code == 1 and "ralphdeck team join --leave" in again.err


def test_offline_the_status_shows_since_when_and_why(run: Run, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    run("join", "--yes")
    team.cluster.stop()
    try:
        status = run("status")
    finally:
        team.cluster.start()
    assert status.code == 0 and "offline" in status.out and "cannot reach" in status.err


def test_conflicts_are_reported_and_resolved(run: Run, tmp_path: Path) -> None:
    run("join", "--yes")
    other = tmp_path / "other"
    write(ProjectPaths(other), make_record(A, "Restart"))
    joined = run("join", "--yes", role="ada", at=other)
    assert "has another text in the space; nothing was overwritten" in joined.err
    assert "--prefer" in joined.err
    assert run("status", "--json", role="ada", at=other).document["conflicts"] == [A]
    assert run("sync", "--prefer", "team", "--json", role="ada", at=other).document["conflicts"] == []


def test_an_admin_manages_members_and_others_do_not(run: Run, team: Team) -> None:
    with closing(team.cluster.connect("postgres", "postgres")) as connection:
        connection.execute("create role cleo login")
    run("join", "--yes")
    refused = run("member", "cleo", "--level", "reviewer")
    assert refused.code == 1 and "admin" in refused.err
    assert run("member", "cleo", "--level", "contributor", "--name", "Cleo N", role="ada").code == 0
    members = run("status", "--json").document["members"]
    assert {"role": "cleo", "name": "Cleo N", "level": "contributor"} in members
    assert run("member", "cleo", "--remove", role="ada").code == 0
    assert run("member", "nobody", "--remove", role="ada").code == 1


def test_without_the_address_the_command_explains_where_it_may_come_from(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RALPHDECK_TEAM_URL", raising=False)
    result = call("team", "join", "--project", project, "--yes")
    assert result.code == 2 and "RALPHDECK_TEAM_URL" in result.err


def test_init_prepares_a_database_and_can_be_repeated(call: Call, project: Path, team: Team) -> None:
    url = team.cluster.url("postgres", team.cluster.create_database())
    first = call("team", "join", url, "--create", "--space", "backend", "--as", "Ada", "--project", project, "--json")
    assert first.code == 0, first.err
    assert (first.document["name"], first.document["level"], first.document["created"]) == ("backend", "admin", True)
    again = call("team", "join", url, "--create", "--space", "backend", "--project", project, "--json")
    assert again.code == 0 and again.document["created"] is False


def test_read_only_nothing_is_sent(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_READONLY", "1")
    for words in (("join",), ("sync",), ("join", "--leave"), ("join", "--create")):
        assert "read-only" in run(*words).err, words


def test_without_the_extra_the_command_explains_how_to_install_it(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["join", "--yes"], ["join", "--create"], ["sync"]):
        is_joined = words == ["sync"]
        save_joined(project, Joined(space="acme", source="env", id=uuid4(), name="shop") if is_joined else None)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "psycopg", None)
            result = run(*words)
            assert result.code == 1 and "pip install '.[team]'" in result.err
            assert run("sync", "--dry-run").code == 0


def test_following_sends_what_changes_until_it_is_stopped(run: Run, project: Path, team: Team) -> None:
    run("join", "--yes")
    environment = {**os.environ, "RALPHDECK_TEAM_URL": team.url("rita")}
    command = [sys.executable, "-m", "core.cli", "team", "sync", "--follow", "--project", str(project)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline()
        append_events(ProjectPaths(project), make_use_event(1, A, "loop-1"))
        with closing(team.connect("rita")) as connection:
            connection.execute("listen follow")
            while not connection.execute("select 1 from ralphdeck.events").fetchall():
                list(connection.notifies(timeout=0.2))
    finally:
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
