"""Bursts of harmful reports by one source do not count until a person decides."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from core.base.settings import LearningSettings
from core.learning.bursts import Burst, HarmfulReport, Period, find_ignored_periods, is_within, source_of
from core.learning.scoreboard import Scoreboard
from core.records.decisions import BurstVerdict, CurationState
from core.records.events import Event
from core.records.loops import InjectedUse, Loop, LoopStatus
from core.records.patterns import Pattern
from tests.factories import NOW, days_ago, make_board, make_event, make_pattern, make_recorded_counts, make_use

LIMITS = LearningSettings()
MANY = tuple(f"pat-error-p{number}-001" for number in range(8))


def make_reports(*minutes: float) -> list[HarmfulReport]:
    """Make one harmful report on a different pattern at each of these times."""
    return [HarmfulReport(NOW + timedelta(minutes=at), f"p{number}") for number, at in enumerate(minutes)]


def held(given: list[HarmfulReport], *verdicts: BurstVerdict) -> tuple[Period, ...]:
    return find_ignored_periods(given, verdicts, LIMITS)[0]


def test_six_patterns_within_an_hour_are_a_burst_and_five_are_not() -> None:
    assert held(make_reports(0, 1, 2, 3, 4)) == ()
    assert held(make_reports(0, 1, 2, 3, 4, 60)) == (Period(NOW, NOW + timedelta(hours=1)),)
    assert held(make_reports(0, 1, 2, 3, 4, 60.01)) == ()


def test_many_reports_on_one_pattern_are_not_a_burst() -> None:
    assert held([HarmfulReport(NOW + timedelta(seconds=n), "p") for n in range(100)]) == ()


@pytest.mark.parametrize(
    ("by", "loop_id", "source"),
    [
        ("ada", "", "by ada"),
        ("ada", "ralph-a", "ralph-a"),
        ("ada", "by eve", "bead by eve"),
        ("mcp:codex", "", "by mcp:codex"),
        ("mcp:codex", "ralph-a", "by mcp:codex"),
    ],
)
def test_the_source_is_the_work_or_the_agent_of_the_mcp_server(by: str, loop_id: str, source: str) -> None:
    assert source_of(make_event(1, "applied", NOW, by=by, loop_id=loop_id)) == source


def verdict(word: str, first: datetime, last: datetime, *patterns: str) -> BurstVerdict:
    return BurstVerdict(verdict=word, first=first, last=last, decision_id="d", patterns=patterns)


def test_a_verdict_covers_the_reports_around_it_and_no_later_burst() -> None:
    decided = verdict("revoked", NOW, NOW + timedelta(minutes=5))
    late = make_reports(*range(6), 30, *range(500, 506))
    waiting, revoked = find_ignored_periods(late, [decided], LIMITS)
    assert [stretch.first for stretch in waiting] == [NOW + timedelta(minutes=500)]
    assert is_within(NOW + timedelta(minutes=30), revoked) and not is_within(NOW + timedelta(minutes=500), revoked)


def test_a_confirmation_covers_only_the_reports_of_the_burst() -> None:
    seen = make_reports(*range(6))
    confirmed = verdict("confirmed", seen[0].at, seen[-1].at, *(mark.pattern_id for mark in seen))
    assert held(seen, confirmed) == ()
    more = [HarmfulReport(NOW + timedelta(minutes=n), f"new{n}") for n in range(6)]
    assert held([*seen, *more], confirmed) == (Period(NOW, NOW + timedelta(minutes=5)),)


def test_reports_at_the_limits_of_time_are_handled() -> None:
    first, last = datetime.min.replace(tzinfo=NOW.tzinfo), datetime.max.replace(tzinfo=NOW.tzinfo)
    given = [HarmfulReport(at, f"p{number}") for at in (first, last) for number in range(6)]
    assert len(held(given)) == 2
    assert held(given, verdict("revoked", first, first), verdict("revoked", last, last)) == ()


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9)), max_size=40))
def test_every_window_above_the_limit_is_held(drawn: list[tuple[int, int]]) -> None:
    given = [HarmfulReport(NOW + timedelta(minutes=at), str(pattern)) for at, pattern in drawn]
    hour = timedelta(minutes=LIMITS.burst_minutes)

    def crowded(mark: HarmfulReport) -> bool:
        windows = ([m for m in given if start.at <= m.at <= start.at + hour] for start in given)
        return any(mark in window and len({m.pattern_id for m in window}) > LIMITS.max_marks for window in windows)

    stretches = held(given)
    assert {mark for mark in given if crowded(mark)} == {mark for mark in given if is_within(mark.at, stretches)}


# On the scoreboard


def blames(source: str, *patterns: str, minutes: float = 0) -> tuple[Event, ...]:
    at = NOW - timedelta(minutes=minutes)
    return tuple(
        make_event(n, "feedback", at, pattern_id=id, loop_id=source, success=False, by="hook")
        for n, id in enumerate(patterns)
    )


def patterns() -> list[Pattern]:
    return [make_pattern(id, recorded_counts=make_recorded_counts(4, 0), last_used=days_ago(1)) for id in MANY]


def found(board: Scoreboard) -> Burst:
    (burst,) = board.bursts
    return burst


def test_held_reports_do_not_count_and_are_listed() -> None:
    board = make_board(*patterns(), events=blames("x", *MANY))
    assert found(board) == Burst(source="x", first=NOW, last=NOW, patterns=MANY, never_given=8)
    assert {board.assessment(id).failures for id in MANY} == {0}
    (aside,) = board.ignored_reports(MANY[0])
    assert (aside.source, aside.revoked) == ("x", False)


def test_bursts_count_patterns_that_were_never_given() -> None:
    loop = Loop(id="x", injected=(make_use(MANY[0], None), make_use(MANY[1], None, applied=False)))
    board = make_board(*patterns(), loops={"x": loop}, events=blames("x", *MANY))
    assert found(board).never_given == 6


def test_reports_in_the_state_of_a_loop_are_held() -> None:
    uses = tuple(InjectedUse(pattern_id=id, applied=True, successful=False) for id in MANY)
    loop = Loop(id="x", status=LoopStatus.FAILED, ended_at=NOW, injected=uses)
    board = make_board(*patterns(), loops={"x": loop})
    assert found(board).never_given == 0
    assessment = board.assessment(MANY[0])
    assert (assessment.failures, assessment.injected_only) == (0, 1)


def test_a_harmful_outcome_is_a_report_on_each_applied_pattern() -> None:
    uses = tuple(InjectedUse(pattern_id=id, applied=True) for id in MANY)
    loop = Loop(id="x", status=LoopStatus.FAILED, started_at=days_ago(1), ended_at=NOW, injected=uses)
    board = make_board(*patterns(), loops={"x": loop})
    assert found(board).patterns == MANY
    assert {board.assessment(id).failures for id in MANY} == {0}
    assert [aside.revoked for aside in board.ignored_reports(MANY[0])] == [False]
    curation = CurationState(bursts={"x": (verdict("confirmed", NOW, NOW, *MANY),)})
    counted = make_board(*patterns(), loops={"x": loop}, curation=curation)
    assert {counted.assessment(id).failures for id in MANY} == {1}
    few = make_board(*patterns(), loops={"x": Loop(**{**asdict(loop), "injected": uses[:5]})})
    assert few.bursts == () and [few.assessment(id).failures for id in MANY] == [1] * 5 + [0] * 3


def test_a_harmful_outcome_on_many_applied_patterns_is_held() -> None:
    applied = [make_event(n, "applied", NOW, pattern_id=id, loop_id="bd-8") for n, id in enumerate(MANY)]
    ended = make_event(99, "outcome", NOW, pattern_id="", loop_id="bd-8", success=False)
    board = make_board(*patterns(), events=(*applied, ended))
    assert found(board).patterns == MANY
    assert {board.assessment(id).failures for id in MANY} == {0}


def test_all_ids_of_a_loop_are_one_source() -> None:
    loop = Loop(id="x", aliases=("also-x",))
    events = (*blames("x", *MANY[:4]), *(replace(e, id=f"a{e.id}") for e in blames("also-x", *MANY[4:])))
    assert found(make_board(*patterns(), loops={"x": loop}, events=events)).patterns == MANY


def test_reports_on_unknown_patterns_are_not_a_burst() -> None:
    events = blames("x", MANY[0], *(f"no-such-{n}" for n in range(9)))
    board = make_board(*patterns(), events=events)
    assert board.bursts == () and board.assessment(MANY[0]).failures == 1


def test_a_loop_id_cannot_be_mistaken_for_an_author() -> None:
    events = (*blames("", *MANY[:4]), *(replace(e, id=f"f{e.id}") for e in blames("by hook", *MANY[4:])))
    assert make_board(*patterns(), events=events).bursts == ()


def test_a_held_failure_does_not_restore_an_older_success() -> None:
    ago = make_event(90, "applied", days_ago(2), pattern_id=MANY[0], loop_id="x", success=True)
    board = make_board(*patterns(), events=(ago, *blames("x", *MANY)))
    (use_of_x,) = [seen for seen in board.observations(MANY[0]) if seen.loop_id == "x"]
    assert use_of_x.success is None


def test_reports_without_a_loop_are_grouped_by_their_author() -> None:
    assert found(make_board(*patterns(), events=blames("", *MANY))).source == "by hook"


def test_different_loops_are_different_sources() -> None:
    events = tuple(one for n, id in enumerate(MANY) for one in blames(f"loop{n}", id))
    assert make_board(*patterns(), events=events).bursts == ()


def test_a_revoked_burst_is_ignored_and_a_confirmed_one_counts() -> None:
    for word, failures in (("revoked", 0), ("confirmed", 1)):
        curation = CurationState(bursts={"x": (verdict(word, NOW, NOW, *MANY),)})
        board = make_board(*patterns(), events=blames("x", *MANY), curation=curation)
        assert board.bursts == ()
        assert {board.assessment(id).failures for id in MANY} == {failures}
        assert [aside.revoked for aside in board.ignored_reports(MANY[0])] == [True] * (word == "revoked")


def test_ignored_feedback_does_not_change_the_recorded_counts() -> None:
    failing = make_pattern(MANY[0], recorded_counts=make_recorded_counts(4, 1), last_used=NOW)
    board = make_board(failing, *patterns()[1:], events=blames("x", *MANY))
    assert board.assessment(MANY[0]).failures == 1


def test_an_ignored_use_is_not_counted_from_the_record() -> None:
    uses = tuple(InjectedUse(pattern_id=id, applied=True, successful=False) for id in MANY)
    loop = Loop(id="x", status=LoopStatus.FAILED, ended_at=days_ago(1), injected=uses)
    claiming = [make_pattern(id, recorded_counts=make_recorded_counts(2, 1), last_used=days_ago(1)) for id in MANY]
    board = make_board(*claiming, loops={"x": loop})
    assert [(board.assessment(id).successes, board.assessment(id).failures) for id in MANY] == [(2, 0)] * 8
    confirmed = CurationState(bursts={"x": (verdict("confirmed", days_ago(1), days_ago(1), *MANY),)})
    board = make_board(*claiming, loops={"x": loop}, curation=confirmed)
    assert {board.assessment(id).failures for id in MANY} == {1}
    later = [make_pattern(id, recorded_counts=make_recorded_counts(2, 1), last_used=days_ago(2)) for id in MANY]
    assert {make_board(*later, loops={"x": loop}).assessment(id).failures for id in MANY} == {1}


def test_a_harmful_report_is_not_a_use() -> None:
    events = tuple(
        make_event(n, "applied", NOW, pattern_id=id, loop_id="x", success=False) for n, id in enumerate(MANY)
    )
    had = make_event(90, "injected", NOW, pattern_id=MANY[0], loop_id="x")
    assert found(make_board(*patterns(), events=(*events, had))).never_given == 7
