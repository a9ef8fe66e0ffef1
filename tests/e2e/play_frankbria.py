"""Write the files of ralph-claude-code as its script does: status and progress in place, for live tests.

Run `python -m tests.e2e.play_frankbria PROJECT --home HOME`; its circuit breaker opens in the third iteration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from tests.e2e.play_runner import Clock, append, in_place, in_place_json, local, play

SESSION: Final = "7c1e0f2a-0000-4000-8000-0000000000dd"
COST: Final = 0.25  # of each call
ITERATIONS: Final = 3


def steps(project: Path, home: Path, now: Clock) -> Iterator[str]:
    """Write each iteration: status, invalid progress, the result of the call, and metrics."""
    folder = project / ".ralph"
    logs = folder / "logs"
    append(logs / "ralph.log", f"[{local(now())}] [SUCCESS] 🚀 Ralph loop starting with Claude Code\n")
    yield from in_place(folder / "fix_plan.md", "# Fix plan\n\n- [x] Round totals once\n- [ ] Show cents\n")
    for number in range(1, ITERATIONS + 1):
        at = now()
        append(logs / "ralph.log", f"[{local(at)}] [LOOP] === Starting Loop #{number} ===\n")
        yield from in_place_json(folder / "status.json", _status(number, at, "running", "executing"))
        yield from in_place(folder / "progress.json", '{"status": "executing", "last_output": "he said "hi""}\n')
        yield f"iteration {number}"
        usage = {"input_tokens": 10, "output_tokens": 100, "cache_read_input_tokens": 2000}
        result = {"type": "result", "is_error": False, "session_id": SESSION, "total_cost_usd": COST, "usage": usage}
        name = f"claude_output_{at.astimezone():%Y-%m-%d_%H-%M-%S}.log"
        yield from in_place(logs / name, f"{json.dumps(result)}\n")
        metric = {"timestamp": now().isoformat(), "loop": number, "duration": 20, "success": True, "calls": number}
        append(logs / "metrics.jsonl", json.dumps(metric) + "\n")
        yield from in_place_json(folder / "status.json", _status(number, now(), "success", "completed"))
    halted = _status(ITERATIONS, now(), "halted", "circuit_breaker_open")
    yield from in_place_json(folder / "status.json", halted | {"exit_reason": "stagnation_detected"})
    yield "done"


def _status(number: int, at: datetime, status: str, action: str) -> dict[str, object]:
    return {
        "timestamp": at.isoformat(timespec="seconds"),
        "loop_count": number,
        "calls_made_this_hour": number,
        "max_calls_per_hour": 100,
        "last_action": action,
        "status": status,
        "exit_reason": "",
    }


if __name__ == "__main__":
    play(__doc__ or "", steps, ".ralph/ralph_loop.sh")
