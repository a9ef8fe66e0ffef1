"""Views of a growing event log."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.records.event_log import EventView, GrowingLog, find_event_changes
from core.records.events import ErrorNote, ErrorType, Event
from tests.factories import days_ago, make_event

_ERROR = ErrorNote(error_type=ErrorType.TIMEOUT, message="late")
_EVENTS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["", "d", "e"])), max_size=3)
_STEPS = st.lists(st.tuples(_EVENTS, st.sets(st.sampled_from("de"))), max_size=5)


@given(_STEPS)
def test_views_equal_the_sorted_events_that_are_not_undone(
    steps: list[tuple[list[tuple[int, str]], set[str]]],
) -> None:
    log = GrowingLog()
    written: list[Event] = []
    views = []
    for added, undone in steps:
        for age, decision in added:
            error = _ERROR if age % 2 else None
            written.append(make_event(len(written), "counted", days_ago(age), decision=decision, error=error))
            log.add(written[-1])
        shown = [event for event in written if event.decision not in undone]
        hidden = [event for event in written if event.decision in undone]
        views.append((EventView(log).without(frozenset(undone)), shown, hidden))
        base, last = EventView(log), [make_event(len(written) + 900 + n, "counted", days_ago(n)) for n in range(2)]
        views.append((base.extended(last).without(frozenset(undone)), [*shown, *last], hidden))
    for view, shown, hidden in views:  # also the earlier ones, after the log grew
        ordered = sorted(shown, key=lambda event: event.at)
        assert [*view] == ordered
        assert len(view) == len(shown)
        assert view.in_log_order == shown
        assert view.errors == [event for event in shown if event.error]
        assert sorted(view.hidden, key=lambda event: event.id) == sorted(hidden, key=lambda event: event.id)
        assert [view[place] for place in range(len(view))] == ordered
        assert view[1:-1] == tuple(ordered[1:-1])
        assert view == tuple(ordered) == view
    for (before, old, _), (after, new, _) in pairwise(views[::2]):
        changes = find_event_changes(before, after)
        if old and any(event in new for event in before.hidden):
            assert changes is None
        else:
            assert changes is not None
            assert {event.id for event in new} - {event.id for event in old} == {one.id for one in changes.added}
            assert {event.id for event in old} - {event.id for event in new} == {one.id for one in changes.removed}


def test_the_changes_of_another_log_are_unknown() -> None:
    one, two = make_event(1, "counted", days_ago(1)), make_event(1, "counted", days_ago(1))
    assert find_event_changes(EventView.of([one]), EventView.of([two])) is None
    assert find_event_changes((one,), (two,)) is None
    assert find_event_changes((), EventView.of([two])) == ((two,), ())


def test_events_that_are_only_in_memory_are_changes_of_the_log() -> None:
    one, two = make_event(1, "counted", days_ago(2)), make_event(2, "counted", days_ago(1))
    known = EventView.of([one])
    assert find_event_changes(known, known.extended([two])) == ([two], [])
    assert find_event_changes(known.extended([two]), known) is None
