"""Folders in which this process writes nothing, whoever asks: the read-only mode.

Whatever is written under `.aiwg` is opened, or its lock is taken, through `core.storage.locks`; asked there, nobody
can forget to ask.
"""

from __future__ import annotations

from pathlib import Path

from core.base.errors import ReadOnly
from core.base.text import visible_line

_protected: set[Path] = set()


def protect(folder: Path) -> None:
    """Let this process write nothing in `folder`, until `release`."""
    _protected.update((folder.absolute(), folder.resolve()))


def release(folder: Path) -> None:
    """Take `protect` back."""
    _protected.difference_update((folder.absolute(), folder.resolve()))


def check_writable(path: Path) -> None:
    """Refuse to write at `path`.

    Raises:
        ReadOnly: It lies in a protected folder.
    """
    if not _protected:
        return
    absolute = path.absolute()
    for place in (absolute, absolute.resolve()):
        for folder in _protected.intersection((place, *place.parents)):
            raise ReadOnly(
                f"read-only: nothing is written in {visible_line(str(folder), 300)}; start without --readonly "
                "(and without RALPHDECK_READONLY) to decide"
            )
