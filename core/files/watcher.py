"""Watch the files of a project for changes (docs/reliability.md#watching)."""

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
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import WatchSettings
    from core.files.inotify import FolderEvents

_LOG: Final = logging.getLogger(__name__)
_SWEEP_SHARE: Final = 200  # events arriving, at most one in this number of parts of the time goes into sweeps
_SUPERVISE_SECONDS: Final = 1.0  # interval of checks that the watched folders are still those at their paths
_RETRY_EVENTS_SECONDS: Final = 300.0  # time of polling until events are tried again
_MAX_PATHS: Final = 10_000  # a batch of more paths becomes a sweep, which is cheaper and limits memory
_NEVER: Final = float("inf")

_Identity = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Batch of possible changes."""

    paths: frozenset[Path]  # absolute files, and folders with everything below; may no longer exist
    sweep: bool  # whether anything may have changed, so that every file must be checked


class WatchMode(StrEnum):
    """How changes are detected."""

    EVENTS = "events"
    POLLING = "polling"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class WatchState:
    mode: WatchMode  # polling if the system refuses events, waiting if no folder exists yet
    reason: str  # why the mode is not `events`, one line; else ""
    watches: int  # number of watches in use, 0 unless `events`


class Watcher:
    """Calls `on_change` for possible changes of the project's files until stopped.

    One thread calls `on_change`, which may take its time: later changes go into the next batch. A complete file for
    which `is_record` is true is reported at once after a quiet time; other changes, and those that follow within
    `settings.batch_seconds`, are collected. `sweep` is set at the start, when events were lost, when a folder appeared,
    vanished or was replaced, and at regular intervals. The watcher reads no files: the callee finds out whether and how
    a file changed.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        settings: WatchSettings,
        on_change: Callable[[FileChanges], None],
        *,
        is_record: Callable[[Path], bool] = lambda path: True,
    ) -> None:
        self._folders = (paths.ralph, paths.external)
        self._settings = settings
        self._on_change = on_change
        self._is_record = is_record
        self._thread: threading.Thread | None = None
        self._events: FolderEvents | None = None
        self._watched: list[_Identity] = []
        self._polling_until = 0.0
        self._mode = (WatchMode.EVENTS, "")  # expected; a sweep finds what changes until the folders are watched
        # The following is shared with watchdog's threads and guarded by the condition.
        self._wake = threading.Condition()
        self._stopping = False
        self._dirty: set[Path] = set()
        self._sweep = False
        self._due = _NEVER
        self._has_record = False
        self._sent_at = -_NEVER
        self._sweep_cost = 0.0
        self._check = True
        self._refusal: OSError | None = None
        self._retries: list[tuple[float, Path]] = []
        self._attempts: dict[Path, int] = {}

    @property
    def state(self) -> WatchState:
        events = self._events
        return WatchState(*self._mode, 0 if events is None else events.watches)

    def start(self) -> None:
        """Start watching in a thread; a watcher starts only once."""
        if self._thread is not None:
            raise RuntimeError("a Watcher starts only once")
        self._thread = threading.Thread(target=self._run, name="ralphdeck-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; waits for the threads, unless called from `on_change`."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def retry(self, torn: Iterable[Path]) -> None:
        """Report torn files again soon.

        `torn` are all files that the caller knows to be torn. A file that stays torn is reported after each of
        `settings.retry_seconds`, and later only with an event or a sweep.
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

    def swept(self, seconds: float) -> None:
        """Note a sweep's processor time; costly sweeps run less often beside events."""
        self._sweep_cost = seconds

    # Called by watchdog's threads, so these methods return at once.

    def changed(self, path: Path, whole: bool = False) -> None:
        """Handle an event for `path`; `whole` if its writer has finished."""
        is_ready = whole and self._is_record(path)
        with self._wake:
            now, batch = time.monotonic(), self._settings.batch_seconds
            self._attempts.pop(path, None)
            self._dirty.add(path)
            if len(self._dirty) > _MAX_PATHS:
                self._dirty.clear()
                self._sweep = True
            if path in self._folders:
                self._check = True
            self._has_record |= is_ready
            self._plan(max(now, self._sent_at + batch) if is_ready else now + batch)

    def lost(self) -> None:
        """Handle lost events: the system dropped some, so anything may have changed."""
        with self._wake:
            self._sweep = True
            self._plan(time.monotonic())

    def refused(self, error: OSError) -> None:
        """Handle a refused watch: changes in some folders will be missed."""
        with self._wake:
            self._refusal = error
            self._check = True
            self._plan(time.monotonic())

    def _plan(self, when: float) -> None:
        if when < self._due:
            self._due = when
            self._wake.notify()

    def _run(self) -> None:
        swept_at = _NEVER
        next_check = time.monotonic()
        while True:
            now = time.monotonic()
            with self._wake:
                check, self._check = self._check or now >= next_check, False
            if check:
                next_check = now + _SUPERVISE_SECONDS
                self._supervise(now)
            changes = self._take(now, sweep=now >= swept_at + self._sweep_interval)
            if changes is not None:
                try:
                    self._on_change(changes)
                except Exception:
                    # Later changes must still be reported; a dead watcher would look like a quiet project.
                    _LOG.exception("a change could not be applied")
                if changes.sweep:
                    swept_at = time.monotonic()
            with self._wake:
                while not (self._stopping or self._check):
                    retry = self._retries[0][0] if self._retries else _NEVER
                    next_sweep = swept_at + self._sweep_interval
                    remaining = min(self._due, retry, next_check, next_sweep) - time.monotonic()
                    if remaining <= 0:
                        break
                    self._wake.wait(remaining)
                if self._stopping:
                    break
        self._disarm()
        self._mode = (WatchMode.WAITING, "stopped")

    @property
    def _sweep_interval(self) -> float:
        if self._polling:
            return self._settings.poll_seconds
        return max(self._settings.sweep_seconds, _SWEEP_SHARE * self._sweep_cost)

    @property
    def _polling(self) -> bool:
        return self._mode[0] is WatchMode.POLLING

    def _take(self, now: float, *, sweep: bool) -> FileChanges | None:
        """Return the batch that is due; None if none is."""
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
            changes = FileChanges(frozenset(self._dirty), sweep)
            if self._has_record:  # what is not shown does not delay what is
                self._sent_at = now
            self._dirty, self._sweep, self._has_record, self._due = set(), False, False, _NEVER
            return changes

    def _supervise(self, now: float) -> None:
        """Watch the present folders again if they changed; sweep after each such change."""
        if self._refusal is None:
            identities = [_identity(folder) for folder in self._folders]
            if self._events is not None:
                is_settled = self._events.alive
            else:
                is_settled = not any(identities) or (self._polling and now < self._polling_until)
            if is_settled and identities == self._watched:
                return
            self._disarm()
            self._watched = identities
            self._arm(now)
        if self._refusal is not None:
            self._poll(self._refusal, now)
        with self._wake:
            self._sweep, self._due, self._refusal = True, now, None

    def _arm(self, now: float) -> None:
        # Imported in this thread for speed: the first frame does not wait for watchdog.
        from core.files.inotify import FolderEvents

        folders = [folder for folder, identity in zip(self._folders, self._watched, strict=True) if identity]
        if not folders:
            names = " nor ".join(str(folder) for folder in self._folders)
            self._mode = (WatchMode.WAITING, f"neither {names} exists yet")
            return
        try:
            self._events = FolderEvents(folders, changed=self.changed, refused=self.refused, lost=self.lost)
            self._mode = (WatchMode.EVENTS, "")
        except OSError as error:
            if error.errno == errno.ENOENT:  # removed meanwhile; the next check finds out
                self._watched = []
                self._mode = (WatchMode.WAITING, "a watched folder vanished")
            else:
                self._refusal = error

    def _poll(self, error: OSError, now: float) -> None:
        """Poll instead of using events; releases all watches, which other programs need."""
        self._disarm()
        self._polling_until = now + _RETRY_EVENTS_SECONDS
        reason = f"{error.strerror or error}; checking every {self._settings.poll_seconds:g} s instead"
        self._mode = (WatchMode.POLLING, reason)

    def _disarm(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None


def _identity(folder: Path) -> _Identity:
    """Return device and inode of a folder; None for anything else, such as a link."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
