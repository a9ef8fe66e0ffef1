"""Replays of the evidence under current and under other thresholds."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.settings import AntiPatternSettings, LearningSettings, MaturitySettings, Settings
from core.learning.maturity import maturity_state
from core.learning.scoreboard import Scoreboard
from core.learning.threshold_replay import Course, replay_pattern, what_if
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import Maturity, PatternType
from tests.factories import NOW, SETTINGS, days_ago, make_board, make_event, make_pattern, make_recorded_counts

ID = "pat-error-sample-001"


def results(text: str, *, every: float = 1.0) -> tuple[Event, ...]:
    """Parse results such as `+-`, one every `days` days, the last one now."""
    return tuple(
        make_event(n, "applied", days_ago((len(text) - 1 - n) * every), success=mark == "+", loop_id=f"x{n}")
        for n, mark in enumerate(text)
    )


def board(text: str, *, every: float = 1.0) -> Scoreboard:
    return make_board(make_pattern(ID), events=results(text, every=every))


def with_maturity(**changes: float) -> Settings:
    return Settings(maturity=MaturitySettings(**changes))


def test_the_same_thresholds_change_nothing() -> None:
    replay = what_if(SETTINGS, board("+++-+").history)
    assert replay.turns == ()
    assert replay.before == replay.after and replay.before[Maturity.ESTABLISHED] == 1
    assert replay.events == 5


def test_a_stricter_threshold_lists_changed_patterns_and_since_when() -> None:
    replay = what_if(with_maturity(deprecation_threshold=0.15), board("+++-+").history)
    (turn,) = replay.turns
    assert (turn.pattern_id, turn.pinned) == (ID, False)
    assert (turn.before.state, turn.after.state) == (Maturity.ESTABLISHED, Maturity.DEPRECATED)
    assert turn.after.since == days_ago(1)
    assert (replay.before[Maturity.DEPRECATED], replay.after[Maturity.DEPRECATED]) == (0, 1)


def test_another_inversion_threshold_lists_inverted_patterns() -> None:
    milder = Settings(anti_pattern=AntiPatternSettings(failure_ratio_threshold=0.5))
    (turn,) = what_if(milder, board("+--+").history).turns
    assert (turn.before.inverts, turn.after.inverts) == (False, True)
    assert turn.after.inverted_at == days_ago(1)


def test_other_outcome_thresholds_change_the_evidence() -> None:
    used = (InjectedUse(pattern_id=ID, applied=True),)
    loops = {
        f"x{n}": Loop(
            id=f"x{n}",
            status=LoopStatus.COMPLETED,
            started_at=NOW - timedelta(hours=2),
            ended_at=NOW,
            iterations=(Iteration(outcome=Outcome.FAILURE),) * 3,
            injected=used,
        )
        for n in range(3)
    }
    history = make_board(make_pattern(ID), loops=loops).history
    assert what_if(SETTINGS, history).events == 0
    patient = Settings(
        learning=LearningSettings(
            fast_completion_threshold_ms=3 * 3_600_000, slow_completion_threshold_ms=4 * 3_600_000
        )
    )
    replay = what_if(patient, history)
    assert replay.events == 3
    assert [turn.after.state for turn in replay.turns] == [Maturity.ESTABLISHED]
    strict = Settings(learning=LearningSettings(neutral_counts_as="failure"))
    assert [turn.after.state for turn in what_if(strict, history).turns] == [Maturity.DEPRECATED]


def test_a_burst_counts_under_a_higher_limit() -> None:
    ids = [f"pat-error-p{n}-001" for n in range(6)]
    events = tuple(
        make_event(n, "feedback", NOW, pattern_id=id, loop_id="x", success=False) for n, id in enumerate(ids)
    )
    history = make_board(
        *(make_pattern(id, recorded_counts=make_recorded_counts(3, 0)) for id in ids), events=events
    ).history
    lenient = Settings(learning=LearningSettings(max_marks=6))
    assert {turn.after.state for turn in what_if(lenient, history).turns} == {Maturity.DEPRECATED}


def test_an_anti_pattern_never_inverts() -> None:
    anti = make_pattern(ID, PatternType.ANTI)
    assert not make_board(anti, events=results("-----")).history.courses[ID].inverts


def test_changes_by_age_alone_are_dated() -> None:
    seen = board("++++", every=0.5).history.observations[ID]
    later = NOW + timedelta(days=400)
    found = replay_pattern(seen, later, SETTINGS.maturity, None)
    assert found.state is Maturity.CANDIDATE
    assert found.since is not None
    assert maturity_state(seen, found.since, SETTINGS.maturity) is Maturity.CANDIDATE
    assert maturity_state(seen, found.since - timedelta(seconds=2), SETTINGS.maturity) is Maturity.ESTABLISHED


def test_a_pattern_without_results_was_always_a_candidate() -> None:
    assert replay_pattern((), NOW, SETTINGS.maturity, SETTINGS.anti_pattern) == Course(
        state=Maturity.CANDIDATE, since=None, inverts=False, inverted_at=None
    )


_SEEN = st.builds(
    Observation,
    pattern_id=st.just(ID),
    kind=st.just("applied"),
    source=st.just("loop"),
    at=st.none() | st.integers(-20, 500).map(days_ago),
    success=st.sampled_from([True, False, None]),
    weight=st.sampled_from([0.25, 0.5, 1.0]),
    count=st.integers(1, 6),
)
_LIMITS = st.builds(
    MaturitySettings,
    half_life_days=st.sampled_from([1.0, 30.0, 90.0, 1000.0]),
    min_feedback=st.sampled_from([0.5, 3.0, 10.0]),
    deprecation_threshold=st.sampled_from([0.1, 0.3, 0.9]),
)


@given(st.lists(_SEEN, max_size=12), _LIMITS, st.randoms())
def test_a_replay_ends_in_the_computed_state_in_any_order(
    seen: list[Observation], limits: MaturitySettings, random: object
) -> None:
    found = replay_pattern(seen, NOW, limits, None)
    assert found.state is maturity_state(seen, NOW, limits)
    shuffled = sorted(seen, key=lambda one: hash((one.success, one.count, one.weight)))
    assert replay_pattern(shuffled, NOW, limits, None).state is found.state
    if found.since is not None:
        assert found.since <= NOW


@given(st.text("+-", max_size=15), st.sampled_from([0.1, 20.0]))
def test_a_replay_under_current_thresholds_gives_current_states(text: str, every: float) -> None:
    today = board(text, every=every)
    course = today.history.courses[ID]
    assert course.state is today.assessment(ID).computed
    assert course.inverts is today.assessment(ID).inversion_due
    assert what_if(replace(SETTINGS), today.history).turns == ()
