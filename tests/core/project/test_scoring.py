from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.project.project import Project
from core.project.scoring import find_pattern_uses, find_scored_work
from core.records.events import Event, Signals
from tests.conftest import WriteSample

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
PATTERN = "pat-error-null-check-015"
OTHER = "pat-success-types-first-006"


@pytest.fixture
def open_project(tmp_path: Path, write_sample: WriteSample) -> Project:
    write_sample(tmp_path, NOW)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    return open_project


def event(kind: str, number: int, work_id: str, pattern_id: str = "", success: bool | None = None) -> Event:
    at = NOW - timedelta(minutes=number)
    return Event(id=f"e{number}", at=at, kind=kind, loop_id=work_id, pattern_id=pattern_id, success=success)


def uses(view: ProjectState, work_id: str) -> list[tuple[str, bool | None, bool]]:
    return [(use.pattern_id, use.success, use.inferred) for use in find_pattern_uses(view, [work_id])[work_id]]


def test_finished_work_is_listed_once_newest_first(open_project: Project) -> None:
    found = find_scored_work(open_project.view)
    assert sorted(one.work_id for one in found) == sorted(open_project.view.board.finished())
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    assert {one.kind for one in found} == {"loop", "attempt", "reported"}


def test_scores_of_one_equal_those_of_all(open_project: Project) -> None:
    for one in find_scored_work(open_project.view):
        assert find_scored_work(open_project.view, [one.work_id, one.work_id]) == (one,)


def test_unfinished_work_is_left_out(open_project: Project) -> None:
    running = next(loop.id for loop in open_project.view.snapshot.loops.values() if loop.status.active)
    assert find_scored_work(open_project.view, [running, "bd-0"]) == ()


def test_a_use_counts_as_applied_and_feedback_alone_does_not(open_project: Project) -> None:
    view = open_project.record(
        event("applied", 3, "bd-1", PATTERN),
        event("feedback", 2, "bd-1", OTHER, success=True),
        event("injected", 1, "bd-1", "pat-error-type-mismatch-003"),
    )
    assert uses(view, "bd-1") == [(PATTERN, None, False)]


def test_use_without_a_result_inherits_that_of_the_loop(open_project: Project) -> None:
    view = open_project.record(event("applied", 3, "bd-1", PATTERN), event("applied", 2, "bd-1", OTHER, success=False))
    assert uses(view, "bd-1") == [(PATTERN, None, False), (OTHER, False, False)]
    clean = Signals(duration_ms=1000, error_count=0, retry_count=0)
    outcome = Event(id="o", at=NOW, kind="outcome", loop_id="bd-1", success=True, signals=clean)
    view = open_project.record(outcome)
    assert uses(view, "bd-1") == [(PATTERN, True, True), (OTHER, False, False)]
    (one,) = find_scored_work(view, ["bd-1"])
    assert one.outcome.raw == pytest.approx(1.0)
    assert (one.at, one.kind) == (NOW, "reported")


def test_reports_under_an_alias_are_found_under_the_id(open_project: Project) -> None:
    aliased = [loop for loop in open_project.view.snapshot.loops.values() if loop.aliases]
    for number, loop in enumerate(aliased):
        view = open_project.record(event("applied", number, loop.aliases[0], PATTERN, success=True))
        assert (PATTERN, True, False) in uses(view, loop.id)
    assert aliased


def test_missing_pattern_is_left_out(open_project: Project) -> None:
    assert uses(open_project.record(event("applied", 1, "bd-1", "pat-gone-001", success=True)), "bd-1") == []
