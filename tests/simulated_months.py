"""Simulates months of sessions with an experiment: `python -m tests.simulated_months [MONTHS] [SESSIONS A WEEK]`.

Three lessons are extracted from sessions. Then sessions of an agent go through the hooks, with their files and events.
One lesson prevents its error, one causes it, and one changes nothing. Prints what the product shows at the end of each
month.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from core.agents.hooks import answer, background
from core.base.settings import Settings
from core.index.experiment import ExperimentReport, measure_experiment, set_share
from core.project.project import Project
from core.trust.experiment_secret import secret_file
from tests.core.agents.hooks.agents import SimulatedAgent, make_project

WEEKS_A_MONTH: Final = 4
TEST_RUN: Final[dict[str, Any]] = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}}


class Lesson(NamedTuple):
    """An error, its fix, and the true rates with which the error returns in a later task."""

    truth: str
    task: str
    file: str
    error: str
    old: str
    fix: str
    token: str  # the word that only the fix has
    rate_without: float
    rate_with: float


LESSONS: Final = (
    Lesson(
        "helps",
        "Price the cart of order",
        "src/cart.py",
        "KeyError: 'vat'",
        '    tax = order["vat"]',
        '    tax = order.get("vat", ZERO_VAT_RATE)',
        "ZERO_VAT_RATE",
        0.6,
        0.1,
    ),
    Lesson(
        "hurts",
        "Drain queue",
        "src/worker.py",
        "TimeoutError: worker pool never became idle",
        "    pool.close()",
        "    pool.close(wait=UNTIL_QUEUE_EMPTY)",
        "UNTIL_QUEUE_EMPTY",
        0.15,
        0.65,
    ),
    Lesson(
        "does nothing",
        "Sign in the build account in pipeline",
        "src/login.py",
        "PermissionError: token of the build account was refused",
        "    token = read_token()",
        "    token = read_token(fresh=FETCH_FRESH_TOKEN)",
        "FETCH_FRESH_TOKEN",
        0.3,
        0.3,
    ),
)


@dataclass
class Months:
    """Sessions of one agent in one project, which reads each lesson that it gets."""

    agent: SimulatedAgent
    chance: random.Random = field(default_factory=lambda: random.Random(17))
    sessions: int = 0

    def learn(self, lesson: Lesson) -> None:
        """Meet an error for the first time."""
        self._begin(lesson)
        self._fail_and_fix(lesson)
        self._end()

    def work_on(self, lesson: Lesson) -> None:
        """Work on another task in which the error may return."""
        is_given = lesson.token in self._begin(lesson)
        if self.chance.random() < (lesson.rate_with if is_given else lesson.rate_without):
            self._fail_and_fix(lesson)
        else:
            self.agent.tool(_edit(lesson, "    pass"))
            self.agent.tool({**TEST_RUN, "tool_response": {"stdout": "12 passed"}})
        self._end()

    def _begin(self, lesson: Lesson) -> str:
        self.sessions += 1
        self.agent.session = f"session-{self.sessions}"
        return self.agent.prompt(f"{lesson.task} #{self.sessions}: {lesson.error}")

    def _fail_and_fix(self, lesson: Lesson) -> None:
        report = f"FAILED tests/test_build.py::test_build\n{lesson.file}:7: in build\nE   {lesson.error}\n1 failed"
        self.agent.tool({**TEST_RUN, "error": f"Exit code 1\n{report}"})
        self.agent.tool(_edit(lesson, lesson.fix))
        self.agent.tool({**TEST_RUN, "tool_response": {"stdout": "12 passed"}})

    def _end(self) -> None:
        self.agent.send("Stop")
        self.agent.send("SessionEnd", reason="exit")


def _edit(lesson: Lesson, new: str) -> dict[str, Any]:
    given = {"file_path": lesson.file, "old_string": lesson.old, "new_string": new}
    return {"tool_name": "Edit", "tool_input": given, "tool_response": {"filePath": lesson.file}}


class MonthEnd(NamedTuple):
    """What the product shows at the end of a month about the lesson with a truth."""

    month: int
    report: ExperimentReport
    verdicts: dict[str, str]
    arms: dict[str, str]


def simulate_months(
    folder: Path, months: int, sessions_a_week: int, lessons: Sequence[Lesson] = LESSONS
) -> Iterator[MonthEnd]:
    """Yield the end of each month; the folders of the user must be those of a test."""
    agent = SimulatedAgent(make_project(folder / "project"))
    past = Months(agent)
    with patch.object(answer, "start_background", lambda project: background.run(project, agent.at)):
        for lesson in lessons:
            past.learn(lesson)
        set_share(0.5)
        secret_file().parent.mkdir(parents=True, exist_ok=True)
        secret_file().write_text("17" * 32)  # the same coins each time
        secret_file().chmod(0o600)
        for month in range(1, months + 1):
            for number in range(WEEKS_A_MONTH * sessions_a_week):
                agent.at += timedelta(hours=7 * 24 / sessions_a_week)
                past.work_on(lessons[number % len(lessons)])
            yield _look(agent, month)


def _look(agent: SimulatedAgent, month: int) -> MonthEnd:
    project = Project(agent.project, Settings(), by="ada", clock=lambda: agent.at, cache=False, asks=False)
    project.load()
    state = project.view
    report = measure_experiment(state.snapshot, state.now)
    verdicts, arms = {}, {}
    for one in report.patterns:
        pattern = state.snapshot.patterns[one.pattern_id]
        lesson = next(lesson for lesson in LESSONS if lesson.token in pattern.diff_pattern)
        verdicts[lesson.truth] = one.verdict
        if one.errors is not None:
            given, held_out = one.errors.given, one.errors.held_out
            arms[lesson.truth] = f"{given.total:.0f} of {given.trials}, {held_out.total:.0f} of {held_out.trials}"
    return MonthEnd(month, report, verdicts, arms)


def main() -> None:
    months, sessions_a_week = (int(value) for value in (*sys.argv[1:3], *("6", "24")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory(prefix="ralphdeck-months-") as name:
        folders = {f"XDG_{kind}_HOME": f"{name}/{kind.lower()}" for kind in ("STATE", "CONFIG", "CACHE", "DATA")}
        with patch.dict(os.environ, {"HOME": name, "RALPHDECK_TRUSTED_PATHS": name, **folders}):
            for end in simulate_months(Path(name), months, sessions_a_week):
                sys.stdout.write(f"Month {end.month}\n")
                for lesson in LESSONS:
                    shown = end.verdicts.get(lesson.truth, "no trial")
                    arms = end.arms.get(lesson.truth, "")
                    sys.stdout.write(f"  {lesson.truth:<12} {arms:<24} {shown}\n")


if __name__ == "__main__":
    main()
