"""The size of the code on the way from a file to a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.measured import Measured

if TYPE_CHECKING:
    from tests.bench.place import Place

_CORE: Final = Path(__file__).parents[2] / "core"
_DATA_PATH: Final = (
    *("storage", "files", "sources", "index", "project", "state"),
    *("search", "retrieval", "learning", "ledger", "history"),
)
"""Packages; a revision has some of them."""


def data_path_lines(_place: Place) -> Measured:
    """Count the lines of Python."""
    counts = {
        name: sum(len(file.read_bytes().splitlines()) for file in (_CORE / name).rglob("*.py")) for name in _DATA_PATH
    }
    return Measured(sum(counts.values()), "", note=", ".join(f"{name} {n:,}" for name, n in counts.items() if n))
