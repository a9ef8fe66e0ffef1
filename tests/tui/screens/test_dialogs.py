"""Dialogs that show a text."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.content import Content

from tests.tui.user import open_dashboard
from tui.kit.text_pane import TextPane
from tui.screens.dialogs import PreviewDialog


@pytest.mark.parametrize(("size", "lines", "shown"), [((120, 40), 4, 4), ((80, 24), 4, 4), ((80, 24), 90, 12)])
async def test_a_dialog_is_as_high_as_its_text_and_shows_its_keys(
    sample: Path, home: Path, size: tuple[int, int], lines: int, shown: int
) -> None:
    async with open_dashboard(sample, home, size=size) as user:
        dialog = PreviewDialog(Content("A question"), [Content(f"line {n}") for n in range(lines)], verb="accept")
        user.app.push_screen(dialog)
        await user.until(lambda: dialog.is_mounted and dialog.query_one(TextPane).size.height == shown, "the text")
        box = dialog.query_one(".dialog")
        rows = user.text().splitlines()[box.region.y : box.region.bottom]
        assert any("a accept" in row and "esc close" in row for row in rows)
        assert box.region.bottom < size[1], "the key line stays visible"
