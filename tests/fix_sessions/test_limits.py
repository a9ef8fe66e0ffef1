"""What is extracted from the recorded sessions is good enough, and Review asks about weakened tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

import pytest

from tests.fix_sessions.figures import LIMITS, measure
from tests.fix_sessions.report import render
from tests.fix_sessions.sessions import read_other_failures, read_sessions

_OF_TESTS = frozenset(
    ("weakened assertion", "skipped test", "deleted test", "changed expectation", "test marked as expected failure")
)


class InThisProcess(Executor):
    """Replays one session after the other: other processes would import everything again."""

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **_: Any) -> Iterator[Any]:
        return map(fn, *iterables)


@pytest.mark.slow
def test_lessons_of_recorded_sessions_keep_all_limits() -> None:
    results = measure(read_sessions(), read_other_failures(), InThisProcess())
    figures = results.figures()
    missed = {name: value for name, value in figures.items() if not LIMITS[name].holds(value)}
    assert not missed, render(results, worst=10)
    asked = {one.session.label.kind for one in results.studies if any(q.startswith("weakened:") for q in one.questions)}
    assert asked - {"updated snapshot"} == _OF_TESTS
