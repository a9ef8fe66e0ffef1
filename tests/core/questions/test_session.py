from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from core.base.settings import ReviewSettings, Settings
from core.index.review_items import BORDERLINE, ReviewItem
from core.questions.queue import Pace, measure_pace, plan, time_text
from core.records.decisions import Decision, Verb
from tests.factories import CURATION_NOW

SETTINGS = Settings(review=ReviewSettings(worthwhile_per_hour=1.0))
HOUR = 3600.0


def item(name: str, impact: float, seconds: float = 20.0) -> ReviewItem:
    return ReviewItem(
        kind=BORDERLINE, subject=name, question="?", reason="", priority=0.5, impact=impact, seconds=seconds
    )


def decisions(gaps: Iterable[float], by: str = "ada", verb: Verb = Verb.PROMOTE, group: str = "") -> list[Decision]:
    made, at = [], CURATION_NOW
    for number, gap in enumerate(gaps):
        at += timedelta(seconds=gap)
        made.append(Decision(id=f"{by}{number}", at=at, by=by, verb=verb, subject="p", group=group))
    return made


def names(items: Iterable[ReviewItem]) -> str:
    return "".join(item.subject for item in items)


def test_a_session_takes_the_most_impact_per_second() -> None:
    queue = [item("a", 2.0, 60), item("b", 1.5, 20), item("c", 0.9, 20), item("d", 0.1, 20)]
    found = plan(queue, 1.0, SETTINGS)
    assert (names(found.items), found.seconds, found.later, found.left) == ("bcd", 60.0, 1, 0)
    assert found.share == pytest.approx(2.5 / 4.5)
    assert found.text == "3 questions, about 1 min; 1 more for later"


def test_a_blocked_agent_comes_first_and_has_no_impact() -> None:
    waits = replace(item("w", 0.0), is_urgent=True)
    found = plan([item("a", 1.0), waits, item("b", 3.0)], 0.7, SETTINGS)
    assert (names(found.items), found.share) == ("wb", 0.75)
    assert "1 waiting agent first" in found.text


def test_questions_of_low_impact_are_left_out() -> None:
    threshold = 20 / HOUR
    queue = [item("a", threshold * 1.01), item("b", threshold * 0.99)]
    found = plan(queue, 60.0, SETTINGS)
    assert (names(found.items), found.left) == ("a", 1)
    assert plan(queue[1:], 60.0, SETTINGS).items == ()


def test_a_session_without_questions_or_time() -> None:
    assert plan([], 12.0, SETTINGS).text == "12 min: no open questions"
    assert plan([], 12.0, SETTINGS).share == 1.0
    assert plan([item("a", 1.0)], 0.1, SETTINGS).text == "0.1 min: too short for the next question"


def test_a_slow_reader_gets_fewer_questions() -> None:
    queue = [item(name, 1.0, seconds) for name, seconds in (("a", 10.0), ("b", 20.0), ("c", 30.0))]
    assert names(plan(queue, 1.0, SETTINGS).items) == "abc"
    slow = plan(queue, 1.0, SETTINGS, Pace(seconds=40.0, pauses=200))
    assert names(slow.items) == "ab"
    assert slow.seconds == pytest.approx(30 * (20 * 20 + 200 * 40) / 220 / 20)
    assert names(plan(queue, 1.0, SETTINGS, Pace()).items) == "abc"


def test_pace_is_the_median_pause_within_sessions() -> None:
    assert measure_pace(decisions([0, 10, 12, 14, 16, 18, 3600, 20]), "ada") == Pace(seconds=15.0, pauses=6)
    assert measure_pace(decisions([0, 10, 12, 14, 16]), "ada").seconds is None
    assert measure_pace(decisions([0, 10, 12, 14, 16, 18]), "bob") == Pace()


def test_a_few_quick_answers_change_the_estimate_little() -> None:
    queue = [item(str(number), 1.0, 24.0) for number in range(30)]
    assert time_text(queue, Pace()) == "about 12 min"
    assert time_text(queue, Pace(seconds=4.0, pauses=5)) == "about 10 min"
    assert time_text(queue, Pace(seconds=4.0, pauses=200)) == "about 3 min"


def test_pace_ignores_bulk_decisions_and_undo() -> None:
    assert measure_pace(decisions([0, 1, 1, 1, 1, 1, 1], group="g"), "ada").pauses == 0
    assert measure_pace(decisions([0, 1, 1, 1, 1, 1, 1], verb=Verb.UNDO), "ada").pauses == 0
