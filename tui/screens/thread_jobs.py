"""Work of a screen in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from textual.screen import Screen

_Result = TypeVar("_Result")


class ThreadJobs(Screen[None]):
    """A screen that runs work in threads and shows the results."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._jobs: dict[str, tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None] | None]] = {}
        """Work and callbacks of the newest job of each group that has no result yet."""

    def run_in_thread(
        self,
        group: str,
        work: Callable[[], _Result],
        show: Callable[[_Result], None],
        *,
        fail: Callable[[Exception], None] | None = None,
        pause: float = 0.0,
    ) -> None:
        """Run `work` in a thread, then call `show` with its result, or `fail` with its exception.

        Without `fail`, an exception ends the dashboard. Each group runs one job at a time, after `pause` seconds. Only
        the result of the newest one is shown.
        """
        is_running = self.is_computing(group)
        self._jobs[group] = (work, show, fail)
        if not is_running:
            self.run_worker(self._run_jobs(group, pause), group=group)

    async def _run_jobs(self, group: str, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            work, show, fail = job = self._jobs[group]
            then: Callable[[], None]
            try:
                then = partial(show, await asyncio.to_thread(work))
            except Exception as error:
                if fail is None:
                    raise
                then = partial(fail, error)
            if self._jobs[group] is job:
                del self._jobs[group]
                if self.app.is_running:  # else the widgets are being removed
                    then()  # a job that this adds runs on its own
                return

    def is_computing(self, group: str) -> bool:
        """Return True if the newest job of a group has no result yet."""
        return group in self._jobs
