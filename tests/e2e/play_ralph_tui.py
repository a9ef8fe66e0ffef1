"""Write the files of a ralph-tui session as it does, with a session of Claude Code per iteration, for live tests.

The session file and the registry are replaced; the progress log is truncated and written in place, in two parts. Run
`python -m tests.e2e.play_ralph_tui PROJECT --home HOME`; it ends after the second of two tasks.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.e2e.play_claude import Records, lines, slug
from tests.e2e.play_runner import play, stamp

SESSION: Final = "7c1e0f2a-0000-4000-8000-0000000000bb"
TASKS: Final = (("US-001", "Round totals once"), ("US-002", "Show cents"))
LEARNINGS: Final = ("The templates formatted, they must not round", "Pin the seed before the first run of the tests")
HEADER: Final = "# Ralph Progress Log\n\n## Codebase Patterns (Study These First)\n\n- Money is Decimal\n\n---\n\n"


class RalphTui:
    """Writes a session step by step; `now` gives the time of each step."""

    def __init__(self, project: Path, home: Path, pid: int, now: Callable[[], datetime]) -> None:
        self._folder, self._home, self._project = project / ".ralph-tui", home, project
        self._pid, self._now = pid, now
        self._progress = HEADER
        self._iterations: list[dict[str, Any]] = []
        self._started = now()

    def steps(self) -> Iterator[str]:
        """Write, and yield what was done after each step."""
        (self._folder / "iterations").mkdir(parents=True, exist_ok=True)
        self._write_json("ralph.lock", {**self._named(), "pid": self._pid, "hostname": socket.gethostname()})
        yield "locked"
        self._save("running")
        self._register("running")
        yield from self._write_progress()
        for number, (task, title) in enumerate(TASKS, start=1):
            start = self._now()
            yield from self._work(number, title)
            self._log(number, task, title, start)
            self._progress += (
                f"## ✓ Iteration {number} - {task}: {title}\n- **Learnings:**\n  - {LEARNINGS[number - 1]}\n---\n"
            )
            yield from self._write_progress()
            self._save("running")
            yield f"iteration {number}"
        self._save("completed")
        self._register("completed")
        (self._folder / "ralph.lock").unlink()
        yield "completed"

    def _named(self) -> dict[str, str]:
        return {"sessionId": SESSION, "acquiredAt": stamp(self._started), "cwd": str(self._project)}

    def _save(self, status: str) -> None:
        done = len(self._iterations)
        tasks = [
            {
                "id": id,
                "title": title,
                "status": "completed" if place < done else "open",
                "completedInSession": place < done,
            }
            for place, (id, title) in enumerate(TASKS)
        ]
        state = {
            "version": 1,
            "sessionId": SESSION,
            "status": status,
            "startedAt": stamp(self._started),
            "updatedAt": stamp(self._now()),
            "currentIteration": done,
            "maxIterations": 10,
            "tasksCompleted": done,
            "isPaused": False,
            "agentPlugin": "claude",
            "model": "sonnet",
            "trackerState": {"plugin": "json", "totalTasks": len(TASKS), "tasks": tasks},
            "iterations": self._iterations,
            "skippedTaskIds": [],
            "cwd": str(self._project),
            "activeTaskIds": [],
        }
        self._write_json("session.json", state)

    def _register(self, status: str) -> None:
        path = self._home / ".config" / "ralph-tui" / "sessions.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"sessionId": SESSION, "cwd": str(self._project), "status": status, "agentPlugin": "claude"}
        entry |= {"startedAt": stamp(self._started), "updatedAt": stamp(self._now()), "trackerPlugin": "json"}
        self._replace(path, json.dumps({"version": 1, "sessions": {SESSION: entry}}))

    def _work(self, number: int, title: str) -> Iterator[str]:
        """Write the session of the agent that an iteration starts; a line in the middle is written in two parts."""
        folder = self._home / ".claude" / "projects" / slug(self._project)
        folder.mkdir(parents=True, exist_ok=True)
        session = f"7c1e0f2a-0000-4000-8000-00000000010{number}"
        make = Records(self._project, session, now=self._now, entrypoint="sdk-cli", promptSource="sdk")
        with (folder / f"{session}.jsonl").open("ab", buffering=0) as file:
            file.write(lines([make.prompt(f"Work on one task: {title}")]))
            yield f"agent {number} started"
            file.write(lines([call := make.tool("Bash", command="pytest -q")]))
            line = lines([make.result(call, "33 passed")])
            file.write(line[: len(line) // 2])
            yield f"torn line of agent {number}"
            file.write(line[len(line) // 2 :])
            file.write(lines([make.answer("<promise>COMPLETE</promise>")]))

    def _log(self, number: int, task: str, title: str, start: datetime) -> None:
        end = self._now()
        milliseconds = round((end - start) / timedelta(milliseconds=1))
        times = {"startedAt": stamp(start), "endedAt": stamp(end), "durationMs": milliseconds}
        named = {"iteration": number, "status": "completed", "taskId": task, "taskTitle": title, "taskCompleted": True}
        self._iterations.append(named | times)
        name = f"{SESSION[:8]}_{start:%Y-%m-%d_%H-%M-%S}_{task}.log"
        header = f"# Iteration {number} Log\n\n### Learnings\n- {LEARNINGS[number - 1]}\n\n"
        header += f"## Metadata\n\n- **Task ID**: {task}\n"
        header += f"- **Started At**: {stamp(start)}\n- **Ended At**: {stamp(end)}\n- **Task Completed**: Yes\n"
        header += "- **Input Tokens**: 1200\n- **Output Tokens**: 90\n"
        (self._folder / "iterations" / name).write_text(f"{header}--- RAW OUTPUT ---\n33 passed\n")

    def _write_progress(self) -> Iterator[str]:
        half = len(self._progress) // 2
        with (self._folder / "progress.md").open("w") as file:
            file.write(self._progress[:half])
            file.flush()
            yield "torn progress log"
            file.write(self._progress[half:])

    def _write_json(self, name: str, value: object) -> None:
        self._replace(self._folder / name, json.dumps(value, indent=2))

    def _replace(self, path: Path, text: str) -> None:
        new = path.with_name(f"{path.name}.{self._pid}.tmp")
        new.write_text(text)
        new.replace(path)


if __name__ == "__main__":
    play(__doc__ or "", lambda project, home, now: RalphTui(project, home, os.getpid(), now).steps())
