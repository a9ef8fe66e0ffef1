"""A session of an agent, event by event, without processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.agents.hooks.answer import HookAnswer
from core.agents.hooks.events import parse_event
from core.agents.hooks.sessions import Session, Sessions
from core.base.paths import ProjectPaths

FIX_PROMPT = "Fix the TypeError in the account page"
START = datetime(2026, 11, 20, 9, tzinfo=UTC)
FAILING = {
    "tool_name": "Bash",
    "tool_input": {"command": "npm test"},
    "error": "Exit code 1\nFAIL src/account.test.ts\nTypeError: Cannot read properties of null (reading 'name')",
}
EDIT = {
    "tool_name": "Edit",
    "tool_input": {"file_path": "src/account.ts", "old_string": "user.name", "new_string": 'user?.name ?? ""'},
    "tool_response": {"filePath": "src/account.ts"},
}
PASSING = {
    "tool_name": "Bash",
    "tool_input": {"command": "npm test"},
    "tool_response": {"stdout": "12 passed", "stderr": "", "interrupted": False},
}


class _GaveUp(Exception):
    """Ends a simulated hook where the deadline ends a real one."""


@dataclass
class SimulatedAgent:
    """Sends the events of one session of Claude Code to the hooks."""

    project: ProjectPaths
    session: str = "s1"
    agent: str = "claude"
    at: datetime = START
    warnings: list[str] = field(default_factory=list)
    is_late: bool = False  # whether the hooks give up before they deliver a context
    meanwhile: Callable[[], object] | None = None  # what happens while the next hook is about to deliver a context
    _calls: int = 0

    def send(self, name: str, **fields: Any) -> Any:
        """Send an event; returns the answer as JSON, or None."""
        self.at += timedelta(seconds=10)
        given = {"hook_event_name": name, "session_id": self.session, "cwd": str(self.project.project), **fields}
        event = parse_event(self.agent, json.dumps(given).encode())
        assert event is not None
        answers: list[bytes] = []
        with suppress(_GaveUp):
            HookAnswer(
                self.project,
                event,
                clock=lambda: self.at,
                warn=self.warnings.append,
                begin_answer=self._begin_answer,
            ).handle(answers.append)
        assert len(answers) <= 1
        return json.loads(answers[0]) if answers else None

    def _begin_answer(self) -> None:
        if self.is_late:
            raise _GaveUp
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            meanwhile()

    def context(self, name: str, **fields: Any) -> str:
        """Send an event; returns the context in the answer, "" if there is none."""
        answer = self.send(name, **fields)
        return answer["hookSpecificOutput"]["additionalContext"] if answer else ""

    def prompt(self, text: str) -> str:
        """Send a prompt; returns its context."""
        return self.context("UserPromptSubmit", prompt=text)

    def tool(self, fields: dict[str, Any], **more: Any) -> str:
        """Send a tool call with an ID of its own; returns the context in the answer."""
        self._calls += 1
        name = "PostToolUseFailure" if "error" in fields else "PostToolUse"
        return self.context(name, **{"tool_use_id": f"{self.session}-{self._calls}", **fields, **more})

    def fix_and_stop(self) -> None:
        """Fail, fix the file, pass, and end the turn."""
        for fields in (FAILING, EDIT, PASSING):
            self.tool(fields)
        self.send("Stop")

    @property
    def record(self) -> Session:
        """The record of the session."""
        return next(one for one in Sessions(self.project).all() if one.id == self.session)


def make_project(folder: Path) -> ProjectPaths:
    """Make an empty project."""
    project = ProjectPaths(folder)
    project.ralph.mkdir(parents=True)
    return project
