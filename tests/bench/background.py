"""Steps of the searches that run in the background between changes."""

from __future__ import annotations

import gc
import time

from tests.bench.measured import Measured
from tests.bench.place import Place


def longest_step(place: Place) -> Measured:
    """Do all background searches of a loaded project; processor time of the longest step."""
    project = place.opened
    gc.set_threshold(20_000)  # as in the dashboard
    taken: list[float] = []
    found: object = True
    while found is not None:
        begin = time.thread_time()
        found = project.search_next()
        taken.append((time.thread_time() - begin) * 1000)
    return Measured(
        max(taken),
        note=f"{len(taken):,} steps, {sum(taken) / 1000:.1f} s, {sum(one > 20 for one in taken)} above 20 ms",
    )
