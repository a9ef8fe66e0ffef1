"""The files of runners are followed in a thread, and read for the first time in a process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.project import adapter_feed
from core.project.adapter_feed import AdapterFeed
from core.sources.adapters import collector
from core.sources.adapters.collector import Collector, FirstRead
from core.sources.adapters.contract import AdapterRecords, Folders
from core.sources.adapters.transcripts import KeptFile
from tests.bench.sessions import write_sessions
from tests.core.sources.adapters.fake_adapter import START, FakeAdapter, FakeRunner

WAIT = 30.0  # a test that waits longer than this has failed


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(adapter_feed, "CHECK_SECONDS", 0.01)
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
    taken = Taken()
    folders = Folders(project=runner.notes.parents[1])
    with taken.feed(lambda: Collector(folders, clock=lambda: START, adapters=[FakeAdapter()])):
        taken.wait_for(lambda: taken.tasks == {"fake:a": "one"})
        runner.write("two", "b")
        taken.wait_for(lambda: taken.tasks == {"fake:a": "one", "fake:b": "two"})
        runner.write("three")
        taken.wait_for(lambda: taken.tasks == {"fake:a": "three", "fake:b": "two"})
    assert "ralphdeck-sources" not in [thread.name for thread in threading.enumerate()]
    assert not taken.errors


def test_an_error_of_the_thread_is_reported(runner: FakeRunner) -> None:
    def fail() -> Collector:
        raise RuntimeError("no folders")

    taken = Taken()
    with taken.feed(fail):
        taken.wait_for(lambda: bool(taken.errors))
    assert str(taken.errors[0]) == "no folders"


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """A project with 40 sessions of an agent, which are so large that another process reads them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(adapter_feed, "MIN_BYTES", 1)
    monkeypatch.setattr(adapter_feed, "BYTES_PER_LOOK", 1)
    monkeypatch.setattr(adapter_feed, "CHECK_SECONDS", 0.01)
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

    monkeypatch.setattr(adapter_feed, "FirstRead", Killed)
    monkeypatch.setattr(adapter_feed, "BYTES_PER_LOOK", 200_000)
    taken = Taken()
    with taken.feed(lambda: collector_of(sessions)):
        taken.wait_for(lambda: len(taken.tasks) == 40 and not taken.records[-1].is_behind)
    assert 1 <= len(started) <= adapter_feed.MAX_READERS
    assert not taken.errors


@pytest.mark.slow
def test_a_project_that_is_closed_during_the_first_read_ends_the_process(sessions: Folders) -> None:
    taken = Taken()
    with taken.feed(lambda: collector_of(sessions)):
        taken.wait_for(lambda: bool(taken.records))
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
    assert collector.MIN_BYTES > 1 << 20
