"""Metrics of small projects, checked by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from core.index.review_items import ReviewItem
from core.learning.scoreboard import Scoreboard
from core.learning.states import CODES
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure
from core.records.decisions import CurationState, Decision, Verb
from core.records.events import Event, Signals
from core.records.patterns import Maturity, Pattern
from core.records.snapshot import Snapshot
from core.show.metrics.dashboard import (
    WEEK,
    Week,
    compute_coverage,
    compute_trend,
    count_changes,
    count_first_half,
    count_questions,
    count_states,
    count_weekly,
    find_upcoming,
    list_used,
    list_week_starts,
    select_registered,
)
from core.show.metrics.sessions import top_causes
from tests.factories import SETTINGS, make_pattern, make_pin, make_recorded_counts

MONDAY = datetime(2026, 2, 2, tzinfo=UTC)
NOW = MONDAY + timedelta(days=3, hours=5)
"""A Thursday."""


def used(pattern_id: str, at: datetime, success: bool | None, kind: str = "applied") -> Event:
    return Event(id=f"{at}-{pattern_id}-{kind}", at=at, kind=kind, pattern_id=pattern_id, loop_id=f"loop-{at}",
                 success=success)  # fmt: skip


def world(*events: Event, patterns: tuple[Pattern, ...] = (), **fields: object) -> Snapshot:
    known = {id: make_pattern(id) for id in dict.fromkeys(event.pattern_id for event in events if event.pattern_id)}
    known |= {pattern.id: pattern for pattern in patterns}
    return Snapshot(patterns=known, events=events, **fields)  # type: ignore[arg-type]


def measured(snapshot: Snapshot, weeks: int = 3) -> tuple[Week, ...]:
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    return count_weekly(board, select_registered(board, snapshot.patterns), list_week_starts(NOW, weeks))


def test_weeks_begin_on_monday_and_end_with_the_current_one() -> None:
    assert list_week_starts(NOW, 3) == (MONDAY - 2 * WEEK, MONDAY - WEEK, MONDAY)
    assert list_week_starts(MONDAY, 1) == (MONDAY,)


def test_each_use_is_counted_in_its_week_and_a_week_without_any_is_a_gap() -> None:
    found = measured(
        world(
            used("pat-a", MONDAY, True),
            used("pat-a", MONDAY - timedelta(seconds=1), False),
            used("pat-b", NOW, None),
            used("pat-b", NOW + WEEK, True),
            used("pat-b", NOW - timedelta(hours=1), None, "injected"),
            used("pat-b", MONDAY - 2 * WEEK - timedelta(seconds=1), True),
        )
    )
    assert [(week.good, week.bad, week.open, week.shown) for week in found] == [
        (0, 0, 0, 0),
        (0, 1, 0, 0),
        (2, 0, 1, 1),
    ]
    assert (found[0].rate, found[0].low) == (None, None)
    assert (found[1].rate, found[1].low) == (0.0, 0.0)
    assert found[2].rate == 1.0
    assert found[2].low is not None
    assert 0 < found[2].low < found[2].high == 1.0  # type: ignore[operator]


def test_copies_and_undated_totals_do_not_count() -> None:
    mirror = make_pattern("pat-m", copy_folder="pat-a")
    summed = make_pattern("pat-s", recorded_counts=make_recorded_counts(5, 1), last_used=MONDAY)
    found = measured(world(used("pat-m", MONDAY, True), patterns=(mirror, summed)))
    assert found[-1].uses == 0


def test_patterns_of_a_week_are_sorted_by_use() -> None:
    snapshot = world(
        used("pat-a", MONDAY, True),
        used("pat-b", MONDAY, True),
        used("pat-b", MONDAY + timedelta(hours=1), False),
        used("pat-c", MONDAY - WEEK, True),
        used("pat-d", MONDAY, None, "injected"),
    )
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    assert list_used(board, np.ones(4, np.bool_), MONDAY) == ("pat-b", "pat-a", "pat-d")


def test_states_are_counted_at_the_end_of_each_week_without_later_uses() -> None:
    last, middle, early = (MONDAY - WEEK * back for back in (0, 1, 2))
    found_late = make_pattern("pat-b", first_discovered=MONDAY)
    uses = [used("pat-a", middle + timedelta(hours=n), True) for n in range(4)]
    snapshot = world(*uses, used("pat-a", last, True), patterns=(found_late,))
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    found = count_states(board, np.ones(2, np.bool_), snapshot, (early, last, NOW))
    assert [{state.value: count for state, count in week.items() if count} for week in found] == [
        {"candidate": 1},  # no use yet
        {"established": 1, "candidate": 1},
        {"established": 1, "candidate": 1},
    ]
    assert board.state_codes.tolist() == [CODES[Maturity.ESTABLISHED], CODES[Maturity.CANDIDATE]]


def test_a_pin_counts_from_its_time_on() -> None:
    pin = make_pin(Maturity.PROVEN, MONDAY)
    snapshot = world(patterns=(make_pattern("pat-a"),), curation=CurationState(pins={"pat-a": pin}))
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    found = count_states(board, np.ones(1, np.bool_), snapshot, (MONDAY - WEEK, NOW))
    assert [week[Maturity.PROVEN] for week in found] == [0, 1]


def week(number: int, good: int, bad: int) -> Week:
    return Week(start=MONDAY + number * WEEK, good=good, bad=bad, open=0, shown=0)


def test_a_trend_compares_two_halves_since_the_first_result() -> None:
    overlapping = compute_trend([week(0, 0, 0), week(1, 9, 1), week(2, 7, 3)], 0.9)
    assert overlapping is not None
    assert overlapping.since == MONDAY + 2 * WEEK
    assert (overlapping.before.rate, overlapping.after.rate, overlapping.is_significant) == (0.9, 0.7, False)
    apart = compute_trend([week(1, 90, 10), week(2, 30, 70)], 0.9)
    assert apart is not None
    assert apart.is_significant
    assert compute_trend([week(0, 3, 0), week(1, 0, 0)], 0.9) is None
    assert compute_trend([], 0.9) is None


def test_decay_is_listed_in_the_week_of_the_change() -> None:
    events = [used("pat-a", NOW - timedelta(hours=n), True) for n in range(3)]
    snapshot = world(*events, used("pat-b", NOW, True))
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    found = find_upcoming(board, np.ones(2, np.bool_), 4)
    next_change = board.next_change("pat-a")
    assert next_change is not None
    change = (Maturity.ESTABLISHED, Maturity.CANDIDATE)
    assert count_changes(found) == {change: 1}
    turning = next(week for week in found if week.count)
    assert turning.start <= next_change[0] <= turning.end
    assert turning.changes == {change: ("pat-a",)}
    assert (found[0].start, found[0].end, found[-1].end) == (NOW, MONDAY + WEEK, MONDAY + 4 * WEEK)


def decision(number: int, at: datetime, verb: Verb, subject: str, **after: object) -> Decision:
    return Decision(id=f"d{number}", at=at, by="ana", verb=verb, subject=subject, after=after)


def test_injections_count_as_reviewed_from_the_week_of_the_decision() -> None:
    early, late = MONDAY - WEEK, MONDAY + timedelta(hours=1)
    events = [used(id, at, True) for id in ("pat-a", "pat-b", "pat-c") for at in (early, late)]
    decisions = (
        decision(1, MONDAY, Verb.PROMOTE, "pat-a"),
        decision(2, MONDAY, Verb.EXTRACT, "some-loop", patterns=["pat-b", 7]),
        decision(3, MONDAY, Verb.PROMOTE, "pat-c"),
        decision(4, MONDAY, Verb.UNDO, "d3"),
        decision(5, MONDAY, Verb.SNOOZE, "pat-c"),
        decision(6, MONDAY, Verb.EXTRACT, "task-1", patterns=["pat-c"], hashes={"pat-c": "text"}),  # without a person
    )
    snapshot = world(*events)
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    curation = CurationState(undone=frozenset({"d3"}))
    found = compute_coverage(board, np.ones(3, np.bool_), decisions, curation, list_week_starts(NOW, 3))
    assert [(one.injected, one.reviewed, one.decisions) for one in found] == [(0, 0, 0), (3, 0, 0), (3, 2, 3)]
    assert [one.share for one in found] == [None, 0.0, pytest.approx(2 / 3)]


def test_open_questions_are_counted_by_impact() -> None:
    def item(kind: str, subject: str, impact: float) -> ReviewItem:
        return ReviewItem(kind=kind, subject=subject, question="?", reason="", priority=0.5, impact=impact)

    queue = (item("stale-pin", "pat-a", 0.6), item("inversion", "pat-b", 0.3), item("inversion", "pat-c", 0.1))
    found = count_questions(queue)
    assert [(one.kind, one.count, one.first) for one in found] == [("stale-pin", 1, "pat-a"), ("inversion", 2, "pat-b")]
    assert [one.share for one in found] == pytest.approx([0.6, 0.4])
    assert [count_first_half(queue), count_first_half(queue[1:]), count_first_half(())] == [1, 1, 0]
    assert count_questions(()) == ()


def test_causes_are_counted_once_per_session_since_a_day() -> None:
    def session(id: str, at: datetime) -> DebugSession:
        run = Execution(
            at=at, failures=(Failure(error_type="TypeError"),), analysis=Analysis(category="null_undefined_access")
        )
        return DebugSession(id=id, executions=(run, run), loop_id="a-loop")

    snapshot = world(
        Event(id="1", at=MONDAY, kind="outcome", loop_id="x", signals=Signals(failure_mode="repeated_same_error")),
        Event(id="2", at=MONDAY, kind="outcome", loop_id="y", signals=Signals(failure_mode="unknown")),
    )
    sessions = {one.id: one for one in (session("s1", MONDAY), session("s2", NOW), session("old", MONDAY - WEEK))}
    found = top_causes(replace(snapshot, debug_sessions=sessions), MONDAY, NOW)
    assert [(cause.kind, cause.name, cause.count, cause.loop_id) for cause in found] == [
        ("error", "TypeError", 2, "a-loop"),
        ("root cause", "null_undefined_access", 2, "a-loop"),
        ("failure mode", "repeated_same_error", 1, "x"),
    ]
