"""Values of loops that follow from others."""

from __future__ import annotations

from core.records.loops import Iteration, Loop, Outcome, Progress
from tests.factories import NOW, days_ago


def test_the_last_change_is_that_of_the_files_or_of_the_last_iteration_that_changed_something() -> None:
    iterations = (
        Iteration(at=days_ago(3), files=("a.py",)),
        Iteration(at=days_ago(2), outcome=Outcome.SUCCESS),
        Iteration(at=days_ago(1), outcome=Outcome.FAILURE),
        Iteration(files=("b.py",)),
    )
    assert Loop(id="a").changed_at is None
    assert Loop(id="a", iterations=iterations).changed_at == days_ago(2)
    assert Loop(id="a", iterations=iterations, progress=Progress(changed_at=NOW)).changed_at == NOW
