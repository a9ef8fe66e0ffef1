"""Files that commands and the dashboard write where a person tells them to."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from core.base.errors import BadInput, Unwritable
from core.base.text import visible_line
from core.config.paths import ProjectPaths


def export_file(name: str, project: ProjectPaths, suffixes: Collection[str] = ()) -> Path:
    """The file that an export goes to; a relative name counts from the current folder.

    Args:
        name: As typed; `~` is the home folder.
        suffixes: What the name may end with, as `.svg`; with none it may end anyhow.

    Raises:
        BadInput: It ends otherwise, is no path, or lies in the project's `.aiwg`, which is the loops' own.
    """
    shown = visible_line(name, 300)
    try:
        file = Path(name).expanduser().resolve()
        kept = project.aiwg.resolve()
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{shown} is no name of a file") from None
    if suffixes and file.suffix.lower() not in suffixes:
        raise BadInput(f"{shown} must end with {', '.join(suffixes)}: that names the format")
    if kept in (file, *file.parents):
        raise BadInput(f"{shown} lies in .aiwg, which belongs to the loops; name a file elsewhere")
    return file


def is_there(file: Path) -> bool:
    """Whether writing would write over something; what nobody may look at is told when it is written."""
    try:
        return file.exists()
    except OSError:
        return False


def write_file(file: Path, data: bytes) -> None:
    """Whole or not at all; who may read a file that exists already stays as it is.

    Raises:
        BadInput: It is a folder, a device or the like.
        Unwritable: The disk or a permission forbids it.
    """
    try:
        file = file.resolve()
        present = file.stat() if file.exists() else None
        if present is not None and not stat.S_ISREG(present.st_mode):
            raise BadInput(f"{visible_line(str(file), 300)} is no regular file; name another one")
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
