"""Parse files into parts, many in a process pool (docs/performance.md#workers)."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from core.files.file_reader import Problem, Stamp, read_file
from core.index.records import Kind, encode
from core.sources.loop_join import group_keys
from core.sources.parsed_file import ParsedFile, parse_file, parse_folder
from core.sources.record_kinds import FOLDER, Format, kind_of
from core.sources.reflections import reflection_key

if TYPE_CHECKING:
    from concurrent.futures import Future

    from core.records.findings import Finding
    from core.sources.patterns import KnownRecords

POOL_FROM: Final = 3 << 20  # bytes that take longer to parse than the start of another process
_BATCH_BYTES: Final = 1 << 19
_BATCH_FILES: Final = 400
_MAX_WORKERS: Final = 3
_AHEAD: Final = 8  # batches for each worker that wait or are done, while this process joins records
_ANSWER_SECONDS: Final = 30.0  # a worker that needs longer for a batch is not waited for
LOGS: Final = frozenset({Format.EVENT_LOG, Format.DECISION_LOG, Format.TEAM_EVIDENCE})
"""Formats of the files that are read by this process alone, and only where they grew."""


class Part(NamedTuple):
    """A part of a file, joined with others of its kind and key; `data` is encoded.

    `loop` is the ID of the loop in a reflection, which may be an alias.
    """

    kind: Kind
    key: str
    loop: str | None
    data: bytes


class FileParts(NamedTuple):
    """Content of a file: no `stamp` if there is none, `problem` if unusable now."""

    path: str
    stamp: Stamp | None = None
    parts: tuple[Part, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: Problem | None = None


def parse(project: str, path: str, stamp: Stamp, known: KnownRecords | None = None) -> FileParts:
    """Parse a file or loop folder; `known` are its last pattern records (updated)."""
    kind = kind_of(path)
    if kind is None:
        return FileParts(path)
    if kind is FOLDER:
        return FileParts(path, stamp, parts_of(parse_folder(path, stamp)))
    raw = read_file(f"{project}/{path}", _root_of(project), kind.limit)
    if raw is None:
        return FileParts(path)
    if isinstance(raw, Problem):
        return FileParts(path, stamp, problem=raw)
    parsed = parse_file(path, kind, raw, known)
    if isinstance(parsed, Problem):
        return FileParts(path, stamp if parsed.torn else raw.stamp, problem=parsed)
    return FileParts(path, raw.stamp, parts_of(parsed), parsed.findings)


@lru_cache(1)
def _root_of(project: str) -> Path:
    return Path(project, ".aiwg")


def parts_of(parsed: ParsedFile) -> tuple[Part, ...]:
    """Return the records of a file with the keys by which they are joined."""
    parts = [Part(Kind.LOOP, key, None, encode(fact)) for fact in parsed.loops for key in group_keys(fact)]
    parts += [Part(Kind.PATTERN, one.id, None, encode(one)) for one in parsed.patterns]
    for one in parsed.reflections:
        parts.append(Part(Kind.REFLECTION, reflection_key(one), one.loop_id or None, encode(one)))
    by_id = (
        (Kind.MEMORY_TASK, parsed.memory_tasks),
        (Kind.TASK, parsed.tasks),
        (Kind.ATTEMPT, parsed.attempts),
        (Kind.DEBUG_SESSION, parsed.debug_sessions),
        (Kind.AGENT_SESSION, parsed.agent_sessions),
    )
    for kind, records in by_id:
        parts += [Part(kind, one.id, None, encode(one)) for one in records]
    parts += [Part(Kind.ESCALATION, one.session_id, None, encode(one)) for one in parsed.escalations]
    return tuple(parts)


def parse_all(
    project: str, files: Sequence[tuple[str, Stamp]], known: Mapping[str, KnownRecords] = MappingProxyType({})
) -> Iterator[FileParts]:
    """Parse files in about their order, in several processes if there is much work.

    What a worker could not parse, for whatever reason, this process parses itself, and first the files of which it has
    records in `known`, which is updated.
    """
    for path, stamp in files:
        if path in known:
            yield parse(project, path, stamp, known[path])
    files = [item for item in files if item[0] not in known]
    if sum(stamp.size for _, stamp in files) < POOL_FROM or _count_workers() < 1:
        for path, stamp in files:
            yield parse(project, path, stamp)
    else:
        yield from _parse_in_pool(project, list(_batches(files)))


def _parse_in_pool(project: str, batches: list[list[tuple[str, Stamp]]]) -> Iterator[FileParts]:
    # They take 15 ms to import, which a process that parses little does not need.
    import multiprocessing
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
    from multiprocessing import resource_tracker

    others = multiprocessing.active_children()
    # It inherits the standard error of this process; that of the dashboard has no descriptor.
    with redirect_stderr(sys.__stderr__):
        resource_tracker.ensure_running()
    # Not forked: this process may have threads, and locks that a copy of it would never get.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_count_workers(), context, initializer=_end_with_parent) as pool:
        waiting: list[tuple[Future[list[FileParts]], list[tuple[str, Stamp]]]] = []
        while batches or waiting:
            while batches and len(waiting) < _AHEAD * _count_workers():
                batch = batches.pop(0)
                try:
                    waiting.append((pool.submit(_parse_batch, project, batch), batch))
                except (BrokenExecutor, OSError, ValueError):  # a worker was killed, or cannot be started
                    yield from _parse_batch(project, batch)
            if not waiting:
                return
            if batches and not waiting[0][0].done():
                yield from _parse_batch(project, batches.pop(0))
                continue
            future, batch = waiting.pop(0)
            try:
                yield from future.result(_ANSWER_SECONDS)
            except TimeoutError:
                for worker in set(multiprocessing.active_children()).difference(others):
                    worker.kill()  # else the pool waits for it
                yield from _parse_batch(project, batch)
            except (BrokenExecutor, OSError, EOFError, ValueError):
                yield from _parse_batch(project, batch)


def _end_with_parent() -> None:
    """End this worker when its parent ends, even without closing the pool.

    A parent that was killed or gave up does; the worker would hold a hook's output, for whose end an agent waits.
    """
    import multiprocessing

    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    from multiprocessing.connection import wait

    wait([sentinel])
    os._exit(0)


def _parse_batch(project: str, files: Iterable[tuple[str, Stamp]]) -> list[FileParts]:
    return [parse(project, path, stamp) for path, stamp in files]


def _batches(files: Iterable[tuple[str, Stamp]]) -> Iterator[list[tuple[str, Stamp]]]:
    batch: list[tuple[str, Stamp]] = []
    size = 0
    for path, stamp in files:
        batch.append((path, stamp))
        size += stamp.size
        if size > _BATCH_BYTES or len(batch) == _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _count_workers() -> int:
    """Return one less than there are processors: this process parses, too."""
    return min(len(os.sched_getaffinity(0)) - 1, _MAX_WORKERS)
