"""One file replaced by its next version while other programs write it too, without losing anybody's work."""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from core.base.errors import BadInput, Conflict, Unwritable
from core.config.paths import ProjectPaths
from core.storage.append_log import sync_folder
from core.storage.json_editor import BadJson
from core.storage.locks import draft_of, lease, open_regular

Change = Callable[[bytes | None], bytes | None]
"""The next version of a file from the present one (None: there is no file, or there shall be none).

Called again whenever somebody else was faster, so it must come out the same when applied to its own result.
Raises `BadJson` where the present version cannot be understood.
"""
Merge = Callable[[bytes | None, bytes, bytes | None], bytes]
"""(base, theirs, present) -> present with what `theirs` changed since `base`."""

_PATIENCE_SECONDS: Final = 5.0
_ATTEMPTS: Final = 10
"""How long, and how often at least, to try against writers that never rest."""
_LOOK_AGAIN_SECONDS: Final = (0.01,)
"""Pauses after a replacement to see whether a slower writer, who had read the old version, undid it."""
_LOOK_LONGER_SECONDS: Final = (0.01, 0.05, 0.1, 0.2, 0.4)
"""The same after a collision: a writer may have read the version that lacked somebody's work."""
_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
# Looked up beforehand: whatever is done between comparing and swapping gives others time to get in between.
_renameat2: Final = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})


@contextmanager
def curation_lock(paths: ProjectPaths) -> Iterator[None]:
    """Exclude other curators from the pattern files; the loops that write them know nothing of it.

    Raises:
        Conflict: Another curator holds it too long.
        Unwritable: It cannot be made, or a folder leads out of the project; then nothing is touched there.
    """
    try:
        for folder in (paths.patterns, paths.curation):
            paths.inside(paths.relative(folder))
    except BadInput as error:
        raise Unwritable(str(error)) from None
    with lease(paths.patterns / ".curation.lock", paths.curation / "lease.lock"):
        yield


class _Displaced(NamedTuple):
    """Somebody else's version that a swap took out for a moment, while others may have read ours.

    Attributes:
        base: The version that both they and we started from.
        handle: A descriptor of theirs; its writer may still be busy with it.
    """

    base: bytes
    handle: int


def rewrite(path: Path, change: Change, *, merge: Merge, retry_seconds: Sequence[float]) -> None:
    """Bring `path` to the state that `change` leaves alone, durably.

    The new version is written beside the file, synced and swapped in. If somebody replaced the file in the
    last instant, the swap takes out their version, and it is merged in. Afterwards the file is read again: a
    slower writer, who had read the old version, may have put it back; then the change is made once more.

    Args:
        path: A regular file, or a name that is still free, in a folder that exists.
        change: See `Change`.
        merge: See `Merge`.
        retry_seconds: Pauses before reading again what could not be understood, most likely half written.

    Raises:
        Conflict: It could not be understood for all of `retry_seconds`, or others kept changing it.
        Unwritable: The disk or a permission forbids it; the file is as it was.
    """
    displaced: list[_Displaced] = []
    try:
        _rewrite(path, change, merge, retry_seconds, displaced)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}") from None
    except BadJson as error:
        raise Conflict(f"{path} cannot be understood ({error}); it was left as it is") from None
    finally:
        for item in displaced:
            os.close(item.handle)


def _rewrite(
    path: Path,
    change: Change,
    merge: Merge,
    retry_seconds: Sequence[float],
    displaced: list[_Displaced],
) -> None:
    pauses = iter(retry_seconds)
    looks: Iterator[float] = iter(())
    deadline = time.monotonic() + _PATIENCE_SECONDS
    written: bytes | None = None
    for attempt in itertools.count():
        if attempt >= _ATTEMPTS and time.monotonic() > deadline:
            break
        present = _read(path)
        try:
            whole = present
            for item in displaced:
                whole = merge(item.base, _content(item.handle), whole)
            # What was written a moment ago needs no second look into a big file.
            wanted = whole if whole is not None and whole == written else change(whole)
        except BadJson:
            pause = next(pauses, None)
            if pause is None:
                raise
            time.sleep(pause)
            continue
        pauses = iter(retry_seconds)
        if wanted is None or wanted == present:
            look = next(looks, None)
            if look is None:
                return
            time.sleep(look)
            continue
        if present is None:
            _create(path, wanted)
        else:
            handle = _swap(path, present, wanted)
            if handle is not None:
                displaced.append(_Displaced(present, handle))
        written = wanted
        looks = iter(_LOOK_LONGER_SECONDS if displaced else _LOOK_AGAIN_SECONDS)
    for item in displaced:
        # It could not be merged in, so it is kept beside the file.
        draft = _write_draft(path, _content(item.handle), None)
        draft.rename(path.with_name(f"{path.name}.displaced-{os.urandom(4).hex()}"))
    raise Conflict(f"{path} changes faster than it can be written; try again")


def take_theirs(_base: bytes | None, theirs: bytes, _present: bytes | None) -> bytes:
    """A `Merge` for changes that are simply made once more, to what somebody else wrote."""
    return theirs


def put(path: Path, data: bytes) -> None:
    """Make `data` the content of a file that only the caller writes, in one step.

    Raises:
        OSError: The disk or a permission forbids it; the file is as it was.
    """
    draft = _write_draft(path, data, None)
    try:
        draft.replace(path)
    except OSError:
        draft.unlink()
        raise


def rename_to_free(folder: int, name: str, other: int, new_name: str) -> None:
    """Move a file into another folder in one step, over no other file.

    Args:
        folder, other: Descriptors of the folders.
        name, new_name: Of the file in each of them.

    Raises:
        FileExistsError: The new name is taken.
        OSError: The file is gone, or the disk or a permission forbids it.
    """
    if _renameat2 is not None:
        if _renameat2(folder, os.fsencode(name), other, os.fsencode(new_name), _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in _NO_EXCHANGE:
            raise OSError(code, os.strerror(code), new_name)
    # Only those who hold the same lock as the caller can get in between.
    if new_name in os.listdir(other):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
    os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=other)


def _create(path: Path, data: bytes) -> None:
    """Put `data` under a free name; if the name is taken by now, nothing happens."""
    draft = _write_draft(path, data, None)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
    sync_folder(path.parent)


def _swap(path: Path, present: bytes, wanted: bytes) -> int | None:
    """Replace `present` by `wanted`, or do nothing if the file is another one by now.

    Returns:
        Where somebody was faster by a hair: a descriptor of their version. It is in its place again, but for
        some microseconds ours was there to be read.
    """
    draft = _write_draft(path, wanted, path.stat())
    try:
        ours, expected = draft.stat().st_ino, _version(path)
        if _read(path) != present or _version(path) != expected:
            return None
        if not _exchange(draft, path):
            draft.replace(path)
            sync_folder(path.parent)
            return None
        if _version(draft) == expected:
            sync_folder(path.parent)
            return None
        theirs = open_regular(draft, os.O_RDONLY)
        _exchange(draft, path)
        if draft.stat().st_ino != ours:
            # Not ours came back out but a third version; theirs is remembered, so the third one goes in.
            _exchange(draft, path)
        return theirs
    finally:
        draft.unlink(missing_ok=True)


def _version(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _content(handle: int) -> bytes:
    return os.pread(handle, os.fstat(handle).st_size, 0)


def _write_draft(path: Path, data: bytes, like: os.stat_result | None) -> Path:
    draft = draft_of(path)
    handle = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        if like is not None:
            with suppress(PermissionError):
                os.fchown(handle, like.st_uid, like.st_gid)
            os.fchmod(handle, stat.S_IMODE(like.st_mode))
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        draft.unlink()
        raise
    finally:
        os.close(handle)
    return draft


def _read(path: Path) -> bytes | None:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _exchange(one: Path, other: Path) -> bool:
    """Swap two files in one step; False where the system or the file system cannot."""
    if _renameat2 is None:
        return False
    if _renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))
