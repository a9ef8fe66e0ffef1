"""File locks (`flock`) and read-only folders.

Every write under `.aiwg` opens its file or takes its lock with this module, so that nothing is written in a read-only
folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from core.base.errors import Conflict, ReadOnly, Unwritable
from core.base.text import visible_line
from core.storage.private_folders import private_mode, secure_file, secure_folders

_protected: set[Path] = set()

WAIT_SECONDS: Final = 10.0
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
def file_lock(
    path: Path, seconds: float = WAIT_SECONDS, *, timeout: type[Unwritable | Conflict] = Unwritable
) -> Iterator[None]:
    """Lock `path` against other processes and threads.

    The system releases the lock when a process dies. Raises `timeout` if the lock was not available for `seconds`, and
    Unwritable if it cannot be created.
    """
    try:
        make_folder(path.parent)
        handle = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise Unwritable(f"cannot lock {path}: {error.strerror}") from None
    try:
        deadline = time.monotonic() + seconds
        while not _try_lock(handle, path):
            if time.monotonic() > deadline:
                raise timeout(f"another process has kept {path} locked for {seconds:g} s; try again later")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EINTR):
            return False
        raise Unwritable(f"cannot lock {path}: {error.strerror}") from None
    return True


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
