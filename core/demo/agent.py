"""Agent of the demo: works at tasks by the agent protocol (docs/task-memory.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from core.config.paths import ProjectPaths
from core.demo.scripts import ActionScript, AttemptScript, TaskScript, load_task_scripts
from core.episodes.protocol import Episodes
from core.records.debug_sessions import ESCALATED, IN_PROGRESS
from core.records.loops import Outcome
from core.records.times import iso

_AGENT: Final = "software-implementer"
_PARAMS: Final = {"bash": "command", "grep": "pattern", "glob": "pattern", "task": "description"}
"""The parameter that holds the target of an action type; `file_path` for all others."""


class DemoAgent:
    """Works at each scripted task once; each call of `advance` does one visible step."""

    def __init__(self, project: ProjectPaths, clock: Callable[[], datetime]) -> None:
        self._episodes = Episodes(project, clock=clock, by=_AGENT)
        self._steps = (step for task in load_task_scripts() for step in self._play_task(task))

    def advance(self) -> bool:
        """Start a task or attempt, log an action, or complete an attempt; False at the end."""
        return next(self._steps, False)

    def _play_task(self, task: TaskScript) -> Iterator[bool]:
        task_id = task.id
        if not task_id:
            task_id = self._episodes.init_task(task.description, criteria=task.criteria, tags=task.tags)
            yield True
        for attempt in task.attempts:
            yield from self._play_attempt(task_id, attempt, is_last=attempt is task.attempts[-1])

    def _play_attempt(self, task_id: str, attempt: AttemptScript, *, is_last: bool) -> Iterator[bool]:
        iteration = attempt.iteration
        if attempt.approach:
            self._episodes.start_attempt(task_id, approach=attempt.approach, steps=attempt.steps)
            yield True
        for action in attempt.actions:
            self._episodes.log_actions(task_id, [_action_fields(action)], iteration=iteration, quality=action.quality)
            iteration += action.quality is not None
            yield True
        outcome = Outcome.SUCCESS if attempt.succeeds else Outcome.FAILURE
        task_done = attempt.succeeds if is_last else None
        self._episodes.complete_attempt(task_id, outcome=outcome, reason=attempt.reason, task_done=task_done)
        if attempt.learning:
            self._episodes.reflect(
                task_id, learning=attempt.learning, observation=attempt.reason, trigger=outcome.value
            )
        yield True


def _action_fields(action: ActionScript) -> dict[str, Any]:
    params = {_PARAMS.get(action.type, "file_path"): action.target}
    if action.change is not None:
        params["old_string"], params["new_string"] = action.change
    return {
        "type": action.type,
        "tool": action.type.capitalize(),
        "params": params,
        "success": not action.error,
        "output": action.output,
        **({"error": action.error} if action.error else {}),
        "reasoning": action.reasoning,
        "expected_outcome": action.expected,
    }


def escalate_session(project: ProjectPaths, now: datetime) -> None:
    """Set the first debug session that is in progress to escalated, if there is one."""
    for file in sorted((project.ralph / "debug-memory" / "sessions").glob("*.json")):
        session = json.loads(file.read_text(encoding="utf-8"))
        if session.get("status") == IN_PROGRESS:
            session.update(status=ESCALATED, updated_at=iso(now))
            file.write_text(json.dumps(session, indent=2, ensure_ascii=False), encoding="utf-8")
            return
