"""What holds for every test, in this process and in those that it starts."""

from __future__ import annotations

import gc
import os
import sys
import tempfile

import pytest
from hypothesis import settings

_GARBAGE_AFTER = 50_000
"""New objects between two collections, as `core.cli.program` has it."""
_LONGEST = "tests/hostile/test_terminal.py"
_MEMORY = "/dev/shm"
_ENOUGH = 2 << 30
"""Bytes that have to be free in memory for what all tests write at once; it is a small part of that."""


def _is_roomy(folder: str) -> bool:
    """Whether tests may write to a folder, run programs from it, and find room there."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= _ENOUGH


# A hundred thousand files are written, made safe and read once: no disk need see them.
if "TMPDIR" not in os.environ and _is_roomy(_MEMORY):
    tempfile.tempdir = os.environ["TMPDIR"] = _MEMORY

# Vectors are made where a test asks for them, not by the way: that would cost every test its time.
os.environ["RALPHDECK_MEANING"] = "off"

# There are many processes, and without it each compiles all modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# The same examples every time; to look for others: pytest --hypothesis-profile=default
settings.register_profile("same", derandomize=True, database=None)
settings.load_profile("same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: at the end all workers but one would wait for it."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


def pytest_collection_finish() -> None:
    """All that has been imported and collected lives on: no collection of garbage need walk it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_AFTER, *gc.get_threshold()[1:])
