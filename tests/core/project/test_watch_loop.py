from __future__ import annotations

import dataclasses
import json
import queue
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import core.project.adapter_files
import core.project.watch_loop
from core.base.errors import Conflict, Refused
from core.base.paths import ProjectPaths
from core.base.settings import ExtractionSettings, PruningSettings, Settings, WatchSettings
from core.decisions.commands import Extract, Restore, Undo
from core.files.watcher import WatchMode, WatchState
from core.project.project import Project
from core.project.watch_loop import (
    BATCH_BURST,
    BATCHES_PER_SECOND,
    SETTLING_SECONDS,
    AutoExtraction,
    BatchPacer,
    Daemon,
    WatchEvent,
    WatchLoop,
    is_wanted,
)
from core.records.decisions import Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot

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
    for name in ("ralph-a", "ralph-b"):
        write_loop(paths, name, "running")
    open_project = opened(paths)
    with following(open_project) as events:
        write_loop(paths, "ralph-b", "failed")
        assert events.until("loop-ended").severity == "error"
    assert not paths.curation.exists(), "writes nothing by default"
    with following(open_project, extract=True) as events:
        write_loop(paths, "ralph-a", "partial")
        assert events.until("loop-ended").text == "partly completed: Fix the null user crash in auth validation"
        assert events.until("extracted", "ralph-a").text.startswith("extracted ")
        assert events.until("pattern-new").subject in open_project.view.snapshot.patterns
    assert [decision.verb for decision in open_project.view.snapshot.decisions] == [Verb.EXTRACT]
    assert open_project.view.queue, "the extracted pattern is asked about"


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


def test_extraction_is_refused_while_a_loop_runs_and_if_the_offer_changed(tmp_path: Path) -> None:
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    write_loop(paths, "ralph-b", "completed")
    open_project = opened(paths)
    with pytest.raises(Refused, match="has not ended"):
        open_project.extraction("ralph-a")
    write_loop(paths, "ralph-a", "completed")
    open_project.apply(None)
    offer = open_project.extraction("ralph-b")
    open_project.decide(Extract("ralph-a"))
    with pytest.raises(Conflict, match="review them again"):
        open_project.decide(Extract("ralph-b", expected=offer))
    open_project.decide(Extract("ralph-b", expected=open_project.extraction("ralph-b")))


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
    off = ExtractionSettings(enabled=False)
    with pytest.raises(Refused, match="disabled in the settings"):
        opened(paths, Settings(watch=QUICK.watch, extraction=off)).decide(Extract("ralph-a"))
    wanted = ExtractionSettings(), off, ExtractionSettings(auto_extract_on_completion=False)
    assert [is_wanted(one) for one in wanted] == [True, False, False]


def test_a_burst_is_applied_at_once_and_a_steady_stream_at_a_steady_rate() -> None:
    now = 0.0
    pacer = BatchPacer(clock=lambda: now)
    for _ in range(BATCH_BURST):
        assert pacer.delay() == 0
        pacer.count()
    assert pacer.delay() == pytest.approx(1 / BATCHES_PER_SECOND)
    applied = 0
    for _tick in range(200):  # ten seconds in which something changes twenty times a second
        now += 0.05
        if pacer.delay() == 0:
            pacer.count()
            applied += 1
    assert applied == 10 * BATCHES_PER_SECOND
    now += 3600
    assert pacer.delay() == 0, "after a quiet time nothing waits"


class Watch:
    """Monotonic clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Project, AutoExtraction, Watch]]:
    """Project with one running loop, and its unattended extraction."""
    paths = project(tmp_path)
    write_loop(paths, "ralph-a", "running")
    open_project, watch = opened(paths), Watch()
    yield open_project, AutoExtraction(open_project, clock=watch), watch


def see(open_project: Project, extraction: AutoExtraction) -> None:
    """Read what changed on disk."""
    before = open_project.view
    after, delta = open_project.apply(None)
    extraction.add_ended(before, after, delta)


def test_a_loop_is_extracted_when_it_has_settled(running: tuple[Project, AutoExtraction, Watch]) -> None:
    open_project, extraction, watch = running
    write_loop(open_project.project, "ralph-a", "completed")
    see(open_project, extraction)
    assert extraction.extract_next() is None, "its last files may still be written"
    assert extraction.seconds_left(10) == SETTLING_SECONDS
    watch.seconds = SETTLING_SECONDS
    extracted = extraction.extract_next()
    assert extracted is not None and extracted[1] is not None
    decision = extracted[1].decision
    assert (decision.verb, decision.subject, decision.by) == (Verb.EXTRACT, "ralph-a", "ada (unattended)")
    with pytest.raises(Refused, match="ada \\(unattended\\)"):
        open_project.decide(Undo())
    assert {item.subject for item in open_project.view.queue} >= set(decision.after["patterns"]), (
        "Review asks about them"
    )
    assert extraction.extract_next() is None
    assert extraction.seconds_left(10) == 10


def test_two_processes_extract_once(running: tuple[Project, AutoExtraction, Watch]) -> None:
    open_project, extraction, watch = running
    other = opened(open_project.project)
    others = AutoExtraction(other, clock=watch)
    write_loop(open_project.project, "ralph-a", "completed")
    see(open_project, extraction)
    see(other, others)
    watch.seconds = SETTLING_SECONDS
    assert extraction.extract_next() is not None
    assert others.extract_next() == ("ralph-a", None)
    assert [decision.verb for decision in opened(open_project.project).view.snapshot.decisions] == [Verb.EXTRACT]


def test_an_undone_extraction_and_a_loop_that_runs_again_are_not_extracted(
    running: tuple[Project, AutoExtraction, Watch],
) -> None:
    open_project, extraction, watch = running
    write_loop(open_project.project, "ralph-b", "running")
    see(open_project, extraction)
    for name in ("ralph-a", "ralph-b"):
        write_loop(open_project.project, name, "completed")
    see(open_project, extraction)
    open_project.decide(Extract("ralph-a"))
    open_project.decide(Undo())
    write_loop(open_project.project, "ralph-b", "running")
    see(open_project, extraction)
    watch.seconds = SETTLING_SECONDS
    assert {extraction.extract_next(), extraction.extract_next()} == {("ralph-a", None), ("ralph-b", None)}
    assert [decision.verb for decision in open_project.view.snapshot.decisions] == [Verb.EXTRACT, Verb.UNDO]


def test_loop_first_read_after_its_end_is_extracted(
    running: tuple[Project, AutoExtraction, Watch],
) -> None:
    open_project, extraction, watch = running
    write_loop(open_project.project, "ralph-long-ago", "completed")
    write_loop(open_project.project, "ralph-quick", "completed", ended="2026-05-03T12:00:00Z")
    see(open_project, extraction)
    watch.seconds = SETTLING_SECONDS
    found = extraction.extract_next()
    assert found is not None and found[0] == "ralph-quick"
    assert extraction.extract_next() is None


def test_the_strategies_of_a_decomposition_are_learned_when_the_loop_ends(
    running: tuple[Project, AutoExtraction, Watch],
) -> None:
    open_project, extraction, watch = running
    write_loop(open_project.project, "ralph-a", "completed")
    state = open_project.project.ralph / "loops/ralph-a/state.json"
    task = "Break the checkout down by feature, one file per subtask"
    state.write_text(state.read_text().replace("Fix the null user crash in auth validation", task))
    see(open_project, extraction)
    watch.seconds = SETTLING_SECONDS
    assert extraction.extract_next() is not None
    found = {pattern.description: pattern.id for pattern in open_project.view.snapshot.patterns.values()}
    uses = open_project.view.board.observations(found["One file per subtask"])
    assert [(use.kind, use.loop_id, use.count) for use in uses] == [("applied", "ralph-a", 1)]
    assert open_project.learn_strategies("ralph-a") == ("Split by feature", "One file per subtask")
    assert open_project.view.board.observations(found["One file per subtask"]) == uses, "learned twice, counted once"


def test_a_change_of_the_watch_mode_is_reported_once(tmp_path: Path) -> None:
    reported = []

    class Loop(WatchLoop):
        def watching(self, state: WatchState) -> None:
            reported.append(state.mode)

    class Watched:
        state = WatchState(WatchMode.EVENTS, "", 3)

    loop, watcher = Loop(opened(project(tmp_path)), extract=False), Watched()
    for mode in (WatchMode.EVENTS, WatchMode.EVENTS, WatchMode.POLLING):
        watcher.state = WatchState(mode, "", 3)
        loop.submit(lambda: None)
        loop._turn(watcher)  # type: ignore[arg-type]
    assert reported == [WatchMode.EVENTS, WatchMode.POLLING]


def test_files_are_watched_after_they_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    class Loop(WatchLoop):
        def prepare(self) -> None:
            steps.append("read")

    def watch(*_: object, **__: object) -> nullcontext[None]:
        steps.append("watch")
        return nullcontext()

    monkeypatch.setattr(core.project.watch_loop, "Watcher", watch)
    monkeypatch.setattr(core.project.adapter_files, "AdapterFeed", lambda *_: nullcontext())
    loop = Loop(opened(project(tmp_path)))
    loop.stop()
    loop.run()
    assert steps == ["read", "watch"]


def test_a_proposal_of_an_agent_does_not_hide_loops_that_ended_before_it(tmp_path: Path) -> None:
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: NOW, cache=False)
    made = partial(Decision, by="ada", verb=Verb.EXTRACT, subject="s")
    last = made(id="1", at=NOW - timedelta(days=2), after={"hashes": {}})
    proposal = made(id="2", at=NOW, after={"hashes": {}, "proposed": True})
    loop = Loop(id="ralph-a", status=LoopStatus.COMPLETED, ended_at=NOW - timedelta(days=1))
    snapshot = Snapshot(decisions=(last, proposal), loops={loop.id: loop})
    open_project._view = dataclasses.replace(open_project.view, snapshot=snapshot)
    extraction = AutoExtraction(open_project, clock=lambda: 0.0)
    extraction.add_missed()
    assert extraction.seconds_left(10) == 0
