"""The worker that embeds patterns and tasks while the dashboard runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from textual.message_pump import MessagePump

from core.base.errors import RalphdeckError
from core.project.project import Project
from tui.messages import NewestMessage

AFTER_SECONDS: Final = 3.0
"""Seconds after the first load, so that the start is not slowed down."""
_AGAIN_SECONDS: Final = 60.0
"""Seconds until a retry after another process held the lock or a file could not be written."""


class EmbeddingWorker:
    """Embeds missing texts whenever asked, in one thread worker."""

    @dataclass(eq=False)
    class Progress(NewestMessage):
        """Embeddings done, and in all; equal at the end."""

        done: int
        total: int

    def __init__(self, project: Project, target: MessagePump) -> None:
        self._project = project
        self._target = target
        self._wanted = threading.Event()
        self._stopped = False

    def want(self) -> None:
        """Request a run: some patterns or tasks may have no embedding."""
        self._wanted.set()

    def stop(self) -> None:
        """Let `run` return after the current batch."""
        self._stopped = True
        self._wanted.set()

    def run(self) -> None:
        """Embed until stopped. Runs in a thread worker."""
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
