"""Runners that write their files now: at every moment, also in the middle of a write, each is one loop in its state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from core.records.loops import Loop, LoopStatus
from core.sources.adapters.adapter_table import own_adapters
from core.sources.adapters.join import join_loops
from tests.core.sources.adapters.fixtures import NOW, Case
from tests.e2e import play_frankbria, play_guardrails, play_open_ralph, play_ralph_loop, play_snarktank
from tests.e2e.play_runner import Steps

PLAYS: dict[str, tuple[Steps, tuple[str, ...]]] = {
    "frankbria": (play_frankbria.steps, ("ralph_loop.sh",)),
    "guardrails": (play_guardrails.steps, ("ralph-loop.sh",)),
    "open-ralph": (play_open_ralph.steps, ()),
    "ralph-loop": (play_ralph_loop.steps, ()),
    "snarktank": (play_snarktank.steps, ("ralph.sh",)),
}
ENDS = {
    "frankbria": (LoopStatus.FAILED, "stagnation_detected"),
    "guardrails": (LoopStatus.COMPLETED, "✅ TASK COMPLETE"),
    "open-ralph": (LoopStatus.LIMIT, "2 of 2 iterations"),
    "ralph-loop": (LoopStatus.COMPLETED, "promise"),
    "snarktank": (LoopStatus.COMPLETED, "all 2 stories pass"),
}


class Desk:
    """A project that all adapters read, with a clock that goes on at each write."""

    def __init__(self, folder: Path) -> None:
        (folder / "project" / "scripts" / "ralph").mkdir(parents=True)
        (folder / "project" / "scripts" / "ralph" / "ralph.sh").write_text("")
        self.now = NOW
        self.cases = {adapter.name: Case(adapter, folder) for adapter in own_adapters()}
        self.project = folder.resolve() / "project"

    def tick(self) -> datetime:
        self.now += timedelta(seconds=5)
        return self.now

    def start(self, name: str) -> Iterator[str]:
        steps, programs = PLAYS[name]
        for program in programs:
            self.cases[name].processes.programs[program, self.project] = 4821
        return steps(self.project, self.project.parent / "home", self.tick)

    def stop(self, name: str) -> None:
        self.cases[name].processes.programs.clear()

    def loops(self) -> dict[str, list[Loop]]:
        """Return all loops by runner, joined as in the program."""
        found: dict[str, list[Loop]] = {}
        for case in self.cases.values():
            case.now = self.now
        everything = [loop for case in self.cases.values() for loop in case.loops().values()]
        for loop in join_loops(everything, self.project).loops:
            found.setdefault(loop.runner, []).append(loop)
        return found


@pytest.mark.parametrize("name", PLAYS)
def test_a_runner_runs_until_its_end(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path)
    seen: list[tuple[str, LoopStatus]] = []
    for step in desk.start(name):
        if step == "done":
            desk.stop(name)
        found = desk.loops()
        assert found.keys() <= {name}
        for loop in found.get(name, ()):
            seen.append((step, loop.status))
        assert len(found.get(name, ())) <= 1
    assert {status for step, status in seen if step != "done"} == {LoopStatus.RUNNING}
    (loop,) = desk.loops()[name]
    assert (loop.status, loop.end_reason) == ENDS[name]
    desk.cases[name].lessons()


def test_five_runners_at_once_are_five_loops(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    running = {name: desk.start(name) for name in PLAYS}
    while running:
        for name in list(running):
            if next(running[name], None) is None:
                desk.stop(name)
                del running[name]
        assert all(len(loops) == 1 for loops in desk.loops().values())
    found = {name: (loop.status, loop.end_reason) for name, (loop,) in desk.loops().items()}
    assert found == ENDS
    lessons = {lesson.text for case in desk.cases.values() for lesson in case.lessons()}
    assert lessons == {play_snarktank.PATTERN, *play_snarktank.LEARNINGS, play_guardrails.SIGN}


def test_what_the_runner_reported_is_known_at_the_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for _ in desk.start("frankbria"):
        desk.loops()
    (loop,) = desk.loops()["frankbria"]
    assert loop.usage.cost_usd == play_frankbria.COST * play_frankbria.ITERATIONS
    assert (loop.session_ids, len(loop.iterations)) == ((play_frankbria.SESSION,), play_frankbria.ITERATIONS)
