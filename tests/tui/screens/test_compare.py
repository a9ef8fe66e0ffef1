from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from core.base.time_parsing import LAST_VISIT
from core.history.as_of import build_past_state
from core.history.changes import compare_states
from core.records.times import iso
from tests.tui.user import NOW, User, open_dashboard
from tui.app import RalphdeckApp
from tui.screens.compare import CompareScreen
from tui.screens.patterns import PatternsScreen
from tui.state.user_state import UserState
from tui.widgets.value_field import ValueField

VISITED = NOW - timedelta(days=9, hours=3)


async def at_past(user: User) -> CompareScreen:
    await user.press("H")
    await user.until(lambda: isinstance(user.place, CompareScreen) and bool(user.table.keys), "what changed")
    await user.settled()
    assert isinstance(user.place, CompareScreen)
    return user.place


def field(user: User, name: str) -> ValueField:
    return next(found for found in user.place.query(ValueField) if found.name == name)


async def test_since_the_last_visit_what_changed_stands_there_and_leads_on(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24)) as user:
        user.app.last_visit = VISITED
        await user.go("patterns")
        await at_past(user)
        expected = compare_states(build_past_state(user.app.view, VISITED), user.app.view)
        first = expected.patterns[0]
        assert (field(user, "since").text, field(user, "until").text) == ("last visit", "now")
        assert user.table.keys[0] == f"pattern {first.pattern_id}"
        assert len(user.table.keys) == sum(
            map(len, (expected.patterns, expected.decisions, expected.loops, expected.questions))
        )
        await user.sees("Read-only", first.because, f"{expected.helped} uses helped", "decided by imre")
        await user.press("enter", "enter")
        await user.settled()
        assert isinstance(user.place, PatternsScreen)
        assert user.table.cursor_key == first.pattern_id
    kept = json.loads((home / "state.json").read_text())
    assert kept["projects"]["project"][LAST_VISIT] == iso(NOW)


async def test_a_dashboard_that_is_open_or_was_killed_is_a_visit_too(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        assert user.app.last_visit is None, "the first one is no visit before itself"
        kept = UserState(home / "state.json", "project")
        kept.load()
        other = RalphdeckApp(user.app.project, kept, home / "keymap.toml")
        assert other.last_visit == NOW


async def test_days_are_stepped_and_typed_and_what_is_none_is_told(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        place = await at_past(user)
        assert field(user, "since").text == "2026-11-14"
        assert "dashboard was never opened" in (place.why_not("last_visit") or "")
        await user.press("left", "left")
        await user.until(lambda: not user._working(), "an answer")
        assert field(user, "since").text == "2026-11-12"
        assert place._found is not None and place._found.since.isoformat().startswith("2026-11-12T00:00")
        await user.type("99")
        await user.sees("Use 2026-11-15")
        await user.press("ctrl+u")
        await user.type("3d")
        await user.until(lambda: place._found is not None and place._found.since == NOW - timedelta(days=3), "3 days")
        await user.press("tab", "left")
        assert field(user, "until").text == "2026-11-20"
        await user.until(lambda: place._found is not None and place._found.until < NOW, "another end")
        await user.press("left", "left", "left")
        await user.sees("lies not before the other moment")
        await user.press("H")
        assert user.place.place == "loops"
