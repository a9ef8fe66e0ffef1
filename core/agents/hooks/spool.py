"""Tool calls that could not be logged, because the session was locked or the hook gave up.

Each is a small file in a folder of its session, beside the record of the session. The next event of the session logs
them, oldest first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.agents.agent_table import AGENTS, Moment
from core.agents.hooks.events import HookEvent, digest
from core.agents.hooks.sessions import read_record, save_record
from core.base.masking import mask_values
from core.files.file_access import make_folder

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

MAX_SPOOLED: Final = 50  # calls of one session; each is logged durably, which takes some milliseconds
_MAX_BYTES: Final = 1 << 20  # of one call
_SUFFIX: Final = ".call"


class SpooledCall(Struct, frozen=True):
    """The event of a tool call, and its time."""

    at: Annotated[datetime, Meta(tz=True)]
    event: HookEvent


_decoder: Final = msgspec.json.Decoder(SpooledCall)


def spool_call(project: ProjectPaths, event: HookEvent, at: datetime) -> bool:
    """Keep a tool call with its secrets masked; False if it is too long or its session has too many calls.

    Raises Unwritable, OSError or BadInput if it cannot be written.
    """
    folder = _folder(project, event.session)
    try:
        data = msgspec.json.encode(SpooledCall(at, event))
        if len(data) <= _MAX_BYTES:
            data = msgspec.json.encode(SpooledCall(at, replace(event, tool=mask_values(event.tool))))
    except ValueError:  # a text that is not valid Unicode
        return False
    if len(data) > _MAX_BYTES or len(_files(folder)) >= MAX_SPOOLED:
        return False
    make_folder(folder)
    save_record(folder / f"{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{os.urandom(4).hex()}{_SUFFIX}", data)
    return True


def spooled_calls(project: ProjectPaths, session: str) -> Iterator[SpooledCall]:
    """Yield the calls of a session, oldest first; each is deleted when the next one is asked for."""
    folder = _folder(project, session)
    for path in _files(folder):
        call = read_record(path, _decoder, _MAX_BYTES)
        if call is not None and _is_call_of(session, call.event):
            yield call
        with suppress(OSError):
            path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _is_call_of(session: str, event: HookEvent) -> bool:
    return event.session == session and event.agent in AGENTS and event.moment is Moment.TOOL


def _folder(project: ProjectPaths, session: str) -> Path:
    return project.unlinked(project.relative(project.sessions / f"{digest(session)}.calls"))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)[:MAX_SPOOLED]
    except OSError:
        return []
