"""Loops and lessons of adapters in an open project."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.records.findings import Finding, Severity
from core.records.loops import Loop, LoopStatus
from core.records.reflections import Lesson, LessonKind
from core.sources.adapters.contract import AdapterRecords, AdapterReport
from core.sources.adapters.lessons import lesson_id
from tests.core.index.test_refresh import NOW, Project

SESSION = Loop(
    id="codex:1", runner="codex", owner="codex", started_at=NOW - timedelta(hours=1), status=LoopStatus.RUNNING
)
LESSON = Lesson(
    id=lesson_id("codex", "Run the tests"),
    runner="codex",
    text="Run the tests",
    kind=LessonKind.APPROACH,
    file="~/.codex/memories/MEMORY.md",
)
BROKEN = Finding("~/.codex/goals.sqlite", "", Severity.WARNING, "unreadable-database", "cannot be read: it is locked")
REPORT = AdapterReport(name="codex", evidence=("~/.codex",), loops=1, lessons=1, findings=(BROKEN,))
FOUND = AdapterRecords(loops=(SESSION,), lessons=(LESSON,), reports=(REPORT,))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Project(tmp_path / "project")


def test_loops_lessons_and_findings_of_adapters_are_in_the_snapshot(project: Project) -> None:
    project.state("ralph-old-00000001", startTime=(NOW - timedelta(hours=2)).isoformat())
    project.state("ralph-new-00000002", startTime=NOW.isoformat())
    project.index.load()
    snapshot, delta = project.index.replace_adapted(FOUND)
    assert list(snapshot.loops) == ["ralph-new-00000002", SESSION.id, "ralph-old-00000001"]
    assert (snapshot.lessons, snapshot.findings) == ({LESSON.id: LESSON}, (BROKEN,))
    assert (delta.loops, delta.lessons, delta.findings) == (frozenset({SESSION.id}), frozenset({LESSON.id}), True)


def test_the_same_records_again_change_nothing(project: Project) -> None:
    project.index.load()
    before, _ = project.index.replace_adapted(FOUND)
    after, delta = project.index.replace_adapted(FOUND)
    assert after is before
    assert not delta


def test_records_of_adapters_stay_when_files_of_the_project_change(project: Project) -> None:
    project.index.load()
    project.index.replace_adapted(FOUND)
    project.state()
    snapshot, delta = project.index.refresh(None)
    assert SESSION.id in snapshot.loops and LESSON.id in snapshot.lessons
    assert SESSION.id not in delta.loops


def test_records_that_are_no_longer_found_are_removed(project: Project) -> None:
    project.index.load()
    project.index.replace_adapted(FOUND)
    snapshot, delta = project.index.replace_adapted(AdapterRecords())
    assert not (snapshot.loops or snapshot.lessons or snapshot.findings)
    assert (delta.loops, delta.lessons) == (frozenset({SESSION.id}), frozenset({LESSON.id}))


def test_records_of_adapters_may_arrive_before_the_first_load(project: Project) -> None:
    snapshot, _ = project.index.replace_adapted(FOUND)
    assert not snapshot.complete
    assert list(project.index.load().loops) == [SESSION.id]
