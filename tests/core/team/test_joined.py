"""Two programs follow one space on a real server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from core.project.daemon import Daemon, WatchEvent
from core.project.project import Project
from core.project.watch_loop import WatchLoop
from core.records.team import TeamStatus
from core.team.consent import Joined, save_joined
from core.team.joined import read_status
from tests.core.team.fake_space import WAIT
from tests.core.team.working_copy import WorkingCopy, make_record, make_use_event
from tests.team_server import SPACE, Team

A = "pat-error-a-001"


def wait_for(is_reached: Callable[[], object]) -> None:
    end = monotonic() + WAIT
    pause = threading.Event()
    while not is_reached():
        assert monotonic() < end
        pause.wait(0.01)


class Program:
    """A watched project of a member, with what it reports."""

    def __init__(self, copy: WorkingCopy, project: Project) -> None:
        self.copy, self.project = copy, project
        self.events: list[WatchEvent] = []
        self.loop: WatchLoop = Daemon(project, self.events.append)

    @property
    def team(self) -> TeamStatus:
        assert self.loop.team is not None
        return self.loop.team.status

    def reported(self, what: str) -> list[str]:
        return [event.text for event in self.events if event.what == what]


@contextmanager
def watched(copy: WorkingCopy) -> Iterator[Program]:
    save_joined(copy.paths.project, Joined(space=SPACE, source=f"url={copy.team.url(copy.role)}", id=copy.id, name="x"))
    program = Program(copy, copy.open())
    thread = threading.Thread(target=program.loop.run)
    thread.start()
    try:
        wait_for(lambda: program.loop.team is not None and program.loop.team.status.is_online)
        yield program
    finally:
        start = monotonic()
        program.loop.stop()
        thread.join(WAIT)
        assert monotonic() - start < 5


@pytest.fixture
def ada(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "ada", team, "ada")


@pytest.fixture
def rita(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "rita", team, "rita")


def test_patterns_and_uses_reach_the_other_program(ada: WorkingCopy, rita: WorkingCopy) -> None:
    with watched(ada), watched(rita) as there:
        ada.write(make_record(A))
        ada.log(make_use_event(1, A, "loop-1"))
        wait_for(lambda: A in there.project.view.snapshot.patterns)
        wait_for(lambda: there.project.view.board.assessment(A).uses == 1)
        assert there.reported("pattern-new") == [f"new pattern: {A}"]


def test_members_see_each_other_and_the_open_question(ada: WorkingCopy, rita: WorkingCopy) -> None:
    with watched(ada) as here, watched(rita) as there:
        mine, other = here.loop.team, there.loop.team
        assert mine is not None and other is not None
        wait_for(lambda: {one.member for one in mine.status.present} == {"Ada", "Rita"})
        other.hold("the question")
        wait_for(lambda: mine.holder("the question"))
        lease = mine.holder("the question")
        assert lease is not None and lease.member == "Rita"
        assert abs((lease.since - here.project.now()).total_seconds()) < 5
        mine.hold("the question")
        assert other.holder("the question") is None
    wait_for(lambda: not ada.team.connect("ada").execute("select * from ralphdeck.presence").fetchall())


def test_a_server_that_stops_and_returns_is_reported(ada: WorkingCopy) -> None:
    cluster = ada.team.cluster
    with watched(ada) as here:
        cluster.stop()
        try:
            wait_for(lambda: here.team.offline_since)
            ada.write(make_record(A))
            ada.log(make_use_event(1, A, "loop-1"))
            wait_for(lambda: here.team.to_send == 2)
        finally:
            cluster.start()
        wait_for(lambda: here.team.is_online and not here.team.to_send)
        wait_for(lambda: len(here.reported("team")) == 3)
    online, offline, again = here.reported("team")
    assert online == again == f"online: team {SPACE}"
    assert offline.startswith("offline: ")


def test_the_activity_of_projects_is_known_in_the_next_run_without_the_server(ada: WorkingCopy) -> None:
    with watched(ada) as here:
        wait_for(lambda: here.team.uses)
    status = read_status(ada.paths.project)
    assert status is not None
    assert [one.project for one in status.uses] == ["x"]
    assert status.member == "Ada"
    assert not status.present
