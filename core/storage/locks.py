"""File locks and read-only folders.

Locks are `flock` for the program's own files, and lease files that other programs can read. Every write under `.aiwg`
opens its file or takes its lock with this module, so that nothing is written in a read-only folder.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from core.base.errors import Conflict, ReadOnly, Unwritable
from core.base.text import visible_line
from core.storage.drafts import is_alive, make_draft_path, remove_drafts
from core.storage.private_folders import private_mode, secure_file, secure_folders

_protected: set[Path] = set()

WAIT_SECONDS: Final = 10.0
LEASE_SECONDS: Final = 30.0  # validity of a lease, as for the lock files of other programs in `.aiwg`
_POLL_SECONDS: Final = 0.002
# Does not block on a FIFO or follow a link: the folders are shared with untrusted programs.
_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def open_regular(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a regular file; returns its descriptor. `mode` is that of a new file outside of private folders.

    A file in a private folder (`core.storage.private_folders`) that is opened for writing becomes readable by the user
    alone, and so do its folders. Raises OSError if it cannot be opened, or is a link, a pipe or a device; ReadOnly if
    it is opened for writing in a read-only folder.
    """
    if flags & _WRITING:
        check_writable(path)
        secure_folders(path.parent)
        mode = private_mode(path, mode)
    handle = os.open(path, flags | _SAFE, mode)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if flags & _WRITING:
        secure_file(handle, path)
    return handle


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if they are missing.

    A private folder (`core.storage.private_folders`) is readable by the user alone, and ignored by Git. Raises OSError
    if that fails, and ReadOnly in a read-only folder.
    """
    check_writable(folder)
    try:
        folder.mkdir(private_mode(folder, 0o777), exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(private_mode(folder, 0o777), exist_ok=True)
    secure_folders(folder)


@contextmanager
def file_lock(path: Path, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Lock `path` against other processes and threads.

    The system releases the lock when a process dies. Raises Unwritable if the lock was not available for `seconds`, or
    cannot be created.
    """
    handle = _locked(path, seconds)
    if handle is None:
        raise Unwritable(f"another process has kept {path} locked for {seconds:g} s")
    try:
        yield
    finally:
        os.close(handle)


def _locked(path: Path, seconds: float) -> int | None:
    """Lock the file; the lock ends when the descriptor is closed. None at a timeout."""
    check_writable(path)
    try:
        make_folder(path.parent)
        handle = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise Unwritable(f"cannot lock {path}: {error.strerror}") from None
    deadline = time.monotonic() + seconds
    try:
        while not _try_lock(handle, path):
            if time.monotonic() > deadline:
                os.close(handle)
                return None
            time.sleep(_POLL_SECONDS)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _try_lock(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EINTR):
            return False
        raise Unwritable(f"cannot lock {path}: {error.strerror}") from None
    return True


@contextmanager
def lease(
    path: Path, guard: Path, *, seconds: float = WAIT_SECONDS, clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """Hold the lease file `path`: JSON with `pid`, `timestamp` and `leaseExpiry`.

    The file appears complete, by link(); its times are epoch milliseconds. A lease is taken over if it expired, was
    written more than `LEASE_SECONDS` ago, or its process ended. It is not renewed. Programs that use `guard` exclude
    each other by a lock on that file alone, however long the holder takes; the system releases it when a process dies.
    `clock` returns epoch seconds.

    Raises Conflict if another program held it too long, Unwritable if it cannot be created.
    """
    deadline = time.monotonic() + seconds
    handle = _locked(guard, seconds)
    try:
        held = None
        while handle is not None and (held := _take_lease(path, clock())) is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if held is None:
            raise Conflict(f"another program has held {path} for {seconds:g} s; try again later")
        try:
            yield
        finally:
            _drop_lease(path, held)
    finally:
        if handle is not None:
            os.close(handle)


def _take_lease(path: Path, now: float) -> int | None:
    """Return a descriptor of the new lease file; None while another lease is valid."""
    content = {"pid": os.getpid(), "timestamp": int(now * 1000), "leaseExpiry": int((now + LEASE_SECONDS) * 1000)}
    draft = make_draft_path(path)
    try:
        make_folder(path.parent)
        remove_drafts(path.parent)
        if _is_dead(path, now):
            path.unlink(missing_ok=True)
        handle = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        linked = False
        try:
            os.write(handle, json.dumps(content).encode())
            os.utime(handle, (now, now))  # so that its age is measured by the same clock
            with suppress(FileExistsError):
                os.link(draft, path)
                linked = True
        finally:
            if not linked:
                os.close(handle)
            draft.unlink()
    except OSError as error:
        raise Unwritable(f"cannot lock {path}: {error.strerror}") from None
    return handle if linked else None


def _drop_lease(path: Path, held: int) -> None:
    """Remove a lease file unless it was replaced; `held` keeps its inode from reuse."""
    try:
        if os.path.samestat(path.lstat(), os.fstat(held)):
            path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unwritable(f"cannot unlock {path}: {error.strerror}") from None
    finally:
        os.close(held)


def _is_dead(path: Path, now: float) -> bool:
    """Return whether a lease exists whose holder cannot be running."""
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            made = os.fstat(file.fileno()).st_mtime
            text = file.read(4096)
    except FileNotFoundError:
        return False
    # A time far in the future was set by hand; such a file would never expire.
    if not now - LEASE_SECONDS <= made <= now + LEASE_SECONDS:
        return True
    try:
        content = json.loads(text)
        expiry, pid = float(content["leaseExpiry"]), int(content["pid"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # Another program's format, perhaps still being written: valid as long as an own lease.
        return False
    return expiry < now * 1000 or not is_alive(pid)


def protect(folder: Path) -> None:
    """Make `folder` read-only for this process until `release`."""
    _protected.update((folder.absolute(), folder.resolve()))


def release(folder: Path) -> None:
    """Allow writing in `folder` again."""
    _protected.difference_update((folder.absolute(), folder.resolve()))


def check_writable(path: Path) -> None:
    """Raise ReadOnly if `path` is in a read-only folder."""
    if not _protected:
        return
    absolute = path.absolute()
    for candidate in (absolute, absolute.resolve()):
        for folder in _protected.intersection((candidate, *candidate.parents)):
            raise ReadOnly(
                f"read-only: nothing is written in {visible_line(str(folder), 300)}; start without --readonly "
                "(and without RALPHDECK_READONLY) to decide"
            )
