"""The search for weakened tests reads each ended attempt once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from core.base.settings import Settings
from core.base.steps import Steps, run_all
from core.index.review_items import WeakenedTest
from core.questions.acknowledgement import SEARCHED_ATTEMPTS, WeakenedTests, find_weakened_tests
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.snapshot import Snapshot
from tests.factories import NOW

ATTEMPT = Attempt(task_id="task-001", number=1, outcome=Outcome.SUCCESS, ended_at=NOW)


class Searched:
    """Searches, each after the one before, with the attempts whose logs they read."""

    def __init__(self) -> None:
        self.result = WeakenedTests()
        self.read: list[str] = []

    def finish(self, *attempts: Attempt) -> list[str]:
        """Search; returns the attempts with a weakened test."""
        snapshot = Snapshot(attempts={one.id: one for one in attempts})
        view: Any = SimpleNamespace(snapshot=snapshot, settings=Settings())
        self.result = run_all(find_weakened_tests(view, self.result, self._load))
        return [one.attempt_id for one in self.result.found]

    def _load(self) -> Steps[Any]:
        yield
        return SimpleNamespace(find_weakened_tests=self._find)

    def _find(self, attempt: Attempt) -> Sequence[WeakenedTest]:
        self.read.append(attempt.id)
        found = WeakenedTest(attempt_id=attempt.id, task_id=attempt.task_id, number=3, change="skipped")
        return (found,) if attempt.agent == "codex" else ()


def test_it_reads_each_ended_attempt_once_and_again_after_a_change() -> None:
    searched = Searched()
    running = Attempt(task_id="task-002", number=1, agent="codex")
    assert searched.finish(ATTEMPT, running) == []
    assert searched.finish(ATTEMPT, running) == []
    for _ in range(2):
        assert searched.finish(replace(ATTEMPT, agent="codex"), running) == ["task-001.1"]
    assert searched.read == ["task-001.1", "task-001.1"]


def test_an_attempt_without_a_failed_action_is_not_read() -> None:
    searched = Searched()
    assert searched.finish(replace(ATTEMPT, agent="codex", actions=9, errors=0)) == []
    assert searched.read == []


def test_it_searches_only_the_newest_attempts() -> None:
    searched = Searched()
    days = range(SEARCHED_ATTEMPTS + 1)
    attempts = [replace(ATTEMPT, number=day + 1, ended_at=NOW + timedelta(days=day)) for day in days]
    searched.finish(*attempts)
    assert sorted(searched.read) == sorted(one.id for one in attempts[1:])
