"""Which projects the user has joined to a team; kept in the user's configuration folder, never in a project.

A cloned project can therefore never make ralphdeck connect to a server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import Unwritable
from core.files.atomic_write import put
from core.files.file_access import file_lock
from core.files.file_reader import RawFile, read_file
from core.files.user_files import team_file
from core.team.connection import check_argument, read_conninfo
from core.team.errors import TeamError

_MAX_BYTES: Final = 4 << 20
_URL: Final = "url="


class Joined(Struct, frozen=True, kw_only=True):
    """A joined project.

    `source` is where the address of the server comes from: `env`, `service=NAME`, `file=PATH`, or `url=URL` without a
    password. `id` is that of this working copy in the space, `name` the one that members see.
    """

    space: str
    source: str
    id: UUID
    name: str

    @property
    def conninfo(self) -> str:
        """Address of the server; raises BadInput if its source is not usable now."""
        if self.source.startswith(_URL):
            return check_argument(self.source.removeprefix(_URL))
        return read_conninfo(self.source)


class _File(Struct, frozen=True):
    projects: dict[str, Joined] = {}


def url_source(url: str) -> str:
    """Return the source of an address from the command line; BadInput if it contains a password."""
    return _URL + check_argument(url)


def consent_file() -> Path:
    return team_file()


def read_consent() -> Mapping[str, Joined]:
    """Return the joined projects by their resolved path; raises TeamError if the file is damaged."""
    file = consent_file()
    read = read_file(file, file.parent, _MAX_BYTES)
    if read is None:
        return {}
    try:
        if isinstance(read, RawFile):
            return msgspec.json.decode(read.data, type=_File).projects
        why = read.message
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = f"is damaged: {error}"
    raise TeamError(f"{file} {why}; repair it, or delete it and join again")


def find_joined(project: Path) -> Joined | None:
    """Return how a project has joined its team; None if it has not."""
    return read_consent().get(str(project.resolve()))


def save_joined(project: Path, joined: Joined | None) -> None:
    """Record that the user has joined a project to a space, or (None) left it."""
    with _changing() as projects:
        if joined is None:
            projects.pop(str(project.resolve()), None)
        else:
            projects[str(project.resolve())] = joined


@contextmanager
def _changing() -> Iterator[dict[str, Joined]]:
    file = consent_file()
    mask = os.umask(0o077)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(file.with_suffix(".lock")):
            projects = dict(read_consent())
            yield projects
            put(file, msgspec.json.format(msgspec.json.encode(replace(_File(), projects=projects))) + b"\n")
    except OSError as error:
        raise Unwritable(f"cannot write {file}: {error.strerror}") from None
    finally:
        os.umask(mask)
