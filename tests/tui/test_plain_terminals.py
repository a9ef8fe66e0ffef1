"""Terminals without colours or without Unicode: what every screen sends to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.story import story
from tui.actions import PLACES
from tui.terminal.line_filters import ascii_text

OVERLAYS = {
    "help": ("question_mark",),
    "palette": ("colon",),
    "findings": ("F",),
    "views": ("V",),
    "what if": ("2", "t"),
    "then and now": ("H",),
    "filter": ("2", "slash", "x"),
    "bulk preview": ("2", "M", "d"),
    "reason": ("2", "d"),
    "replay": ("6", *("j",) * 8, "enter"),
    "extraction": ("1", *("j",) * 10, "e"),
    "snooze": ("3", "S"),
    "minutes": ("3", "b"),
    "wide rows": ("Z",),
}
"""Keys from Loops to everything that lies over a place."""


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_place_in_plain_ascii_is_ascii(sample: Path, home: Path, size: tuple[int, int]) -> None:
    async with story(sample, home, size=size, glyphs="ascii") as told:
        for place in list(PLACES)[1:]:
            await told.go(place)
            assert not odd_lines(told.text()), place
        await told.go("loops")
        assert not odd_lines(told.text())
        await told.press("A")
        assert odd_lines(told.text()), "the drawn marks are back on the whole screen at once"
        await told.press("A")
        assert not odd_lines(told.text())


@pytest.mark.parametrize("name", OVERLAYS)
async def test_every_overlay_in_plain_ascii_is_ascii(sample: Path, home: Path, name: str) -> None:
    async with story(sample, home, glyphs="ascii") as told:
        await told.press(*OVERLAYS[name])
        await told.settled()
        assert not odd_lines(told.text())


def odd_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.isascii()]


def test_letters_of_data_stay_and_marks_keep_their_width() -> None:
    assert ascii_text("Grüße, 日本 → …") == "Grüße, 日本 > ~"
    assert len(ascii_text("│─┤❯▌█⚑●◐⊘‖")) == 11


async def test_without_colours_a_theme_says_why_it_is_not_used(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with story(sample, home, theme="light") as told:
        assert told.app.theme == "ansi"
        styles = [
            segment.style
            for strip in told.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None
        ]
        assert all(style.color is None and style.bgcolor is None for style in styles)
        assert any(style.reverse for style in styles), "the cursor and the place in front are still seen"
        await told.press("T")
        assert told.toasts()[-1] == "NO_COLOR is set: no theme is used"
        assert told.app.user_state.get("theme") == "light", "the choice is kept for terminals with colours"
