from __future__ import annotations

from datetime import timedelta
from math import nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput, Refused
from core.base.settings import LearningSettings, MaturitySettings
from core.learning.evidence import claimed_rate
from core.learning.explanation import explain_state
from core.learning.maturity import (
    STATES,
    Assessment,
    MaturityFeedback,
    PatternMaturity,
    Result,
    change_within,
    create_maturity,
    decayed_counts,
    decayed_value,
    deprecate,
    fewest_results,
    format_maturity,
    format_patterns_with_maturity,
    maturity_state,
    multiplier,
    next_change,
    promote,
    reset,
    state_calendar,
    state_codes,
    state_of,
    update_maturity,
)
from core.learning.outcomes import (
    CriterionWeight,
    FeedbackEvent,
    OutcomeSignals,
    criterion_weight,
    score_outcome,
    should_deprecate_criterion,
    verdict_of,
)
from core.records.events import Observation
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

DEFAULT = MaturitySettings()


@pytest.mark.parametrize(
    ("helpful", "harmful", "state"),
    [
        (0, 0, Maturity.CANDIDATE),
        (2.98, 0, Maturity.CANDIDATE),
        (2.995, 0, Maturity.ESTABLISHED),  # the tolerance of totals
        (3, 0, Maturity.ESTABLISHED),
        (0, 2.98, Maturity.CANDIDATE),
        (0, 3, Maturity.DEPRECATED),
        (7, 3, Maturity.ESTABLISHED),  # exactly 30 %
        (7, 3.01, Maturity.DEPRECATED),
        (4.98, 0, Maturity.ESTABLISHED),
        (4.995, 0, Maturity.PROVEN),
        (17, 3, Maturity.ESTABLISHED),  # exactly 15 %
        (17, 2.99, Maturity.PROVEN),
        (0.85 * 18, 0.15 * 18, Maturity.ESTABLISHED),  # 15 % up to rounding
        (11, 1, Maturity.PROVEN),
        (86, 14, Maturity.PROVEN),
        (69, 31, Maturity.DEPRECATED),
    ],
)
def test_states_change_at_their_thresholds(helpful: float, harmful: float, state: Maturity) -> None:
    assert state_of(helpful, harmful, DEFAULT) is state


@given(st.lists(st.tuples(st.floats(0, 40), st.floats(0, 40)), min_size=1, max_size=20))
def test_arrays_give_the_same_as_single_values(sums: list[tuple[float, float]]) -> None:
    helpful, harmful = (np.array(column) for column in zip(*sums, strict=True))
    codes = state_codes(helpful, harmful, DEFAULT)
    assert [STATES[code] for code in codes] == [state_of(good, bad, DEFAULT) for good, bad in sums]


def test_multipliers() -> None:
    assert [multiplier(state) for state in STATES] == [0.5, 1.0, 1.5, 0.0]
    assert multiplier(Maturity.PROVEN, MaturitySettings(multiplier_proven=2.0)) == 2.0


def observe(age: float | None, success: bool | None, count: int = 1, weight: float = 1.0) -> Observation:
    at = None if age is None else days_ago(age)
    return Observation(
        pattern_id="p", kind="applied", source="loop", at=at, success=success, count=count, weight=weight
    )


_AGED = st.builds(observe, st.none() | st.floats(-30, 400), st.sampled_from([True, False, None]), st.integers(1, 8))


@given(st.lists(_AGED, max_size=8))
def test_one_more_success_never_raises_the_harmful_ratio(events: list[Observation]) -> None:
    def ratio(all_events: list[Observation]) -> float:
        helpful, harmful = decayed_counts(all_events, NOW, DEFAULT)
        return harmful / (helpful + harmful) if helpful + harmful else 0.0

    assert ratio([*events, observe(0, True)]) <= ratio(events) + 1e-12


def judged(type: str = "helpful", age: float = 0.0, weight: float = 1.0, pattern_id: str = "p") -> MaturityFeedback:
    return MaturityFeedback(pattern_id=pattern_id, type=type, timestamp=days_ago(age), weight=weight)  # type: ignore[arg-type]


@pytest.mark.parametrize(("harmful", "helpful", "state"), [(3, 7, Maturity.ESTABLISHED), (3, 17, Maturity.ESTABLISHED)])
@pytest.mark.parametrize("half_life", [30.0, 90.0, 365.0])
def test_the_order_within_one_minute_does_not_change_the_state(
    harmful: int, helpful: int, state: Maturity, half_life: float
) -> None:
    settings = MaturitySettings(half_life_days=half_life)
    minute = 1 / 1440
    for first, then in ((0.0, minute), (minute, 0.0)):  # exactly 30 % and exactly 15 % harmful
        events: list[Result] = [*[judged("harmful", first)] * harmful, *[judged("helpful", then)] * helpful]
        assert maturity_state(events, NOW, settings) is state


def test_a_harmful_result_validates_a_pattern_too() -> None:
    events: list[Result] = [judged(age=20), judged("harmful", 2)]
    assert update_maturity(new(), events, NOW).last_validated == days_ago(2)


_JUDGED = st.builds(judged, st.sampled_from(["helpful", "harmful"]), st.floats(-30, 400), st.floats(0, 1))


@given(st.lists(_JUDGED, max_size=12), st.randoms(use_true_random=False))
def test_feedback_counts_as_evidence_does_and_its_order_does_not_matter(
    events: list[MaturityFeedback], random: Any
) -> None:
    shuffled = random.sample(events, len(events))
    assert decayed_counts(shuffled, NOW) == decayed_counts(events, NOW)
    assert update_maturity(new(), shuffled, NOW) == update_maturity(new(), events, NOW)
    observations = [
        Observation(
            pattern_id="p", kind="feedback", source="event-log", at=event.at, success=event.success, weight=event.weight
        )
        for event in events
    ]
    assert decayed_counts(observations, NOW) == decayed_counts(events, NOW)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "neutral"}, "type must be helpful or harmful, not 'neutral'"),
        ({"timestamp": "soon"}, "timestamp .* 'soon'"),
        ({"weight": 1.01}, "weight .* 1.01"),
        ({"weight": -0.1}, "weight .* -0.1"),
        ({"weight": float("nan")}, "weight .* nan"),
    ],
)
def test_invalid_feedback_on_a_pattern_is_refused(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"pattern_id": "p", "type": "helpful", "timestamp": "2026-02-03T00:00:00Z"}
    with pytest.raises(BadInput, match=message):
        MaturityFeedback(**(good | fields))


_SUM = st.floats(0, 12) | st.sampled_from([0.0, 2.99, 3.0, 4.99, 5.0, 7.0, 17.0])
_STEP = st.sampled_from([(1, 0), (0, 1), (0.5, 0.5), (0, 0), (0.85, 0.15), (0.7, 0.3)])


@given(_SUM, _SUM, _STEP)
def test_fewest_results_equals_brute_force(helpful: float, harmful: float, step: tuple[float, float]) -> None:
    tried = [state_of(helpful + step[0] * n, harmful + step[1] * n, DEFAULT) for n in range(301)]
    for state in STATES:
        found = fewest_results(state, helpful, harmful, *step, DEFAULT)
        if state in tried:
            assert found == tried.index(state)
        else:
            assert found is None or found > 300


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from([(1, 0), (0, 1)]))
def test_fewest_results_changes_the_state_and_one_less_does_not(
    helpful: float, harmful: float, step: tuple[int, int]
) -> None:
    for state in STATES:
        found = fewest_results(state, helpful, harmful, *step)
        if found is not None:
            assert state_of(helpful + step[0] * found, harmful + step[1] * found, DEFAULT) is state
            if found:
                before = found - 1
                assert state_of(helpful + step[0] * before, harmful + step[1] * before, DEFAULT) is not state


def test_unreachable_states_have_no_step() -> None:
    assert fewest_results(Maturity.CANDIDATE, 3, 0, 1, 0) is None
    assert fewest_results(Maturity.PROVEN, 1e6, 1e6, 0, 1) is None
    # 1e6 / 0.15 - 1e6, and below 15 % by more than what one minute of decay makes
    assert fewest_results(Maturity.PROVEN, 0, 1e6, 1, 0) == pytest.approx(5_666_667, rel=1e-4)
    assert fewest_results(Maturity.PROVEN, 0, 1, 5e-324, 0) is None


def new() -> PatternMaturity:
    return create_maturity("p", NOW)


def made_of(helpful: int, harmful: int, age: float = 0.0) -> tuple[PatternMaturity, list[MaturityFeedback]]:
    events = [judged("helpful", age)] * helpful + [judged("harmful", age)] * harmful
    return update_maturity(new(), events, NOW), events


def test_raw_and_decayed_counts_are_both_stored() -> None:
    events: list[Result] = [
        judged(age=90),
        judged(age=90),
        judged(age=-5),
        judged("harmful", 180, 0.5),
        observe(10, None),
        observe(90, True, 3),
    ]
    found = update_maturity(new(), events, "2026-02-03T00:00:00Z")
    assert (found.helpful_count, found.harmful_count) == (6, 1)
    assert (found.helpful, found.harmful) == pytest.approx((3.5, 0.125))
    assert found.last_validated == NOW  # the future counts as now
    assert (found.state, found.promoted_at, found.deprecated_at) == (Maturity.ESTABLISHED, None, None)


def test_the_start_of_a_state_is_known() -> None:
    first, events = made_of(6, 0)
    assert (first.state, first.promoted_at) == (Maturity.PROVEN, NOW)
    later = update_maturity(first, events, days_ago(-1))
    assert later.promoted_at == NOW
    worse = update_maturity(later, [*events, *made_of(0, 5)[1]], days_ago(-2))
    assert (worse.state, worse.promoted_at, worse.deprecated_at) == (Maturity.DEPRECATED, NOW, days_ago(-2))
    better = update_maturity(worse, events, days_ago(-3))
    assert (better.state, better.promoted_at, better.deprecated_at) == (Maturity.PROVEN, days_ago(-3), days_ago(-2))


def test_events_of_another_pattern_are_refused() -> None:
    with pytest.raises(BadInput, match=r"pattern_id .* 'p', not 'q'"):
        update_maturity(new(), [judged(), judged(pattern_id="q")], NOW)


def test_a_pinned_state_lasts_until_reset() -> None:
    weak, events = made_of(1, 0)
    proven = promote(weak, NOW)
    assert (proven.state, proven.pin, proven.promoted_at) == (Maturity.PROVEN, Maturity.PROVEN, NOW)
    failing = [*events, *made_of(0, 9)[1]]
    assert update_maturity(proven, failing, NOW).state is Maturity.PROVEN
    assert reset(proven, failing, NOW).state is Maturity.DEPRECATED
    deprecated_one = deprecate(proven, "Causes file conflicts", days_ago(-1))
    assert (deprecated_one.state, deprecated_one.reason, deprecated_one.deprecated_at) == (
        Maturity.DEPRECATED,
        "Causes file conflicts",
        days_ago(-1),
    )
    assert update_maturity(deprecated_one, made_of(9, 0)[1], NOW).state is Maturity.DEPRECATED


@given(st.lists(_JUDGED, max_size=12), st.booleans())
def test_an_undone_decision_restores_the_state(events: list[MaturityFeedback], good: bool) -> None:
    before = update_maturity(new(), events, NOW)
    if good and before.state is Maturity.DEPRECATED:
        with pytest.raises(Refused, match="reset it first"):
            promote(before, NOW)
        return
    decided = promote(before, NOW) if good else deprecate(before, "no", NOW)
    after = reset(update_maturity(decided, events, NOW), events, NOW)
    assert (after.state, after.pin, after.reason) == (before.state, None, "")


def test_deprecating_needs_a_reason() -> None:
    with pytest.raises(BadInput, match="reason"):
        deprecate(new(), " \n", NOW)


@pytest.mark.parametrize(
    ("helpful", "harmful", "text"),
    [
        (0, 0, "candidate (no feedback yet)"),
        (12, 1, "proven (12 of 13 helpful, 92%)"),
        (1, 0, "candidate (1 of 1 helpful, 100%)"),
        (5, 3, "deprecated (5 of 8 helpful, 63%)"),  # 62.5, half up
    ],
)
def test_a_maturity_in_a_prompt(helpful: int, harmful: int, text: str) -> None:
    assert format_maturity(made_of(helpful, harmful)[0]) == text


def test_patterns_in_a_prompt_by_state_without_the_deprecated_ones() -> None:
    patterns = {
        "Untried": new(),
        "1. x\n## Proven\x1b": made_of(3, 0)[0],
        "Split by feature": made_of(12, 1)[0],
        "Split by file type": made_of(2, 5)[0],
    }
    assert format_patterns_with_maturity(patterns).splitlines() == [
        "## Patterns by Maturity",
        "",
        "### Proven",
        "",
        "- Split by feature: proven (12 of 13 helpful, 92%)",
        "",
        "### Established",
        "",
        "- 1\\. x␤## Proven␛: established (3 of 3 helpful, 100%)",
        "",
        "### Candidate",
        "",
        "- Untried: candidate (no feedback yet)",
    ]
    assert format_patterns_with_maturity({"x": made_of(2, 5)[0]}) == ""


SECOND = timedelta(seconds=1)


_AGE = st.none() | st.floats(-200, 400) | st.floats(-5, 5).map(lambda seconds: seconds / 86_400)
_DATED = st.builds(
    observe, _AGE, st.sampled_from([True, False, None]), st.integers(1, 12), st.sampled_from([1.0, 0.5, 0.1])
)


@given(st.lists(_DATED, max_size=8), st.sampled_from([0.001, 1.0, 90.0, 36_500.0]))
def test_the_state_changes_exactly_at_the_predicted_times(events: list[Observation], half_life: float) -> None:
    limits = MaturitySettings(half_life_days=half_life)
    calendar = state_calendar(events, NOW, limits)
    state = maturity_state(events, NOW, limits)
    moment = NOW
    for at, new in calendar:
        assert new is not state and at > moment
        assert maturity_state(events, at - SECOND, limits) is state
        for share in range(1, 8):  # nothing happens in between
            between = moment + share / 8 * (at - SECOND - moment)
            assert maturity_state(events, between, limits) is state
        assert maturity_state(events, at, limits) is new
        moment, state = at, new
    for days in (0, 1, 30, 365, 36_500):
        assert maturity_state(events, moment + timedelta(days=days), limits) is state
    assert next_change(events, NOW, limits) == (calendar[0] if calendar else None)


def test_a_proven_pattern_fades_step_by_step() -> None:
    calendar = state_calendar([observe(0, True, 10)], "2026-02-03T00:00:00Z")
    assert [state for _, state in calendar] == [Maturity.ESTABLISHED, Maturity.CANDIDATE]
    days = [(at - NOW) / timedelta(days=1) for at, _ in calendar]
    assert days == pytest.approx([90.26, 156.76], abs=0.01)  # 90 * log2(10 / 4.99), 90 * log2(10 / 2.99)


def test_undated_uses_do_not_decay() -> None:
    events = [observe(0, True, 20), observe(None, False, 2), observe(None, True, 2)]
    assert [state for _, state in state_calendar(events, NOW)] == [Maturity.ESTABLISHED, Maturity.DEPRECATED]


def test_the_changes_by_feedback_are_predicted() -> None:
    events = [MaturityFeedback(pattern_id="p", type="helpful", timestamp="2026-02-03T00:00:00Z")] * 4
    assert [state for _, state in state_calendar(events, NOW)] == [Maturity.CANDIDATE]


@given(st.lists(_DATED, max_size=6))
def test_the_calendar_of_sums_equals_that_of_events(events: list[Observation]) -> None:
    dated = [event for event in events if event.at is not None and event.at <= NOW]
    undated = [event for event in events if event.at is None]
    state = maturity_state(dated + undated, NOW, DEFAULT)
    sums = decayed_counts(dated, NOW, DEFAULT), decayed_counts(undated, NOW, DEFAULT)
    assert change_within(state, *sums, NOW, DEFAULT) == next_change(dated + undated, NOW)


@pytest.mark.parametrize("fixed", [0.0, *(tenths / 10 + 0.0001 for tenths in range(1, 29))])
def test_a_sum_at_its_threshold_falls_below_it_within_a_second(fixed: float) -> None:
    least = DEFAULT.min_feedback - DEFAULT.total_tolerance
    moving = least - fixed
    while moving + fixed < least:
        moving = nextafter(moving, 9)
    found = change_within(Maturity.ESTABLISHED, (moving, 0.0), (fixed, 0.0), NOW)
    assert found == (NOW + SECOND, Maturity.CANDIDATE)


def test_a_very_long_half_life_does_not_overflow() -> None:
    for half_life in (1e12, 1e300):
        assert state_calendar([observe(0, True, 4)], NOW, MaturitySettings(half_life_days=half_life)) == ()


_DAYS = st.floats(0, 5000)


@pytest.mark.parametrize(("age", "left"), [(0, 1.0), (90, 0.5), (180, 0.25), (270, 0.125)])
def test_decay_follows_the_half_life(age: float, left: float) -> None:
    assert decayed_value(days_ago(age), NOW, 90) == pytest.approx(left)
    assert decayed_value(days_ago(age).isoformat(), NOW.isoformat(), 90) == pytest.approx(left)


def test_a_future_time_counts_as_now() -> None:
    assert decayed_value(NOW + timedelta(days=400), NOW, 90) == 1.0


def test_an_invalid_half_life_is_named() -> None:
    rows: list[Any] = [0, -1, float("nan"), float("inf"), "90", None]
    for half_life in rows:
        with pytest.raises(BadInput, match="half_life_days"):
            decayed_value(NOW, NOW, half_life)


def test_an_invalid_time_is_named() -> None:
    with pytest.raises(BadInput, match="timestamp"):
        decayed_value("yesterday or so", NOW, 90)


@given(_DAYS, _DAYS, st.floats(0.01, 1000))
def test_decay_is_monotone_and_never_above_one(one: float, other: float, half_life: float) -> None:
    younger, older = sorted((one, other))
    young, old = (decayed_value(days_ago(age), NOW, half_life) for age in (younger, older))
    assert 0.0 <= old <= young <= 1.0


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


MINUTE_MS = 60_000


def feedback(type: str, age: float = 0) -> FeedbackEvent:
    return FeedbackEvent(criterion="type_safe", type=type, timestamp=days_ago(age))


def test_more_errors_and_retries_have_a_lower_value() -> None:
    for count, errors, retries in ((0, 1.0, 1.0), (1, 0.6, 0.7), (2, 0.6, 0.3), (3, 0.2, 0.3), (100, 0.2, 0.3)):
        signals = OutcomeSignals(bead_id="b", success=True, timestamp=NOW, error_count=count, retry_count=count)
        parts = score_outcome(signals, NOW).parts
        assert (parts["errors"], parts["retries"]) == (errors, retries), count


@pytest.mark.parametrize(
    ("success", "minutes", "errors", "retries", "raw", "verdict"),
    [
        (True, 3, 0, 0, 1.0, "helpful"),  # the example of docs/scoring.md
        (True, 12, 0, 1, 0.86, "helpful"),
        (True, 60, 2, 1, 0.7, "helpful"),  # exactly .7
        (True, 12, 3, 1, 0.7, "helpful"),
        (True, 60, 1, 2, 0.62, "neutral"),
        (True, 60, 3, 2, 0.54, "neutral"),  # no success is harmful
        (False, 3, 0, 0, 0.6, "neutral"),  # and no failure helpful
        (False, 12, 1, 1, 0.38, "harmful"),
        (False, 60, 3, 2, 0.14, "harmful"),
    ],
)
def test_weighted_score(success: bool, minutes: int, errors: int, retries: int, raw: float, verdict: str) -> None:
    signals = OutcomeSignals(
        bead_id="bd-123.1",
        success=success,
        timestamp=NOW,
        duration_ms=minutes * MINUTE_MS,
        error_count=errors,
        retry_count=retries,
    )
    outcome = score_outcome(signals, NOW)
    assert outcome.raw == pytest.approx(raw, abs=1e-12)
    assert outcome.verdict == verdict


def test_verdicts_change_at_their_thresholds() -> None:
    rows: list[tuple[float, str]] = [
        (0.0, "harmful"),
        (0.4, "harmful"),
        (0.1 + 0.3 + 1e-16, "harmful"),
        (0.4001, "neutral"),
        (0.6999, "neutral"),
        (0.7 - 1e-16, "helpful"),
        (0.7, "helpful"),
        (1.0, "helpful"),
    ]
    for raw, verdict in rows:
        assert verdict_of(raw) == verdict, raw


def test_a_weight_is_never_below_its_minimum() -> None:
    rows: list[tuple[int, int, float]] = [
        (0, 1, 0.1),
        (1, 10, 0.1),
        (1, 9, 0.1),
        (1, 8, 1 / 9),
        (12, 3, 0.8),
        (1, 0, 1.0),
    ]
    for helpful, harmful, weight in rows:
        events = [feedback("helpful")] * helpful + [feedback("harmful")] * harmful
        assert criterion_weight(events, NOW).weight == pytest.approx(weight), helpful
    higher = LearningSettings(min_criterion_weight=0.2)
    assert criterion_weight([feedback("harmful")] * 5, NOW, higher).weight == 0.2


@pytest.mark.parametrize(
    ("helpful", "harmful", "deprecated"),
    [
        (0, 2, False),  # too few
        (0, 3, True),
        (2, 1, True),
        (3, 1, False),
        (7, 3, False),  # exactly 30 %
        (69, 31, True),
        (12, 3, False),  # the example of docs/scoring.md
    ],
)
def test_when_criteria_get_deprecated(helpful: int, harmful: int, deprecated: bool) -> None:
    weight = CriterionWeight(criterion="type_safe", weight=0.85, helpful_count=helpful, harmful_count=harmful)
    assert should_deprecate_criterion(weight) is deprecated
