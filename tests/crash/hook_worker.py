"""Answers hook events in forks, with a fault on the way: `python -m tests.crash.hook_worker PROJECT`.

Reads one JSON object per line, `{"session", "prompt", "kill_before", "full_from"}`, and prints one per line,
`{"code", "context"}`. A fork answers the prompt, and then a tool call that fails. `code` is None if it killed itself, 3
if the hook reported a problem of the disk, else 0. The faults are those of `tests.endurance.faulty_commands`.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from core.agents.hooks import answer
from core.base.errors import RalphdeckError
from core.base.paths import ProjectPaths
from tests.core.agents.hooks.agents import FAILING, START, SimulatedAgent
from tests.endurance.faulty_commands import Faults

REPORTED = 3


def answer_events(agent: SimulatedAgent, prompt: str, kill_before: int, full_from: int) -> dict[str, Any]:
    """Answer the events in a fork."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code, write = 0, os.write
        Faults(kill_before, full_from, lambda: None).install()
        try:
            for send in (partial(agent.prompt, prompt), partial(agent.tool, FAILING)):
                try:
                    write(writing, send().encode() + b"\n")
                except (RalphdeckError, OSError):
                    code = REPORTED
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        context = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"code": status if status >= 0 else None, "context": context}


def main() -> None:
    """Serve until stdin ends."""
    setattr(answer, "start_background", lambda _: None)  # noqa: B010
    project = ProjectPaths(Path(sys.argv[1]))
    for line in sys.stdin:
        given = json.loads(line)
        agent = SimulatedAgent(project, given.pop("session"), at=START + timedelta(hours=1))
        sys.stdout.write(json.dumps(answer_events(agent, **given)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
