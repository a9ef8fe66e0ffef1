"""Thread that follows the files of agents and runners while a project is open (docs/adapters.md#live)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final, Self

from core.sources.adapters.collector import MIN_BYTES, FirstRead

if TYPE_CHECKING:
    from core.sources.adapters.collector import Collector
    from core.sources.adapters.contract import AdapterRecords

CHECK_SECONDS: Final = 2.0  # between checks of files that changed last
LOOK_SECONDS: Final = 60.0  # between looks at all files
SAVE_SECONDS: Final = 30.0
PARTIAL_SECONDS: Final = 3.0  # between two lists while another process reads the transcripts
BYTES_PER_LOOK: Final = 8 << 20  # of transcripts: about 0.2 s
SHARE: Final = 20  # looks take at most one in this number of parts of the time
MAX_READERS: Final = 3  # processes that are started for the first read before this one does it


class AdapterFeed:
    """Calls `take` with the loops and lessons of runners whenever they change, in a thread of its own.

    `progress` is called with the bytes of transcripts that are read, and those in all, while they are read for the
    first time in another process. `failed` is called with an error that ends the thread.
    """

    def __init__(
        self,
        open_collector: Callable[[], Collector],
        take: Callable[[AdapterRecords], None],
        progress: Callable[[int, int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._open, self._take, self._progress, self._failed = open_collector, take, progress, failed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ralphdeck-sources", daemon=True)
        self._last: AdapterRecords | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(self._open()) as collector:
                collector.set_limits(BYTES_PER_LOOK)
                self._publish(collector.look())
                self._read_all(collector)
                self._follow(collector)
        except Exception as error:
            self._failed(error)

    def _read_all(self, collector: Collector) -> None:
        """Read the transcripts to their end; in another process if they are large."""
        for _ in range(MAX_READERS):
            if self._stop.is_set() or collector.kept is None or collector.bytes_behind < MIN_BYTES:
                break
            total = collector.bytes_behind
            collector.set_limits(0)  # the other process reads them
            collector.save()
            with FirstRead(collector.folders) as reader:
                self._show_partial(collector, reader, total)
            collector.set_limits(BYTES_PER_LOOK)
            self._publish(collector.look_anew())
        while collector.records.is_behind and not self._stop.wait(CHECK_SECONDS / 10):
            self._publish(collector.look_at_changed())
        self._progress(0, 0)
        collector.prune()

    def _show_partial(self, collector: Collector, reader: FirstRead, total: int) -> None:
        """Publish what the other process has read until it ends."""
        shown, wait = monotonic(), PARTIAL_SECONDS
        while (done := reader.bytes_read(CHECK_SECONDS / 4)) is not None and not self._stop.is_set():
            self._progress(min(done, total), total)
            if monotonic() - shown > wait:
                begun = thread_time()
                self._publish(collector.look_anew())
                shown, wait = monotonic(), max(PARTIAL_SECONDS, SHARE * (thread_time() - begun))

    def _follow(self, collector: Collector) -> None:
        looked = saved = monotonic()
        wait = CHECK_SECONDS
        while not self._stop.wait(wait):
            now, begun = monotonic(), thread_time()
            if now - looked >= LOOK_SECONDS:
                looked = now
                self._publish(collector.look())
            else:
                self._publish(collector.look_at_changed())
            if now - saved >= SAVE_SECONDS:
                saved = now
                collector.save()
            wait = max(CHECK_SECONDS, SHARE * (thread_time() - begun))

    def _publish(self, records: AdapterRecords) -> None:
        if records is not self._last and not self._stop.is_set():
            self._last = records
            self._take(records)
