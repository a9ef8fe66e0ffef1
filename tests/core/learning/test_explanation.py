"""Why: the numbers behind a state, and suggestions that do what they say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.explanation import RuleLine, explain, fewest
from core.learning.maturity import STATES, state_of
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.loops import Loop
from core.records.patterns import Maturity, Pattern
from core.settings import MaturitySettings
from core.snapshot import Snapshot
from tests.core.learning.making import (
    NOW,
    NULL_CHECK_015,
    SETTINGS,
    board_of,
    claim,
    days_ago,
    example_loops,
    example_patterns,
    make_pattern,
    pin,
    use,
)


def why(board: Scoreboard, pattern: Pattern) -> dict[str, list[RuleLine]]:
    lines: dict[str, list[RuleLine]] = {}
    for line in explain(board.assessment(pattern.id), board.observations(pattern.id), board.now, SETTINGS):
        lines.setdefault(line.rule, []).append(line)
    return lines


def test_the_null_check_of_the_document() -> None:
    patterns = example_patterns()
    board = Scoreboard.build(Snapshot(patterns=patterns, loops=example_loops()), NOW, SETTINGS)
    lines = why(board, patterns[NULL_CHECK_015])
    assert lines["decided"][0].text == "established by rule"
    ratio, total = lines["deprecated"]
    assert (ratio.holds, total.holds) == (False, True)
    assert ratio.distance == pytest.approx(-0.05, abs=0.001)
    assert lines["to proven"][0].text == "takes 3 more successes"
    assert lines["to deprecated"][0].text == "takes 1 more failure"
    assert lines["to candidate"][0].text == "out of reach of one kind of result alone"
    assert lines["one failure"][0].text == "makes it deprecated"
    assert lines["calendar"][0].text == "candidate by rule in 38 d (2026-03-12) if nothing more happens"


def test_what_rests_on_a_single_loop_is_said() -> None:
    pattern = make_pattern()

    def rests(*names: str) -> RuleLine:
        loops = {name: Loop(id=name, ended_at=NOW, injected=(use(pattern.id, True),)) for name in names}
        return why(board_of(pattern, loops=loops), pattern)["rests on"][0]

    assert rests("a", "b", "c", "d").text == "4 loops; none alone flips it"
    assert "without a or b or c it would be another state" in rests("a", "b", "c").text
    assert rests().text == "counts alone; no loop is known"


def test_a_pin_says_who_decided_and_an_inversion_that_it_waits() -> None:
    pattern = make_pattern(claim=claim(2, 5))
    assert "waits for a verdict" in why(board_of(pattern), pattern)["decided"][0].text
    made = pin(Maturity.DEPRECATED, days_ago(3), reason="leaks\x1b]0;x\x07")
    curation = CurationState(pins={pattern.id: made})
    text = why(board_of(pattern, curation=curation), pattern)["decided"][0].text
    assert text.startswith("a human decision: deprecated by ada on 2026-01-31: leaks") and "\x1b" not in text


def test_an_anti_pattern_has_no_rule_of_inversion() -> None:
    board = board_of(make_pattern())
    found = explain(board.assessment(board.ids[0]), (), NOW, SETTINGS, invertible=False)
    assert not any(line.rule == "inversion" for line in found)


@settings(deadline=None, max_examples=100)
@given(st.floats(0, 30), st.floats(0, 30), st.sampled_from(STATES), st.booleans())
def test_what_is_suggested_flips_the_state_and_one_less_does_not(
    helpful: float, harmful: float, target: Maturity, success: bool
) -> None:
    limits = MaturitySettings()
    good, bad = (1, 0) if success else (0, 1)
    count = fewest(target, helpful, harmful, good, bad, limits)
    if count is not None:
        assert state_of(helpful + good * count, harmful + bad * count, limits) is target
        if count > 1:
            less = count - 1
            assert state_of(helpful + good * less, harmful + bad * less, limits) is not target
