"""Files in `.aiwg` that stay out of Git: a managed block in `.gitignore`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.base.errors import BadInput, RalphdeckError
from core.base.paths import ProjectPaths
from core.files.file_access import PRIVATE_FOLDERS, is_ignored, secure_folders

_IGNORED: Final = """\
# Private to this machine. Tasks and debug sessions are, too, by a .gitignore in their folders. Share the rest.
/.aiwg/ralph/sessions/
/.aiwg/ralph/shared/team/
/.aiwg/ralph/tasks/*/attempts/*/actions.jsonl
/.aiwg/ralph/memory/embeddings/
/.aiwg/ralph/memory/patterns-index.json
/.aiwg/ralph/index/
/.aiwg/**/*.lock
/.aiwg/**/.*.tmp-*
/.aiwg/**/*.torn-*
/.aiwg/**/*.displaced-*"""


def git_root(folder: Path) -> Path | None:
    """Return the root of the Git work tree that contains a folder, None outside of one."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def ignore_private_files(folder: Path) -> bool:
    """Add the block to the `.gitignore` of a folder in a Git repository; returns whether the file changed.

    Existing private folders get their own `.gitignore`, also outside of a repository.
    """
    for private in _private_folders(folder):
        secure_folders(private)
    if git_root(folder) is None:
        return False
    from core.files.atomic_write import rewrite, take_theirs
    from core.files.managed_text import Block, read_part

    file = folder / ".gitignore"
    block = Block(_IGNORED, "# ", "")
    try:
        data = read_part(file, folder)
        merged = block.merge(data)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    if merged == data:
        return False
    rewrite(file, lambda present: block.merge(present), merge=take_theirs, retry_seconds=())
    return True


def is_ignoring(folder: Path) -> bool:
    """Return whether a folder needs no change of its `.gitignore`: it is outside of Git, or ignores what is private."""
    if git_root(folder) is None:
        return True
    if any(private.is_dir() and not is_ignored(private) for private in _private_folders(folder)):
        return False
    from core.files.managed_text import Block, read_part

    try:
        data = read_part(folder / ".gitignore", folder)
        return Block(_IGNORED, "# ", "").merge(data) == data
    except BadInput:
        return False


def _private_folders(folder: Path) -> list[Path]:
    return [ProjectPaths(folder).ralph / name for name in PRIVATE_FOLDERS]


def ignore_in_new_project(folder: Path) -> str:
    """Add the block after a decision made `.aiwg`; returns a note for the user, also if that fails."""
    try:
        is_changed = ignore_private_files(folder)
    except (RalphdeckError, OSError) as error:
        return f"made .aiwg, but its private files are not in .gitignore ({error}); see: ralphdeck init"
    return "made .aiwg, and added its private files to .gitignore" if is_changed else ""
