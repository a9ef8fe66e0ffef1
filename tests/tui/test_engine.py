"""In which order the worker does what is asked of it and what it does unasked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from textual.message import Message
from textual.message_pump import MessagePump

from core.base.errors import Unwritable
from core.files.watcher import FileChanges, Watcher, WatchMode, WatchState
from core.project.project import Project
from core.project.watch_loop import BATCH_BURST, BatchPacer
from core.records.snapshot import Delta
from tui.engine import PAINT_SECONDS, EmbeddingWorker, Engine

CHANGED = Delta(decisions=True)


class Calls:
    """Replaces deck, watcher and screen, and notes what is done."""

    def __init__(self, *pieces: Delta | Exception) -> None:
        self.done: list[str] = []
        self.pieces = list(pieces)
        self.user: list[Message] = []
        self.index = self
        self.retry_paths: frozenset[Path] = frozenset()
        self.state = WatchState(WatchMode.EVENTS, "", 1)
        self.view = self

    def keep_questions(self) -> None:
        """Nothing is saved."""

    def search_next(self) -> Delta | None:
        self.done.append("look")
        found = self.pieces.pop(0) if self.pieces else None
        if isinstance(found, Exception):
            raise found
        return found

    def apply(self, changed: object) -> tuple[None, Delta]:
        self.done.append("apply")
        return None, Delta(loops=frozenset({"a"}))

    def refresh(self) -> tuple[Calls, Delta]:
        self.done.append("refresh")
        return self, Delta()

    def prepare(self) -> None:
        self.done.append("prepare")

    def post_message(self, message: Message) -> bool:
        self.user.append(message)
        return True

    def job(self) -> None:
        self.done.append("job")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.engine.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("core.project.watch_loop.REFRESH_SECONDS", 0.0)
    monkeypatch.setattr("tui.engine.SEARCH_SHOWN_SECONDS", 0.0)


def turning(calls: Calls, **how: Any) -> tuple[Engine, Callable[[int], list[str]]]:
    """Run some turns of an engine and return its calls."""
    engine = Engine(cast("Project", calls), cast("MessagePump", calls), **how)

    def turns(count: int) -> list[str]:
        calls.done.clear()
        for _ in range(count):
            engine._guarded(lambda: engine._turn(cast("Watcher", calls)))
        return list(calls.done)

    return engine, turns


def test_background_work_runs_in_idle_time_until_it_is_done() -> None:
    calls = Calls(Delta(), CHANGED)
    _engine, turns = turning(calls)
    assert turns(4) == ["look", "look", "look", "prepare", "refresh"]
    assert sum(isinstance(message, Engine.Changed) for message in calls.user) == 2  # what was found, and the refresh
    assert turns(2) == ["look", "prepare", "refresh"]
    assert turns(1) == ["look", "prepare"], "it looks again after each refresh"


def test_a_long_search_is_reported_when_it_starts_and_ends() -> None:
    calls = Calls(Delta(), Delta(), ValueError("a bug"))
    engine, turns = turning(calls)
    known = []
    for _ in range(4):
        turns(1)
        known.append(engine.is_searching)
    assert known == [True, True, False, False], "one look that finds nothing left is no news"
    assert sum(isinstance(message, Engine.Searching) for message in calls.user) == 2


def test_a_short_search_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.engine.SEARCH_SHOWN_SECONDS", 3600.0)
    calls = Calls(Delta(), Delta(), Delta())
    _engine, turns = turning(calls)
    turns(4)
    assert not any(isinstance(message, Engine.Searching) for message in calls.user)


def test_jobs_and_file_changes_run_before_the_next_background_step() -> None:
    calls = Calls(*[Delta()] * 5)
    engine, turns = turning(calls)
    assert turns(1) == ["look"]
    engine.submit(calls.job)
    engine._noticed(FileChanges(frozenset({Path("x")}), sweep=False))
    assert turns(2) == ["job", "apply", "look"]


def test_a_change_is_drawn_before_the_search_goes_on() -> None:
    calls = Calls(*[Delta()] * 5)
    engine, turns = turning(calls)
    turns(1)
    searching = engine.seconds_left()
    engine._noticed(FileChanges(frozenset({Path("x")}), sweep=False))
    turns(1)
    assert engine.seconds_left() == PAINT_SECONDS > searching
    turns(1)
    assert engine.seconds_left() == searching


def test_a_change_starts_a_new_search() -> None:
    calls = Calls()
    engine, turns = turning(calls)
    assert turns(1) == ["look", "prepare"]
    assert engine.has_searched_once
    engine.submit(calls.job)
    assert turns(2) == ["job", "look", "prepare"]


def test_a_failing_search_is_reported_once_and_not_repeated() -> None:
    calls = Calls(ValueError("a bug"))
    _engine, turns = turning(calls)
    assert turns(2) == ["look", "refresh"]
    assert [message.text for message in calls.user if isinstance(message, Engine.Failed)] == [
        "Internal error: ValueError: a bug"
    ]


def test_the_background_search_can_be_disabled() -> None:
    _engine, turns = turning(Calls(CHANGED), searches=False)
    assert turns(2) == ["refresh"] * 2


def test_a_decision_does_not_wait_for_delayed_changes() -> None:
    calls = Calls()
    engine = Engine(cast(Project, calls), cast(MessagePump, calls), searches=False)
    engine._pacer = BatchPacer(clock=lambda: 0.0)
    for _ in range(BATCH_BURST):
        engine._pacer.count()
    engine._noticed(FileChanges(frozenset({Path("a")}), sweep=False))
    engine.submit(calls.job)
    engine._turn(cast(Watcher, calls))
    assert calls.done == ["job"]
    engine._pacer = BatchPacer()
    engine._turn(cast(Watcher, calls))
    assert calls.done == ["job", "apply"], "what was held back is applied later"


class SlowDeck:
    """Computes one vector at a time until stopped, and signals its start."""

    def __init__(self, *, fails: bool = False) -> None:
        self.begun = threading.Event()
        self.calls = 0
        self._fails = fails

    def embed_missing(self, progress: Callable[[int, int], None], stop: Callable[[], bool]) -> int:
        self.calls += 1
        self.begun.set()
        if self._fails:
            raise Unwritable("another process is making them")
        progress(0, 3)
        while not stop():
            pass
        progress(3, 3)
        return 3


class Target:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def post_message(self, message: Message) -> None:
        self.messages.append(message)


def started(opened: Any) -> tuple[EmbeddingWorker, threading.Thread, Target]:
    target = Target()
    maker = EmbeddingWorker(cast(Project, opened), cast(MessagePump, target))
    thread = threading.Thread(target=maker.run)
    thread.start()
    return maker, thread, target


def test_vectors_are_computed_on_demand_until_stopped() -> None:
    opened = SlowDeck()
    maker, thread, target = started(opened)
    assert not opened.begun.is_set()
    maker.want()
    assert opened.begun.wait(20)
    maker.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert [type(message) for message in target.messages] == [EmbeddingWorker.Progress]
    assert opened.calls == 1


def test_background_work_of_another_process_stops_nothing() -> None:
    opened = SlowDeck(fails=True)
    maker, thread, target = started(opened)
    maker.want()
    assert opened.begun.wait(20)
    maker.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert not target.messages
