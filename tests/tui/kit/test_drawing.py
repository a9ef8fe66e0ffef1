"""Glyphs, lines of items and themes."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import product

import pytest
from rich.cells import cell_len
from textual.color import Color
from textual.content import Content
from textual.css.errors import UnresolvedVariableError

from core.base.text import visible
from core.records.loops import LoopStatus, Outcome
from core.records.patterns import Maturity
from core.show.pages.signs import outcome_sign, result_sign, status_sign
from tests.tui.kit.hosting import hosted, lines_of, until
from tui.kit.bars import Item, ItemLine, KeyLine, Notice, TabLine
from tui.kit.looks import (
    ASCII,
    DEFAULT_THEME,
    DRAWN,
    GLYPH_SETS,
    STATE_SHORT,
    STYLES,
    Glyphs,
    StyleSheets,
    draw,
    draw_state,
    load_themes,
)

SETS = list(GLYPH_SETS.values())


def marks(glyphs: Glyphs) -> dict[str, str]:
    return {field.name: getattr(glyphs, field.name) for field in fields(glyphs) if field.name != "name"}


def test_every_glyph_is_one_cell_wide_and_printable_in_ascii_sets() -> None:
    for glyphs in SETS:
        for name, mark in marks(glyphs).items():
            for char in mark if name in {"sparks", "arrow"} else [mark]:
                assert cell_len(char) == len(char) == 1, name
            assert visible(mark) == mark, "no terminal draws it in its own way"
    for name, mark in marks(ASCII).items():
        assert mark.isascii() and mark.isprintable(), name
    states = {ASCII.candidate, ASCII.established, ASCII.proven, ASCII.deprecated, ASCII.quarantine}
    flags = {ASCII.pin, ASCII.suspect, ASCII.differs, ASCII.escalated}
    assert len(states) == 5 and len(flags) == 4 and not states & flags


def test_states_differ_by_mark_and_by_word() -> None:
    for glyphs in SETS:
        assert len({glyphs[state.value] for state in Maturity}) == len(Maturity), glyphs
        assert len({draw_state(state, glyphs).plain for state in Maturity}) == len(Maturity), glyphs
        assert len(set(STATE_SHORT.values())) == len(STATE_SHORT), glyphs
        for state in Maturity:
            assert state.value in draw_state(state, glyphs).plain
            assert state.value.startswith(draw_state(state, glyphs, short=True).plain[2:])


def test_every_status_result_and_outcome_has_a_glyph() -> None:
    for glyphs in SETS:
        for status in LoopStatus:
            assert draw(status_sign(status), glyphs).plain.endswith(f" {status.value}")
        results = [draw(result_sign(success), glyphs).plain for success in (True, False, None)]
        assert len(set(results)) == 3, glyphs
        for outcome in Outcome:
            text = draw(outcome_sign(outcome), glyphs).plain
            assert text
            assert glyphs is DRAWN or text.isascii()


def items(*texts: str) -> list[Item]:
    return [Item(Content(text), text) for text in texts]


async def test_items_are_aligned_and_those_that_do_not_fit_are_dropped_from_the_end_but_help_stays() -> None:
    line = ItemLine()
    line.show(items("first", "second", "third"), items("undo something", "help"))
    async with hosted(line, size=(50, 3)) as (_, pilot):
        assert lines_of(line) == [" first  second  third" + " " * 8 + "undo something  help"]
        await pilot.resize_terminal(30, 3)
        await until(pilot, lambda: lines_of(line) == [" first   undo something  help"])
        await pilot.resize_terminal(16, 3)
        await until(pilot, lambda: lines_of(line)[0].split() == ["first", "help"])
        line.show(items("a" * 50, "b" * 50), items("c" * 50))
        assert line.render_line(0).cell_length == 16


async def test_a_click_on_a_visible_item_posts_its_value() -> None:
    line = ItemLine()
    line.show([*items("one", "two"), Item(Content("plain"))], items("right"))
    async with hosted(line, ItemLine.Clicked, size=(40, 3)) as (host, pilot):
        text = lines_of(line)[0]
        for name in ("one", "two", "right"):
            await pilot.click(line, offset=(text.index(name), 0))
            await pilot.click(line, offset=(text.index(name) + len(name) - 1, 0))
        await pilot.click(line, offset=(text.index("plain"), 0))
        await pilot.click(line, offset=(30, 0))
        assert [message.value for message in host.heard] == ["one", "one", "two", "two", "right", "right"]
        host.heard.clear()
        line.show(items("first", "second", "third"))
        await pilot.resize_terminal(18, 3)
        await until(pilot, lambda: lines_of(line) == [" first  second"])
        for x in range(18):
            await pilot.click(line, offset=(x, 0))
        assert {message.value for message in host.heard} == {"first", "second"}


async def test_notices_take_at_most_half_of_the_line_or_what_keys_leave_warnings_first() -> None:
    line = KeyLine()
    line.show(items("a yes", "x no", "n later"), items("? help"))
    async with hosted(line, KeyLine.Clicked, size=(60, 3)) as (host, pilot):
        line.say((Notice("refused", "warning"), Notice("written", "information")))
        await until(pilot, lambda: lines_of(line)[0].startswith(" refused |  written |  a yes  x no"))
        assert lines_of(line)[0].endswith("? help")
        line.say((Notice("written", "information"), Notice("long " * 20, "error")))
        await until(pilot, lambda: lines_of(line)[0].startswith(" long long long long long"))
        assert 25 < lines_of(line)[0].index("…") < 30 and "written" not in lines_of(line)[0]
        assert " a yes  x no " in lines_of(line)[0] and lines_of(line)[0].endswith("? help")
        await pilot.click(line, offset=(3, 0))
        assert [message.value for message in host.heard] == ["findings"]
        line.show(items("a yes"), items("? help"))
        await until(pilot, lambda: lines_of(line)[0].index("…") > 35)
        assert lines_of(line)[0].endswith("? help")
        line.say(())
        await until(pilot, lambda: lines_of(line)[0].startswith(" a yes "))


async def test_tabs_show_the_active_one_and_a_note() -> None:
    line = TabLine()
    async with hosted(line, ItemLine.Clicked, size=(60, 4)) as (host, pilot):
        line.show_tabs(["Now", "Files"], 1, Content("note"))
        await pilot.pause()
        drawn = [segment for segment in line.render_line(0) if segment.text == "Files"]
        assert drawn[0].style is not None
        assert drawn[0].style.underline
        assert "".join(s.text for s in line.render_line(0)).endswith("note ")
        await pilot.click(line, offset=(2, 1))
        assert [message.value for message in host.heard] == ["0"]


THEMES = load_themes()
COLOURED = {name: theme for name, (_, theme) in THEMES.items() if not theme.ansi}


def test_all_documented_themes_exist_with_all_variables_of_ralphdeck() -> None:
    assert list(THEMES) == ["dark", "light", "high-contrast", "colour-blind-safe", "ansi"]
    assert all(name == theme.name and label for name, (label, theme) in THEMES.items())
    ours = THEMES[DEFAULT_THEME][1].variables
    for name, (_, theme) in THEMES.items():
        assert theme.variables.keys() >= ours.keys(), name


def test_text_is_readable_on_every_background() -> None:
    for (name, theme), background in product(COLOURED.items(), ("background", "surface", "panel")):
        ground = Color.parse(str(getattr(theme, background)))
        texts = {role: str(getattr(theme, role)) for role in ("foreground", "accent", "warning", "error", "success")}
        texts |= {key: value for key, value in theme.variables.items() if key.startswith("state-") or key == "quiet"}
        for role, value in texts.items():
            least = 7 if name == "high-contrast" and role == "foreground" else 4.5 if role == "foreground" else 3
            assert contrast(Color.parse(value), ground) >= least, f"{name}: {role} on {background}"


def contrast(one: Color, other: Color) -> float:
    """The ratio of WCAG 2, 1..21."""

    def luminance(color: Color) -> float:
        parts = [(c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4) for c in color.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_style_sheets_name_no_colour_themselves() -> None:
    for file in STYLES.glob("*.tcss"):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
        assert not re.search(r"#[0-9a-fA-F]{3,8}\s*;|rgb\(", text), file.name


def sheets(**variables: str) -> StyleSheets:
    made = StyleSheets(variables=variables)
    made.add_source("Label { color: $quiet; }", ("here", ""))
    return made


def test_an_edited_theme_is_applied_and_an_incomplete_one_keeps_the_parsed_sheets() -> None:
    found = sheets(quiet="red")
    before, rules = found.css, found.rules
    found.set_variables({"quiet": "red"})
    found.reparse()
    assert found.rules is rules, "the same values change nothing"
    found.set_variables({"quiet": "blue"})
    found.reparse()
    assert (edited := found.css) != before
    found.set_variables({})
    with pytest.raises(UnresolvedVariableError):
        found.reparse()
    assert found.css == edited
