"""The gate of an open project: nothing for one person, the team for a joined project."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

import core.team.gate
from core.base.errors import Conflict
from core.base.paths import ProjectPaths
from core.decisions.commands import Note, Promote
from core.project.project import Project
from core.records.decisions import Decision
from core.team.consent import Joined, consent_file, save_joined
from core.team.local_state import state_file
from tests.factories import CURATION_NOW, NO_RETRY_SETTINGS, make_project

A = "pat-error-a-001"
DECIDE = f"""
import sys
from pathlib import Path
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Note, Promote
from core.project.project import Project
from core.cli.support.project import now
project = Project(ProjectPaths(Path(sys.argv[1])), Settings(), by="ana", clock=now, cache=False)
project.load()
project.decide(Promote({A!r}))
print([name for name in sys.modules if name.startswith(("core.team", "psycopg"))])
"""


@pytest.fixture(autouse=True)
def _user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / "user" / variable.lower()))


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path / "shop", A)


def test_a_decision_of_one_person_loads_nothing_of_the_team(paths: ProjectPaths) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DECIDE, str(paths.project)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_joining_and_leaving_take_effect_in_an_open_project(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gate:
        note = ""
        news = 0

        def __init__(self, project: object, joined: Joined) -> None:
            assert joined.space == "acme"

        def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
            return {one.id: "ben decided 2 m ago" for one in decisions}

        def catch_up(self) -> None:
            Gate.news += 1

        def close(self) -> None:
            pass

    monkeypatch.setattr(core.team.gate, "TeamGate", Gate)
    project = Project(paths, NO_RETRY_SETTINGS, by="ana", clock=lambda: CURATION_NOW, cache=False, asks=False)
    project.load()
    save_joined(paths.project, Joined(space="acme", source="env", id=uuid4(), name="shop"))
    with pytest.raises(Conflict, match="ben decided"):
        project.decide(Promote(A))
    assert Gate.news == 1
    save_joined(paths.project, None)
    assert project.decide(Promote(A)).decision.subject == A


@pytest.mark.parametrize("content", [b"{", b'{"projects": {"x": {"space": 5}}}', b"\xff", b"[" * 100_000])
def test_decisions_are_made_here_while_the_list_of_joined_projects_is_damaged(
    paths: ProjectPaths, content: bytes
) -> None:
    save_joined(paths.project, Joined(space="acme", source="env", id=uuid4(), name="shop"))
    consent_file().write_bytes(content)
    project = Project(paths, NO_RETRY_SETTINGS, by="ana", clock=lambda: CURATION_NOW, cache=False, asks=False)
    project.load()
    for command in (Promote(A), Note(A, text="again")):
        project.decide(command)
        assert "team.json is damaged" in project.curator.gate.note
    assert len(project.ledger.decisions()) == 2


def test_decisions_are_made_here_while_the_state_folder_is_not_usable(paths: ProjectPaths) -> None:
    save_joined(paths.project, Joined(space="acme", source="env", id=uuid4(), name="shop"))
    folder = state_file(paths.project).parent
    folder.parent.mkdir(parents=True)
    folder.write_text("")
    project = Project(paths, NO_RETRY_SETTINGS, by="ana", clock=lambda: CURATION_NOW, cache=False, asks=False)
    project.load()
    project.decide(Promote(A))
    assert project.curator.gate.note.startswith("not sent to the team: cannot open")
    folder.unlink()
    project.decide(Note(A, text="again"))
    assert project.curator.gate.note == ""
