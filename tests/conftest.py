"""What holds for every test, in this process and in those that it starts."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

_COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
"""Where compiled modules are kept if none may lie beside the sources: each process else compiles all of them again."""
_GARBAGE_AFTER = 50_000
"""New objects between two collections, as `core.cli.entry` has it."""

# Vectors are made where a test asks for them, not by the way: that would cost every test its time.
os.environ["RALPHDECK_MEANING"] = "off"

if sys.dont_write_bytecode and sys.pycache_prefix is None:
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(_COMPILED)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


_LONGEST = "tests/hostile/test_terminal.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: at the end all workers but one would wait for it."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


def pytest_collection_finish() -> None:
    """All that has been imported and collected lives on: no collection of garbage need walk it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_AFTER, *gc.get_threshold()[1:])
