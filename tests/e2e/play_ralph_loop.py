"""Write the state file of the Claude plugin ralph-loop and the transcript of its session, for live tests.

The state is replaced in each iteration, and deleted at the end. Run
`python -m tests.e2e.play_ralph_loop PROJECT --home HOME`; it ends with the promise, in the third iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.play_claude import Records, lines, slug
from tests.e2e.play_runner import Clock, play, stamp

SESSION: Final = "7c1e0f2a-0000-4000-8000-0000000000cc"
PROMISE: Final = "ALL GREEN"
PROMPT: Final = "Make every test of the cart pass."
ITERATIONS: Final = 3


def steps(project: Path, home: Path, now: Clock) -> Iterator[str]:
    """Write each iteration: the work of the agent, and the Stop hook that blocks its end."""
    path = project / ".claude" / "ralph-loop.local.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = home / ".claude" / "projects" / slug(project)
    folder.mkdir(parents=True, exist_ok=True)
    make = Records(project, SESSION, now=now)
    started = stamp(now())
    with (folder / f"{SESSION}.jsonl").open("ab", buffering=0) as file:
        file.write(lines([make.command("ralph-loop:ralph-loop", PROMPT), make.prompt(PROMPT)]))
        path.write_text(_state(1, started), encoding="utf-8")
        for number in range(1, ITERATIONS + 1):
            yield f"iteration {number}"
            file.write(lines([call := make.tool("Bash", command="pytest -q")]))
            passed = number == ITERATIONS
            line = lines([make.result(call, "33 passed" if passed else "2 failed", failed=not passed)])
            file.write(line[: len(line) // 2])
            yield "torn line"
            file.write(line[len(line) // 2 :])
            if passed:
                file.write(lines([make.answer(f"<promise>{PROMISE}</promise>")]))
                break
            file.write(lines([make.answer("Two tests fail."), make.system("stop_hook_summary", hookErrors=["again"])]))
            file.write(lines([make.meta(f"Stop hook feedback:\n{PROMPT}")]))
            other = path.with_name(f"{path.name}.tmp.1")
            other.write_text(_state(number + 1, started), encoding="utf-8")
            other.replace(path)
        path.unlink()
        file.write(lines([make.system("turn_duration", durationMs=60_000)]))
    yield "done"


def _state(iteration: int, started: str) -> str:
    fields = f"active: true\niteration: {iteration}\nsession_id: {SESSION}\nmax_iterations: 20\n"
    fields += f'completion_promise: "{PROMISE}"\nstarted_at: "{started}"\n'
    return f"---\n{fields}---\n\n{PROMPT}\n"


if __name__ == "__main__":
    play(__doc__ or "", steps)
