"""What is extracted from the recorded sessions is good enough."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.fix_sessions.figures import LIMITS, Results, measure
from tests.fix_sessions.report import render
from tests.fix_sessions.sessions import read_other_failures, read_sessions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results() -> Results:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        return measure(read_sessions(), read_other_failures(), executor)


LEARNS_FROM_NOTHING = pytest.mark.xfail(
    reason="patterns are extracted from four sessions without a lesson", strict=False
)


@pytest.mark.parametrize(
    "figure", [pytest.param(name, marks=LEARNS_FROM_NOTHING if name == "negatives" else ()) for name in LIMITS]
)
def test_lessons_of_recorded_sessions_keep_the_limit(figure: str, results: Results) -> None:
    assert LIMITS[figure].holds(results.figures()[figure]), render(results, worst=10)
