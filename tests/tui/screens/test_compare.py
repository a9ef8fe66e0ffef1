from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.formatting import LAST_VISIT
from core.project.as_of import build_past_state
from core.records.patterns import Maturity
from core.records.times import iso
from core.show.comparison import Counts, compare_states
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.glyphs import ASCII, DRAWN
from tui.kit.user_state import UserState
from tui.kit.value_field import ValueField
from tui.screens.compare import CompareScreen
from tui.screens.history_query import count_lines
from tui.screens.patterns import PatternsScreen

VISITED = NOW - timedelta(days=9, hours=3)


async def open_compare(user: User) -> CompareScreen:
    await user.press("L", "H")
    await user.until(lambda: isinstance(user.place, CompareScreen) and bool(user.table.keys), "what changed")
    await user.settled()
    assert isinstance(user.place, CompareScreen)
    return user.place


def field(user: User, name: str) -> ValueField:
    return next(found for found in user.place.query(ValueField) if found.name == name)


@pytest.mark.slow
async def test_lists_changes_since_the_last_visit_and_opens_their_records(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(100, 24)) as user:
        user.app.last_visit = VISITED
        await user.go("patterns")
        await open_compare(user)
        expected = compare_states(build_past_state(user.app.view, VISITED), user.app.view)
        first = expected.patterns[0]
        assert (field(user, "since").text, field(user, "until").text) == ("last visit", "now")
        assert user.table.keys[0] == f"pattern {first.pattern_id}"
        assert len(user.table.keys) == sum(
            map(len, (expected.patterns, expected.decisions, expected.loops, expected.questions))
        )
        await user.sees("Read-only", first.because, f"{expected.helped} uses worked", "decided by imre")
        await user.press("enter", "enter")
        await user.settled()
        assert isinstance(user.place, PatternsScreen)
        assert user.table.cursor_key == first.pattern_id
    saved = UserState(home / "state.json", "project")
    saved.load()
    assert saved.visit(LAST_VISIT) == iso(NOW)


async def test_an_open_or_killed_dashboard_counts_as_a_visit(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        assert user.app.last_visit is None, "the first session is not its own previous visit"
        saved = UserState(home / "state.json", "project")
        saved.load()
        assert saved.begin_visit(NOW + timedelta(hours=1)) == NOW


@pytest.mark.slow
async def test_days_can_be_stepped_or_typed_and_invalid_days_are_reported(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        place = await open_compare(user)
        assert field(user, "since").text == "2026-11-14"
        assert "first visit" in (place.why_not("last_visit") or "")
        await user.press("left", "left")
        assert field(user, "since").text == "2026-11-12"
        two_days_earlier = datetime(2026, 11, 12, tzinfo=UTC)
        await user.until(lambda: place._found is not None and place._found.since == two_days_earlier, "2026-11-12")
        await user.type("99")
        await user.sees("Use 2026-11-15")
        await user.press("ctrl+u")
        await user.type("3d")
        await user.until(lambda: place._found is not None and place._found.since == NOW - timedelta(days=3), "3 days")
        await user.press("tab", "left")
        assert field(user, "until").text == "2026-11-20"
        await user.until(lambda: place._found is not None and place._found.until < NOW, "another end")
        await user.press("left", "left", "left")
        await user.sees("must be before the other moment")
        await user.press("H")
        assert user.place.place == "log"


def counts(*numbers: int) -> Counts:
    return dict(zip(Maturity, numbers, strict=True))


BEFORE, AFTER = counts(11, 12, 10, 7), counts(14, 12, 7, 7)
NONE, LARGE, MOVED = counts(0, 0, 0, 0), counts(100_000, 0, 0, 0), counts(0, 100_000, 0, 0)


def test_counts_before_and_after_have_glyph_word_and_number() -> None:
    lines = count_lines(BEFORE, AFTER, 60, DRAWN, short=False).plain.splitlines()
    assert [line.split("▮")[0].strip() for line in lines] == [
        "○ candidate   11 → 14 +3",
        "◐ established 12 → 12",
        "● proven      10 →  7 -3",
        "⊘ deprecated   7 →  7",
    ]
    assert [(line.count("▮"), line.count("▯")) for line in lines] == [(33, 0), (28, 0), (16, 8), (16, 0)]
    assert max(len(line) for line in lines) == 60
    short = count_lines(BEFORE, AFTER, 78, ASCII, short=True).plain.splitlines()
    assert [line.split() for line in short] == [
        ["o", "candidate", "11", "->", "14", "+3", "+", "established", "12", "->", "12"],
        ["*", "proven", "10", "->", "7", "-3", "x", "deprecated", "7", "->", "7"],
    ]


def test_counts_of_any_size_are_aligned() -> None:
    lines = count_lines(LARGE, MOVED, 60, DRAWN, short=False).plain.splitlines()
    assert len({line.index("→") for line in lines}) == 1
    assert "100,000 →       0 -100,000" in lines[0]
    assert count_lines(NONE, NONE, 60, DRAWN, short=False)
    assert "▮" not in count_lines(LARGE, MOVED, 10, DRAWN, short=False).plain
