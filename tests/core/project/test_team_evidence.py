"""Team evidence in an open project: read with the other files, and only its new lines after an append."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import MaturitySettings, Settings
from core.index.findings import all_findings
from core.index.refresh import Index
from core.project.as_of import build_past_state
from core.project.kept_project import KeptProject
from core.project.project import Project
from core.records.findings import Severity
from core.records.patterns import Maturity
from core.records.team import NO_TEAM, TeamSums
from core.sources.team_evidence import TeamEvidenceWriter
from tests.factories import make_error_record, make_pattern_file, make_team_sums

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ID, OTHER = "pat-error-made-001", "pat-error-made-002"
DAYS = Settings().maturity.half_life_days


def make_sums(successes: int, failures: int = 0, days: float = 2, id: str = ID) -> TeamSums:
    return make_team_sums(id, successes, failures, NOW - timedelta(days=days), EPOCH)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectPaths:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = ProjectPaths(tmp_path / "project")
    paths.patterns.mkdir(parents=True)
    paths.pattern_file("error").write_bytes(make_pattern_file(*(make_error_record(n, uses=0) for n in (1, 2))))
    return paths


@pytest.fixture
def write(paths: ProjectPaths) -> Callable[..., Path]:
    writer = TeamEvidenceWriter(paths)

    def write(*sums: TeamSums) -> Path:
        writer.update("web", EPOCH, DAYS, sums)
        return paths.team_evidence

    return write


def opened(paths: ProjectPaths, *, settings: Settings | None = None, cache: bool = False) -> Project:
    return Project(paths, settings or Settings(), by="ana", clock=lambda: NOW, cache=cache)


def test_states_follow_the_sums_while_the_file_changes(paths: ProjectPaths, write: Callable[..., Path]) -> None:
    project = opened(paths)
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


def test_new_lines_are_added_to_the_sums(paths: ProjectPaths, write: Callable[..., Path]) -> None:
    write(*(make_sums(n + 1, id=f"pat-{n}") for n in range(20)))
    index = Index(paths, Settings(), clock=lambda: NOW, is_kept=False)
    index.load()
    snapshot, delta = index.refresh([write(make_sums(9))])
    assert delta.team == {ID} and not delta.findings
    assert snapshot.team == Index(paths, Settings(), clock=lambda: NOW, is_kept=False).load().team


def test_the_caches_return_the_same_sums(paths: ProjectPaths, write: Callable[..., Path]) -> None:
    write(make_sums(6), make_sums(2, 1, id=OTHER))
    first = opened(paths, cache=True)
    first.load()
    first.keep_questions()
    kept = KeptProject.open(paths, Settings(), "ana", lambda: NOW)
    assert kept is not None and kept.view.snapshot.team == first.view.snapshot.team
    assert kept.view.board.score.tolist() == first.view.board.score.tolist()
    again = opened(paths, cache=True)
    again.show(kept.view)
    assert again.load().snapshot.team == first.view.snapshot.team
    assert again.view.board.helpful.tolist() == first.view.board.helpful.tolist() != [0.0, 0.0]


def test_wrong_lines_are_findings_with_file_and_line(paths: ProjectPaths, write: Callable[..., Path]) -> None:
    file = write(make_sums(6))
    file.write_bytes(file.read_bytes() + b'{"pattern_id": "x", "uses": -1}\n')
    (finding,) = opened(paths).load().snapshot.findings
    assert (finding.file, finding.pointer, finding.code) == (
        ".aiwg/ralph/shared/team/evidence.jsonl",
        "line 3",
        "bad-sums",
    )


def test_another_half_life_than_that_of_the_team_is_a_finding(paths: ProjectPaths, write: Callable[..., Path]) -> None:
    write(make_sums(6))
    assert not all_findings(opened(paths).load())
    settings = Settings(maturity=MaturitySettings(half_life_days=30))
    (finding,) = all_findings(opened(paths, settings=settings).load())
    assert (finding.code, finding.severity) == ("other-half-life", Severity.INFO)


def test_a_past_state_counts_the_sums_in_full(paths: ProjectPaths, write: Callable[..., Path]) -> None:
    write(make_sums(6))
    past = build_past_state(opened(paths).load(), NOW - timedelta(days=10))
    assert past.assessment(ID).helpful == pytest.approx(6)
    messages = [finding.message for finding in past.snapshot.findings]
    assert "1 pattern with later uses in the team's other projects: all their uses there count" in messages
