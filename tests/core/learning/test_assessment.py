"""Assessments of patterns whose record claims a rate (docs/scoring.md#claimed-rates)."""

from __future__ import annotations

import pytest

from core.learning.assessment import Assessment
from core.learning.evidence import claimed_rate
from core.learning.explanation import explain_state
from core.records.loops import Loop
from core.records.patterns import Maturity, PatternType, RecordedCounts, TrendPoint
from tests.factories import (
    NOW,
    NULL_CHECK_001,
    OPTIMIZING,
    SETTINGS,
    days_ago,
    example_patterns,
    make_board,
    make_pattern,
    make_use,
)


def assessed(made: RecordedCounts, *results: bool) -> Assessment:
    pattern = make_pattern(recorded_counts=made)
    loops = [
        Loop(id=f"loop-{number}", ended_at=NOW, injected=(make_use(pattern.id, result),))
        for number, result in enumerate(results)
    ]
    return make_board(pattern, loops={loop.id: loop for loop in loops}).assessment(pattern.id)


@pytest.mark.parametrize(
    ("made", "claimed"),
    [
        (RecordedCounts(rate=0.85, uses=4), 0.85),
        (RecordedCounts(rate=0.85), 0.85),
        (RecordedCounts(rate=0.85, uses=4, successes=3, failures=1), 0.85),
        (RecordedCounts(rate=1.0, uses=2, claimed=0.85), 0.85),
        (RecordedCounts(rate=0.92, uses=12), None),
        (RecordedCounts(rate=0.9, uses=8), None),  # 7 of 8, rounded to a tenth
        (RecordedCounts(rate=0.75, uses=4, successes=3, failures=1), None),
        (RecordedCounts(rate=0.85, uses=0), None),
        (RecordedCounts(rate=7.5, uses=4), None),
        (RecordedCounts(rate=float("nan")), None),
        (RecordedCounts(uses=4), None),
    ],
)
def test_a_rate_without_matching_counts_is_claimed(made: RecordedCounts, claimed: float | None) -> None:
    assert claimed_rate(made) == claimed


def test_a_claimed_rate_is_shown_with_the_recorded_results() -> None:
    found = assessed(RecordedCounts(rate=0.85, uses=4), True, True, False, True)
    assert found.claim_text == "85% claimed, 3 of 4 recorded"
    assert (found.successes, found.failures, found.uses, found.rate) == (3, 1, 4, 0.75)
    counted = assessed(RecordedCounts(rate=0.85, uses=4, successes=3, failures=1))
    assert (counted.claim_text, counted.rate) == ("85% claimed, 3 of 4 recorded", 0.75)
    assert assessed(RecordedCounts(rate=0.92, uses=12)).claim_text == ""


def test_a_claimed_rate_without_results_counts_no_use_and_ranks_as_a_candidate() -> None:
    found = assessed(RecordedCounts(rate=0.9))
    assert (found.successes, found.failures, found.uses) == (0, 0, 0)
    assert (found.state, found.rate, found.interval) == (Maturity.CANDIDATE, 0.9, (0.0, 1.0))
    assert found.score == pytest.approx(0.9 * 0.5)
    assert found.is_claimed and found.claim_text == "90% claimed, no result recorded"


def test_three_recorded_results_replace_the_claimed_rate() -> None:
    made = RecordedCounts(rate=0.85, uses=4)
    assert assessed(made, False, False).rate == 0.85
    found = assessed(made, False, False, True)
    assert found.rate == pytest.approx(1 / 3) and not found.is_claimed
    assert found.claim_text == "85% claimed, 1 of 3 recorded"


def test_an_anti_pattern_with_a_claimed_rate_and_one_recorded_failure() -> None:
    patterns = example_patterns()
    board = make_board(patterns[OPTIMIZING], patterns[NULL_CHECK_001])
    found = board.assessment(OPTIMIZING)
    assert (found.rate, found.claim_text) == (0.85, "85% claimed, 1 of 1 recorded")
    assert (found.uses, found.state) == (4, Maturity.CANDIDATE)
    lines = explain_state(found, board.observations(OPTIMIZING), NOW, SETTINGS, invertible=False).lines
    assert [line.text for line in lines if line.rule == "claimed"] == [
        "85% claimed, 1 of 1 recorded; the claim is not evidence; ranked by the claim until 3 results are recorded"
    ]
    notes = {finding.code: finding.message for finding in board.reconcile(OPTIMIZING)}
    assert notes["claimed-rate"].startswith("the recorded rate of 85 % differs") and "claim-disagrees" not in notes


def test_snapshots_count_if_the_record_has_no_counts() -> None:
    trend = (TrendPoint(at=days_ago(9), rate=0.75, sample_size=4),)
    pattern = make_pattern(type=PatternType.SUCCESS, recorded_counts=RecordedCounts(rate=0.9, uses=5), trend=trend)
    found = make_board(pattern).assessment(pattern.id)
    assert (found.successes, found.failures, found.uses) == (3, 1, 5)
    assert found.claim_text == "90% claimed, 3 of 4 recorded"
