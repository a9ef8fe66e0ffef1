"""Times, bars and charts as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from core.base.formatting import format_duration
from tui.kit.looks import ASCII, DRAWN, Glyphs
from tui.screens.document import (
    AXIS_CELLS,
    MAX_STEP,
    Run,
    bar,
    hanging,
    interval_bar,
    line_chart,
    moment_text,
    sparkline,
)

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
UNIT = st.floats(0, 1)
GLYPHS = st.sampled_from([DRAWN, ASCII])


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


def run(*values: float, label: str = "", places: int = 0) -> Run:
    return Run(values, Content(label), places)


def plain(lines: list[Content]) -> list[str]:
    return [line.plain for line in lines]


def test_a_chart_is_a_line_with_labelled_axes_and_a_mark_for_each_value() -> None:
    assert plain(line_chart([run(0.0, 0.5, 1.0, label="1 x"), run(1.0, label="2 v")], 19, 3, ASCII)) == [
        "100 %|     *o:o    ",
        " 50 %|  *o*  :     ",
        "  0 %|o*     :     ",
        "      1 x     2 v",
    ]


def test_a_chart_in_dots_has_four_times_as_many_lines() -> None:
    lines = plain(line_chart([run(0.0, 1.0)], AXIS_CELLS + 6, 3, DRAWN))
    assert [line[:AXIS_CELLS] for line in lines] == ["100 %┤", " 50 %┤", "  0 %┤"]
    dots = [line[AXIS_CELLS:] for line in lines]
    assert dots[0].endswith("●") and dots[1].strip() and dots[2].startswith("●")


def test_a_line_of_few_values_is_not_stretched() -> None:
    assert {line.cell_length for line in line_chart([run(0.2, 0.9)], 100, 5, DRAWN)} == {AXIS_CELLS + MAX_STEP + 1}
    assert "●" not in "".join(plain(line_chart([run(*[0.5] * 60)], AXIS_CELLS + 60, 5, DRAWN)))


def test_ticks_are_below_their_values_when_there_is_space() -> None:
    ticks = [str(number) for number in range(8, 14)]
    lines = plain(line_chart([Run([0.5] * 6, Content(""), ticks=ticks)], AXIS_CELLS + 51, 3, ASCII))
    assert lines[-1].split() == ticks and lines[-1][AXIS_CELLS + 20 :].startswith("10")
    lines = plain(line_chart([Run([0.5] * 6, Content(""), ticks=ticks)], AXIS_CELLS + 12, 3, ASCII))
    assert lines[-1].split() == ["8", "9", "10", "12"]


def test_a_line_of_an_unfinished_period_leaves_room() -> None:
    (top, *_) = plain(line_chart([run(1.0, 1.0, places=5)], AXIS_CELLS + 21, 3, ASCII))
    assert top == "100 %|o****o" + " " * 15


def test_the_oldest_runs_are_dropped_when_space_is_short() -> None:
    lines = plain(line_chart([run(0.5, label=str(number)) for number in range(100)], AXIS_CELLS + 15, 3, ASCII))
    assert lines[-1].split() == ["96", "97", "98", "99"]


def test_a_chart_without_values_is_empty() -> None:
    assert line_chart([run()], 60, 5, DRAWN) == []
    assert line_chart([run(0.5)], AXIS_CELLS, 5, DRAWN) == []


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.floats(allow_nan=False, min_value=-2, max_value=2), max_size=9), max_size=9),
    st.integers(0, 90),
    st.sampled_from([DRAWN, ASCII]),
)
def test_a_chart_is_never_wider_than_requested(runs: list[list[float]], width: int, glyphs: object) -> None:
    for line in line_chart([run(*values, label="1 x") for values in runs], width, 5, glyphs):  # type: ignore[arg-type]
        assert line.cell_length <= width


def test_text_is_indented_beside_its_label() -> None:
    lines = hanging(Content("why  "), Content("one two three four five six seven\nend"), 25)
    assert [line.plain.rstrip() for line in lines] == ["why  one two three four", "     five six seven", "     end"]
