"""The worker that keeps the search index up to date while the dashboard runs."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from core.config.paths import ProjectPaths
from core.records.snapshot import Snapshot
from core.search.index import SearchIndex
from core.search.words import SearchFilters, SearchWords
from core.storage.watcher import FileChanges
from tests.copying import copy_folder
from tests.tui.user import NOW, TREES
from tui import search_worker
from tui.search_worker import SearchWorker

EMPTY = Snapshot(number=0)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectPaths:
    for name in ("_PAUSE_SECONDS", "_SETTLE_SECONDS", "_SOON_SECONDS", "_AGAIN_SECONDS"):
        monkeypatch.setattr(search_worker, name, 0.0)
    return ProjectPaths(copy_folder(TREES / "spec-examples", tmp_path / "project"))


def write_action(paths: ProjectPaths, output: str) -> None:
    log = paths.tasks / "task-001/attempts/002/actions.jsonl"
    log.write_text(log.read_text() + json.dumps({"type": "bash", "output": output}) + "\n")
    os.utime(log, (NOW.timestamp(), NOW.timestamp()))


def found(worker: SearchWorker, text: str, go_on: Callable[[], bool] = lambda: False) -> int:
    """The number of hits, by default those of the index alone."""
    return worker.search(SearchWords(text), SearchFilters(), EMPTY, go_on)[0].total


@contextmanager
def running(worker: SearchWorker) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Run a worker in a thread; gives a function that waits for a condition."""
    thread = threading.Thread(target=worker.run)
    thread.start()

    def wait(condition: Callable[[], bool]) -> None:
        for _ in range(2000):
            if condition():
                return
            threading.Event().wait(0.005)
        pytest.fail("timed out")

    try:
        yield wait
    finally:
        worker.stop()
        thread.join()


def test_changed_tasks_are_indexed_in_the_background(paths: ProjectPaths) -> None:
    worker = SearchWorker(paths)
    with running(worker) as wait:
        worker.want()
        wait(lambda: worker.missing == (0, len(list(paths.tasks.iterdir()))))
        write_action(paths, "quetzal")
        assert not found(worker, "quetzal")
        worker.note(FileChanges(frozenset({paths.tasks / "task-001/attempts/002/actions.jsonl"}), sweep=False))
        wait(lambda: found(worker, "quetzal") == 1)
        shutil.rmtree(paths.tasks / "task-001")
        worker.note(FileChanges(frozenset(), sweep=True))
        wait(lambda: found(worker, "quetzal") == 0)


def test_a_search_does_not_wait_for_an_update(paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def pause(_seconds: float) -> None:
        begun.set()
        assert may_end.wait(20)

    monkeypatch.setattr("core.search.index.SLICE_SECONDS", 0.0)
    worker = SearchWorker(paths)
    monkeypatch.setattr(search_worker, "sleep", lambda seconds: pause(seconds) if worker.missing else None)
    with running(worker):
        worker.want()
        assert begun.wait(20)
        left, total = worker.missing or (0, 0)
        assert 0 < left <= total
        assert not found(worker, "oauth")
        assert found(worker, "oauth", lambda: True)
        may_end.set()


def test_an_index_that_was_deleted_is_built_again(paths: ProjectPaths) -> None:
    worker = SearchWorker(paths)
    with running(worker) as wait:
        worker.want()
        wait(lambda: worker.missing is not None and worker.missing[0] == 0)
        expected = found(worker, "oauth")
        file = worker._index.file
        file.write_bytes(b"nonsense" * 1000)
        other = SearchIndex(paths)
        other.check()  # replaces the file
        other.close()
        wait(lambda: found(worker, "oauth") == expected)


def test_without_a_usable_index_the_files_are_read(paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "_AGAIN_SECONDS", 60.0)
    monkeypatch.setattr(SearchIndex, "check", lambda self: None)
    worker = SearchWorker(paths)
    with running(worker):
        worker.want()
        assert found(worker, "oauth", lambda: True)
        assert worker.missing is None


def test_what_still_cannot_be_read_is_tried_again_after_a_long_time(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_worker, "_SOON_SECONDS", 1.0)
    monkeypatch.setattr(search_worker, "_AGAIN_SECONDS", 60.0)
    monkeypatch.setattr("core.search.index.IndexWriter._finish", lambda *_: False)
    worker = SearchWorker(paths)
    assert [worker._update() for _ in range(3)] == [1.0, 60.0, 60.0]


def test_a_failed_update_leaves_the_index_until_it_is_wanted_again(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = SearchWorker(paths)
    with running(worker) as wait:
        with monkeypatch.context() as failing:
            failing.setattr(SearchIndex, "check", Mock(side_effect=KeyError))
            worker.want()
            wait(lambda: "the search index cannot be updated" in caplog.text)
        assert worker.missing is None
        assert found(worker, "oauth", lambda: True)
        worker.want()
        wait(lambda: worker.missing == (0, len(list(paths.tasks.iterdir()))))
