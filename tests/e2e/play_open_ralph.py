"""Write the files of open-ralph-wiggum as it does: JSON in place, the state deleted at the end, for live tests.

Run `python -m tests.e2e.play_open_ralph PROJECT --home HOME`; it ends at its limit of two iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.e2e.play_runner import Clock, in_place_json, play, stamp

LIMIT: Final = 2


def steps(project: Path, home: Path, now: Clock) -> Iterator[str]:
    """Write the state before, and the history after each iteration."""
    folder = project / ".ralph"
    started = now()
    state: dict[str, Any] = {"active": True, "iteration": 1, "minIterations": 1, "maxIterations": LIMIT}
    state |= {"completionPromise": "COMPLETE", "tasksMode": False, "prompt": "Make every test of the cart pass"}
    state |= {"startedAt": stamp(started), "model": "gpt-5.6", "agent": "codex"}
    rounds: list[dict[str, Any]] = []
    for number in range(1, LIMIT + 1):
        begin = now()
        yield from in_place_json(folder / "ralph-loop.state.json", state | {"iteration": number})
        yield f"iteration {number}"
        end = now()
        times = {"startedAt": stamp(begin), "endedAt": stamp(end)}
        rounds.append(
            {"iteration": number, **times, "durationMs": (end - begin) / timedelta(milliseconds=1), "agent": "codex"}
            | {"model": "gpt-5.6", "toolsUsed": {"Bash": 2}, "filesModified": ["shop/money.py"], "exitCode": 0}
            | {"completionDetected": False, "errors": ["1 failed"]}
        )
        yield from in_place_json(folder / "ralph-history.json", {"iterations": rounds, "totalDurationMs": 1})
    (folder / "ralph-loop.state.json").unlink()
    yield "done"


if __name__ == "__main__":
    play(__doc__ or "", steps)
