"""A month of sessions through the hooks, with an experiment about three lessons whose effects are known."""

from pathlib import Path

import pytest

from tests.simulated_months import LESSONS, simulate_months


@pytest.mark.slow
def test_the_verdicts_are_the_truth(tmp_path: Path) -> None:
    rates = {"helps": (1.0, 0.0), "hurts": (0.0, 1.0), "does nothing": (0.5, 0.5)}
    lessons = [
        lesson._replace(rate_without=rates[lesson.truth][0], rate_with=rates[lesson.truth][1]) for lesson in LESSONS
    ]
    (end,) = simulate_months(tmp_path, 1, 9, lessons)
    assert (end.verdicts["helps"], end.verdicts["hurts"]) == ("helps", "hurts")
    assert end.verdicts["does nothing"].startswith("can't tell yet (about ")
    assert end.report.success is not None and end.report.success.given.trials >= 15
