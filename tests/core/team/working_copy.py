"""A project on a member's machine, which is synchronized with a space on a real server, and calls of that server."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from unittest import mock
from uuid import UUID, uuid4

from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.base.settings import MaturitySettings
from core.cli.program import run
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.events import Event
from core.records.team import PatternText, TeamTrial, TeamUse
from core.sources.events import append_events
from core.team.connection import Joined
from core.team.follow import JoinedCopy, forget
from core.team.local_state import LocalState
from core.team.server import Space
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


_CALLS: Final = ("add_events", "put_patterns", "decide", "patterns", "sums", "decisions", "join_project", "members")
_WRITES: Final = ("confirm", "set_texts", "set_facts", "set_sums", "forget_changed", "add_decisions", "add_uses")


@contextmanager
def interrupted(after: int | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at one of the moments, counted from 1; None: never."""
    left = after

    def count() -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left <= 0:
                left = None
                stop()

    def counted(owner: type, name: str) -> Any:
        function = getattr(owner, name)

        def wrapper(*args: Any, **options: Any) -> Any:
            count()
            found = function(*args, **options)
            count()
            return found

        return mock.patch.object(owner, name, wrapper)

    with ExitStack() as stack:
        for owner, names in ((Space, _CALLS), (LocalState, _WRITES)):
            for name in names:
                stack.enter_context(counted(owner, name))
        yield


def main(project: Path) -> None:
    """For each number on stdin, synchronize in a fork that is killed at this moment; print its exit code."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.dup2(2, 1)
            with interrupted(int(line), lambda: os.kill(os.getpid(), signal.SIGKILL)):
                os._exit(run(["team", "sync", "--project", str(project)]))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))


Psql = Callable[..., str]
"""Runs SQL statements as a role; see the fixture `psql`."""
AT: Final = datetime(2025, 3, 20, 12, tzinfo=UTC)  # before the clock of every server
PATTERN: Final = "pat-error-timeout-001"


def make_use(number: int = 1, **changes: Any) -> TeamUse:
    values: dict[str, Any] = {"pattern_id": PATTERN, "kind": "applied", "at": AT, "success": True}
    return TeamUse(id=UUID(int=number), **(values | changes))


def make_trial(**changes: Any) -> TeamTrial:
    values: dict[str, Any] = {"pattern_id": PATTERN, "kind": "returned", "share": 0.5, "rate": 10}
    return TeamTrial(**{**values, "id": uuid4(), "is_held_out": True, "outcome": True} | changes)


def make_decision(number: int = 1, by: str = "Rita", verb: str = "promote", **keys: Any) -> str:
    return json.dumps({"id": f"d{number}", "by": by, "verb": verb, "subject": PATTERN, **keys})


def make_text(pattern_id: str = PATTERN, content_hash: str = "a", **changes: Any) -> PatternText:
    return PatternText(
        **{"pattern_id": pattern_id, "type": "error", "record": "{}", "content_hash": content_hash} | changes
    )


def make_candidate(number: int = 1, pattern_id: str = PATTERN, **changes: Any) -> str:
    """The decision of a loop that adds a pattern, which no person has read."""
    place = {"file": ".aiwg/ralph/shared/patterns/error-patterns.json", "type": "error", "pattern_id": pattern_id}
    keys: dict[str, Any] = {
        "subject": "loop-1",
        "after": {"patterns": [pattern_id], "hashes": {pattern_id: "a"}},
        "effects": [{**place, "insert": {"id": pattern_id}}],
        "inverse": [{**place, "remove": True}],
    }
    return make_decision(number, "Carl (script)", "extract", **(keys | changes))


def join(*spaces: Space, name: str = "web") -> UUID:
    """Let members join a new project to the space; returns its ID."""
    project = uuid4()
    for space in spaces:
        space.join_project(project, name)
    return project


def call(space: UUID, function: str, *arguments: object) -> str:
    quoted = (f"'{value}'" if isinstance(value, str | UUID) else str(value) for value in arguments)
    values = ", ".join(quoted).replace("None", "null")
    return f"select ralphdeck.{function}('{space}', {values})"


def decide(space: UUID, project: UUID, payload: str) -> str:
    return call(space, "decide", project, payload, "{x}", 0, "{}", "{}", "[]")
