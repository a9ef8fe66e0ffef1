from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.project import adapter_files
from core.project.adapter_files import AdapterFeed
from core.records.findings import Finding, Severity
from core.records.loops import Loop, LoopStatus
from core.records.reflections import Lesson, LessonKind
from core.sources.adapters import collector
from core.sources.adapters.collector import MIN_BYTES, Collector, FirstRead
from core.sources.adapters.contract import AdapterRecords, AdapterReport
from core.sources.adapters.folders import Folders
from core.sources.adapters.lessons import lesson_id
from core.sources.adapters.transcripts import KeptFile
from tests.bench.sessions import write_sessions
from tests.core.index.test_refresh import NOW, Project
from tests.core.sources.adapters.fake_adapter import START, FakeAdapter, FakeRunner

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


def test_records_of_adapters_are_replaced_only_by_those_of_the_next_search(project: Project) -> None:
    snapshot, _ = project.index.replace_adapted(FOUND)
    assert not snapshot.complete
    before = project.index.load()
    assert list(before.loops) == [SESSION.id]
    after, delta = project.index.replace_adapted(FOUND)
    assert after is before and not delta
    project.state()
    snapshot, delta = project.index.refresh(None)
    assert SESSION.id in snapshot.loops and LESSON.id in snapshot.lessons
    assert SESSION.id not in delta.loops
    snapshot, delta = project.index.replace_adapted(AdapterRecords())
    assert len(snapshot.loops) == 1 and not (snapshot.lessons or snapshot.findings)
    assert (delta.loops, delta.lessons) == (frozenset({SESSION.id}), frozenset({LESSON.id}))


WAIT = 30.0  # a test that waits longer than this has failed


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(adapter_files, "CHECK_SECONDS", 0.01)
    return FakeRunner(tmp_path / "project")


class Taken:
    """Receives what a feed finds."""

    def __init__(self) -> None:
        self.records: list[AdapterRecords] = []
        self.errors: list[Exception] = []
        self.progress: list[tuple[int, int]] = []
        self._condition = threading.Condition()

    def take(self, records: AdapterRecords) -> None:
        with self._condition:
            self.records.append(records)
            self._condition.notify_all()

    def fail(self, error: Exception) -> None:
        with self._condition:
            self.errors.append(error)
            self._condition.notify_all()

    def wait_for(self, is_done: Callable[[], bool]) -> None:
        with self._condition:
            assert self._condition.wait_for(is_done, WAIT)

    @property
    def tasks(self) -> dict[str, str]:
        return {loop.id: loop.task for loop in self.records[-1].loops} if self.records else {}

    def feed(self, open_collector: Callable[[], Collector]) -> AdapterFeed:
        return AdapterFeed(open_collector, self.take, lambda *figures: self.progress.append(figures), self.fail)


def test_what_a_runner_writes_is_found_until_the_project_is_closed(runner: FakeRunner) -> None:
    runner.write("one")
    taken, folders = Taken(), Folders(project=runner.notes.parents[1])
    with taken.feed(lambda: Collector(folders, clock=lambda: START, adapters=[FakeAdapter()])):
        taken.wait_for(lambda: taken.tasks == {"fake:a": "one"})
        runner.write("two", "b")
        taken.wait_for(lambda: taken.tasks == {"fake:a": "one", "fake:b": "two"})
        runner.write("three")
        taken.wait_for(lambda: taken.tasks == {"fake:a": "three", "fake:b": "two"})
    assert "ralphdeck-sources" not in [thread.name for thread in threading.enumerate()]
    assert not taken.errors

    def fail() -> Collector:
        raise RuntimeError("no folders")

    with taken.feed(fail):
        taken.wait_for(lambda: bool(taken.errors))
    assert str(taken.errors[0]) == "no folders"


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """A project with 40 sessions of an agent, which are so large that another process reads them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(collector, "MIN_BYTES", 1)
    monkeypatch.setattr(adapter_files, "BYTES_PER_LOOK", 1)
    monkeypatch.setattr(adapter_files, "CHECK_SECONDS", 0.01)
    project = tmp_path / "project"
    project.mkdir()
    write_sessions(tmp_path / "home", project, 40, 20_000)
    return Folders(project=project, home=tmp_path / "home")


def collector_of(folders: Folders) -> Collector:
    return Collector(folders, clock=lambda: datetime.now(UTC), kept=KeptFile(folders.project))


@pytest.mark.slow
def test_the_first_read_happens_in_another_process(sessions: Folders) -> None:
    taken = Taken()
    with taken.feed(lambda: collector_of(sessions)):
        taken.wait_for(lambda: len(taken.tasks) == 40 and not taken.records[-1].is_behind)
    assert not taken.errors
    done, total = zip(*taken.progress, strict=True)
    assert max(total) > 700_000, "bytes"
    assert all(one <= other for one, other in taken.progress)
    assert (done[-1], total[-1]) == (0, 0)


@pytest.mark.slow
def test_nothing_is_lost_if_the_process_is_killed(sessions: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Killed(FirstRead):
        def __init__(self, folders: Folders) -> None:
            super().__init__(folders)
            started.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(collector, "FirstRead", Killed)
    monkeypatch.setattr(adapter_files, "BYTES_PER_LOOK", 200_000)
    taken = Taken()
    with taken.feed(lambda: collector_of(sessions)):
        taken.wait_for(lambda: len(taken.tasks) == 40 and not taken.records[-1].is_behind)
    assert 1 <= len(started) <= adapter_files.MAX_READERS
    assert not taken.errors


def test_without_a_cache_file_the_thread_reads_the_transcripts(sessions: Folders) -> None:
    taken = Taken()
    with taken.feed(lambda: Collector(sessions, clock=lambda: START)):
        taken.wait_for(lambda: len(taken.tasks) == 40)


def test_the_process_starts_without_the_environment_of_this_one(
    sessions: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    with FirstRead(sessions) as reader:
        environment = Path(f"/proc/{reader.pid}/environ").read_bytes()
    assert b"SECRET_TOKEN" not in environment
    assert MIN_BYTES > 1 << 20
