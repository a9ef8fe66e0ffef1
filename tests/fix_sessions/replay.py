"""A project in which sessions are replayed through the hooks, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unittest import mock

from core.agents.hooks import answer, background
from core.agents.hooks.answer import HookAnswer
from core.agents.hooks.contexts import known_fix, open_state
from core.agents.hooks.events import failed_call, parse_event
from core.base.paths import ProjectPaths
from core.decisions.commands import Bulk, Release
from core.project.project import Project
from core.sources.configuration import Configuration
from tests.fix_sessions.payloads import CONVERSATIONS, Conversation, JsonObject
from tests.fix_sessions.sessions import Failure, Session

NOW: Final = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Workshop:
    """A project in a folder of its own; the background work of the hooks is done when an event returns."""

    def __init__(self, folder: Path, form: str = "claude") -> None:
        self.folder = folder
        self._form = CONVERSATIONS[form]
        self.paths = ProjectPaths(folder / "project")
        self.paths.ralph.mkdir(parents=True)
        self._answers: list[str] = []

    def play(self, session: Session) -> None:
        """Replay a session."""
        for name, content in session.files.items():
            target = self.paths.project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        with self._hooks():
            self._conversation("s1").play(session)

    def answer(self, failure: Failure) -> str:
        """Return what the hooks answer a failed command in a new session."""
        self._answers.clear()
        with self._hooks():
            self._conversation("s2").fail(failure)
        return "\n".join(self._answers)

    def open(self) -> Project:
        """Open the project with all questions."""
        found = Configuration.read(self.paths).with_registry(self.paths)
        project = Project(self.paths, found.settings, by="reviewer", clock=lambda: NOW, cache=False)
        project.load()
        project.search_all()
        return project

    def approve_all(self, project: Project) -> None:
        """Approve all patterns that wait for it, as a person does who agrees with everything."""
        waiting = [one for one in project.view.snapshot.patterns if not project.view.assessment(one).injectable]
        if waiting:
            project.decide(Bulk(tuple(Release(one, reason="read") for one in waiting)))

    def known_fixes(self, failures: Sequence[Failure]) -> Iterator[str]:
        """Yield the known fix of each failure; nothing is recorded."""
        state = open_state(self.paths, lambda: NOW)
        assert state is not None
        for failure in failures:
            events: list[JsonObject] = []
            conversation = CONVERSATIONS["claude"]("s3", self.paths.project, self.folder / "s3.jsonl", events.append)
            conversation.fail(failure)
            event = parse_event("claude", json.dumps(events[0]).encode())
            assert event is not None
            yield known_fix(state, self.paths, failed_call(event.tool))[0].context

    def _conversation(self, name: str) -> Conversation:
        transcript = self.folder / "transcripts" / f"{name}.jsonl"
        return self._form(name, self.paths.project, transcript, self._send)

    def _send(self, payload: JsonObject) -> None:
        event = parse_event(self._form.agent, json.dumps(payload).encode())
        assert event is not None, payload
        HookAnswer(self.paths, event, clock=lambda: NOW).handle(lambda data: self._answers.append(_context(data)))

    @contextmanager
    def _hooks(self) -> Iterator[None]:
        def work(paths: ProjectPaths) -> None:
            background.run(paths, NOW)

        with mock.patch.object(answer, "start_background", work):
            yield


def _context(data: bytes) -> str:
    fields: Any = json.loads(data)
    found = fields.get("hookSpecificOutput", fields)
    return str(found.get("additionalContext") or found.get("additional_context") or "")
