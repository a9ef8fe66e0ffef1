"""Groups of files that take several processes about the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from core.sources.record_kinds import Format, kind_of

if TYPE_CHECKING:
    from core.storage.file_reader import Stamp

_BATCH_BYTES: Final = 128 << 10  # about 20 ms of work
_BATCH_FILES: Final = 100
_FORMATS: Final = frozenset({Format.DOCUMENT, Format.PATTERNS, Format.CRASH_LOG})


class Unit(NamedTuple):
    """A file."""

    file: str


def is_parsed(file: str) -> bool:
    kind = kind_of(file)
    return kind is not None and kind.format in _FORMATS


def divide(sizes: Mapping[str, int]) -> dict[str, list[Unit]]:
    """Return the units of files with these sizes."""
    return {file: [Unit(file)] for file in sizes}


def has_patterns(file: str) -> bool:
    kind = kind_of(file)
    return kind is not None and kind.format is Format.PATTERNS


def small_pattern_units(stamps: Mapping[str, Stamp]) -> Iterator[Unit]:
    """Return the units of pattern files, newest first, without those that take long."""
    files = sorted(filter(has_patterns, stamps), key=lambda file: stamps[file].mtime_ns, reverse=True)
    sizes = {file: stamps[file].size for file in files}
    yield from (Unit(file) for file in files if sizes[file] <= 2 * _BATCH_BYTES)


def group_units(units: Mapping[str, list[Unit]], sizes: Mapping[str, int]) -> Iterator[list[Unit]]:
    """Group consecutive units that take about the same time together."""
    batch: list[Unit] = []
    size = 0
    for file, parts in units.items():
        if batch and size + sizes[file] > 2 * _BATCH_BYTES:  # a large file is parsed alone
            yield batch
            batch, size = [], 0
        batch += parts
        size += sizes[file]
        if size >= _BATCH_BYTES or len(batch) == _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
