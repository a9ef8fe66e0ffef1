"""Read-only folders of this process.

Every write under `.aiwg` opens its file, or takes its lock, through `core.storage.locks`, which enforces them.
"""

from __future__ import annotations

from pathlib import Path

from core.base.errors import ReadOnly
from core.base.text import visible_line

_protected: set[Path] = set()


def protect(folder: Path) -> None:
    """Make `folder` read-only for this process until `release`."""
    _protected.update((folder.absolute(), folder.resolve()))


def release(folder: Path) -> None:
    """Allow writing in `folder` again."""
    _protected.difference_update((folder.absolute(), folder.resolve()))


def check_writable(path: Path) -> None:
    """Check that `path` may be written.

    Raises:
        ReadOnly: It is in a read-only folder.
    """
    if not _protected:
        return
    absolute = path.absolute()
    for candidate in (absolute, absolute.resolve()):
        for folder in _protected.intersection((candidate, *candidate.parents)):
            raise ReadOnly(
                f"read-only: nothing is written in {visible_line(str(folder), 300)}; start without --readonly "
                "(and without RALPHDECK_READONLY) to decide"
            )
