"""Memory does not grow while screens are opened again and again."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.tui.user import open_dashboard
from tui.kit.actions import PLACES

ROUNDS = 6


def _live_objects() -> Counter[str]:
    """Count the objects of the program, its widgets and its arrays by type."""
    gc.unfreeze()
    gc.collect()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # another thread could not finish a tuple while the list of objects holds it
    try:
        names = [f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects()]
    finally:
        sys.setswitchinterval(interval)
    packages = {"core", "tui", "textual", "numpy"}
    # What Textual caches, in a limited number, varies; a widget that is not released shows by its own type.
    cached = ("textual.geometry.", "textual.cache.", "textual.strip.", "textual.style.")
    return Counter(name for name in names if name.partition(".")[0] in packages and not name.startswith(cached))


@pytest.mark.slow
async def test_opening_all_screens_many_times_leaves_no_objects(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:

        async def open_all() -> None:
            for place in PLACES:
                await user.go(place)
            await user.settled()

        for _ in range(2):
            await open_all()
        counts = [_live_objects()]
        for _ in range(2):
            for _ in range(ROUNDS // 2):
                await open_all()
            counts.append(_live_objects())
    before, between, after = counts
    growth = {name: (between[name] - before[name], count - between[name]) for name, count in after.items()}
    # Textual fills caches of limited size at any time; what is never released grows in each half.
    assert not {name: halves for name, halves in growth.items() if min(halves) >= ROUNDS // 2}
