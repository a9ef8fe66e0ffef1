"""Projects of earlier versions stay trusted: those that the user opened, connected or shared with a team."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID
from zlib import crc32

import msgspec
import pytest

from core.base.ownership import TRUSTED_PATHS
from core.base.paths import ProjectPaths
from core.base.settings import DEFAULTS
from core.decisions.commands import Note
from core.files.user_files import cache_path
from core.project.project import Project
from core.project.trust_migration import migrate_trust
from core.records.decisions import Decision
from core.team.consent import Joined, save_joined
from core.trust.own_records import OwnRecords
from core.trust.projects import is_due, is_trusted
from tests.core.cli.conftest import home
from tests.factories import CURATION_NOW as NOW
from tests.factories import make_project

__all__ = ["home"]


@pytest.fixture(autouse=True)
def _trust_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUSTED_PATHS, raising=False)


def _open(paths: ProjectPaths) -> Project:
    project = Project(paths, DEFAULTS, by="ada", clock=lambda: NOW)
    project.load()
    return project


def test_only_projects_that_the_user_worked_on_are_trusted(tmp_path: Path) -> None:
    names = ("opened", "connected", "joined", "cloned")
    projects = {name: make_project(tmp_path / name) for name in names}
    dashboard = tmp_path / "dashboard.json"
    dashboard.write_text(json.dumps({"theme": "x", "projects": {str(tmp_path / "opened"): {}, "/missing": {}}}))
    save_joined(tmp_path / "joined", Joined(space="s", source="env", id=UUID(int=1), name="joined"))
    assert is_due()
    (tmp_path / "connected/.claude").mkdir()
    migrate_trust(dashboard, [str(tmp_path / "connected/.claude/settings.json")], NOW)
    assert not is_due()
    assert {name: is_trusted(paths) for name, paths in projects.items()} == {
        "opened": True,
        "connected": True,
        "joined": True,
        "cloned": False,
    }


def test_decisions_that_this_machine_has_shown_stay_own_ones(tmp_path: Path) -> None:
    paths = make_project(tmp_path / "opened", "pat-error-a-001")
    project = _open(paths)
    project.decide(Note("pat-error-a-001", text="before"))
    _keep_view(paths, project.ledger.decisions())
    project.decide(Note("pat-error-a-001", text="after"))
    OwnRecords(paths.project, "decisions").path.unlink()
    dashboard = tmp_path / "dashboard.json"
    dashboard.write_text(json.dumps({"projects": {str(paths.project): {}}}))
    migrate_trust(dashboard, [], NOW + timedelta(days=1))
    [_, late] = project.ledger.decisions()
    assert _open(paths).ledger.claims() == {late.id}


def _keep_view(paths: ProjectPaths, decisions: Sequence[Decision]) -> None:
    """Write the file in which an earlier version kept what it had shown."""
    header = [b"", b"", str(paths.project.resolve()), {"decisions": 1}]
    blocks = (msgspec.msgpack.encode(value) for value in (header, decisions))
    file = cache_path(paths.project, "view")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(len(block).to_bytes(8) + crc32(block).to_bytes(4) + block for block in blocks))
