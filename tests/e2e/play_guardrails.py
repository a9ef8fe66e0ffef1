"""Write the files of agrimsingh/ralph-wiggum-cursor as its scripts do, for live tests.

Logs are appended; the task file and the signs are written in place by the agent. Run
`python -m tests.e2e.play_guardrails PROJECT --home HOME`; it ends after the second session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.play_runner import Clock, append, in_place, local, play

SIGN: Final = "run pytest with -p no:randomly before any change"
CRITERIA: Final = ("Totals are rounded once", "Cents are shown")
_HEADER: Final = "# Ralph Guardrails (Signs)\n\n## Core Signs\n\n### Sign: Read Before Writing\n" + (
    "- **Instruction**: Read the file first\n- **Added after**: Core principle\n\n---\n\n## Learned Signs\n\n"
)


def steps(project: Path, home: Path, now: Clock) -> Iterator[str]:
    """Write two sessions: the first is rotated and adds a sign, the second ends the task."""
    folder = project / ".ralph"
    yield from in_place(project / "RALPH_TASK.md", _task(0))
    yield from in_place(folder / "guardrails.md", _HEADER)
    for number, end in ((1, "🔄 Context rotation (token limit reached)"), (2, "✅ TASK COMPLETE")):
        started = now()
        _progress(folder, local(started), f"**Session {number} started** (cli: claude, model: opus)")
        append(folder / "activity.log", f"\nRalph Session Started: {local(started)}\n")
        yield f"session {number}"
        for tool in ("READ shop/money.py (~2KB)", "SHELL pytest → exit 1", "WRITE shop/money.py (~1KB)"):
            append(folder / "activity.log", f"[{local(now())[11:]}] 🟢 {tool}\n")
        if number == 1:
            sign = f"### Sign: Pin the seed first\n- **Trigger**: a flaky test\n- **Instruction**: {SIGN}\n"
            yield from in_place(folder / "guardrails.md", f"{_HEADER}{sign}- **Added after**: Iteration 1\n")
        yield from in_place(project / "RALPH_TASK.md", _task(number))
        _progress(folder, local(now()), f"**Session {number} ended** - {end}")
    yield "done"


def _task(done: int) -> str:
    boxes = "".join(f"{n}. [{'x' if n <= done else ' '}] {text}\n" for n, text in enumerate(CRITERIA, start=1))
    return f"---\ntask: Make the cart exact\n---\n# Task\n\n{boxes}"


def _progress(folder: Path, at: str, text: str) -> None:
    append(folder / "progress.md", f"\n### {at}\n{text}\n")


if __name__ == "__main__":
    play(__doc__ or "", steps, ".cursor/ralph-scripts/ralph-loop.sh")
