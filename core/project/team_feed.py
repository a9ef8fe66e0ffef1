"""Opens the thread that keeps a project in sync with its team, if the user has joined one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from core.ledger.ledger import Ledger

if TYPE_CHECKING:
    from core.project.watch_loop import WatchLoop
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from core.team.follow import Follower, JoinedProject


def open_follower(loop: WatchLoop) -> Follower | None:
    """Return the thread for the project of a loop; None if it is read-only or belongs to no team."""
    if loop.project.is_readonly or (open_project := find_joined(loop)) is None:
        return None
    from core.team.follow import Follower

    return Follower(open_project, loop.team_changed, loop.team_noticed, place=loop.place, now=loop.project.now)


def find_joined(loop: WatchLoop) -> Callable[[], JoinedProject] | None:
    """Return what opens the project of a loop for its team; None if it belongs to no team."""
    from core.team import consent

    joined = consent.find_joined(loop.project.project.project)
    if joined is None:
        return None

    def open_project() -> JoinedProject:
        from core.team.joined import JoinedCopy

        return JoinedCopy(WatchedProject(loop), joined)

    return open_project


class WatchedProject:
    """The project of a loop as another thread uses it: the loop reads what the thread has written."""

    def __init__(self, loop: WatchLoop) -> None:
        project = loop.project
        self._loop = loop
        self.project, self.settings, self.by, self.now = project.project, project.settings, project.by, project.now
        self.ledger = Ledger(project.project)  # one object is for one thread

    @property
    def view(self) -> ProjectState:
        return self._loop.project.view

    def apply(self, changed: Iterable[Path] | None) -> tuple[ProjectState, Delta]:
        return self._loop.read_now(changed)
