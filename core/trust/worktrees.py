"""Worktrees of a Git repository share the trust in the main working tree."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

from core.files.file_reader import RawFile, read_file

_MAX_BYTES: Final = 4096  # of a small file of Git


@lru_cache(maxsize=64)
def trust_root(project: Path) -> Path:
    """Return the project folder whose trust counts for `project`.

    For a worktree that its repository knows, that is the same folder in the main working tree. Git keeps the list of
    worktrees inside the main `.git` folder, which no clone can write.
    """
    real = Path(os.path.realpath(project))
    top = next((folder for folder in (real, *real.parents) if (folder / ".git").is_file()), None)
    if top is None or any((folder / ".git").is_dir() for folder in (real, *real.parents) if folder.is_relative_to(top)):
        return real
    link = _read(top / ".git").removeprefix("gitdir:").strip()
    entry = Path(os.path.realpath(top / link)) if link else top
    is_known = entry.parent.name == "worktrees" and os.path.realpath(_read(entry / "gitdir").strip()) == str(
        top / ".git"
    )
    if not is_known or entry.parent.parent.name != ".git":
        return real
    return entry.parent.parent.parent / real.relative_to(top)


def _read(file: Path) -> str:
    """Return the text of a small file; "" for any other one, and for one with a null character, which no path has."""
    raw = read_file(file, file.parent, _MAX_BYTES)
    if not isinstance(raw, RawFile) or b"\0" in raw.data:
        return ""
    return raw.data.decode("utf-8", "surrogateescape")
