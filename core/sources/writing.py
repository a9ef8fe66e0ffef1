"""One file replaced by its next version while other programs write it too, without losing anybody's work."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from core.errors import Conflict, Unwritable
from core.paths import ProjectPaths
from core.sources.journal import sync_folder
from core.sources.json_text import BadJson
from core.sources.locking import draft_of, lease, open_regular

Change = Callable[[bytes | None], bytes | None]
"""The next version of a file from the present one (None: there is no file, or there shall be none).

Called again whenever somebody else was faster, so it must come out the same when applied to its own result.
Raises `BadJson` where the present version cannot be understood.
"""
Merge = Callable[[bytes | None, bytes, bytes | None], bytes]
"""(base, theirs, present) -> present with what `theirs` changed since `base`."""

_ATTEMPTS: Final = 60
_LOOK_AGAIN_SECONDS: Final = 0.01
"""How long after a replacement to see whether a slower writer, who had read the old version, undid it."""
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})


@contextmanager
def curation_lock(paths: ProjectPaths) -> Iterator[None]:
    """Exclude other curators from the pattern files; the loops that write them know nothing of it.

    Raises:
        Conflict: Another curator holds it too long.
        Unwritable: It cannot be made.
    """
    with lease(paths.patterns / ".curation.lock", paths.curation / "lease.lock"):
        yield


class _Displaced(NamedTuple):
    """Somebody else's version that a swap took out.

    Attributes:
        base: The version that both they and we started from.
        ours: The version that took the place of theirs.
        draft: The file that holds theirs now; a writer may still be busy with it.
    """

    base: bytes
    ours: bytes
    draft: Path


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
            # Not merged, so not ours to remove.
            item.draft.rename(path.with_name(f"{path.name}.displaced-{secrets.token_hex(4)}"))


def _rewrite(
    path: Path,
    change: Change,
    merge: Merge,
    retry_seconds: Sequence[float],
    displaced: list[_Displaced],
) -> None:
    pauses = iter(retry_seconds)
    for _ in range(_ATTEMPTS):
        present = _read(path)
        try:
            wanted = change(_merged(present, displaced, merge))
        except BadJson:
            pause = next(pauses, None)
            if pause is None:
                raise
            time.sleep(pause)
            continue
        pauses = iter(retry_seconds)
        if wanted is None or wanted == present:
            while displaced:
                displaced.pop().draft.unlink()
            return
        if present is None:
            _create(path, wanted)
        else:
            draft = _swap(path, present, wanted)
            if draft is not None:
                displaced.append(_Displaced(present, wanted, draft))
                continue
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise Conflict(f"{path} changes faster than it can be written; try again")


def _merged(present: bytes | None, displaced: Sequence[_Displaced], merge: Merge) -> bytes | None:
    for item in displaced:
        theirs = item.draft.read_bytes()
        present = theirs if present == item.ours else merge(item.base, theirs, present)
    return present


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


def _swap(path: Path, present: bytes, wanted: bytes) -> Path | None:
    """Replace `present` by `wanted`, or do nothing if the file is another one by now.

    Returns:
        The file with what was taken out, where that was not `present`.
    """
    draft = _write_draft(path, wanted, path.stat())
    try:
        if _read(path) != present:
            draft.unlink()
            return None
        if not _exchange(draft, path):
            draft.replace(path)
            sync_folder(path.parent)
            return None
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    if draft.read_bytes() != present:
        return draft
    draft.unlink()
    return None


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
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))
