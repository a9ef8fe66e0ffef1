from __future__ import annotations

from datetime import datetime

from core.index.project_state import ProjectState
from core.records.decisions import Decision, Verb
from core.records.events import Event
from core.show.metrics.effectiveness import MIN_FOLLOWED, measure_accuracy
from tests.core.project.test_as_of import view_of
from tests.factories import NOW, days_ago, make_pattern


def decision(number: int, verb: Verb, subject: str, when: datetime, by: str = "ana") -> Decision:
    return Decision(id=f"d{number:04d}", at=when, by=by, verb=verb, subject=subject)


def results(pattern_id: str, good: int, bad: int, days: float = 5) -> list[Event]:
    """Make results of different loops, all at the same time."""
    return [
        Event(
            id=f"{pattern_id} {days} {number}",
            at=days_ago(days),
            kind="applied",
            pattern_id=pattern_id,
            loop_id=f"{pattern_id} {days} {number}",
            success=number < good,
        )
        for number in range(good + bad)
    ]


def history(good: int, bad: int, verb: Verb = Verb.PROMOTE) -> ProjectState:
    """Project with `good` decisions that later results confirm and `bad` ones that they refute."""
    events: list[Event] = []
    decisions = []
    for number in range(good + bad):
        fine = (number < good) is (verb is Verb.PROMOTE)
        events += results(f"p{number}", 3 if fine else 1, 0 if fine else 2)
        decisions.append(decision(number, verb, f"p{number}", days_ago(9)))
    patterns = [make_pattern(f"p{number}") for number in range(good + bad)]
    return view_of(*patterns, events=tuple(events), decisions=tuple(decisions))


def test_a_rate_needs_thirty_followed_decisions() -> None:
    few = measure_accuracy(history(20, 9), "ana").promotions
    assert (few.made, few.followed, few.held, few.missing, few.rate, few.low) == (29, 29, 20, 1, None, None)
    enough = measure_accuracy(history(20, 10), "ana").promotions
    assert (enough.followed, enough.missing) == (MIN_FOLLOWED, 0)
    assert enough.rate is not None and enough.low is not None and enough.high is not None
    assert enough.low < enough.rate < enough.high


def test_later_failures_confirm_a_deprecation() -> None:
    found = measure_accuracy(history(2, 1, Verb.DEPRECATE), "ana")
    assert (found.deprecations.followed, found.deprecations.held, found.promotions.made) == (3, 2, 0)


def test_only_counting_decisions_in_effect_count_until_the_next() -> None:
    events = (*results("p", 3, 0, days=7), *results("p", 0, 3, days=3))
    decisions = (
        decision(1, Verb.PROMOTE, "p", days_ago(8)),
        decision(2, Verb.RESET, "p", days_ago(5), by="dana"),
        decision(3, Verb.PROMOTE, "p", days_ago(4), by="dana"),
        decision(4, Verb.PROMOTE, "p", NOW),
        decision(5, Verb.PROMOTE, "gone", days_ago(8)),
    )
    view = view_of(make_pattern("p"), events=events, decisions=decisions)
    own, other = measure_accuracy(view, "ana").promotions, measure_accuracy(view, "dana").promotions
    assert (own.made, own.followed, own.held) == (3, 1, 1)
    assert (other.made, other.followed, other.held) == (1, 1, 0)
