"""Runs of checks have the counts of their reports."""

from __future__ import annotations

import pytest

from core.tasks.recorder import describe_run
from tests.factories import DEBUG_NOW


@pytest.mark.parametrize(
    ("report", "code", "counts"), [("1 failed, 2 passed", 0, (2, 1)), ("2 passed", 1, (2, 1)), ("3 passed", 0, (3, 0))]
)
def test_counts_are_those_of_the_report_whatever_the_exit_code_is(
    report: str, code: int, counts: tuple[int, int]
) -> None:
    run = describe_run("pytest", code, report.encode(), "", DEBUG_NOW, duration_ms=1)
    assert run.results is not None and (run.results.passed, run.results.failing or 0) == counts
