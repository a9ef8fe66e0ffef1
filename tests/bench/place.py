"""The generated projects of a run, and the opened projects of one process.

Modules of the program are imported when a project is opened: older revisions lack some, and measure the other rows.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, convert
from msgspec.structs import asdict

from tests.bench import sized
from tests.bench.trees import NOW, events, write_loops, write_patterns

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.index.project_state import ProjectState
    from core.learning.scoreboard import Scoreboard
    from core.project.project import Project


class Sizes(Struct, frozen=True):
    """How much a run generates, and how often it runs commands and sessions at most (`runs`)."""

    loops: int = 10_000
    patterns: int = 10_000
    many_patterns: int = 100_000
    events: int = 1_000_000
    team_events: int = 10_000_000
    tasks: int = 10_000
    attempts: int = 1_000
    loops_of_growth: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000)
    patterns_of_growth: tuple[int, ...] = (10_000, 100_000, 300_000)
    runs: int = 5

    def quick(self) -> Sizes:
        """A tenth of everything, and one run."""
        smaller = {
            name: value // 10 if isinstance(value, int) else [one // 10 for one in value]
            for name, value in asdict(self).items()
        }
        return convert(smaller | {"runs": 1}, Sizes)


@dataclasses.dataclass
class Place:
    """The projects below `folder`; what a process opens is opened once."""

    folder: Path
    sizes: Sizes

    @property
    def loops(self) -> Path:
        """Project with all loops and patterns."""
        return self.folder / "loops"

    @property
    def many(self) -> Path:
        """Project with all loops and with many patterns."""
        return self.folder / "many"

    @cached_property
    def episodes(self) -> ProjectPaths:
        """Task memory."""
        from core.base.paths import ProjectPaths

        return ProjectPaths(self.folder / "episodes")

    def sized(self, size: str) -> Path:
        """Project of one of the sizes of `tests.bench.sized`; rows measure copies of it."""
        return self.folder / f"size-{size}"

    def generate(self) -> None:
        """Write what is missing and used by several rows."""
        from tests.bench.episodes import write_tasks

        for project, patterns in ((self.loops, self.sizes.patterns), (self.many, self.sizes.many_patterns)):
            if not project.exists():
                write_loops(project, self.sizes.loops)
                write_patterns(project, patterns)
        if not self.episodes.project.exists():
            write_tasks(self.episodes, self.sizes.tasks, self.sizes.attempts)

    def generate_sized(self, size: str) -> None:
        """Write the project of a size if it is missing."""
        project = self.sized(size)
        if project.exists():
            return
        draft = self.folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        if size == "sample":
            from core.cli.demo.sample import copy_sample

            copy_sample(draft, datetime.now(UTC))
        else:
            self._write_generated(draft, is_huge=size == "huge")
        sized.write_lessons(draft)
        draft.rename(project)

    def _write_generated(self, project: Path, *, is_huge: bool) -> None:
        """Write loops, patterns, decisions, team sums, events, tasks and debug sessions."""
        from core.base.paths import ProjectPaths
        from tests.bench.episodes import write_task
        from tests.bench.one_change import write_large

        patterns = self.sizes.many_patterns if is_huge else self.sizes.patterns
        write_patterns(project, patterns)
        sized.decide(project)  # before the loops, which each command would read
        write_loops(project, self.sizes.loops)
        write_large(project, patterns, self.sizes.events if is_huge else self.sizes.events // 100)
        sized.write_team_sums(project, patterns)
        for number in (1, 2):
            folder = ProjectPaths(project).tasks / f"task-{number:03d}"
            write_task(random.Random(6), folder, 2, 20, is_open=number == 2)

    @cached_property
    def opened(self) -> Project:
        return open_and_load(self.loops)

    @cached_property
    def opened_many(self) -> Project:
        return open_and_load(self.many)

    @cached_property
    def opened_with_events(self) -> Project:
        """All loops and patterns, with an event log of all events; written anew, since rows change its files."""
        from tests.bench.one_change import write_large

        project = self.folder / "with-events"
        shutil.rmtree(project, ignore_errors=True)
        write_loops(project, self.sizes.loops)
        write_patterns(project, self.sizes.patterns)
        write_large(project, self.sizes.patterns, self.sizes.events)
        return open_and_load(project)

    @property
    def view(self) -> ProjectState:
        return self.opened.view

    @property
    def view_of_many(self) -> ProjectState:
        return self.opened_many.view

    @cached_property
    def board(self) -> Scoreboard:
        """Many patterns with the evidence of all events."""
        return board_with_events(self.view_of_many, self.sizes.events)


def open_project(project: Path, *, cache: bool = True) -> Project:
    """Open the project without reading it; the clock is fixed at the date of the generated files."""
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.project.project import Project

    return Project(ProjectPaths(project), Settings(), by="bench", clock=lambda: NOW, cache=cache)


def open_and_load(project: Path) -> Project:
    opened = open_project(project)
    opened.load()
    return opened


def board_with_events(view: ProjectState, count: int, patterns: int | None = None) -> Scoreboard:
    """Build a scoreboard of the same patterns, or of some of them, with evidence from `count` events."""
    from core.learning.scoreboard import Scoreboard

    known = view.snapshot.patterns
    log = tuple(events(len(known) if patterns is None else patterns, count))
    if patterns is not None:
        used = {event.pattern_id for event in log}
        known = {id: pattern for id, pattern in known.items() if id in used}
    return Scoreboard.build(view.snapshot.with_changes(patterns=known, events=log, loops={}), NOW, view.settings)
