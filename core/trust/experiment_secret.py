"""Secret of the user's experiment: coins, trial signatures (docs/experiments.md).

It is in the user's own state folder, where no repository can read or write.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.base.errors import BadInput, RalphdeckError
from core.base.paths import state_folder
from core.files.file_access import as_unwritable, make_folder, open_regular, write_new
from core.records.events import NO_TRIAL_KEY, TrialKey
from core.trust.projects import trust_root

_SECRET_BYTES: Final = 32


def secret_file() -> Path:
    """Return the secret's file; a copy gives another machine the same assignments."""
    return state_folder() / "experiment.key"


def read_secret() -> bytes:
    """Read the secret; raises FileNotFoundError, BadInput if unreadable or invalid."""
    file = secret_file()
    try:
        with os.fdopen(open_regular(file, os.O_RDONLY), "rb") as opened:
            text = opened.read(4 * _SECRET_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        defect = "it is a link" if file.is_symlink() else error.strerror
        raise BadInput(f"{file} cannot be read: {defect}; move it away, and a new secret is made") from None
    try:
        secret = bytes.fromhex(text.decode().strip())
    except ValueError:
        secret = b""
    if len(secret) != _SECRET_BYTES:
        raise BadInput(f"{file} is not a secret of the experiment; delete it, and a new one is made")
    return secret


def read_or_make_secret() -> bytes:
    """Read the secret or make one; of simultaneous processes, the first one's counts.

    Raises BadInput and Unwritable.
    """
    with suppress(FileNotFoundError):
        return read_secret()
    with as_unwritable(secret_file()):
        make_folder(secret_file().parent)
        write_new(secret_file(), os.urandom(_SECRET_BYTES).hex().encode() + b"\n")
    return read_secret()


def is_exposed() -> bool:
    """Return whether other users of the machine can read or change the secret."""
    return secret_file().stat().st_mode & 0o077 != 0


def trial_key(project: Path) -> TrialKey:
    """Return the key for a project's trials; one without a secret if there is none.

    It depends on the real path of the project, so that trials of a fork or another clone are not those of this one.
    """
    import hmac  # most processes read no trial

    with suppress(OSError, RalphdeckError):
        message = f"trials\0{os.path.realpath(trust_root(project))}".encode(errors="surrogateescape")
        return TrialKey(hmac.digest(read_secret(), message, "sha256"))
    return NO_TRIAL_KEY
