from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from core.base.time_parsing import LAST_VISIT
from core.history.as_of import view_at
from core.history.changes import changes_between
from core.records.times import iso
from tests.tui.story import NOW, Story, story
from tui.app import RalphdeckApp
from tui.screens.compare import CompareScreen
from tui.screens.patterns import PatternsScreen
from tui.state.user_state import UserState
from tui.widgets.value_field import ValueField

VISITED = NOW - timedelta(days=9, hours=3)


async def at_past(told: Story) -> CompareScreen:
    await told.press("H")
    await told.until(lambda: isinstance(told.place, CompareScreen) and bool(told.table.keys), "what changed")
    await told.settled()
    assert isinstance(told.place, CompareScreen)
    return told.place


def field(told: Story, name: str) -> ValueField:
    return next(found for found in told.place.query(ValueField) if found.name == name)


async def test_since_the_last_visit_what_changed_stands_there_and_leads_on(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        told.app.last_visit = VISITED
        await told.go("patterns")
        await at_past(told)
        expected = changes_between(view_at(told.app.view, VISITED), told.app.view)
        first = expected.patterns[0]
        assert (field(told, "since").text, field(told, "until").text) == ("last visit", "now")
        assert told.table.keys[0] == f"pattern {first.pattern_id}"
        assert len(told.table.keys) == sum(
            map(len, (expected.patterns, expected.decisions, expected.loops, expected.questions))
        )
        await told.sees("Nothing is written.", first.because, f"{expected.helped} uses helped", "decided by imre")
        await told.press("enter", "enter")
        await told.settled()
        assert isinstance(told.place, PatternsScreen)
        assert told.table.cursor_key == first.pattern_id
    kept = json.loads((home / "state.json").read_text())
    assert kept["projects"]["project"][LAST_VISIT] == iso(NOW)


async def test_a_dashboard_that_is_open_or_was_killed_is_a_visit_too(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        assert told.app.last_visit is None, "the first one is no visit before itself"
        kept = UserState(home / "state.json", "project")
        kept.load()
        other = RalphdeckApp(told.app.project, kept, home / "keymap.toml")
        assert other.last_visit == NOW


async def test_days_are_stepped_and_typed_and_what_is_none_is_told(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_past(told)
        assert field(told, "since").text == "2026-11-14"
        assert "no dashboard was open" in (place.why_not("last_visit") or "")
        await told.press("left", "left")
        await told.until(lambda: not told._working(), "an answer")
        assert field(told, "since").text == "2026-11-12"
        assert place._found is not None and place._found.since.isoformat().startswith("2026-11-12T00:00")
        await told.type("99")
        await told.sees("is no time such as 2026-11-15")
        await told.press("ctrl+u")
        await told.type("3d")
        await told.until(lambda: place._found is not None and place._found.since == NOW - timedelta(days=3), "3 days")
        await told.press("tab", "left")
        assert field(told, "until").text == "2026-11-20"
        await told.until(lambda: place._found is not None and place._found.until < NOW, "another end")
        await told.press("left", "left", "left")
        await told.sees("lies not before the other moment")
        await told.press("H")
        assert told.place.place == "loops"
