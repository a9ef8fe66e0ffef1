from __future__ import annotations

import json
import queue
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Conflict, Refused
from core.base.paths import ProjectPaths
from core.base.settings import ExtractionSettings, PruningSettings, Settings, WatchSettings
from core.decisions.commands import Extract, Restore
from core.project.daemon import Daemon, WatchEvent
from core.project.project import Project
from core.records.decisions import Verb

NOW = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
QUICK = Settings(watch=WatchSettings(batch_seconds=0.005, retry_seconds=(0.001, 0.002)))
ERROR = "TypeError: Cannot read property 'email' of null at src/auth/validate.ts:42"


def write_loop(paths: ProjectPaths, name: str, status: str, *, ended: str = "2026-05-03T11:50:00Z") -> None:
    iterations = [
        {"number": 1, "timestamp": "2026-05-03T11:10:00Z", "action": "Ran the tests", "result": f"3 failing: {ERROR}"},
        {
            "number": 2,
            "timestamp": "2026-05-03T11:40:00Z",
            "action": "Added a null check before the property of the user is read",
            "result": "12 passing",
            "verified": True,
        },
    ]
    state: dict[str, Any] = {
        "loopId": name,
        "task": "Fix the null user crash in auth validation",
        "status": status,
        "startTime": "2026-05-03T11:00:00Z",
        "currentIteration": 2,
        "maxIterations": 5,
        "iterations": iterations,
    }
    if status != "running":
        state["endTime"] = ended
    folder = paths.ralph / "loops" / name
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / "state.json.tmp"
    draft.write_text(json.dumps(state))
    draft.replace(folder / "state.json")


def opened(paths: ProjectPaths, settings: Settings = QUICK, now: datetime = NOW) -> Project:
    open_project = Project(paths, settings, by="ada", clock=lambda: now, cache=False)
    open_project.load()
    return open_project


class EventCollector:
    """Collects the events that a daemon reports."""

    def __init__(self) -> None:
        self._lines: queue.Queue[WatchEvent] = queue.Queue()
        self.take = self._lines.put

    def until(self, what: str, subject: str = "") -> WatchEvent:
        while True:
            line = self._lines.get(timeout=20)
            if line.what == what and subject in line.subject:
                return line


@contextmanager
def following(open_project: Project, **options: bool) -> Iterator[EventCollector]:
    events = EventCollector()
    follower = Daemon(open_project, events.take, **options)
    thread = threading.Thread(target=follower.run)
    thread.start()
    try:
        events.until("watching")
        yield events
    finally:
        follower.stop()
        thread.join(20)
    assert not thread.is_alive()


def project(tmp_path: Path) -> ProjectPaths:
    paths = ProjectPaths(tmp_path)
    paths.patterns.mkdir(parents=True)
    return paths


def test_daemon_extracts_when_a_loop_completes(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    open_project = opened(paths)
    with following(open_project, extract=True) as events:
        write_loop(paths, "ralph-a", "completed")
        assert events.until("loop-ended").text == "completed: Fix the null user crash in auth validation"
        assert events.until("extracted", "ralph-a").text.startswith("extracted ")
        assert events.until("pattern-new").subject in open_project.view.snapshot.patterns
    assert [decision.verb for decision in open_project.view.snapshot.decisions] == [Verb.EXTRACT]
    assert open_project.view.queue, "the extracted pattern is asked about"


def test_a_partly_completed_loop_has_ended_and_is_extracted(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    open_project = opened(paths)
    with following(open_project, extract=True) as events:
        write_loop(paths, "ralph-a", "partial")
        assert events.until("loop-ended").text == "partly completed: Fix the null user crash in auth validation"
        assert events.until("extracted", "ralph-a").text.startswith("extracted ")


def test_daemon_writes_nothing_by_default(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    open_project = opened(paths)
    with following(open_project) as events:
        write_loop(paths, "ralph-a", "failed")
        assert events.until("loop-ended").severity == "error"
    assert not paths.curation.exists()


def test_daemon_catches_up_on_loops_that_ended_before(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-old", "completed", ended="2026-05-01T10:00:00Z")
    write_loop(paths, "ralph-b", "completed")
    open_project = opened(paths)
    with following(open_project, extract=True):
        pass
    assert not open_project.view.snapshot.decisions, "history is not extracted unasked"
    open_project.decide(Extract("ralph-b", unattended=True))
    write_loop(paths, "ralph-missed", "completed", ended="2026-05-03T13:00:00Z")
    with following(opened(paths, now=NOW + timedelta(days=1)), extract=True) as events:
        events.until("extracted", "ralph-missed")


@pytest.mark.slow
def test_daemon_survives_removal_of_the_project_folder(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    open_project = opened(paths)
    with following(open_project, extract=True) as events:
        shutil.rmtree(paths.aiwg)
        events.until("watching")
        paths.patterns.mkdir(parents=True)
        (paths.pattern_file("error")).write_text('{"broken')
        write_loop(paths, "ralph-b", "running")
        events.until("loop-started", "ralph-b")
        write_loop(paths, "ralph-b", "completed")
        assert events.until("extracted", "ralph-b")


def test_pruning_runs_once_per_interval(tmp_path: Path) -> None:
    paths = project(tmp_path)
    old = {
        "pattern_id": "pat-error-old-001",
        "error_signature": {"error_type": "TypeError", "error_pattern": "x"},
        "fix_approach": {"description": "Something that is no longer needed", "fix_category": "other"},
        "success_rate": 0.45,
        "usage_count": 20,
        "last_used": "2025-01-01T00:00:00Z",
    }
    paths.pattern_file("error").write_text(json.dumps({"error_patterns": [old]}))
    open_project = opened(paths)
    with following(open_project, prune=True) as events:
        assert events.until("pruned").text == "archived pat-error-old-001"
        assert events.until("pattern-gone").subject == "pat-error-old-001"
    open_project.decide(Restore("pat-error-old-001"))
    weekly = Settings(watch=QUICK.watch, pruning=PruningSettings(prune_interval_days=7))
    again = opened(paths, weekly)
    with following(again, prune=True) as events:
        write_loop(paths, "ralph-a", "running")
        events.until("loop-started")
    assert "pat-error-old-001" in again.view.snapshot.patterns


def test_extraction_is_refused_if_the_offer_changed(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "completed")
    write_loop(paths, "ralph-b", "completed")
    open_project = opened(paths)
    offer = open_project.extraction("ralph-b")
    open_project.decide(Extract("ralph-a"))
    with pytest.raises(Conflict, match="review them again"):
        open_project.decide(Extract("ralph-b", expected=offer))
    open_project.decide(Extract("ralph-b", expected=open_project.extraction("ralph-b")))


def test_a_running_loop_offers_nothing_to_extract(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    with pytest.raises(Refused, match="has not ended"):
        opened(paths).extraction("ralph-a")


def test_concurrent_extractions_extract_once(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "completed")
    decks = [opened(paths) for _ in range(3)]
    barrier = threading.Barrier(len(decks))
    refused: list[Refused] = []

    def extract(open_project: Project) -> None:
        barrier.wait(20)
        try:
            open_project.decide(Extract("ralph-a", unattended=True))
        except Refused as error:
            refused.append(error)

    threads = [threading.Thread(target=extract, args=(open_project,)) for open_project in decks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    view = opened(paths).view
    assert len(refused) == 2
    assert len(view.snapshot.decisions) == 1
    assert len(view.snapshot.patterns) == 1
    assert all(view.assessment(id).seen == 1 for id in view.snapshot.patterns)


def test_extraction_respects_the_settings(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "completed")
    off = Settings(watch=QUICK.watch, extraction=ExtractionSettings(enabled=False))
    with pytest.raises(Refused, match="disabled in the settings"):
        opened(paths, off).decide(Extract("ralph-a"))
