"""The cost of the dashboard while agents write a steady stream of file changes."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import numpy as np

from core.cli.demo.sample import copy_sample
from tests.bench.measured import Measured
from tests.bench.place import Place
from tests.bench.screen import Screen


def at_20_a_second(place: Place) -> Measured:
    return under_load(place, 20)


def at_200_a_second(place: Place) -> Measured:
    """The same with ten times the changes, for six minutes."""
    return under_load(place, 200, 360)


def under_load(place: Place, rate: float, seconds: float = 60) -> Measured:
    """Measure the share of a core, and the growth of the resident size, while files of the sample project change.

    The first sixth of the time is not measured: a first burst is shown without delay.
    """
    project = place.folder / f"changing-{rate:g}"
    shutil.rmtree(project, ignore_errors=True)
    copy_sample(project, datetime.now(UTC))
    with Screen(project) as screen:
        screen.wait_for("Loops")
        screen.calm()
        with changing(project, rate):
            screen.processor_share(seconds / 6)
            shares, sizes = [], []
            for _ in range(10):
                shares.append(screen.processor_share(seconds / 12))
                sizes.append(screen.resident_mb())
    minutes = np.arange(len(sizes)) * seconds / 12 / 60
    slope = float(np.polyfit(minutes[5:], sizes[5:], 1)[0])
    return Measured(float(np.mean(shares)) * 100, "%", note=f"{slope:+.1f} MB a minute, {sizes[-1]:.0f} MB")


@contextmanager
def changing(project: Path, changes_per_second: float) -> Iterator[None]:
    """Write states and iterations of all loops in turn, at this rate, until the block ends."""
    states = sorted((project / ".aiwg/ralph/loops").glob("*/state.json"))
    stop = threading.Event()

    def write() -> None:
        start = monotonic()
        for number in range(10**9):
            state = states[number % len(states)]
            if number % 5:
                document = json.loads(state.read_bytes())
                document["currentIteration"] = number // len(states) % 9 + 1
                document["lastUpdate"] = datetime.now(UTC).isoformat()
                target = state
            else:
                document = {"iteration": number % 7 + 1, "learnings": f"note {number % 50}", "status": "completed"}
                target = state.parent / "iterations" / f"{number % 7 + 1:03}.json"
                target.parent.mkdir(exist_ok=True)
            draft = target.with_name(f".{target.name}.tmp-bench")
            draft.write_text(json.dumps(document))
            draft.replace(target)
            if stop.wait(max(start + (number + 1) / changes_per_second - monotonic(), 0)):
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()
