"""Files that commands write where they are told to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from core.errors import BadInput, Unwritable
from core.text import visible_line


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
