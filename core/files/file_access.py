"""Access to project files: read-only and private folders, drafts, `flock` locks.

Every write under `.aiwg` opens its file or takes its lock with this module, so that nothing is written in a read-only
folder, and nothing in a private one can be read by others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from core.base.errors import BadInput, Conflict, ReadOnly, Unwritable
from core.base.regexes import lazy_regex
from core.base.text import visible_line

_protected: set[Path] = set()

WAIT_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.002
# Does not block on a FIFO or follow a link: the folders are shared with untrusted programs.
_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def open_regular(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a regular file, return its descriptor; `mode`: of a new non-private file.

    A file in a private folder (`PRIVATE_FOLDERS`) that is opened for writing becomes readable by the user
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


@contextmanager
def as_unwritable(path: Path) -> Iterator[None]:
    """Raise Unwritable if disk, permissions or an outside link block writing `path`."""
    try:
        yield
    except BadInput as error:
        raise Unwritable(str(error)) from None
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}") from None


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if they are missing.

    A private folder (`PRIVATE_FOLDERS`) is readable by the user alone, and ignored by Git. Raises OSError
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


# Private folders

PRIVATE_FOLDERS: Final = {
    "sessions": "*",
    "tasks": "*",
    "index": "*",
    "debug-memory": "*\n!/patterns/\n!/patterns/**",
}
"""Lines of the `.gitignore` by name of a folder; lessons in `debug-memory/patterns` are shared like other patterns."""
_ROOT: Final = lazy_regex(rf"(?:.*/)?\.aiwg/ralph/(?P<name>{'|'.join(PRIVATE_FOLDERS)})(?=/|$)", re.DOTALL)
_NOTE: Final = """\
# Written once by ralphdeck: these files are private to this machine. Edit the lines below to share some of them in Git.
{}
"""
_IGNORE_FILE: Final = ".gitignore"
_OTHERS: Final = 0o077  # permissions of the group and of others


def private_root(path: Path) -> Path | None:
    """Return the private folder that contains or is a path; None outside of all."""
    found = _ROOT.match(os.fspath(path))
    return Path(found[0]) if found is not None else None


def private_mode(path: Path, mode: int) -> int:
    """Return a file's or folder's `mode`, without others' bits in a private folder."""
    return mode if private_root(path) is None else mode & ~_OTHERS


def secure_folders(folder: Path) -> None:
    """Make folders from the private one to `folder` user-only and ignored by Git.

    Does nothing outside of private folders. Raises OSError if the `.gitignore` cannot be written.
    """
    root = private_root(folder)
    if root is None:
        return
    for part in (folder, *folder.parents):
        if not part.is_symlink() and part.is_dir():
            _remove_permissions(part)
            if part == root and not is_ignored(root):
                write_new(root / _IGNORE_FILE, _NOTE.format(PRIVATE_FOLDERS[root.name]).encode())
        if part == root:
            break


def is_ignored(root: Path) -> bool:
    """Return whether a private folder has a `.gitignore`, even one the user changed."""
    return os.path.lexists(root / _IGNORE_FILE)


def secure_file(handle: int, path: Path) -> None:
    """Make an open file in a private folder readable by the user alone."""
    if private_root(path) is not None:
        _remove_permissions(handle)


def _remove_permissions(file: int | Path) -> None:
    """Take the permissions of others on an open file or a folder."""
    mode = stat.S_IMODE(os.stat(file).st_mode)  # noqa: PTH116
    if mode & _OTHERS:
        with suppress(PermissionError):  # it belongs to another user
            os.chmod(file, mode & ~_OTHERS)  # noqa: PTH101


def write_new(path: Path, data: bytes) -> None:
    """Create a user-only file with its content in one step, unless it exists.

    An empty `.gitignore` of a killed process would count as one that the user has emptied.
    """
    draft = make_draft_path(path)
    remove_drafts(path.parent, path.name)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, data)
        os.fsync(handle)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(handle)
        draft.unlink()


# Drafts

_DRAFT: Final = lazy_regex(r"\..+\.tmp-([0-9]{1,10})-[0-9a-f]{8}")  # names made by `make_draft_path`
_MIN_AGE: Final = 60.0  # seconds; a younger draft may be one of a container, whose processes have other IDs


def make_draft_path(path: Path) -> Path:
    """Return a new name beside `path` for its next version; readers ignore `*.tmp-*`."""
    return path.with_name(f".{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")


def remove_drafts(folder: Path, name: str = "") -> None:
    """Remove a folder's drafts over a minute old whose process no longer runs.

    With `name`, only those of the file with this name: in a folder of the user, others may be of another program.
    """
    beginning = f".{name}.tmp-" if name else "."
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            draft = _DRAFT.fullmatch(entry.name)
            if draft is not None and entry.name.startswith(beginning) and not is_alive(int(draft[1])):
                with suppress(OSError):  # a remaining draft does no harm
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _MIN_AGE:
                        Path(entry.path).unlink()


def is_alive(pid: int) -> bool:
    """Return whether a process with this ID runs on this machine."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
