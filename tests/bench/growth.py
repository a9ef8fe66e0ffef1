"""How costs grow with the size of a project: the exponent, 1 for twice the work at twice the size."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import platformdirs

from core.index.contexts import prepare_task_injection
from core.index.texts import Texts
from core.records.snapshot import Snapshot
from tests.bench.loaded import TASK
from tests.bench.measured import Measured, milliseconds, timed
from tests.bench.place import Place, open_and_load
from tests.bench.trees import loop_name, write_loops, write_patterns


def of_loops(place: Place) -> Measured:
    """Load, reopen, and read one change, at several numbers of loops."""
    return _grown(place, "loops", place.sizes.loops_of_growth, lambda project, size: write_loops(project, size))


def of_patterns(place: Place) -> Measured:
    """The same with few loops at several numbers of patterns; also near-duplicates and a context."""

    def write(project: Path, size: int) -> None:
        write_loops(project, 100)
        write_patterns(project, size)

    return _grown(place, "patterns", place.sizes.patterns_of_growth, write)


def _grown(place: Place, name: str, sizes: Sequence[int], write: Callable[[Path, int], None]) -> Measured:
    found = []
    for size in sizes:
        project = place.folder / f"growth-{name}-{size}"
        write(project, size)
        found.append(_costs(project))
        shutil.rmtree(project)
    exponents = {
        what: float(np.polyfit(np.log(sizes), np.log([max(costs[what], 0.01) for costs in found]), 1)[0])
        for what in found[0]
    }
    shown = (
        f"{what} {exponent:.2f} ({', '.join(f'{costs[what]:.4g}' for costs in found)} ms)"
        for what, exponent in exponents.items()
    )
    return Measured(max(exponents.values()), "", note="; ".join(shown))


def _costs(project: Path) -> dict[str, float]:
    """Processor time in milliseconds of each kind of work."""
    shutil.rmtree(platformdirs.user_cache_path("ralphdeck"), ignore_errors=True)
    found = {name: timed(lambda: open_and_load(project)).cpu or 0.0 for name in ("first load", "load again")}
    opened = open_and_load(project)
    path = project / ".aiwg" / "ralph" / "loops" / loop_name(6) / "state.json"
    state = json.loads(path.read_text())
    taken = []
    for number in range(5):
        path.write_text(json.dumps(state | {"currentIteration": number}))
        taken += milliseconds(lambda: opened.apply([path]))
    found["changed loop"] = min(taken)
    found["sweep"] = timed(lambda: opened.apply(None)).cpu or 0.0
    view = opened.view
    if len(view.snapshot.patterns) > 1:
        found["near-duplicates"] = (
            timed(lambda: Texts(Snapshot(patterns=view.snapshot.patterns)).similarity.pairs(0.8)).cpu or 0.0
        )
        view.prepare()
        found["context"] = min(milliseconds(lambda: prepare_task_injection(view, TASK), 5))
    return found
