"""What is extracted from the recorded sessions is good enough, and Review asks about weakened tests."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.fix_sessions.figures import LIMITS, measure
from tests.fix_sessions.report import render
from tests.fix_sessions.sessions import read_other_failures, read_sessions

_OF_TESTS = frozenset(
    ("weakened assertion", "skipped test", "deleted test", "changed expectation", "test marked as expected failure")
)


@pytest.mark.slow
def test_lessons_of_recorded_sessions_keep_all_limits() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        results = measure(read_sessions(), read_other_failures(), executor)
    figures = results.figures()
    missed = {name: value for name, value in figures.items() if not LIMITS[name].holds(value)}
    assert not missed, render(results, worst=10)
    asked = {one.session.label.kind for one in results.studies if any(q.startswith("weakened:") for q in one.questions)}
    assert asked - {"updated snapshot"} == _OF_TESTS
