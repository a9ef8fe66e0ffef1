"""The search for weakened tests reads each ended attempt once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from msgspec.structs import replace

from core.questions.weakened import SEARCHED_ATTEMPTS, WeakenedTestSearch
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.state.review_items import WeakenedTest
from tests.factories import NOW

ATTEMPT = Attempt(task_id="task-001", number=1, outcome=Outcome.SUCCESS, ended_at=NOW)


class Searched:
    """A search with the attempts whose logs it read."""

    def __init__(self) -> None:
        self.search = WeakenedTestSearch()
        self.read: list[str] = []

    def finish(self, *attempts: Attempt) -> list[str]:
        """Do all steps; returns the attempts with a weakened test."""
        by_id: Mapping[str, Attempt] = {one.id: one for one in attempts}
        for _ in range(100):
            if self.search.look(by_id, self._find, lambda: True) is None:
                return [one.attempt_id for one in self.search.found]
        raise AssertionError("the search does not end")

    def _find(self, attempt: Attempt) -> Sequence[WeakenedTest]:
        self.read.append(attempt.id)
        found = WeakenedTest(attempt_id=attempt.id, task_id=attempt.task_id, number=3, change="skipped")
        return (found,) if attempt.agent == "codex" else ()


def test_it_reads_each_ended_attempt_once_and_again_after_a_change() -> None:
    searched = Searched()
    running = Attempt(task_id="task-002", number=1, agent="codex")
    assert searched.finish(ATTEMPT, running) == []
    assert searched.finish(ATTEMPT, running) == []
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


def test_a_step_waits_until_it_is_ready() -> None:
    search = WeakenedTestSearch()
    attempts = {ATTEMPT.id: ATTEMPT}
    assert search.look(attempts, lambda attempt: (), lambda: False) is False
    assert search.look(attempts, lambda attempt: (), lambda: True) is False
    assert search.look(attempts, lambda attempt: (), lambda: True) is None
