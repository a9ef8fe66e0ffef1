from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

import core.project.adapter_feed
import core.project.watch_loop
from core.base.errors import Refused
from core.base.paths import ProjectPaths
from core.base.settings import ExtractionSettings, Settings
from core.decisions.commands import Extract, Undo
from core.files.watcher import WatchMode, WatchState
from core.project.project import Project
from core.project.watch_loop import (
    BATCH_BURST,
    BATCHES_PER_SECOND,
    SETTLING_SECONDS,
    AutoExtraction,
    BatchPacer,
    WatchLoop,
    is_wanted,
)
from core.records.decisions import Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot
from tests.core.project.test_daemon import opened, project, write_loop
from tests.factories import NOW


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


def test_an_extraction_that_was_undone_is_not_repeated(running: tuple[Project, AutoExtraction, Watch]) -> None:
    open_project, extraction, watch = running
    write_loop(open_project.project, "ralph-a", "completed")
    see(open_project, extraction)
    open_project.decide(Extract("ralph-a"))
    open_project.decide(Undo())
    watch.seconds = SETTLING_SECONDS
    assert extraction.extract_next() == ("ralph-a", None)
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


def test_running_loop_is_not_extracted(running: tuple[Project, AutoExtraction, Watch]) -> None:
    open_project, extraction, watch = running
    write_loop(open_project.project, "ralph-a", "completed")
    see(open_project, extraction)
    write_loop(open_project.project, "ralph-a", "running")
    see(open_project, extraction)
    watch.seconds = SETTLING_SECONDS
    assert extraction.extract_next() == ("ralph-a", None)


@pytest.mark.parametrize("off", ["enabled", "auto_extract_on_completion"])
def test_auto_extraction_can_be_disabled(off: str) -> None:
    assert is_wanted(ExtractionSettings())
    assert not is_wanted(ExtractionSettings(**{off: False}))


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
    monkeypatch.setattr(core.project.adapter_feed, "AdapterFeed", lambda *_: nullcontext())
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
