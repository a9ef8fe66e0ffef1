"""Opens the project of a dashboard or `watch` for the thread that follows its team."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from core.files.user_files import team_file
from core.sources.ledger import Ledger

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.snapshot import Delta
    from core.records.team import TeamStatus
    from core.team.follow import Follower, JoinedCopy

    ReadNow = Callable[[Iterable[Path] | None], tuple[ProjectState, Delta]]


def open_follower(
    project: Project,
    read_now: ReadNow,
    changed: Callable[[TeamStatus], None],
    place: str,
) -> Follower | None:
    """Return the thread for a project; None if it is read-only or belongs to no team.

    `read_now` reads changed files into the project; the others are arguments of `Follower`.
    """
    if project.is_readonly or (open_project := find_joined(project, read_now)) is None:
        return None
    from core.team.follow import Follower

    return Follower(open_project, changed, place=place, now=project.now)


def find_joined(project: Project, read_now: ReadNow) -> Callable[[], JoinedCopy] | None:
    """Return what opens a project for its team; None if it belongs to no team."""
    if not team_file().exists():  # so that nothing of a team is imported
        return None
    from core.team import consent

    joined = consent.find_joined(project.project.project)
    if joined is None:
        return None

    def open_project() -> JoinedCopy:
        from core.team.follow import JoinedCopy

        return JoinedCopy(_WatchedProject(project, read_now), joined)

    return open_project


class _WatchedProject:
    """A project as another thread than that of its loop uses it: the loop reads what the thread has written."""

    def __init__(self, project: Project, read_now: ReadNow) -> None:
        self._project = project
        self.apply = read_now
        self.project, self.settings, self.by, self.now = project.project, project.settings, project.by, project.now
        self.ledger = Ledger(project.project)  # one object is for one thread

    @property
    def view(self) -> ProjectState:
        return self._project.view
