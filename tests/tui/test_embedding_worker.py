from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

from textual.message import Message
from textual.message_pump import MessagePump

from core.base.errors import Unwritable
from core.project.project import Project
from tui.engine import EmbeddingWorker


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
