"""The top bar: every place stands in it, whatever else there is to tell."""

from __future__ import annotations

import pytest

from core.records.findings import Finding, Severity
from core.snapshot import Snapshot
from core.sources.watching import WatchMode, WatchState
from tui.actions import PLACES
from tui.present.frame import FITS, places, pulse
from tui.present.marks import DRAWN
from tui.widgets.bars import Item, TopBar

BROKEN = Snapshot(findings=tuple(Finding(f"{n}.json", "", Severity.ERROR, "bad-json", "no JSON") for n in range(118)))


def drawn(width: int, *, here: str, snapshot: Snapshot, watch: WatchState | None, is_readonly: bool) -> str:
    """The roomiest bar that there is room for."""
    for fit in FITS:
        texts = [content for content, _ in places("a-project-with-a-long-name", here, 1028, fit, is_counting=True)]
        told = pulse(snapshot, None, watch, DRAWN, telling=fit.telling, key="F", is_readonly=is_readonly)
        bar = [*texts, *([told] if told else [])]
        if TopBar.cells([Item(content) for content in bar]) <= width:
            return " ".join(content.plain for content in bar)
    raise AssertionError("no bar fits")


@pytest.mark.parametrize("here", PLACES)
@pytest.mark.parametrize("mode", ["events", "polling", "waiting"])
def test_in_80_cells_all_places_can_be_seen(here: str, mode: WatchMode) -> None:
    watch = WatchState(mode, "", 0, None)
    for snapshot in (Snapshot(), BROKEN):
        for is_readonly in (False, True):
            bar = drawn(80, here=here, snapshot=snapshot, watch=watch, is_readonly=is_readonly)
            assert all(f"{key} {title[:3]}" in bar for key, title in PLACES.values())
            assert "·1028+" in bar, "more questions may come"


def test_errors_have_a_word_and_a_key_where_there_is_room() -> None:
    def said(width: int) -> str:
        return drawn(width, here="log", snapshot=BROKEN, watch=None, is_readonly=False)

    assert "118 errors in files F" in said(160)
    assert "118 errors F" in said(120)
    assert "118 errors F" in said(88)
    assert "118!" in said(80)
