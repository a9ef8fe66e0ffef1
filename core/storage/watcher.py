"""Noticing that files of a project changed: events are hints, a sweep is the truth."""

from __future__ import annotations

import errno
import heapq
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from core.config.paths import ProjectPaths
from core.config.settings import WatchSettings

if TYPE_CHECKING:
    from core.storage.inotify import FolderEvents

_LOG: Final = logging.getLogger(__name__)
_TOGETHER_SECONDS: Final = 0.01
"""So long after a file was closed what belongs to it is waited for."""
_SUPERVISE_SECONDS: Final = 1.0
"""How often it is checked that the watched folders are still the ones that the paths name."""
_TRY_EVENTS_AGAIN_SECONDS: Final = 300.0
"""How long to poll before events are asked for again; each try takes all watches that are left."""
_MOST_PATHS: Final = 10_000
"""A batch of more paths becomes a sweep, which costs less and bounds the memory."""
_NEVER: Final = float("inf")

_Identity = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What may have changed.

    Attributes:
        paths: Files and folders, absolute; any of them may be gone by now. A folder means all below it.
        sweep: Anything may have changed: look at every file.
    """

    paths: frozenset[Path]
    sweep: bool


class WatchMode(StrEnum):
    """How changes are noticed now."""

    EVENTS = "events"
    POLLING = "polling"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class WatchState:
    """For the screen.

    Attributes:
        mode: `events` = the system tells; `polling` = it refuses, files are swept every few seconds;
            `waiting` = neither folder exists yet.
        reason: Why not `events`, one line; empty otherwise.
        watches: Watches held, 0 unless `events`.
        last_event_at: Newest event, UTC.
    """

    mode: WatchMode
    reason: str
    watches: int
    last_event_at: datetime | None


class Watcher:
    """Tells `on_change` what may have changed under `.aiwg/ralph` and `.aiwg/ralph-external`, until stopped.

    `on_change` is called from one thread, never twice at once, and may take its time: what happens meanwhile
    is told with the next call. There is at most one batch in `settings.batch_seconds`. It is called with `sweep` at the
    start, when events were lost, when a folder appeared, vanished or was replaced, and at regular intervals.
    Nothing is read here but names: whether and how a file changed is for the callee to find out.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        settings: WatchSettings,
        on_change: Callable[[Changes], None],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folders = (paths.ralph, paths.external)
        self._settings = settings
        self._on_change = on_change
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._events: FolderEvents | None = None
        self._watched: tuple[_Identity, ...] = ()
        self._polling_until = 0.0
        self._standing = (WatchMode.WAITING, "not started")
        # All below is shared with watchdog's threads and guarded by the condition.
        self._wake = threading.Condition()
        self._stopping = False
        self._dirty: set[Path] = set()
        self._sweep = False
        self._due = _NEVER
        self._told_at = -_NEVER
        self._check = True
        self._refusal: OSError | None = None
        self._retries: list[tuple[float, Path]] = []
        self._attempts: dict[Path, int] = {}
        self._last_event_at: datetime | None = None

    @property
    def state(self) -> WatchState:
        """How changes are noticed now."""
        events = self._events
        return WatchState(*self._standing, 0 if events is None else events.watches, self._last_event_at)

    def start(self) -> None:
        """Begin; returns at once. A watcher starts only once."""
        if self._thread is not None:
            raise RuntimeError("a Watcher starts only once")
        self._thread = threading.Thread(target=self._run, name="ralphdeck-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End and wait for the threads. After it returned, `on_change` is not called any more.

        Called from `on_change` itself it does not wait.
        """
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def retry(self, torn: Iterable[Path]) -> None:
        """Report the files `torn`, all that are half written as far as the caller knows, again soon.

        A file that stays torn from call to call is reported at `settings.retry_seconds`, then only when an
        event or a sweep tells of it.
        """
        delays = self._settings.retry_seconds
        with self._wake:
            attempts = {path: self._attempts.get(path, 0) for path in torn}
            waiting = {path for _, path in self._retries}
            for path, attempt in attempts.items():
                if path not in waiting and attempt < len(delays):
                    heapq.heappush(self._retries, (time.monotonic() + delays[attempt], path))
                    attempts[path] = attempt + 1
            self._attempts = attempts
            self._wake.notify()

    # What watchdog's threads tell.

    def changed(self, path: Path, *, whole: bool = False) -> None:
        """An event came for `path`; `whole` if whoever wrote it is done.

        Then nothing is waited for but what comes with it, such as the renaming of what was closed. In a stream of
        events there is one batch each `batch_seconds` all the same.
        """
        with self._wake:
            now, batch = time.monotonic(), self._settings.batch_seconds
            self._last_event_at = self._clock()
            self._attempts.pop(path, None)
            self._dirty.add(path)
            if len(self._dirty) > _MOST_PATHS:
                self._dirty.clear()
                self._sweep = True
            if path in self._folders:
                self._check = True
            self._plan(max(now + min(_TOGETHER_SECONDS, batch), self._told_at + batch) if whole else now + batch)

    def lost(self) -> None:
        """Events were dropped."""
        with self._wake:
            self._sweep = True
            self._plan(time.monotonic())

    def refused(self, error: OSError) -> None:
        """Some folder is not watched."""
        with self._wake:
            self._refusal = error
            self._check = True
            self._plan(time.monotonic())

    def _plan(self, when: float) -> None:
        if when < self._due:
            self._due = when
            self._wake.notify()

    # The thread.

    def _run(self) -> None:
        next_sweep = _NEVER
        next_check = time.monotonic()
        while True:
            now = time.monotonic()
            with self._wake:
                check, self._check = self._check or now >= next_check, False
            if check:
                next_check = now + _SUPERVISE_SECONDS
                self._supervise(now)
            changes = self._take(now, sweep=now >= next_sweep)
            if changes is not None:
                self._tell(changes)
                if changes.sweep:
                    next_sweep = time.monotonic() + self._sweep_interval
            with self._wake:
                while not (self._stopping or self._check):
                    remaining = self._next_due(next_check, next_sweep) - time.monotonic()
                    if remaining <= 0:
                        break
                    self._wake.wait(remaining)
                if self._stopping:
                    break
        self._disarm()
        self._standing = (WatchMode.WAITING, "stopped")

    @property
    def _sweep_interval(self) -> float:
        return self._settings.poll_seconds if self._polling else self._settings.sweep_seconds

    @property
    def _polling(self) -> bool:
        return self._standing[0] is WatchMode.POLLING

    def _next_due(self, *others: float) -> float:
        retry = self._retries[0][0] if self._retries else _NEVER
        return min(self._due, retry, *others)

    def _take(self, now: float, *, sweep: bool) -> Changes | None:
        """The batch that is due, if one is."""
        with self._wake:
            while self._retries and self._retries[0][0] <= now:
                self._dirty.add(heapq.heappop(self._retries)[1])
                self._due = now
            if not sweep and now < self._due:
                return None
            sweep = sweep or self._sweep
            if not sweep and not self._dirty:
                self._due = _NEVER
                return None
            changes = Changes(frozenset(self._dirty), sweep)
            self._dirty, self._sweep, self._due = set(), False, _NEVER
            if changes.paths:
                self._told_at = now
            return changes

    def _tell(self, changes: Changes) -> None:
        try:
            self._on_change(changes)
        except Exception:
            # The next change must still be told; a dead watch would look like a quiet project.
            _LOG.exception("a change could not be taken in")

    def _supervise(self, now: float) -> None:
        """Watch what is there now, if it is not what is watched; sweep after every such change."""
        if self._refusal is None:
            identities = tuple(_identity(folder) for folder in self._folders)
            if self._events is not None:
                settled = self._events.alive
            else:
                settled = not any(identities) or (self._polling and now < self._polling_until)
            if settled and identities == self._watched:
                return
            self._disarm()
            self._watched = identities
            self._arm(now)
        if self._refusal is not None:
            self._poll(self._refusal, now)
        with self._wake:
            self._sweep, self._due, self._refusal = True, now, None

    def _arm(self, now: float) -> None:
        # watchdog is imported in this thread: the first frame does not wait for it.
        from core.storage.inotify import FolderEvents

        folders = [folder for folder, seen in zip(self._folders, self._watched, strict=True) if seen]
        if not folders:
            names = " nor ".join(str(folder) for folder in self._folders)
            self._standing = (WatchMode.WAITING, f"there is neither {names} yet")
            return
        try:
            self._events = FolderEvents(folders, self)
            self._standing = (WatchMode.EVENTS, "")
        except OSError as error:
            if error.errno == errno.ENOENT:  # gone since it was looked at; the next look will tell
                self._watched = ()
                self._standing = (WatchMode.WAITING, "a watched folder vanished")
            else:
                self._refusal = error

    def _poll(self, error: OSError, now: float) -> None:
        """Go on without events. All watches are given back: other programs need them too."""
        self._disarm()
        self._polling_until = now + _TRY_EVENTS_AGAIN_SECONDS
        reason = f"{error.strerror or error}; looking every {self._settings.poll_seconds:g} s instead"
        self._standing = (WatchMode.POLLING, reason)

    def _disarm(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None


def _identity(folder: Path) -> _Identity:
    """Device and inode of a folder; None if it is none (a symbolic link is not followed)."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
