"""Terminals without colours or without Unicode: what every screen sends to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.user import open_dashboard
from tui.kit.actions import PLACES
from tui.kit.themes import ascii_text

OVERLAYS = {
    "help": ("question_mark",),
    "palette": ("colon",),
    "findings": ("F",),
    "views": ("V",),
    "what-if": ("3", "t"),
    "compare": ("L", "H"),
    "reason": ("3", "d"),
    "bulk preview": ("3", "asterisk", "d"),
    "replay": ("7", *("j",) * 8, "enter"),
    "extraction": ("4", *("j",) * 10, "e"),
    "answers": ("2", "full_stop"),
    "actions": ("3", "full_stop"),
    "wide rows": ("Z",),
    "filter": ("3", "slash", "x"),
}
"""Keys from Loops to everything that lies over a place, one after the other: marks and filters stay."""


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_screen_is_pure_ascii_with_ascii_glyphs(sample: Path, home: Path, size: tuple[int, int]) -> None:
    async with open_dashboard(sample, home, size=size, glyphs="ascii") as user:
        for place in list(PLACES)[1:]:
            await user.go(place)
            assert not odd_lines(user.text()), place
        await user.go("loops")
        assert not odd_lines(user.text())
        await user.press("A")
        assert odd_lines(user.text()), "the drawn marks are back on the whole screen at once"
        await user.press("A")
        assert not odd_lines(user.text())


@pytest.mark.slow
async def test_every_dialog_is_pure_ascii_with_ascii_glyphs(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, glyphs="ascii") as user:
        seen = {user.text()}
        for name, keys in OVERLAYS.items():
            await user.press(*keys)
            await user.settled()
            assert not odd_lines(user.text()), name
            assert user.text() not in seen, f"{name} is not open"
            seen.add(user.text())
            while len(user.app.screen_stack) > 1:
                user.app.pop_screen()
                await user.pilot.pause()
            user.app.go("loops")
            await user.settled()


def odd_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.isascii()]


def test_letters_in_data_are_kept_and_glyphs_keep_their_width() -> None:
    assert ascii_text("Grüße, 日本 → …") == "Grüße, 日本 > ~"
    assert len(ascii_text("│─┤❯▌█⚑●◐⊘‖")) == 11


async def test_without_colours_choosing_a_theme_is_refused_with_a_reason(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_dashboard(sample, home, theme="light") as user:
        assert user.app.theme == "ansi"
        styles = [
            segment.style
            for strip in user.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None
        ]
        assert all(style.color is None and style.bgcolor is None for style in styles)
        assert any(style.reverse for style in styles), "the cursor and the place in front are still seen"
        await user.press("T")
        assert user.toasts()[-1] == "NO_COLOR is set: themes are disabled"
        assert user.app.user_state.get("theme") == "light", "the choice is kept for terminals with colours"
