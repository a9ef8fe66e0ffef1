"""A project on a member's machine, which is synchronized with a space on a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.base.settings import MaturitySettings
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.events import Event
from core.sources.events import append_events
from core.team.consent import Joined
from core.team.follow import JoinedCopy, forget
from core.team.local_state import LocalState
from core.team.sync import Cycle, Prefer
from tests.factories import NO_RETRY_SETTINGS
from tests.team_server import HALF_LIFE_DAYS, Team

START: Final = datetime.fromisoformat("2026-11-20T12:00:00+00:00")
SETTINGS: Final = replace(NO_RETRY_SETTINGS, maturity=MaturitySettings(half_life_days=HALF_LIFE_DAYS))


class Clock:
    """Starts at `START` and moves on with each look, so that nothing happens at the same time."""

    def __init__(self, start: datetime = START) -> None:
        self.now = start

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


def make_record(pattern_id: str, fix: str = "Check for null", **more: Any) -> dict[str, Any]:
    return {
        "pattern_id": pattern_id,
        "error_signature": {"error_type": "TypeError", "error_pattern": f"{pattern_id} failed"},
        "fix_approach": {"description": f"{fix} in {pattern_id}"},
        **more,
    }


def make_use_event(number: int, pattern_id: str, loop_id: str, success: bool | None = True, **more: Any) -> Event:
    at = more.pop("at", START - timedelta(days=number))
    kind = more.pop("kind", "applied")
    return Event(id=f"e-{number}", at=at, kind=kind, pattern_id=pattern_id, loop_id=loop_id, success=success, **more)


def write_patterns(paths: ProjectPaths, *records: dict[str, Any]) -> None:
    """Replace the error patterns of a project."""
    paths.patterns.mkdir(parents=True, exist_ok=True)
    content = {"version": "1.0.0", "pattern_registry": {"error_patterns": list(records)}}
    paths.pattern_file("error").write_text(json.dumps(content, indent=2) + "\n")


class WorkingCopy:
    """A folder with patterns and events, opened anew for each sync as the command does."""

    def __init__(
        self, folder: Path, team: Team, role: str = "rita", clock: Callable[[], datetime] | None = None
    ) -> None:
        self.paths = ProjectPaths(folder)
        self.team = team
        self.role = role
        self.clock = clock or Clock()
        self.id: UUID = uuid4()
        self.paths.patterns.mkdir(parents=True, exist_ok=True)

    def write(self, *records: dict[str, Any]) -> None:
        write_patterns(self.paths, *records)

    def records(self) -> dict[str, dict[str, Any]]:
        path = self.paths.pattern_file("error")
        if not path.exists():
            return {}
        (records,) = json.loads(path.read_bytes())["pattern_registry"].values()
        return {record["pattern_id"]: record for record in records}

    def log(self, *events: Event) -> None:
        append_events(self.paths, *events)

    def open(self, *, asks: bool = False) -> Project:
        """Open the project; with `asks`, also with its questions."""
        by = self.role.capitalize()
        project = Project(self.paths, SETTINGS, by=by, clock=self.clock, cache=False, asks=asks)
        project.load()
        return project

    def sync(self, prefer: Prefer | None = None) -> Cycle:
        joined = Joined(space="acme", source="env", id=self.id, name=self.paths.project.name)
        with closing(JoinedCopy(self.open(), joined, lambda _: self.team.space(self.role))) as copy:
            return copy.sync(copy.open_space(), prefer)

    def local_state(self) -> LocalState:
        return LocalState(self.paths.project)

    def forget_state(self) -> None:
        """Lose what was sent and received, and the lock of an interrupted sync."""
        forget(self.paths.project)

    def state_of_pattern(self, pattern_id: str) -> str:
        return self.open().view.board.assessment(pattern_id).shown

    def sums(self, ids: Iterable[str]) -> dict[str, dict[str, float]]:
        return board_sums(self.open().view.board, ids)


def board_sums(board: Scoreboard, ids: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return what the scoreboard counts for each pattern, decayed to `board.now`."""
    found = {}
    for pattern_id in ids:
        one = board.assessment(pattern_id)
        found[pattern_id] = {
            "successes": one.successes,
            "failures": one.failures,
            "uses": one.uses,
            "injected_only": one.injected_only,
            "helpful": one.helpful,
            "harmful": one.harmful,
        }
    return found
