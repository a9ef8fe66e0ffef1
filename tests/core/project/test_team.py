from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

import core.team.gate
from core.base.errors import Conflict
from core.base.paths import ProjectPaths
from core.base.settings import MaturitySettings, Settings
from core.decisions.commands import Note, Promote
from core.index.project_state import all_findings
from core.project.as_of import build_past_state
from core.project.kept_project import KeptProject
from core.project.project import Project
from core.records.decisions import Decision
from core.records.findings import Severity
from core.records.patterns import Maturity
from core.records.team import NO_TEAM, TeamSums
from core.sources.team_evidence import TeamEvidenceWriter
from core.team.connection import Joined, consent_file, save_joined
from core.team.local_state import state_file
from tests.factories import (
    CURATION_NOW,
    NO_RETRY_SETTINGS,
    make_error_record,
    make_pattern_file,
    make_project,
    make_team_sums,
)

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


def test_decisions_are_made_here_while_files_of_the_team_cannot_be_used(paths: ProjectPaths) -> None:
    joined = Joined(space="acme", source="env", id=uuid4(), name="shop")
    save_joined(paths.project, joined)
    project = Project(paths, NO_RETRY_SETTINGS, by="ana", clock=lambda: CURATION_NOW, cache=False, asks=False)
    project.load()
    for content in (b"{", b'{"projects": {"x": {"space": 5}}}', b"\xff", b"[" * 100_000):
        consent_file().write_bytes(content)
        for text in ("a", "b"):
            project.decide(Note(A, text=text))
            assert "team.json is damaged" in project.curator.gate.note
    assert len(project.ledger.decisions()) == 8
    consent_file().unlink()
    save_joined(paths.project, joined)
    folder = state_file(paths.project).parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("")
    project.decide(Promote(A))
    assert project.curator.gate.note.startswith("not sent to the team: cannot open")
    folder.unlink()
    project.decide(Note(A, text="again"))
    assert project.curator.gate.note == ""


NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ID, OTHER = "pat-error-made-001", "pat-error-made-002"
DAYS = Settings().maturity.half_life_days


def make_sums(successes: int, failures: int = 0, days: float = 2, id: str = ID) -> TeamSums:
    return make_team_sums(id, successes, failures, NOW - timedelta(days=days), EPOCH)


@pytest.fixture
def joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectPaths:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    joined = ProjectPaths(tmp_path / "project")
    joined.patterns.mkdir(parents=True)
    joined.pattern_file("error").write_bytes(make_pattern_file(*(make_error_record(n, uses=0) for n in (1, 2))))
    return joined


@pytest.fixture
def write(joined: ProjectPaths) -> Callable[..., Path]:
    writer = TeamEvidenceWriter(joined)

    def write(*sums: TeamSums) -> Path:
        writer.update("web", EPOCH, DAYS, sums)
        return joined.team_evidence

    return write


def opened(joined: ProjectPaths, *, settings: Settings | None = None, cache: bool = False) -> Project:
    return Project(joined, settings or Settings(), by="ana", clock=lambda: NOW, cache=cache)


def test_states_follow_the_sums_while_the_file_changes(joined: ProjectPaths, write: Callable[..., Path]) -> None:
    project = opened(joined)
    assert project.load().snapshot.team is NO_TEAM
    file = write(make_sums(6))
    view, delta = project.apply([file])
    assert delta.team == {ID} and view.assessment(ID).state is Maturity.PROVEN
    view, delta = project.apply([write(make_sums(6, 20), make_sums(1, id=OTHER))])
    assert delta.team == {ID, OTHER} and view.assessment(ID).state is Maturity.DEPRECATED
    file.unlink()
    view, delta = project.apply([file])
    assert delta.team and view.snapshot.team == NO_TEAM
    assert view.assessment(ID).state is Maturity.CANDIDATE and view.assessment(ID).uses == 0


def test_the_caches_return_the_same_sums(joined: ProjectPaths, write: Callable[..., Path]) -> None:
    write(make_sums(6), make_sums(2, 1, id=OTHER))
    first = opened(joined, cache=True)
    first.load()
    first.keep_questions()
    kept = KeptProject.open(joined, Settings(), "ana", lambda: NOW)
    assert kept is not None and kept.view.snapshot.team == first.view.snapshot.team
    assert kept.view.board.score.tolist() == first.view.board.score.tolist()
    again = opened(joined, cache=True)
    again.show(kept.view)
    assert again.load().snapshot.team == first.view.snapshot.team
    assert again.view.board.helpful.tolist() == first.view.board.helpful.tolist() != [0.0, 0.0]


def test_wrong_lines_and_another_half_life_are_findings(joined: ProjectPaths, write: Callable[..., Path]) -> None:
    file = write(make_sums(6))
    assert not all_findings(opened(joined).load())
    settings = Settings(maturity=MaturitySettings(half_life_days=30))
    (finding,) = all_findings(opened(joined, settings=settings).load())
    assert (finding.code, finding.severity) == ("other-half-life", Severity.INFO)
    file.write_bytes(file.read_bytes() + b'{"pattern_id": "x", "uses": -1}\n')
    (finding,) = opened(joined).load().snapshot.findings
    place = ".aiwg/ralph/shared/team/evidence.jsonl", "line 3"
    assert (finding.file, finding.pointer, finding.code) == (*place, "bad-sums")


def test_a_past_state_counts_the_sums_in_full(joined: ProjectPaths, write: Callable[..., Path]) -> None:
    write(make_sums(6))
    past = build_past_state(opened(joined).load(), NOW - timedelta(days=10))
    assert past.assessment(ID).helpful == pytest.approx(6)
    messages = [finding.message for finding in past.snapshot.findings]
    assert "1 pattern with later uses in the team's other projects: all their uses there count" in messages
