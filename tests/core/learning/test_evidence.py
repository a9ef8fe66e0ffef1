from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.steps import group_pairs
from core.learning.evidence import MAX_COUNT, LoopPatterns, find_discoverer
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.evidence_records import WorkNames
from core.learning.following import REPORTED, FollowCounts, WorkVerdict, find_verdicts
from core.learning.scoreboard import Scoreboard
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.episodes import Attempt, Task
from core.records.events import ASSIGNED, VERDICT, Event, Observation, Trial, TrialKey
from core.records.loops import ExtractedPattern, InjectedUse, Loop, LoopStatus, Outcome, Progress
from core.records.patterns import Pattern, PatternType, RecordedCounts, SourceLoop, TrendPoint
from core.records.snapshot import Delta, Snapshot
from tests.drawn_snapshots import same
from tests.factories import (
    NOW,
    NULL_CHECK_001,
    NULL_CHECK_015,
    OPTIMIZING,
    SETTINGS,
    TEST_GENERATION,
    TYPE_MISMATCH,
    collect_observations,
    days_ago,
    example_loops,
    example_patterns,
    make_event,
    make_pattern,
    make_recorded_counts,
    make_source,
    make_use,
    time_at,
)

ID = "pat-error-sample-001"


def counts(observations: tuple[Observation, ...]) -> tuple[int, int, int, int]:
    """Return (successes, failures, uses, injections without result)."""
    found: Counter[object] = Counter()
    for seen in observations:
        found["exposure" if seen.kind == "injected" else seen.success] += seen.count
    return found[True], found[False], found[True] + found[False] + found[None], found["exposure"]


def uses_by_pattern(loops: Iterable[Loop]) -> dict[str, list[tuple[Loop, InjectedUse]]]:
    return group_pairs((use.pattern_id, (loop, use)) for loop in loops for use in loop.injected)


def test_the_examples_have_their_exact_weights() -> None:
    uses = uses_by_pattern(example_loops().values())
    found = {
        id: counts(collect_observations(pattern, uses.get(id, ())))[:3] for id, pattern in example_patterns().items()
    }
    assert found[NULL_CHECK_015] == (3, 1, 4)
    assert found[TYPE_MISMATCH] == (17, 1, 18)
    assert found[NULL_CHECK_001] == (11, 1, 12)
    assert found[OPTIMIZING] == (1, 0, 4)  # 85 % of 4 is not a count: only the recorded failure is one
    assert found[TEST_GENERATION] == (7, 1, 8)


def test_the_null_check_by_source_and_date() -> None:
    uses = uses_by_pattern(example_loops().values())[NULL_CHECK_015]
    seen = collect_observations(example_patterns()[NULL_CHECK_015], uses)
    assert [(one.kind, one.source, one.success, one.derived) for one in seen] == [
        ("discovered", "discovery", True, False),
        ("applied", "loop", True, False),
        ("aggregate", "aggregate", True, False),
        ("applied", "loop", False, False),
    ]
    # A use is dated by the source loop's entry, an unrecorded one by `last_used`.
    assert [one.at for one in seen] == [time_at(f"2026-02-02T{time}") for time in ("15:00", "16:30", "19:15", "19:15")]


def test_trend_snapshots_date_unrecorded_uses() -> None:
    uses = uses_by_pattern(example_loops().values())[TYPE_MISMATCH]
    trend = [
        (one.at, one.success, one.count)
        for one in collect_observations(example_patterns()[TYPE_MISMATCH], uses)
        if one.source == "trend"
    ]
    # The discovery explains the first snapshot, the recorded use one of the last.
    assert trend == [
        (time_at("2026-02-01T14:00"), False, 1),
        (time_at("2026-02-01T14:00"), True, 8),
        (time_at("2026-02-02T15:00"), True, 7),
    ]


def test_injected_applied_and_successful_are_separate_facts() -> None:
    loop = Loop(id="a", ended_at=days_ago(1))
    uses = [
        (loop, make_use(ID, True, applied=False, iteration=1)),
        (loop, make_use(ID, None, iteration=2)),
        (loop, make_use(ID, False, iteration=3)),
    ]
    assert counts(collect_observations(make_pattern(), uses)) == (0, 1, 1, 1)


def test_a_loop_has_one_use_with_its_newest_result() -> None:
    loop = Loop(id="a", ended_at=days_ago(1))
    entries = [
        make_use(ID, False, iteration=1),
        make_use(ID, True, iteration=3),
        make_use(ID, False, iteration=2),
    ]
    (seen,) = collect_observations(make_pattern(), [(loop, use) for use in entries])
    assert (seen.success, seen.iteration, seen.given) == (True, 3, 3)


def test_a_sighting_is_not_a_use() -> None:
    events = [
        make_event(1, "extracted", days_ago(9), loop_id="a"),
        make_event(2, "applied", days_ago(8), loop_id="a", success=True),
        make_event(3, "extracted", days_ago(7), loop_id="b"),
        make_event(4, "extracted", days_ago(7), loop_id="b"),
    ]
    seen = collect_observations(make_pattern(), (), events)
    assert [(one.loop_id, one.is_sighting, one.is_use, one.seen) for one in seen] == [
        ("a", True, False, 1),  # the success of the loop that found it first is part of the sighting
        ("b", True, False, 1),
    ]


def test_a_failure_of_the_loop_that_found_it_counts() -> None:
    events = [
        make_event(1, "extracted", days_ago(9), loop_id="a"),
        make_event(2, "applied", days_ago(8), loop_id="a", success=False),
    ]
    seen = collect_observations(make_pattern(), (), events)
    assert [(one.is_use, one.success) for one in seen] == [(False, True), (True, False)]


def test_a_loop_that_applied_a_pattern_and_found_it_again_counts_once() -> None:
    events = [
        make_event(1, "extracted", days_ago(9), loop_id="a"),
        make_event(2, "injected", days_ago(8), loop_id="b"),
        make_event(3, "applied", days_ago(8), loop_id="b", success=True),
        make_event(4, "extracted", days_ago(7), loop_id="b"),
    ]
    _, use = collect_observations(make_pattern(), (), events)
    assert (use.is_use, use.success, use.given, use.seen) == (True, True, 1, 0)
    _, use = collect_observations(make_pattern(), (), [events[0], *events[2:]])
    assert (use.is_use, use.success, use.given, use.seen) == (True, True, 0, 1), "it was not given it"


def test_work_has_seen_a_pattern_only_if_it_was_not_given_it_before() -> None:
    events = [
        make_event(1, "extracted", days_ago(9), loop_id="first"),
        make_event(2, "injected", days_ago(8), loop_id="first"),
        make_event(3, "injected", days_ago(7), loop_id="given"),
        make_event(4, "extracted", days_ago(6), loop_id="given"),
        make_event(5, "extracted", days_ago(5), loop_id="alone"),
        make_event(6, "injected", days_ago(4), loop_id="alone"),
    ]
    found = collect_observations(make_pattern(), (), events)
    assert {one.loop_id: one.seen for one in found if one.is_sighting} == {"first": 1, "given": 0, "alone": 1}


def test_the_sightings_explain_the_uses_that_the_record_counts() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(3, 0), last_used=days_ago(1))
    events = [make_event(n, "extracted", days_ago(9 - n), loop_id=f"loop-{n}") for n in range(3)]
    assert all(one.is_sighting for one in collect_observations(pattern, (), events))


def test_the_same_use_recorded_twice_counts_once() -> None:
    loop = Loop(id="a", aliases=("a-uuid",), ended_at=days_ago(1))
    uses = [
        (loop, make_use(ID, True, iteration=2)),
        (loop, make_use(ID, True)),
        (loop, make_use(ID, True, iteration=2)),
    ]
    events = [
        make_event(1, "injected", days_ago(2), loop_id="a"),
        make_event(2, "applied", days_ago(2), loop_id="a-uuid", iteration=2),
        make_event(3, "outcome", days_ago(1), loop_id="a-uuid", success=True),
        make_event(3, "outcome", days_ago(1), loop_id="a-uuid", success=True),
    ]
    assert counts(collect_observations(make_pattern(), uses, events)) == (1, 0, 1, 0)


def test_the_event_log_has_priority_over_the_loop_and_the_newest_result_counts() -> None:
    uses = [(Loop(id="a"), make_use(ID, True, iteration=2))]
    events = [
        make_event(1, "applied", days_ago(3), loop_id="a", iteration=2, success=True),
        make_event(2, "feedback", days_ago(2), loop_id="a", iteration=2, success=False, weight=0.5),
    ]
    (seen,) = collect_observations(make_pattern(), uses, events)
    assert (seen.source, seen.success, seen.weight) == ("event-log", False, 0.5)


def test_a_loop_fills_in_the_result_that_the_event_log_leaves_open() -> None:
    uses = [(Loop(id="a"), make_use(ID, False))]
    (seen,) = collect_observations(make_pattern(), uses, [make_event(1, "applied", days_ago(3), loop_id="a")])
    assert (seen.source, seen.success, seen.at) == ("event-log", False, days_ago(3))


def test_a_new_injection_does_not_change_the_time_of_earlier_uses() -> None:
    uses = [(Loop(id="a", ended_at=days_ago(90)), make_use(ID, True, iteration=4))]
    (seen,) = collect_observations(make_pattern(), uses, [make_event(1, "injected", days_ago(0), loop_id="a")])
    assert (seen.kind, seen.success, seen.at, seen.source) == ("applied", True, days_ago(90), "loop")


def test_the_failure_counts_of_two_entries_for_one_use() -> None:
    loop = Loop(id="a", ended_at=days_ago(1))
    uses = [(loop, make_use(ID, True, iteration=1)), (loop, make_use(ID, False, iteration=1))]
    assert counts(collect_observations(make_pattern(), uses)) == (0, 1, 1, 0)
    assert counts(collect_observations(make_pattern(), uses[::-1])) == (0, 1, 1, 0)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_an_event_without_weight_does_not_count(weight: float) -> None:
    events = [make_event(1, "feedback", days_ago(1), success=False, weight=weight)]
    assert collect_observations(make_pattern(), (), events) == ()


def test_a_use_has_the_most_exact_known_time() -> None:
    listed = make_pattern(source_loops=(make_source("other"), make_source("a", days_ago(7))))
    loop = Loop(id="a", started_at=days_ago(9), last_activity=days_ago(6), ended_at=days_ago(5))

    def dates(pattern: Pattern, loop: Loop, *entries: InjectedUse) -> list[object]:
        uses = [(loop, entry) for entry in entries]
        return [seen.at for seen in collect_observations(pattern, uses) if seen.source == "loop"]

    # A source loop is listed when it first applies the pattern; later uses have the time of their iteration.
    first, later = make_use(ID, True, iteration=1, at=days_ago(8)), make_use(ID, True, iteration=2, at=days_ago(4))
    assert dates(listed, loop, first) == [days_ago(7)]
    assert dates(listed, loop, first, later) == [days_ago(4)]
    assert dates(make_pattern(), loop, first) == [days_ago(8)]
    assert dates(make_pattern(), loop, make_use(ID, True)) == [days_ago(5)]
    assert dates(make_pattern(), Loop(id="a", started_at=days_ago(9)), make_use(ID, True)) == [days_ago(9)]
    # The discovering loop is listed for the discovery.
    found = make_pattern(source_loops=(make_source("a", days_ago(9)),))
    assert dates(found, loop, make_use(ID, True, at=days_ago(6))) == [days_ago(6)]


def test_the_discovering_loop_counts_once() -> None:
    pattern = make_pattern(source_loops=(make_source("a", days_ago(9)),), recorded_counts=make_recorded_counts(1, 0))
    assert counts(collect_observations(pattern)) == (1, 0, 1, 0)
    loop = Loop(id="a", ended_at=days_ago(8))
    assert counts(collect_observations(pattern, [(loop, make_use(ID, True))])) == (1, 0, 1, 0)
    later = make_use(ID, True, at=days_ago(8))
    assert counts(collect_observations(pattern, [(loop, later)])) == (2, 0, 2, 0)
    extracted = make_event(1, "extracted", days_ago(9), loop_id="a")
    assert counts(collect_observations(pattern, (), [extracted])) == (1, 0, 1, 0)


def test_first_discovered_decides_the_discovering_loop() -> None:
    pattern = make_pattern(
        source_loops=(make_source("later", days_ago(3)), make_source("first", days_ago(9))),
        first_discovered=days_ago(9),
    )
    assert [seen.loop_id for seen in collect_observations(pattern)] == ["first"]


def test_a_loop_that_extracted_it_discovers_a_pattern_without_source_loops() -> None:
    loop = Loop(id="a", ended_at=days_ago(4), extracted=(ExtractedPattern(pattern_id=ID),))
    (seen,) = collect_observations(make_pattern(), discoverer=find_discoverer([loop]))
    assert (seen.kind, seen.loop_id, seen.at, seen.success) == ("discovered", "a", days_ago(4), True)


def test_a_record_with_only_failures_refutes_its_discovery() -> None:
    pattern = make_pattern(source_loops=(make_source("a"),), recorded_counts=RecordedCounts(rate=0.0, uses=3))
    assert counts(collect_observations(pattern)) == (0, 3, 3, 0)


def test_a_success_pattern_found_in_a_failing_loop_starts_with_a_failure() -> None:
    pattern = make_pattern(source_loops=(SourceLoop(loop_id="a", outcome="failure"),))
    assert counts(collect_observations(pattern)) == (0, 1, 1, 0)


def test_recorded_counts_are_parsed() -> None:
    rows: list[tuple[RecordedCounts, tuple[int, int, int]]] = [
        (RecordedCounts(rate=0.92, uses=12), (11, 1, 12)),
        (RecordedCounts(rate=0.8, uses=4), (3, 1, 4)),
        (RecordedCounts(rate=0.85, uses=4), (0, 0, 4)),
        (RecordedCounts(rate=0.5, uses=1), (0, 0, 1)),
        (RecordedCounts(rate=0.85), (0, 0, 0)),
        (RecordedCounts(uses=4, successes=3, failures=1, rate=0.1), (3, 1, 4)),
        (RecordedCounts(uses=5, successes=3), (3, 2, 5)),
        (RecordedCounts(uses=5, failures=3), (2, 3, 5)),
        (RecordedCounts(successes=2, failures=2), (2, 2, 4)),
        (RecordedCounts(uses=9, successes=2, failures=2), (2, 2, 9)),
        (RecordedCounts(uses=7), (0, 0, 7)),
        (RecordedCounts(rate=1.0), (0, 0, 0)),
        (RecordedCounts(rate=float("nan"), uses=3), (0, 0, 3)),
        (RecordedCounts(rate=7.5, uses=3), (0, 0, 3)),
        (RecordedCounts(rate=0.5, uses=-3), (0, 0, 0)),
        (RecordedCounts(rate=0.5, uses=10**12), (5 * 10**11, 5 * 10**11, 10**12)),
        (RecordedCounts(rate=1.0, uses=10**400), (MAX_COUNT, 0, MAX_COUNT)),
    ]
    for made, expected in rows:
        observations = collect_observations(make_pattern(recorded_counts=made))
        assert counts(observations)[:3] == expected, made
        assert len(observations) <= 3, made


def test_unrecorded_uses_of_an_anti_pattern_have_its_newest_time() -> None:
    pattern = make_pattern(
        "pat-anti-x-001",
        PatternType.ANTI,
        recorded_counts=make_recorded_counts(5, 2),
        source_loops=(make_source("a", days_ago(9)), make_source("b", days_ago(3))),
    )
    assert {seen.at for seen in collect_observations(pattern) if seen.source == "aggregate"} == {days_ago(3)}


def test_an_invalid_trend_changes_no_total() -> None:
    trend = (
        TrendPoint(at=days_ago(9), rate=1.0, sample_size=4),
        TrendPoint(at=days_ago(8), rate=0.5, sample_size=2),
        TrendPoint(at=days_ago(7), rate=0.0, sample_size=5),
        TrendPoint(at=None, rate=0.5, sample_size=100),
        TrendPoint(at=days_ago(6), rate=None, sample_size=100),
    )
    assert counts(collect_observations(make_pattern(trend=trend, recorded_counts=make_recorded_counts(4, 1))))[:3] == (
        4,
        1,
        5,
    )
    assert counts(collect_observations(make_pattern(trend=trend)))[:3] == (4, 1, 5)


def test_a_trend_beyond_the_recorded_counts_counts() -> None:
    trend = (TrendPoint(at=days_ago(9), rate=0.5, sample_size=10),)
    assert counts(collect_observations(make_pattern(trend=trend, recorded_counts=make_recorded_counts(2, 0))))[:3] == (
        5,
        5,
        10,
    )


_IDS = st.sampled_from(["a", "b", "c"])
_TIMES = st.integers(-5, 60).map(days_ago)
_RESULT = st.sampled_from([True, False, None])
_ITERATION = st.sampled_from([None, 1, 2])
_LOOPS = st.dictionaries(
    _IDS,
    st.lists(st.builds(make_use, st.just(ID), _RESULT, applied=st.booleans(), iteration=_ITERATION), max_size=4),
    max_size=3,
)
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["injected", "applied", "outcome", "feedback", "extracted", "other"]),
        _TIMES,
        st.sampled_from(["a", "b", ""]),
        _RESULT,
        _ITERATION,
    ),
    max_size=6,
)
_TREND = st.lists(st.builds(TrendPoint, at=_TIMES, rate=st.floats(0, 1), sample_size=st.integers(0, 20)), max_size=4)
_CLAIM = st.builds(
    RecordedCounts,
    rate=st.none() | st.floats(0, 1),
    uses=st.none() | st.integers(0, 30),
    successes=st.none() | st.integers(0, 30),
    failures=st.none() | st.integers(0, 30),
)
_SOURCES = st.lists(st.builds(make_source, _IDS, st.none() | _TIMES), max_size=3).map(tuple)


@given(_LOOPS, _EVENTS, _TREND, _CLAIM, _SOURCES)
def test_no_use_is_ever_counted_twice(
    entries: dict[str, list[InjectedUse]],
    logged: list[tuple[str, object, str, bool | None, int | None]],
    trend: list[TrendPoint],
    made: RecordedCounts,
    sources: tuple[SourceLoop, ...],
) -> None:
    pattern = make_pattern(recorded_counts=made, trend=tuple(trend), source_loops=sources)
    loops = [Loop(id=id, ended_at=days_ago(2), injected=tuple(used)) for id, used in entries.items()]
    events = [
        make_event(number, kind, when, loop_id=loop_id, success=success, iteration=iteration)  # type: ignore[arg-type]
        for number, (kind, when, loop_id, success, iteration) in enumerate(logged)
    ]
    uses = uses_by_pattern(loops).get(ID, [])
    seen = collect_observations(pattern, uses, events)
    recorded = [one for one in seen if one.source not in ("trend", "aggregate")]
    slots = Counter((one.loop_id, one.iteration, one.kind == "discovered") for one in recorded if one.loop_id)
    assert max(slots.values(), default=1) == 1
    # Counts fill the recorded counts (or the trend) up and never goes beyond it.
    known = sum(one.count for one in recorded if one.kind != "injected")
    claimed = max(
        made.uses or 0,
        (made.successes or 0) + (made.failures or 0),
        max((point.sample_size or 0 for point in trend), default=0),
    )
    total = counts(seen)[2]
    # A use whose result is still to come is none that is claimed.
    pending = sum(one.kind == "applied" and one.success is None and not one.loop_id for one in recorded)
    assert known <= total <= max(claimed, known - pending) + pending
    assert all(one.count > 0 for one in seen)
    # The order of what is read does not matter.
    again = collect_observations(pattern, uses[::-1], events[::-1])
    assert counts(again) == counts(seen)


def test_events_of_other_kinds_are_not_evidence() -> None:
    assert collect_observations(make_pattern(), (), [Event(id="x", at=NOW, kind="unheard-of", success=True)]) == ()


@given(st.integers(0, 8), st.integers(0, 8), st.lists(st.booleans(), max_size=8), st.floats(0.01, 30))
def test_uses_after_the_last_recorded_use_are_added(good: int, bad: int, later: list[bool], days: float) -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(good, bad), last_used=days_ago(days))
    events = [make_event(n, "applied", NOW, loop_id=f"new{n}", success=success) for n, success in enumerate(later)]
    found = counts(collect_observations(pattern, (), events))
    assert found[:2] == (good + sum(later), bad + len(later) - sum(later))


def test_uses_up_to_the_last_use_are_among_the_recorded_counts() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(7, 3), last_used=NOW)
    for when in (days_ago(5), NOW, NOW + timedelta(seconds=60)):
        found = counts(collect_observations(pattern, (), [make_event(1, "applied", when, loop_id="x", success=False)]))
        assert found == (7, 3, 10, 0)
    after = make_event(1, "applied", NOW + timedelta(seconds=61), loop_id="x", success=False)
    assert counts(collect_observations(pattern, (), [after])) == (7, 4, 11, 0)


def shown(number: int, work: str) -> Event:
    return make_event(number, "injected", NOW + timedelta(minutes=number), pattern_id="p", loop_id=work)


def judged(number: int, work: str, is_followed: bool | None) -> Event:
    at = NOW + timedelta(minutes=number)
    return make_event(number, VERDICT, at, pattern_id="p", loop_id=work, is_followed=is_followed, action=number)


def find(*events: Event, uses: tuple[tuple[Loop, InjectedUse], ...] = ()) -> list[WorkVerdict]:
    """Return the verdicts; attempts such as `loop.1` belong to their loop."""
    return find_verdicts(events, uses, lambda work: work.partition(".")[0])


def test_the_attempts_of_one_loop_are_one_verdict_and_one_that_followed_decides() -> None:
    (found,) = find(
        shown(1, "a.1"),
        judged(2, "a.1", False),
        shown(3, "a.2"),
        judged(4, "a.2", True),
        judged(5, "a.2", None),
    )
    assert (found.is_followed, found.work_id, found.action) == (True, "a.2", 4)


def test_the_report_of_the_agent_counts_more_than_what_the_log_does_not_show() -> None:
    report = make_event(3, "applied", NOW, pattern_id="p", loop_id="a.1", success=True)
    (found,) = find(shown(1, "a.1"), judged(2, "a.1", False), report)
    assert (found.is_followed, found.evidence) == (True, REPORTED)


def test_work_that_was_not_given_the_pattern_has_no_verdict() -> None:
    assert find(make_event(1, "applied", NOW, pattern_id="p", loop_id="a.1", success=True)) == []
    assert [one.work_id for one in find(judged(1, "a.1", True), shown(2, "b.1"))] == ["b.1"]


def test_counts_add_up_with_entries_of_loops() -> None:
    entry = InjectedUse(pattern_id="p", applied=True, at=NOW)
    found = find(shown(1, "b"), shown(2, "c"), judged(3, "c", False), uses=((Loop(id="d"), entry),))
    assert [one.work_id for one in found] == ["d", "b", "c"], "oldest first"
    counts = FollowCounts.of(found)
    assert counts.text == "given in 3 sessions: 1 followed it, 1 did not, 1 can't tell"
    assert FollowCounts().text == ""


OTHER = "pat-error-other-002"
SAMPLE_ID = make_pattern().id


def found(loop: Loop, *events: Event, **fields: object) -> LoopPatterns:
    snapshot = replace(Snapshot(patterns={SAMPLE_ID: make_pattern()}, loops={loop.id: loop}, events=events), **fields)  # type: ignore[arg-type]
    return Scoreboard.build(snapshot, NOW, SETTINGS).inputs.loop_patterns(loop.id)


def results(patterns: LoopPatterns) -> list[tuple[str, str, bool | None]]:
    return [(use.pattern_id, use.kind, use.success) for use in patterns.uses]


def test_injections_and_uses_of_the_event_log_join_those_of_the_loop() -> None:
    loop = Loop(id="x", injected=(InjectedUse(pattern_id=SAMPLE_ID, applied=True, successful=True, iteration=2),))
    patterns = found(
        loop,
        make_event(1, "injected", days_ago(3), loop_id="x"),
        make_event(2, "injected", days_ago(3), loop_id="x", pattern_id=OTHER),
        make_event(3, "applied", days_ago(2), loop_id="x", pattern_id=OTHER, success=False),
    )
    assert results(patterns) == [(SAMPLE_ID, "applied", True), (OTHER, "applied", False)]
    assert patterns.injected_ids == patterns.applied_ids == [SAMPLE_ID, OTHER]


def test_a_pattern_that_was_only_injected_was_not_applied() -> None:
    patterns = found(Loop(id="x"), make_event(1, "injected", NOW, loop_id="x"))
    assert results(patterns) == [(SAMPLE_ID, "injected", None)]
    assert (patterns.injected_ids, patterns.applied_ids) == ([SAMPLE_ID], [])


def test_events_on_other_ids_of_the_loop_and_on_attempts_at_its_task_count() -> None:
    attempts = {"t.1": Attempt(task_id="t", number=1)}
    events = (
        make_event(1, "injected", days_ago(3), loop_id="x-alias"),
        make_event(2, "applied", days_ago(2), loop_id="t.1", pattern_id=OTHER, success=True),
        make_event(3, "injected", NOW, loop_id="another"),
    )
    patterns = found(
        Loop(id="x", aliases=("x-alias",)), *events, attempts=attempts, tasks={"t": Task(id="t", loop_id="x")}
    )
    assert patterns.injected_ids == [SAMPLE_ID, OTHER]


def test_a_use_without_a_result_gets_the_result_of_its_loop() -> None:
    loop = Loop(id="x", status=LoopStatus.COMPLETED, started_at=days_ago(1), ended_at=days_ago(1))
    (use,) = found(loop, make_event(1, "applied", days_ago(1), loop_id="x")).uses
    assert (use.success, use.inferred) == (True, True)


def test_extractions_are_listed_once_with_a_flag_for_new_patterns() -> None:
    loop = Loop(id="x", extracted=(ExtractedPattern(pattern_id="pat-error-own-001", rate=1.0),))
    earlier = make_pattern(source_loops=(SourceLoop(loop_id="first", at=days_ago(9)), SourceLoop(loop_id="x", at=NOW)))
    patterns = found(
        loop,
        make_event(1, "extracted", NOW, loop_id="x", pattern_id="pat-error-own-001"),
        make_event(2, "extracted", NOW, loop_id="x"),
        make_event(3, "extracted", NOW, loop_id="x", pattern_id=OTHER),
        patterns={SAMPLE_ID: earlier, OTHER: make_pattern(id=OTHER, source_loops=(SourceLoop(loop_id="x", at=NOW),))},
    )
    assert [(one.pattern_id, one.new) for one in patterns.extracted] == [
        ("pat-error-own-001", True),
        (SAMPLE_ID, False),
        (OTHER, True),
    ]
    assert patterns.uses == ()


def test_a_new_event_updates_the_board() -> None:
    loop = Loop(id="x")
    before = Snapshot(
        patterns={SAMPLE_ID: make_pattern()}, loops={"x": loop}, events=(make_event(1, "injected", NOW, loop_id="x"),)
    )
    board = Scoreboard.build(before, NOW, SETTINGS)
    after = replace(before, events=(*before.events, make_event(2, "extracted", NOW, loop_id="x", pattern_id=OTHER)))
    updated = board.updated(after, Delta(events=True), NOW).inputs.loop_patterns("x")
    assert updated.injected_ids == [SAMPLE_ID]
    assert [one.pattern_id for one in updated.extracted] == [OTHER]


def test_lessons_that_the_experiment_held_out_are_those_of_the_loop_and_not_given() -> None:
    held_out = [
        make_event(
            number, ASSIGNED, NOW, loop_id=loop_id, pattern_id=id, trial=Trial(task="t@x", share=0.5, is_held_out=out)
        )
        for number, (loop_id, id, out) in enumerate(
            [("x", SAMPLE_ID, True), ("x", SAMPLE_ID, True), ("x", OTHER, False), ("another", OTHER, True)]
        )
    ]
    key = TrialKey(b"k")
    patterns = found(Loop(id="x"), *map(key.sign, held_out), trial_key=key)
    assert patterns.held_out == (SAMPLE_ID,) and not patterns.injected_ids
    assert not found(Loop(id="x"), *held_out, trial_key=key).held_out, "events of others do not count"


FIRST = Attempt(task_id="task", number=1, started_at=days_ago(9), ended_at=days_ago(8))
SECOND = Attempt(task_id="task", number=2, started_at=days_ago(4))


def work_id_of(session: DebugSession, *attempts: Attempt) -> str:
    snapshot = Snapshot(
        loops={"x": Loop(id="x", aliases=("uuid",))},
        attempts={attempt.id: attempt for attempt in attempts},
        debug_sessions={session.id: session},
    )
    inputs = EvidenceInputs.of(snapshot, SETTINGS.learning)
    owner = inputs.names.session_owner(session)
    works = [id for id in ("x", *snapshot.attempts) if inputs.names.sessions_of(id)]
    assert works == ([owner] if owner else [])
    return owner


def made(loop_id: str = "", task_id: str = "", at: datetime | None = None) -> DebugSession:
    return DebugSession(id="s", loop_id=loop_id, task_id=task_id, created_at=at)


def test_a_loop_has_priority_over_a_task() -> None:
    assert work_id_of(made("uuid", "task.1"), FIRST) == "x"
    assert work_id_of(made("gone", "task.1"), FIRST) == "task.1"
    assert work_id_of(made("gone", "gone too"), FIRST) == ""
    assert work_id_of(made()) == ""


def test_a_session_of_a_task_belongs_to_the_running_attempt() -> None:
    rows: list[tuple[float, str]] = [
        (10, ""),
        (9, "task.1"),
        (8.5, "task.1"),
        (6, "task.1"),
        (4, "task.2"),
        (0, "task.2"),
    ]
    for days, attempt in rows:
        assert work_id_of(made("task", "task", days_ago(days)), FIRST, SECOND) == attempt, days


def test_a_session_made_from_an_attempt_belongs_to_it() -> None:
    session = msgspec.structs.replace(made("task", "task", days_ago(9)), attempt=2)
    assert work_id_of(session, FIRST, SECOND) == "task.2"
    assert work_id_of(session, FIRST) == "task.1"  # its attempt is gone


def test_without_times_only_a_single_attempt_is_matched() -> None:
    assert work_id_of(made("task"), FIRST) == "task.1"
    assert work_id_of(made("task"), FIRST, SECOND) == ""
    assert work_id_of(made("task", at=NOW), Attempt(task_id="task", number=7)) == "task.7"


def failure(test_name: str) -> Failure:
    return Failure(test_name=test_name, message="null")


def test_a_new_session_changes_the_result_of_applied_patterns() -> None:
    """A slow success is helpful; with more than two errors it is neutral."""
    pattern = make_pattern()
    loop = Loop(id="x", status=LoopStatus.COMPLETED, started_at=days_ago(2), ended_at=days_ago(1))
    applied = (make_event(1, "applied", days_ago(1), loop_id="x"),)
    before = Snapshot(patterns={pattern.id: pattern}, loops={"x": loop}, events=applied)
    board = Scoreboard.build(before, NOW, SETTINGS)
    assert board.assessment(pattern.id).successes == 1
    session = DebugSession(id="s", loop_id="x", executions=(Execution(failures=tuple(map(failure, "abc"))),))
    after = replace(before, debug_sessions={"s": session})
    updated = board.updated(after, Delta(debug_sessions=frozenset("s")), NOW)
    same(updated, Scoreboard.build(after, NOW, SETTINGS))
    assert updated.assessment(pattern.id).successes == 0
    found = updated.outcome("x")
    assert found is not None and found[0].error_count == 3


def test_the_work_of_an_agents_session_is_scored_once_as_the_attempts_of_its_tasks() -> None:
    session = Loop(
        id="claude:s1",
        runner="claude",
        status=LoopStatus.COMPLETED,
        ended_at=NOW,
        progress=Progress(test_passed=True),
    )
    attempt = Attempt(task_id="task", number=1, started_at=days_ago(1), ended_at=NOW, outcome=Outcome.SUCCESS)
    pattern = make_pattern()
    applied = (make_event(1, "applied", NOW, loop_id="task.1"),)
    alone = Snapshot(patterns={pattern.id: pattern}, loops={session.id: session}, events=applied)
    recorded = replace(alone, tasks={"task": Task(id="task", loop_id="claude:s1")}, attempts={attempt.id: attempt})
    assert list(Scoreboard.build(alone, NOW, SETTINGS).inputs.finished()) == ["claude:s1"]
    board = Scoreboard.build(recorded, NOW, SETTINGS)
    assert list(board.inputs.finished()) == ["task.1"]
    assert [(use.loop_id, use.success) for use in board.observations(pattern.id)] == [("task.1", True)]
    joined = msgspec.structs.replace(session, id="ralph:1", runner="ralph", aliases=("claude:s1",))
    board = Scoreboard.build(replace(recorded, loops={joined.id: joined}), NOW, SETTINGS)
    assert list(board.inputs.finished()) == ["ralph:1", "task.1"]


def test_the_loop_of_a_work_is_found_by_its_task_and_attempt() -> None:
    session = Loop(id="claude:s1", runner="claude")
    again = Loop(id="claude:s2", runner="claude")
    first = Attempt(task_id="task", number=1)
    second = Attempt(task_id="task", number=2, loop_id="claude:s2")
    names = WorkNames(
        Snapshot(
            loops={session.id: session, again.id: again},
            tasks={"task": Task(id="task", loop_id="claude:s1")},
            attempts={first.id: first, second.id: second},
        )
    )
    works = ("claude:s1", "task", "task.1", "task.2", "bd-1")
    assert [names.loop_of_work(id) for id in works] == ["claude:s1", "claude:s1", "claude:s1", "claude:s2", ""]
