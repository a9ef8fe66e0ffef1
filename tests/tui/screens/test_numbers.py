from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from core.base.formatting import format_duration, format_percent
from tui.kit.glyphs import ASCII, DRAWN, Glyphs
from tui.screens.document import (
    bar,
    interval_bar,
    moment_text,
    sparkline,
)

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
UNIT = st.floats(0, 1)
GLYPHS = st.sampled_from([DRAWN, ASCII])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0.0 s"),
        (0.42, "0.4 s"),
        (10, "10 s"),
        (59, "59 s"),
        (60, "1 m"),
        (3600, "1 h"),
        (47 * 3600, "47 h"),
        (3 * 86400, "3 d"),
        (730.5 * 86400, "2.0 y"),
    ],
)
def test_duration_uses_its_largest_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(0, 1e11))
def test_duration_is_short(seconds: float) -> None:
    assert len(format_duration(seconds)) <= 8


def test_a_timestamp_omits_the_current_day_or_year() -> None:
    assert moment_text(None, NOW) == "—"
    assert moment_text(NOW - timedelta(hours=2), NOW) == "today 19:00"
    assert moment_text(NOW - timedelta(hours=23), NOW) == "20 Nov 22:00"
    assert moment_text(NOW - timedelta(days=400), NOW) == "17 Oct 2025"
    assert moment_text(NOW + timedelta(minutes=1), NOW) == "21 Nov 21:01"
    for edge in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)):
        assert moment_text(edge, NOW)


@pytest.mark.parametrize(("rate", "text"), [(None, "—"), (0, "0 %"), (0.125, "13 %"), (0.995, "100 %"), (1, "100 %")])
def test_rate_is_rounded_half_up(rate: float | None, text: str) -> None:
    assert format_percent(rate) == text


@given(st.integers(-5, 10**9), st.one_of(st.none(), st.integers(-1, 10**9)), st.integers(1, 30), GLYPHS)
def test_a_bar_is_as_wide_as_requested_for_any_numbers(
    done: int, total: int | None, width: int, glyphs: Glyphs
) -> None:
    drawn = bar(done, total, width, glyphs)
    assert cell_len(drawn) == width
    assert set(drawn) <= {glyphs.full, glyphs.empty}


def test_a_progress_bar_is_full_only_when_all_is_done() -> None:
    assert bar(10, 10, 5, DRAWN) == bar(12, 10, 5, DRAWN) == "▮▮▮▮▮"
    assert bar(0, 10, 5, DRAWN) == bar(3, None, 5, DRAWN) == "▯▯▯▯▯"


@given(st.lists(UNIT, max_size=30), st.integers(1, 12), GLYPHS)
def test_a_sparkline_shows_the_newest_values(values: list[float], width: int, glyphs: Glyphs) -> None:
    drawn = sparkline(values, width, glyphs)
    assert len(drawn) == min(width, len(values))
    heights = [glyphs.sparks.index(char) for char in drawn]
    shown = values[-width:] if values else []
    assert all(
        heights[a] <= heights[b] for a in range(len(shown)) for b in range(len(shown)) if shown[a] <= shown[b]
    )  # fmt: skip


def test_a_sparkline_uses_the_full_height() -> None:
    assert sparkline([0, 0.5, 1], 8, DRAWN) == "▁▅█"
    assert sparkline([], 8, DRAWN) == ""
    assert sparkline([-3, 7], 8, ASCII) == "_@"


@given(UNIT, UNIT, st.one_of(st.none(), UNIT), st.integers(2, 20), GLYPHS)
def test_an_interval_is_drawn_at_its_position(
    a: float, b: float, rate: float | None, width: int, glyphs: Glyphs
) -> None:
    low, high = sorted((a, b))
    drawn = interval_bar(low, high, rate, width, glyphs)
    assert cell_len(drawn) == width + 10
    cells = drawn[5 : 5 + width]
    assert cells.count(glyphs.point) == (0 if rate is None else 1) or glyphs.point in {glyphs.line, glyphs.range}
    inside = [n for n, cell in enumerate(cells) if cell == glyphs.range]
    assert all(low * (width - 1) - 1 <= n <= high * (width - 1) + 1 for n in inside)


def test_an_interval_has_the_expected_bounds() -> None:
    assert interval_bar(0.78, 0.99, 0.94, 9, DRAWN) == "0.78 ┄┄┄┄┄┄━━╋ 0.99"
    assert interval_bar(0, 1, None, 5, ASCII) == "0.00 ----- 1.00"
