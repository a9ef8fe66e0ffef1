"""File events of folders from the operating system, through watchdog.

On Linux, watchdog 7.1 only logs an overflow of the kernel's queue, and ignores that a watch was refused (limit reached)
for any folder but the first. `_Inotify` reports both.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

# Unfiltered, watchdog lost half of 50,000 new files; "closed" alone misses JSONL that is kept open and files
# in new folders.
_FILTER: Final[list[type[events.FileSystemEvent]]] = [
    events.FileCreatedEvent,
    events.FileModifiedEvent,
    events.FileClosedEvent,
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
]
_WHOLE: Final = (events.FileClosedEvent, events.FileMovedEvent)


class FolderEvents(events.FileSystemEventHandler):
    """Watches folders recursively, not links; raises OSError if the system refuses.

    `changed` is called with a path and whether its writer has finished, `refused` with the error of a watch that the
    system refuses, `lost` if the system has dropped events; each in a thread of its own.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        changed: Callable[[Path, bool], None],
        refused: Callable[[OSError], None],
        lost: Callable[[], None],
    ) -> None:
        _silence_watchdog()
        self._changed = changed
        self._inotify: _Inotify | None = None
        self._observer: BaseObserver
        if sys.platform == "linux":
            self._inotify = _Inotify(refused, lost)
            self._inotify.start()
            self._observer = BaseObserver(InotifyEmitter, inotify_fd=self._inotify)
        else:
            self._observer = Observer()
        self._count = len(folders)
        try:
            for folder in folders:
                self._observer.schedule(self, str(folder), recursive=True, event_filter=_FILTER)
            self._observer.start()
        except BaseException:
            self.close()
            raise

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            if path:
                self._changed(Path(os.fsdecode(path)), isinstance(event, _WHOLE))

    @property
    def watches(self) -> int:
        return self._count if self._inotify is None else self._inotify.watches

    @property
    def alive(self) -> bool:
        """Whether events can arrive; False if a watched folder was deleted."""
        threads = [self._observer, *self._observer.emitters]
        if self._inotify is not None:
            threads.append(self._inotify)
        return all(thread.is_alive() for thread in threads)

    def close(self) -> None:
        """Stop watching and end all threads."""
        self._observer.stop()
        if self._observer.ident is not None:
            self._observer.join()
        if self._inotify is not None:
            self._inotify.stop()
            self._inotify.join()


def _silence_watchdog() -> None:
    """Hide watchdog's warnings about races, which a sweep repairs."""
    logger = logging.getLogger("watchdog")
    logger.setLevel(logging.ERROR)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")


if sys.platform == "linux":
    from watchdog.observers.inotify import InotifyEmitter
    from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchCallback, WatchDescriptor
    from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

    # A file moved out of the tree delays all later events by this time (half a second by default).
    InotifyMoveEventGrouper.delay = 0.02

    _LIMITS: Final = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENOMEM})

    class _Inotify(InotifyFD):
        def __init__(self, refused: Callable[[OSError], None], lost: Callable[[], None]) -> None:
            super().__init__()
            self._refused = refused
            self._lost = lost
            self._callbacks: dict[CallbackId, WatchCallback] = {}

        @property
        def watches(self) -> int:
            return len(self._watch_for_wd)

        def _add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
            # As inherited, without a warning about folders that are added twice, which is normal while they are created
            # and moved: its text lists every watch, megabytes in a big tree.
            try:
                watch = self._get_or_create_watch(path, mask)
            except OSError as error:
                if error.errno in _LIMITS:
                    self._refused(error)
                raise
            wanted = {**watch.callbacks, id_: callback}
            if wanted != self._callbacks:
                self._callbacks = wanted
            watch.callbacks = self._callbacks  # one dictionary for all folders: 40,000 of them would have 9 MB
            return watch.wd

        def _remove_callback(self, wd: WatchDescriptor, id_: CallbackId) -> None:
            if (watch := self._watch_for_wd.get(wd)) is not None:
                watch.callbacks = dict(watch.callbacks)
            super()._remove_callback(wd, id_)

        def handle_event(self, event: InotifyEvent) -> None:
            super().handle_event(event)  # after an overflow it looks for new folders to watch
            if event.is_queue_overflow:
                self._lost()
