"""Trust the projects that this user worked on with a version that did not ask (docs/safety.md#trusted-projects)."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from tinydb import where

from core.base.errors import RalphdeckError
from core.base.ownership import is_in_trusted_path, why_not_used
from core.base.paths import ProjectPaths, find_project
from core.files.file_access import open_regular
from core.files.user_files import UserStore, cache_path, state_file
from core.records.decisions import Decision
from core.records.times import iso
from core.team.consent import read_consent
from core.trust.origins import Origins
from core.trust.projects import MIGRATION, MIGRATIONS, find_record, save_answer

_PROJECT: Final = 2  # place of the project in the header, in every version
_PREFIX_BYTES: Final = 12  # before each block: its length (8) and CRC-32 (4)
_UNUSABLE: Final = (OSError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError, KeyError)


class _Block(NamedTuple):
    start: int
    length: int
    checksum: int


def migrate_trust(dashboard: Path, connected_files: Iterable[str], now: datetime) -> None:
    """Trust each project that the user opened in the dashboard, connected to an agent or joined to a team.

    `dashboard` is the file of an earlier version with the projects that were opened, which may be missing;
    `connected_files` are the paths of files of agents that were changed. Of the decision log, the decisions that this
    machine had seen when it last showed the project stay own ones; later ones are asked about. Raises Unwritable.
    """
    for folder in sorted(set(_used_folders(dashboard, connected_files))):
        paths = ProjectPaths(folder)
        is_usable = paths.aiwg.is_dir() and not why_not_used(folder)
        if not is_usable or is_in_trusted_path(folder) or find_record(paths) is not None:
            continue
        with suppress(RalphdeckError):  # a project that cannot be written is asked about
            Origins(folder).add_decisions(read_kept_decisions(folder))
            save_answer(paths, MIGRATION, now)
    with UserStore(state_file()).transaction() as tables:
        tables.table(MIGRATIONS).upsert({"name": MIGRATION, "at": iso(now)}, where("name") == MIGRATION)


def _used_folders(dashboard: Path, connected_files: Iterable[str]) -> Iterator[Path]:
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        values = msgspec.json.decode(dashboard.read_bytes(), type=dict[str, msgspec.Raw])
        projects = values.get("projects", msgspec.Raw(b"{}"))
        yield from map(Path, msgspec.json.decode(projects, type=dict[str, msgspec.Raw]))
    with suppress(RalphdeckError):
        yield from map(Path, read_consent())
    for name in connected_files:
        with suppress(RalphdeckError):
            yield find_project(Path(name).parent).project


def read_kept_decisions(project: Path) -> tuple[Decision, ...]:
    """Return the decisions that an earlier version kept for its next start; empty if none are usable."""
    decisions: list[Decision] = []
    with suppress(*_UNUSABLE), ExitStack() as stack:
        descriptor = open_regular(cache_path(project, "view"), os.O_RDONLY)
        stack.callback(os.close, descriptor)
        if os.fstat(descriptor).st_uid != os.geteuid():
            return ()
        blocks = _find_blocks(descriptor)
        header: list[Any] = msgspec.msgpack.decode(_read_block(descriptor, next(blocks)))
        if header[_PROJECT] != str(project.resolve()):
            return ()
        for name, count in header[-1].items():
            for block in islice(blocks, count):
                if name == "decisions":
                    decisions += msgspec.msgpack.decode(_read_block(descriptor, block), type=tuple[Decision, ...])
    return tuple(decisions)


def _find_blocks(descriptor: int) -> Iterator[_Block]:
    """Yield the places of the blocks without reading them; ValueError at the first that is empty or cut off."""
    start, size = 0, os.fstat(descriptor).st_size
    while start < size:
        prefix = os.pread(descriptor, _PREFIX_BYTES, start)
        block = _Block(start + _PREFIX_BYTES, int.from_bytes(prefix[:8]), int.from_bytes(prefix[8:]))
        start = block.start + block.length
        if not block.length or start > size:
            raise ValueError("the block is empty or cut off")
        yield block


def _read_block(descriptor: int, block: _Block) -> bytes:
    """Return the content of a block; ValueError if it is damaged."""
    data = os.pread(descriptor, block.length, block.start)
    if len(data) != block.length or zlib.crc32(data) != block.checksum:
        raise ValueError("the block is damaged")
    return data
