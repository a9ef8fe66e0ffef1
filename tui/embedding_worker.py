"""Worker that computes embeddings while the dashboard runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from tui.kit.messages import NewestMessage

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from core.project.project import Project

AFTER_SECONDS: Final = 3.0  # Seconds between the first load and the first run, so that the start stays fast.
_AGAIN_SECONDS: Final = 60.0  # Seconds before a retry if another process held the lock or writing failed.


class EmbeddingWorker:
    """Embeds texts that have no embedding yet, on request, in one thread."""

    @dataclass(eq=False)
    class Progress(NewestMessage):
        """Number of embeddings done and to do in total; equal at the end."""

        done: int
        total: int

    def __init__(self, project: Project, target: MessagePump) -> None:
        self._project = project
        self._target = target
        self._wanted = threading.Event()
        self._stopped = False

    def want(self) -> None:
        """Request a run, because some patterns or tasks may have no embedding."""
        self._wanted.set()

    def stop(self) -> None:
        """Make `run` return after the current batch."""
        self._stopped = True
        self._wanted.set()

    def run(self) -> None:
        """Embed on request until stopped; runs in a thread worker."""
        again: float | None = None
        while not self._stopped:
            self._wanted.wait(again)
            self._wanted.clear()
            again = None
            try:
                if not self._stopped:
                    self._project.embed_missing(self._report, lambda: self._stopped)
            except RalphdeckError:
                again = _AGAIN_SECONDS

    def _report(self, done: int, total: int) -> None:
        if not self._stopped:
            self._target.post_message(self.Progress(done, total))
