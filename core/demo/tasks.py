"""An agent of the demo: it works at one task after the other, through the agent protocol of (1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from core.config.paths import ProjectPaths
from core.demo.doings import NEW_TASKS, OPEN_TASK, Doing, PlayedTask, Try
from core.episodes.protocol import Episodes
from core.records.debug_sessions import ESCALATED, IN_PROGRESS
from core.records.loops import Outcome
from core.records.times import iso

_AGENT: Final = "software-implementer"
_PARAMS: Final = {"bash": "command", "grep": "pattern", "glob": "pattern", "task": "description"}
"""What an action of each type is about; a file for the others."""


class PlayedAgent:
    """Works at each task once, lest the list be full of the same ones; `beat` does the next visible thing."""

    def __init__(self, project: ProjectPaths, clock: Callable[[], datetime]) -> None:
        self._episodes = Episodes(project, clock=clock, by=_AGENT)
        self._beats = self._play()

    def beat(self) -> bool:
        """Begin a task or an attempt, do one thing, or come to an end; False once all is done."""
        return next(self._beats, False)

    def _play(self) -> Iterator[bool]:
        for task in (OPEN_TASK, *NEW_TASKS):
            yield from self._work(task)

    def _work(self, task: PlayedTask) -> Iterator[bool]:
        identity = task.id
        if not identity:
            identity = self._episodes.init_task(task.description, criteria=task.criteria, tags=task.tags)
            yield True
        for tried in task.tries:
            yield from self._attempt(identity, tried, last=tried is task.tries[-1])

    def _attempt(self, identity: str, tried: Try, *, last: bool) -> Iterator[bool]:
        iteration = tried.iteration
        if tried.approach:
            self._episodes.start_attempt(identity, approach=tried.approach, steps=tried.steps)
            yield True
        for doing in tried.doings:
            self._episodes.log_actions(identity, [_action(doing)], iteration=iteration, quality=doing.quality)
            iteration += doing.quality is not None
            yield True
        outcome = Outcome.SUCCESS if tried.succeeds else Outcome.FAILURE
        self._episodes.complete_attempt(
            identity, outcome=outcome, reason=tried.reason, task_done=tried.succeeds if last else None
        )
        if tried.learning:
            self._episodes.reflect(identity, learning=tried.learning, observation=tried.reason, trigger=outcome.value)
        yield True


def _action(doing: Doing) -> dict[str, Any]:
    params = {_PARAMS.get(doing.type, "file_path"): doing.what}
    if doing.change is not None:
        params["old_string"], params["new_string"] = doing.change
    return {
        "type": doing.type,
        "tool": doing.type.capitalize(),
        "params": params,
        "success": not doing.error,
        "output": doing.came,
        **({"error": doing.error} if doing.error else {}),
        "reasoning": doing.why,
        "expected_outcome": doing.expected,
    }


def escalate(project: ProjectPaths, now: datetime) -> None:
    """Let a debug session of the sample that is in progress ask for a person; nothing happens without one."""
    for file in sorted((project.ralph / "debug-memory" / "sessions").glob("*.json")):
        session = json.loads(file.read_text(encoding="utf-8"))
        if session.get("status") == IN_PROGRESS:
            session.update(status=ESCALATED, updated_at=iso(now))
            file.write_text(json.dumps(session, indent=2, ensure_ascii=False), encoding="utf-8")
            return
