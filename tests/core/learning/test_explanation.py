"""Explanations of states: the numbers, and the suggested steps to other states."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.explanation import Explanation, RuleLine, explain_state
from core.learning.reference.maturity import maturity_state
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.loops import Loop
from core.records.patterns import Maturity, Pattern
from core.records.snapshot import Snapshot
from tests.factories import (
    NOW,
    NULL_CHECK_015,
    SETTINGS,
    days_ago,
    example_loops,
    example_patterns,
    make_board,
    make_event,
    make_pattern,
    make_pin,
    make_recorded_counts,
    make_use,
)


def explained(board: Scoreboard, pattern: Pattern) -> Explanation:
    return explain_state(board.assessment(pattern.id), board.observations(pattern.id), board.now, SETTINGS)


def why(board: Scoreboard, pattern: Pattern) -> dict[str, list[RuleLine]]:
    lines: dict[str, list[RuleLine]] = {}
    for line in explained(board, pattern).lines:
        lines.setdefault(line.rule, []).append(line)
    return lines


def test_the_explanation_of_an_example_pattern() -> None:
    patterns = example_patterns()
    board = Scoreboard.build(Snapshot(patterns=patterns, loops=example_loops()), NOW, SETTINGS)
    lines = why(board, patterns[NULL_CHECK_015])
    assert lines["decided"][0].text == "established by rule"
    ratio, total = lines["deprecated"]
    assert (ratio.holds, total.holds) == (False, True)
    assert ratio.distance == pytest.approx(-0.05, abs=0.001)
    assert lines["to proven"][0].text == "takes 3 more successes"
    assert lines["to deprecated"][0].text == "takes 1 more failure"
    assert lines["to candidate"][0].text == "not reachable by one kind of result alone"
    assert lines["one failure"][0].text == "makes it deprecated"
    assert lines["calendar"][0].text == "changes to candidate in 38 days (2026-03-12) if unused"


def test_a_decisive_loop_is_named() -> None:
    pattern = make_pattern()

    def rests(*names: str) -> RuleLine:
        loops = {name: Loop(id=name, ended_at=NOW, injected=(make_use(pattern.id, True),)) for name in names}
        return why(make_board(pattern, loops=loops), pattern)["rests on"][0]

    assert rests("a", "b", "c", "d").text == "4 loops; no single one is decisive"
    named = "without a it would be candidate, without b it would be candidate, without c it would be candidate"
    assert rests("a", "b", "c").text == f"3 loops; {named}"
    assert rests().text == "no result yet"


def test_explanations_name_who_decided_and_a_pending_inversion() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 5))
    assert "inversion is pending" in why(make_board(pattern), pattern)["decided"][0].text
    made = make_pin(Maturity.DEPRECATED, days_ago(3), reason="leaks\x1b]0;x\x07")
    curation = CurationState(pins={pattern.id: made})
    text = why(make_board(pattern, curation=curation), pattern)["decided"][0].text
    assert text.startswith("decided by a person: deprecated by ada on 2026-01-31: leaks") and "\x1b" not in text


def test_no_result_changes_a_pinned_state_and_no_rule_has_fired() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(7, 3), last_used=NOW)
    curation = CurationState(pins={pattern.id: make_pin(Maturity.DEPRECATED, NOW)})
    lines = why(make_board(pattern, curation=curation), pattern)
    assert [line.rule for found in lines.values() for line in found if line.fired] == ["decided"]
    (once,) = lines["once reset"]
    assert once.text == "results do not change a pinned state; after a reset it is established"


def test_small_distances_and_times_are_not_shown_as_zero() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(3, 0), last_used=days_ago(0.4))
    lines = why(make_board(pattern), pattern)
    assert "0.0" not in lines["calendar"][0].text and " hour (" in lines["calendar"][0].text
    just = make_pattern(recorded_counts=make_recorded_counts(100_001, 17_649), last_used=NOW)
    assert "does not hold, 1e-05 away" in why(make_board(just), just)["proven"][1].text


def test_an_anti_pattern_has_no_rule_of_inversion() -> None:
    board = make_board(make_pattern())
    found = explain_state(board.assessment(board.ids[0]), (), NOW, SETTINGS, invertible=False)
    assert not any(line.rule == "inversion" for line in found.lines)


def test_only_the_deciding_rule_has_fired() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(6, 0), last_used=NOW)
    fired = [line for lines in why(make_board(pattern), pattern).values() for line in lines if line.fired]
    assert {(line.rule, line.holds) for line in fired} == {("proven", True)}


def test_each_event_shows_its_weight_when_new_and_today() -> None:
    pattern = make_pattern()
    old = (("a", 180), ("b", 90), ("c", 0))
    loops = {name: Loop(id=name, ended_at=days_ago(age), injected=(make_use(pattern.id, True),)) for name, age in old}
    events = explained(make_board(pattern, loops=loops), pattern).events
    assert [(event.raw, event.today) for event in events] == [(1, 1.0), (1, 0.5), (1, 0.25)]


_RESULTS = st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.sampled_from("abc")), max_size=12)


@given(_RESULTS)
def test_predicted_changes_happen(results: list[tuple[int, bool, str]]) -> None:
    pattern = make_pattern()
    events = tuple(
        make_event(number, "applied", days_ago(age), success=success, loop_id=loop, iteration=number)
        for number, (age, success, loop) in enumerate(results)
    )
    board = make_board(pattern, events=events)
    state = board.assessment(pattern.id).computed
    seen = board.observations(pattern.id)
    found = explained(board, pattern)

    def after(count: int, helpful: bool) -> Maturity:
        more = [make_event(900 + n, "applied", NOW, success=helpful, loop_id=f"new{n}") for n in range(count)]
        return make_board(pattern, events=(*events, *more)).assessment(pattern.id).computed

    for step in found.steps:
        if step.count < 40:
            assert after(step.count, step.helpful) is step.state
            assert after(step.count - 1, step.helpful) is not step.state
    for share in found.loops:
        rest = [one for one in seen if one.loop_id != share.loop_id]
        assert share.state_without is maturity_state(rest, NOW, SETTINGS.maturity)
    for at, change in found.calendar:
        assert maturity_state(seen, at - timedelta(seconds=2), SETTINGS.maturity) is state
        state = change
        assert maturity_state(seen, at, SETTINGS.maturity) is state
