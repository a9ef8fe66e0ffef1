from __future__ import annotations

from dataclasses import fields

import pytest
from rich.cells import cell_len

from core.base.text import visible
from core.records.loops import LoopStatus, Outcome
from core.records.patterns import Maturity
from core.show.pages.signs import outcome_sign, result_sign, status_sign
from tui.kit.glyphs import (
    ASCII,
    DRAWN,
    GLYPH_SETS,
    STATE_SHORT,
    Glyphs,
    draw,
    draw_state,
)

SETS = list(GLYPH_SETS.values())


def marks(glyphs: Glyphs) -> dict[str, str]:
    return {field.name: getattr(glyphs, field.name) for field in fields(glyphs) if field.name != "name"}


@pytest.mark.parametrize("glyphs", SETS, ids=lambda glyphs: glyphs.name)
def test_every_glyph_is_one_cell_wide(glyphs: Glyphs) -> None:
    for name, mark in marks(glyphs).items():
        for char in mark if name in {"sparks", "arrow"} else [mark]:
            assert cell_len(char) == len(char) == 1, name
        assert visible(mark) == mark, "no terminal draws it in its own way"


def test_the_ascii_glyphs_are_ascii() -> None:
    for name, mark in marks(ASCII).items():
        assert mark.isascii(), name
        assert mark.isprintable(), name


@pytest.mark.parametrize("glyphs", SETS, ids=lambda glyphs: glyphs.name)
def test_states_differ_by_mark_and_by_word(glyphs: Glyphs) -> None:
    assert len({glyphs[state.value] for state in Maturity}) == len(Maturity)
    assert len({draw_state(state, glyphs).plain for state in Maturity}) == len(Maturity)
    assert len(set(STATE_SHORT.values())) == len(STATE_SHORT)
    for state in Maturity:
        assert state.value in draw_state(state, glyphs).plain
        assert state.value.startswith(draw_state(state, glyphs, short=True).plain[2:])


@pytest.mark.parametrize("glyphs", SETS, ids=lambda glyphs: glyphs.name)
def test_every_status_result_and_outcome_has_a_glyph(glyphs: Glyphs) -> None:
    for status in LoopStatus:
        assert draw(status_sign(status), glyphs).plain.endswith(f" {status.value}")
    results = [draw(result_sign(success), glyphs).plain for success in (True, False, None)]
    assert len(set(results)) == 3
    for outcome in Outcome:
        text = draw(outcome_sign(outcome), glyphs).plain
        assert text
        assert glyphs is DRAWN or text.isascii()


def test_ascii_signs_of_states_are_unique() -> None:
    states = {ASCII.candidate, ASCII.established, ASCII.proven, ASCII.deprecated, ASCII.quarantine}
    flags = {ASCII.pin, ASCII.suspect, ASCII.differs, ASCII.escalated}
    assert len(states) == 5 and len(flags) == 4 and not states & flags
