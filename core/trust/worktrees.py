"""Worktrees of a Git repository share the trust in the main working tree."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from core.files.file_reader import read_first_line


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
    link = read_first_line(top / ".git").removeprefix("gitdir:").strip()
    entry = Path(os.path.realpath(top / link)) if link else top
    is_known = entry.parent.name == "worktrees" and os.path.realpath(read_first_line(entry / "gitdir")) == str(
        top / ".git"
    )
    if not is_known or entry.parent.parent.name != ".git":
        return real
    return entry.parent.parent.parent / real.relative_to(top)
