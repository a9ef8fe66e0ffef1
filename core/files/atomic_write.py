"""Atomic replacement without lost changes (docs/reliability.md#replacing-files)."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.text import visible_line
from core.files.append_log import append_bytes, sync_folder
from core.files.file_access import (
    as_unwritable,
    file_lock,
    make_draft_path,
    make_folder,
    open_regular,
    private_mode,
    remove_drafts,
)
from core.files.json_editor import BadJson

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

Change = Callable[[bytes | None], bytes | None]
"""Makes the next version of a file from the present one; None means that no file exists.

Must be idempotent: it is called again on its own result, and whenever another program wrote in between. Raises
`BadJson` if the present version cannot be parsed.
"""
Merge = Callable[[bytes | None, bytes, bytes | None], bytes]  # (base, theirs, present) -> present with their changes

_TIMEOUT_SECONDS: Final = 5.0
_MIN_ATTEMPTS: Final = 10  # with the time, before giving up against busy writers
_CHECK_SECONDS: Final = (0.01,)  # pauses before checking whether a slower writer undid the replacement
_COLLISION_CHECK_SECONDS: Final = (0.01, 0.05, 0.1, 0.2, 0.4)
"""The same after a collision: a writer may have read the version that lacked another change."""
_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})


@contextmanager
def curation_lock(paths: ProjectPaths) -> Iterator[None]:
    """Lock out other curators (not loops) of the pattern files; Conflict, Unwritable."""
    with as_unwritable(paths.patterns):
        for folder in (paths.patterns, paths.curation):
            paths.inside(paths.relative(folder))
        make_folder(paths.patterns)
    with file_lock(paths.curation / "curation.lock", timeout=Conflict):
        yield


def rewrite(
    path: Path, change: Change, *, merge: Merge, retry_seconds: Sequence[float], is_checked: bool = True
) -> None:
    """Apply `change` to `path` durably, until it has no further effect.

    `path` is a regular file, or a free name in an existing folder. The new version is written beside the file, synced
    and swapped in. If another program replaced the file at the last moment, the swap returns its version, which is
    merged in. Then the file is read again: if a slower writer, who had read the old version, put it back, the change is
    applied again. A file that cannot be parsed is probably half written; it is read again after each of
    `retry_seconds`, unless it has been unchanged for longer than that: then it is damaged. Unless it `is_checked`, a
    slower writer may undo the change.

    Raises Conflict if the file could not be parsed or other programs kept changing it, Unwritable if disk or
    permissions prevent writing. The file is then unchanged.
    """
    displaced: list[tuple[bytes, int]] = []  # base of a version that a swap displaced, and its descriptor
    try:
        _rewrite(path, change, merge, retry_seconds, is_checked, displaced)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}") from None
    except BadJson as error:
        raise Conflict(f"{path} cannot be parsed ({error}); it was not changed") from None
    finally:
        for _, handle in displaced:
            os.close(handle)


def _rewrite(
    path: Path,
    change: Change,
    merge: Merge,
    retry_seconds: Sequence[float],
    is_checked: bool,
    displaced: list[tuple[bytes, int]],
) -> None:
    pauses = iter(retry_seconds)
    checks: Iterator[float] = iter(())
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    written: bytes | None = None
    for attempt in itertools.count():
        if attempt >= _MIN_ATTEMPTS and time.monotonic() > deadline:
            break
        present = _read(path)
        try:
            whole = present
            for base, theirs in displaced:
                whole = merge(base, _content(theirs), whole)  # its writer may still be writing
            # Skips parsing a big file that was written a moment ago.
            wanted = whole if whole is not None and whole == written else change(whole)
        except BadJson:
            pause = next(pauses, None)
            if pause is None or (present is not None and _age(path) > sum(retry_seconds)):
                raise
            time.sleep(pause)
            continue
        pauses = iter(retry_seconds)
        if wanted is None or wanted == present:
            pause = next(checks, None)
            if pause is None:
                return
            time.sleep(pause)
            continue
        if present is None:
            _create(path, wanted)
        else:
            handle = _swap(path, present, wanted)
            if handle is not None:
                displaced.append((present, handle))
        written = wanted
        checks = iter(_COLLISION_CHECK_SECONDS if displaced else _CHECK_SECONDS if is_checked else ())
    for _, theirs in displaced:
        # It could not be merged, so it is saved beside the file.
        draft = _write_draft(path, _content(theirs))
        draft.rename(path.with_name(f"{path.name}.displaced-{os.urandom(4).hex()}"))
    raise Conflict(f"{path} changes faster than it can be written; try again")


def _age(path: Path) -> float:
    """Return the seconds since a file changed; 0 if it was removed meanwhile."""
    try:
        return time.time() - path.stat().st_ctime
    except FileNotFoundError:
        return 0.0


def take_theirs(_base: bytes | None, theirs: bytes, _present: bytes | None) -> bytes:
    """`Merge` that keeps the other program's version; `rewrite` reapplies the change."""
    return theirs


def put(path: Path, data: bytes, *, like: os.stat_result | None = None, mode: int = 0o666) -> None:
    """Replace a file that only the caller writes; an OSError leaves it unchanged.

    It gets the owner and the permissions of `like`, else those of `mode`.
    """
    draft = _write_draft(path, data, like, mode)
    try:
        draft.replace(path)
    except OSError:
        draft.unlink()
        raise


@cache
def _renameat2() -> Callable[..., int] | None:
    """Return the system call, None if the system has none."""
    import ctypes  # takes 1 ms, which hooks that only add lines do not need

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _errno() -> int:
    """Return the error of the last system call of `_renameat2`."""
    import ctypes

    return ctypes.get_errno()


def rename_to_free(folder: int, name: str, other: int, new_name: str) -> None:
    """Move a file to another folder in one step; FileExistsError if the name exists."""
    if (renameat2 := _renameat2()) is not None:
        if renameat2(folder, os.fsencode(name), other, os.fsencode(new_name), _RENAME_NOREPLACE) == 0:
            return
        code = _errno()
        if code not in _NO_EXCHANGE:
            raise OSError(code, os.strerror(code), new_name)
    # Without the system call, only the caller's lock prevents a race.
    if new_name in os.listdir(other):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
    os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=other)


def _create(path: Path, data: bytes) -> None:
    """Create a file; does nothing if it exists now."""
    draft = _write_draft(path, data)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
    sync_folder(path.parent)


def _swap(path: Path, present: bytes, wanted: bytes) -> int | None:
    """Replace `present` by `wanted`; does nothing if the file has changed.

    If another program replaced the file at the same moment, its version is put back, although the new version was
    readable for some microseconds. Then returns a descriptor of its version, otherwise None.
    """
    _renameat2()  # looked up now, since time between comparing and swapping lets other writers in
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
            # The swap returned a third version: swap it in again; the second one is returned for merging.
            _exchange(draft, path)
        return theirs
    finally:
        draft.unlink(missing_ok=True)


def _version(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _content(handle: int) -> bytes:
    return os.pread(handle, os.fstat(handle).st_size, 0)


def _write_draft(path: Path, data: bytes, like: os.stat_result | None = None, mode: int = 0o666) -> Path:
    remove_drafts(path.parent, "" if ".aiwg" in path.parts else path.name)
    draft = make_draft_path(path)
    handle = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        if like is not None:
            with suppress(PermissionError):
                os.fchown(handle, like.st_uid, like.st_gid)
            os.fchmod(handle, private_mode(path, stat.S_IMODE(like.st_mode)))
        append_bytes(handle, data)
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
    """Swap two files in one step; returns False if the file system cannot."""
    if (renameat2 := _renameat2()) is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = _errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def export_file(name: str, project: ProjectPaths, suffixes: Collection[str] = ()) -> Path:
    """Resolve and check the name of an export file.

    `name` is as typed, relative to the current folder or to `~`. `suffixes` are the allowed endings such as `.svg`;
    empty for any. Raises BadInput if the name has another ending, is not a path, or is inside the project's `.aiwg`.
    """
    shown = visible_line(name, 300)
    try:
        file = Path(name).expanduser().resolve()
        aiwg = project.aiwg.resolve()
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{shown} is not a valid file name") from None
    if suffixes and file.suffix.lower() not in suffixes:
        raise BadInput(f"{shown} must end with {', '.join(suffixes)}: the ending selects the format")
    if aiwg in (file, *file.parents):
        raise BadInput(f"{shown} is inside .aiwg, which belongs to the loops; choose another folder")
    return file


def file_exists(file: Path) -> bool:
    """Return whether the file exists; False where `write_file` will report the error."""
    return os.path.exists(file)  # noqa: PTH110 (the method raises an error where a folder cannot be entered)


def write_file(file: Path, data: bytes) -> None:
    """Write a regular file completely or not at all; raises BadInput or Unwritable."""
    try:
        file = file.resolve()
        present = file.stat() if file.exists() else None
        if present is not None and not stat.S_ISREG(present.st_mode):
            raise BadInput(f"{visible_line(str(file), 300)} is not a regular file; choose another one")
        put(file, data, like=present)
    except OSError as error:
        raise Unwritable(f"cannot write {visible_line(str(file), 300)}: {error.strerror}") from None
