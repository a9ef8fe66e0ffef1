"""What `doctor` finds out about the team of a project, against a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.cli.support import connection_checks as team_checks
from core.team.connection import consent_file
from tests.core.cli.conftest import Call
from tests.core.team.working_copy import make_record
from tests.core.team.working_copy import write_patterns as write
from tests.team_server import Team

pytestmark = pytest.mark.slow
Checks = Callable[[], dict[str, tuple[str, str]]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    write(ProjectPaths(folder), make_record("pat-error-a-001"))
    return folder


@pytest.fixture
def checks(call: Call, project: Path) -> Checks:
    """Return status and text of the checks of the team by name."""

    def find() -> dict[str, tuple[str, str]]:
        found = call("doctor", "--project", project, "--json").document["checks"]
        return {one["name"]: (one["status"], one["text"]) for one in found if one["area"] == "team"}

    return find


@pytest.fixture
def joined(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch, team: Team) -> Path:
    monkeypatch.setenv("RALPHDECK_TEAM_URL", team.url("rita"))
    assert call("team", "join", "--project", project, "--yes").code == 0
    return project


def test_what_is_wrong_is_named(checks: Checks, joined: Path, monkeypatch: pytest.MonkeyPatch, team: Team) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(team_checks, "SECONDS", 0.0)
        assert checks()["server"] == ("warning", "the server did not answer within 0 s")
    monkeypatch.setenv("RALPHDECK_TEAM_URL", team.url("mallory"))
    assert checks()["server"][0] == "error", "the role is not a member"
    monkeypatch.delenv("RALPHDECK_TEAM_URL")
    consent_file().chmod(0o644)
    found = checks()
    assert found["server"][0] == "error" and "RALPHDECK_TEAM_URL is not set" in found["server"][1]
    assert found["joined projects"][0] == "warning" and "chmod 600" in found["joined projects"][1]


def test_a_joined_project_that_reaches_its_server(checks: Checks, joined: Path) -> None:
    found = checks()
    assert {name: status for name, (status, _) in found.items()} == {
        "space": "note",
        "joined projects": "ok",
        "extra": "ok",
        "address": "ok",
        "server": "ok",
        "schema": "ok",
        "TLS": "note",
        "clock": found["clock"][0],
        "last sync": "note",
        "to send": "ok",
    }
    assert found["address"][1].endswith("from RALPHDECK_TEAM_URL")
    assert "you are Rita, reviewer" in found["server"][1]
    assert found["to send"][1] == "nothing"


def test_a_stopped_server_is_a_warning(checks: Checks, joined: Path, team: Team) -> None:
    write(ProjectPaths(joined), make_record("pat-error-a-001"), make_record("pat-error-b-001"))
    team.cluster.stop()
    try:
        found = checks()
    finally:
        team.cluster.start()
    status, text = found["server"]
    assert status == "warning"
    assert text.startswith("cannot reach")
    assert found["to send"] == ("note", "1 change")
    assert "schema" not in found
