"""Figures in characters: they fit their width, and read without colour."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.content import Content

from core.metrics.sections import Figure
from tests.factories import HOSTILE_LABEL, make_bars, make_columns, make_curve, make_spans
from tui.present.glyphs import ASCII, DRAWN, Glyphs
from tui.present.metrics import Title, grid, part_title, row_cells, tile, tiles
from tui.present.metrics_chart import bar_cell, legend, nice_top, week_chart

EVERY = (
    make_bars("TypeError", HOSTILE_LABEL),
    make_columns((9, 3), (0, 0), (4, 0)),
    make_curve(0.9, None, 0.5),
    make_spans((2, 4, 8), (1, 2, 3)),
)


def plain(lines: list[Content]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def test_columns_show_parts_by_their_characters() -> None:
    assert plain(week_chart(make_columns((9, 3), (0, 0), (8, 0)), 34, 8, ASCII, 2)) == [
        "# worked 17   = failed 3",
        "    20|",
        "      |",
        "      |========",
        "      |########",
        "      |########          ########",
        "     0|########          ########",
        "       1 Nov    2 Nov    ^ 3 Nov",
    ]


def test_a_long_number_at_the_axis_is_shortened() -> None:
    lines = plain(week_chart(make_columns((90_000, 0)), 34, 8, ASCII))
    assert "100 k|" in lines[1] and "100,00" not in "".join(lines)


def test_a_curve_has_whiskers_and_gaps() -> None:
    assert plain(week_chart(make_curve(0.8, None, 0.5), 28, 12, ASCII)) == [
        " 100 %|",
        "      |   -",
        "      |   *",
        "      |   -",
        "      |                 -",
        "  50 %|                 *",
        "      |                 -",
        "      |",
        "      |",
        "      |",
        "   0 %|",
        "       1 Nov  2 Nov  3 Nov",
    ]


def test_small_values_are_visible() -> None:
    figure = make_columns((500, 1), (1, 0))
    assert bar_cell(figure, figure.rows[0], 20, ASCII).plain == "#" * 19 + "="
    assert bar_cell(figure, figure.rows[1], 20, ASCII).plain == "#"


def test_spans_share_one_scale() -> None:
    figure = make_spans((2, 4, 8), (1, 2, 3))
    assert [bar_cell(figure, row, 17, ASCII).plain for row in figure.rows] == ["....----|--------", "..--|--.........."]


@pytest.mark.parametrize("width", [30, 66, 106, 180])
@pytest.mark.parametrize("glyphs", [DRAWN, ASCII])
@pytest.mark.parametrize("figure", EVERY)
def test_nothing_is_larger_than_its_space(figure: Figure, glyphs: Glyphs, width: int) -> None:
    drawn = [*tile(figure, width, 9, glyphs), *week_chart(figure, width, 12, glyphs, 0)]
    assert len(tile(figure, width, 9, glyphs)) == 9
    assert max(line.cell_length for line in drawn) <= width
    if glyphs is ASCII and figure is not EVERY[0]:
        assert all(line.plain.replace("…", "").replace("–", "").isascii() for line in drawn)


def test_a_year_of_weeks_keeps_the_newest_when_space_is_short() -> None:
    chart = plain(week_chart(make_columns(*[(1, 0)] * 52), 37, 6, ASCII, 51))
    assert chart[-1].endswith("^ 52 Nov")
    assert len(chart[-2]) == 37


def test_legends_wrap_and_headings_are_shortened() -> None:
    figure = make_columns((9, 3))
    assert plain(legend(figure, 16, ASCII)) == ["# worked 9", "= failed 3"]
    titles = [part_title(figure, 0, ASCII, form) for form in Title]
    assert titles == ["# worked", "# worked", "#"]


def test_rows_with_hostile_names_are_plain_text() -> None:
    figure = make_bars(HOSTILE_LABEL)
    assert "\x1b" not in row_cells(figure, figure.rows[0], 10, DRAWN)["label"].plain


def test_tiles_show_as_much_as_fits() -> None:
    lines = plain(tiles(EVERY, 60, 22, ASCII))
    assert len(lines) == 22
    assert [line for line in lines if line in {"Causes", "Evidence", "Success", "Iterations"}] == [
        "Causes", "Evidence", "Success",
    ]  # fmt: skip
    assert tiles(EVERY, 60, 2, ASCII) == []


@pytest.mark.parametrize(("width", "height"), [(145, 17), (185, 31), (240, 40)])
def test_a_grid_has_equal_tiles_with_five_rows_of_plot_each(width: int, height: int) -> None:
    figures = [EVERY[2], EVERY[1], EVERY[0], EVERY[3]] * 2
    lines = plain(grid(figures, width, height, ASCII))
    assert len(lines) <= height and len(lines) >= height - 1
    assert max(map(len, lines)) <= width
    titles = [n for n, line in enumerate(lines) if line.split("   ")[0] == figures[0].title]
    assert titles == [0, (height + 1) // 2], "the second row begins in the middle"
    plot = [line for line in lines[: titles[1]] if line[6:7] == "|"]
    assert len(plot) >= 5


def test_a_takeaway_wraps_and_is_never_cut_without_an_ellipsis() -> None:
    long = replace(make_curve(0.8, 0.5), takeaway="word " * 40)
    small, large = plain(tile(long, 40, 8, ASCII)), plain(tile(long, 40, 16, ASCII))
    assert small[1].endswith("…") and sum("word" in line for line in small) == 1
    assert sum("word" in line for line in large) == 5 and "…" not in "".join(large)


def test_81_percent_is_not_drawn_at_100() -> None:
    chart = plain(week_chart(make_curve(0.81, 1.0), 40, 6, DRAWN))
    high = next(n for n, line in enumerate(chart) if "▀" in line[8:14] or "▄" in line[8:14])
    assert high == 1, "one line below the top"
    assert "▀" in chart[0][14:], "100 % is at the very top"


def test_points_without_a_spread_are_not_drawn() -> None:
    figure = make_spans((4, 4, 4), (4, 4, 4))
    drawn = "\n".join(plain(tile(figure, 60, 9, DRAWN)))
    assert "Not enough data for a chart yet." in drawn and "╋" not in drawn
    assert "╋" in "\n".join(plain(tile(make_spans((2, 4, 8)), 60, 9, DRAWN)))


def test_a_year_labels_only_its_first_week() -> None:
    figure = make_columns(*[(1, 0)] * 4)
    days = ("28 Dec", "4 Jan 2027", "11 Jan 2027", "18 Jan 2027")
    rows = tuple(replace(row, label=label) for row, label in zip(figure.rows, days, strict=True))
    labels = plain(week_chart(replace(figure, rows=rows), 7 + 4 * 9, 8, ASCII))[-1]
    assert labels.split() == ["28", "Dec", "4", "Jan", "2027", "18", "Jan"]


def test_each_state_has_its_own_ascii_glyph_in_legends() -> None:
    figure = replace(make_columns((1, 2)), parts=("established", "candidate"))
    assert plain(legend(figure, 60, ASCII)) == ["+ established 1   o candidate 2"]


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (3, 4), (7, 8), (11, 20), (21, 30), (100, 100), (101, 200)])
def test_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice_top(value) == top
