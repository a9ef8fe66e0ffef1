"""Run a loop that applies a pattern in each iteration, for tests of a team.

Run `python -m tests.e2e.play_uses PROJECT LOOP PATTERN`; it prints each use once it is written, until its input ends.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from core.base.paths import project_at
from core.records.events import Event
from core.sources.events import append_events
from tests.e2e.play_runner import in_place_json

PAUSE: Final = 0.5
"""Seconds between two iterations."""


def iterate(project: Path, loop: str, pattern: str) -> Iterator[str]:
    """Write state and use of one iteration after the other; yields the ID of each use that is on disk."""
    paths = project_at(project)
    started = datetime.now(UTC)
    iterations: list[dict[str, object]] = []
    while True:
        at = datetime.now(UTC)
        number = len(iterations) + 1
        iterations.append({"number": number, "timestamp": at.isoformat(), "action": f"Fix {number}", "result": "green"})
        state = {
            "loopId": loop,
            "task": f"Work of {loop}",
            "active": True,
            "status": "running",
            "startTime": started.isoformat(),
            "currentIteration": number,
            "maxIterations": 10_000,
            "iterations": iterations,
        }
        for _ in in_place_json(project / ".aiwg/ralph/loops" / loop / "state.json", state):
            pass
        use = Event(
            id=f"{loop}-{number}",
            at=at,
            kind="applied",
            pattern_id=pattern,
            loop_id=f"{loop}-part-{number}",
            iteration=number,
            success=True,
        )
        append_events(paths, use)
        yield use.id


def main() -> None:
    """Iterate until the input ends."""
    for use in iterate(Path(sys.argv[1]), sys.argv[2], sys.argv[3]):
        sys.stdout.write(f"{use}\n")
        sys.stdout.flush()
        ready, _, _ = select.select([sys.stdin], [], [], PAUSE)
        if ready:
            return


if __name__ == "__main__":
    main()
