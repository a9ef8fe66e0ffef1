"""Verdicts on the work that was given a pattern, and their counts."""

from __future__ import annotations

from datetime import timedelta

from core.learning.following import REPORTED, FollowCounts, WorkVerdict, find_verdicts
from core.records.events import VERDICT, Event
from core.records.loops import InjectedUse, Loop
from tests.factories import NOW, make_event


def given(number: int, work: str) -> Event:
    return make_event(number, "injected", NOW + timedelta(minutes=number), pattern_id="p", loop_id=work)


def judged(number: int, work: str, is_followed: bool | None) -> Event:
    at = NOW + timedelta(minutes=number)
    return make_event(number, VERDICT, at, pattern_id="p", loop_id=work, is_followed=is_followed, action=number)


def find(*events: Event, uses: tuple[tuple[Loop, InjectedUse], ...] = ()) -> list[WorkVerdict]:
    """Return the verdicts; attempts such as `loop.1` belong to their loop."""
    return find_verdicts(events, uses, lambda work: work.partition(".")[0])


def test_the_attempts_of_one_loop_are_one_verdict_and_one_that_followed_decides() -> None:
    (found,) = find(
        given(1, "a.1"), judged(2, "a.1", False), given(3, "a.2"), judged(4, "a.2", True), judged(5, "a.2", None)
    )
    assert (found.is_followed, found.work_id, found.action) == (True, "a.2", 4)


def test_the_report_of_the_agent_counts_more_than_what_the_log_does_not_show() -> None:
    report = make_event(3, "applied", NOW, pattern_id="p", loop_id="a.1", success=True)
    (found,) = find(given(1, "a.1"), judged(2, "a.1", False), report)
    assert (found.is_followed, found.evidence) == (True, REPORTED)


def test_work_that_was_not_given_the_pattern_has_no_verdict() -> None:
    assert find(make_event(1, "applied", NOW, pattern_id="p", loop_id="a.1", success=True)) == []
    assert [one.work_id for one in find(judged(1, "a.1", True), given(2, "b.1"))] == ["b.1"]


def test_counts_add_up_with_entries_of_loops() -> None:
    entry = InjectedUse(pattern_id="p", applied=True, at=NOW)
    found = find(given(1, "b"), given(2, "c"), judged(3, "c", False), uses=((Loop(id="d"), entry),))
    assert [one.work_id for one in found] == ["d", "b", "c"], "oldest first"
    counts = FollowCounts.of(found)
    assert counts.text == "given in 3 sessions: 1 followed it, 1 did not, 1 can't tell"
    assert FollowCounts().text == ""
