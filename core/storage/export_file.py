"""Write exports to files that the user names."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from core.base.errors import BadInput, Unwritable
from core.base.text import visible_line
from core.config.paths import ProjectPaths


def export_file(name: str, project: ProjectPaths, suffixes: Collection[str] = ()) -> Path:
    """Resolve and check the name of an export file.

    Args:
        name: As typed, relative to the current folder; `~` is the home folder.
        project: Exports into its `.aiwg` are refused.
        suffixes: Allowed endings such as `.svg`; empty for any.

    Raises:
        BadInput: The name has another ending, is not a path, or is inside `.aiwg`.
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


def is_there(file: Path) -> bool:
    """Whether the file exists; False if that cannot be checked, which `write_file` will report."""
    try:
        return file.exists()
    except OSError:
        return False


def write_file(file: Path, data: bytes) -> None:
    """Write a file completely or not at all; an existing file keeps its permissions.

    Raises:
        BadInput: It is not a regular file.
        Unwritable: Disk or permission.
    """
    try:
        file = file.resolve()
        present = file.stat() if file.exists() else None
        if present is not None and not stat.S_ISREG(present.st_mode):
            raise BadInput(f"{visible_line(str(file), 300)} is not a regular file; choose another one")
        draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        try:
            with draft.open("xb") as opened:
                if present is not None:
                    os.fchmod(opened.fileno(), stat.S_IMODE(present.st_mode))
                opened.write(data)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot write {visible_line(str(file), 300)}: {error.strerror}") from None
