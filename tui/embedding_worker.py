"""The one worker that makes vectors of what patterns and tasks mean, while the dashboard is in use."""

from __future__ import annotations

import threading
from typing import Final

from textual.message import Message
from textual.message_pump import MessagePump

from core.base.errors import RalphdeckError
from core.project.project import Project

AFTER_SECONDS: Final = 3.0
"""How long after the first load to begin: nothing slows a start down."""
_AGAIN_SECONDS: Final = 60.0
"""When to try again what another process is at, or what could not be kept."""


class EmbeddingWorker:
    """Runs in one thread worker; makes what is missing whenever it is told to.

    Args:
        deck: The open project.
        target: Where messages go.
    """

    class Progress(Message):
        """Vectors of patterns made, and to make; both are the same at the end."""

        def __init__(self, done: int, total: int) -> None:
            super().__init__()
            self.done = done
            self.total = total

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, EmbeddingWorker.Progress)

    def __init__(self, deck: Project, target: MessagePump) -> None:
        self._deck = deck
        self._target = target
        self._wanted = threading.Event()
        self._stopped = False

    def want(self) -> None:
        """There may be patterns or tasks without a vector."""
        self._wanted.set()

    def stop(self) -> None:
        """Let `run` return after the batch that it is at."""
        self._stopped = True
        self._wanted.set()

    def run(self) -> None:
        """Make vectors until stopped. Runs in a thread worker."""
        again: float | None = None
        while not self._stopped:
            self._wanted.wait(again)
            self._wanted.clear()
            again = None
            try:
                if not self._stopped:
                    self._deck.embed_missing(self._tell, lambda: self._stopped)
            except RalphdeckError:
                again = _AGAIN_SECONDS

    def _tell(self, done: int, total: int) -> None:
        if not self._stopped:
            self._target.post_message(self.Progress(done, total))
