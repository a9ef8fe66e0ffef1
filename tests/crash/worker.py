"""Starts curators that are killed: `python -m tests.crash.worker PROJECT KIND SEED`.

For each line on stdin it forks a child that makes decisions without end, prints the child's PID, then every
acknowledged decision, and `dead` when the child has ended. A line with a number makes the child kill itself instead,
before that number of system calls that change the disk.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import core.files.atomic_write
from core.base.errors import Refused, UnknownRecord
from core.base.paths import ProjectPaths
from core.decisions.case import Decided
from core.decisions.commands import AcceptInversion, Archive, Deprecate, Promote, Reset, Undo
from core.decisions.curator import Curator, Target
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.sources.ledger import Ledger
from core.tasks.recorder import DebugRecorder
from tests.core.agents.hooks.agents import PASSING, SimulatedAgent
from tests.factories import (
    CHANGING_CALLS,
    NO_RETRY_SETTINGS,
    decide,
    decide_many,
    make_assessment,
    make_curator,
    make_error_pattern,
    make_failing_assessment,
    make_inversion,
    make_project,
)

MANY = 4
"""Patterns in one group of decisions."""


def say(text: str) -> None:
    """Write one complete line to stdout without buffering."""
    os.write(1, f"{text}\n".encode())


def append_decisions(paths: ProjectPaths, chance: random.Random) -> None:
    """Append lines of all lengths to the decision log."""
    ledger = Ledger(paths)
    number = 0
    while True:
        number += 1
        decision = Decision(
            id=f"{os.getpid()}-{number}",
            at=datetime(2026, 5, 3, tzinfo=UTC),
            by="worker",
            verb=Verb.NOTE,
            subject="pat-error-a-001",
            after={"text": "x" * chance.choice((1, 200, 5000, 100_000))},
        )
        ledger.append(decision)
        say(f"ack {decision.id}")


def curate(paths: ProjectPaths, chance: random.Random) -> None:
    """Make all kinds of decisions on the patterns `pat-error-0..9-001`."""
    curator = make_curator(paths)
    now = datetime(2026, 5, 3, tzinfo=UTC)
    while True:
        now += timedelta(seconds=1)
        try:
            decided = decide_any(curator, chance, now)
        except Refused:
            continue
        say(f"ack {decided.decision.id}")


def write_all_folders(paths: ProjectPaths, chance: random.Random) -> None:
    """Make one of each kind of record after the other."""
    for at in write_rounds(paths, chance):
        say(f"ack {at}")


def write_rounds(paths: ProjectPaths, chance: random.Random) -> Iterator[datetime]:
    """Archive a pattern and bring it back, and record debug sessions and the prompts of an agent, in any order."""
    agent = SimulatedAgent(paths)
    project = Project(paths, NO_RETRY_SETTINGS, by="worker", clock=lambda: agent.at, cache=False)
    project.load()
    actions: list[Callable[[], object]] = [
        lambda: project.decide(Archive("pat-error-0-001", reason="old")),
        lambda: project.decide(Undo()),
        lambda: DebugRecorder(paths, clock=lambda: agent.at).start(),
        lambda: agent.prompt(f"Fix the login test {agent.at}"),
        lambda: agent.tool(PASSING),
    ]
    while True:
        chance.shuffle(actions)
        for action in actions:
            with suppress(Refused, UnknownRecord):  # another worker has done it
                action()
        yield agent.at


def decide_any(curator: Curator, chance: random.Random, now: datetime) -> Decided:
    """One decision of any kind on any pattern."""
    pattern = make_error_pattern(f"pat-error-{chance.randrange(10)}-001")
    actions: list[Callable[[], Decided]] = [
        lambda: decide(curator, Promote, pattern, now=now),
        lambda: decide(curator, Deprecate, pattern, now=now, reason="it broke the build"),
        lambda: decide(curator, Reset, pattern, now=now),
        lambda: decide(
            curator, AcceptInversion, pattern, make_failing_assessment(), proposal=make_inversion(pattern.id), now=now
        ),
        lambda: decide_on_many(curator, Verb.NOTE, now),
        lambda: decide_on_many(curator, Verb.DEPRECATE, now),
        lambda: curator.undo(now=now),
        lambda: curator.redo(now=now),
    ]
    return chance.choice(actions)()


def decide_on_many(curator: Curator, verb: Verb, now: datetime) -> Decided:
    """One act on `MANY` patterns."""
    asked = [Target(make_error_pattern(f"pat-error-{number}-001"), make_assessment()) for number in range(MANY)]
    return decide_many(curator, verb, asked, now=now, reason="it broke the build")


def die_before(calls: int) -> None:
    """Kill this process with SIGKILL before the given number of calls that change the disk."""
    left = calls

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if args[:1] != (1,):
                left -= 1
                if left <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    for name in CHANGING_CALLS:
        setattr(os, name, dying(getattr(os, name)))
    setattr(core.files.atomic_write, "_exchange", dying(core.files.atomic_write._exchange))  # noqa: B010


def warm_up(kind: str) -> None:
    """Work on another project, so that what every child needs is imported and compiled once."""
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = make_project(Path(folder), *(f"pat-error-{number}-001" for number in range(10)))
        if kind == "write":
            next(write_rounds(paths, chance))
            return
        curator = make_curator(paths)
        for second in range(20):
            with suppress(Refused):
                decide_any(curator, chance, datetime(2026, 5, 3, second=second, tzinfo=UTC))


WORK = {"append": append_decisions, "curate": curate, "write": write_all_folders}
"""What a child does, by kind."""


def main() -> None:
    """Serve until stdin ends."""
    project, kind, seed = sys.argv[1:]
    paths = ProjectPaths(Path(project))
    # Most of the time between two decisions is this pause; without it, kills hit the writing.
    setattr(core.files.atomic_write, "_CHECK_SECONDS", (0.0,))  # noqa: B010
    if kind != "append":
        warm_up(kind)
    for round_number, line in enumerate(sys.stdin):
        pid = os.fork()
        if pid == 0:
            chance = random.Random(f"{seed} {round_number}")
            # A folder of its own: else the child spends its calls on removing the indexes that killed ones left.
            tempfile.tempdir = tempfile.mkdtemp(dir=paths.project)
            if line.strip():
                die_before(int(line))
            WORK[kind](paths, chance)
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
