"""The Metrics screen: charts in characters, a walk through all sections, what is behind their rows, and exports."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.content import Content
from textual.widgets import Static

from core.show.metrics.dashboard import build_dashboard
from core.show.metrics.sections import Row, _load_texts, build_figures
from tests.factories import HOSTILE_LABEL, make_bars, make_columns, make_rates, make_spans
from tests.tui.user import User, open_dashboard
from tui.kit.looks import ASCII, DRAWN
from tui.kit.record_table import fit_columns
from tui.screens.metrics import (
    MetricsScreen,
    bar_cell,
    legend,
    nice_top,
    row_cells,
    row_columns,
    tile,
    tiles,
    week_chart,
)

EVERY = (
    make_bars("TypeError", HOSTILE_LABEL),
    make_columns((9, 3), (0, 0), (4, 0)),
    make_rates(0.9, None, 0.5),
    make_spans((2, 4, 8), (1, 2, 3)),
)


def plain(lines: list[Content]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def test_values_are_visible_on_one_scale_with_short_numbers() -> None:
    lines = plain(week_chart(make_columns((90_000, 0)), 34, 8, ASCII))
    assert "100 k'|" in lines[1] and "100,00" not in "".join(lines)
    small = make_columns((500, 1), (1, 0))
    assert [bar_cell(small, row, 20, ASCII).plain for row in small.rows] == ["#" * 19 + "=", "#"]
    spans = make_spans((2, 4, 8), (1, 2, 3))
    assert [bar_cell(spans, row, 17, ASCII).plain for row in spans.rows] == ["....----|--------", "..--|--.........."]


def test_the_difference_of_an_experiment_has_room_at_80_columns() -> None:
    row = Row(label="deadlock detected", group="can't tell yet", values=(0.35,), low=-0.31, high=0.2, count=60)
    experiment = replace(next(one for one in _load_texts().sections if one.id == "experiment"), rows=(row,))
    shown = {column.id for column, _width in fit_columns(row_columns(experiment, 56, DRAWN), 56)}
    assert shown == {"label", "group", "reach"}


def test_nothing_is_larger_than_its_space() -> None:
    for figure, glyphs, width in product(EVERY, (DRAWN, ASCII), (30, 66, 106, 180)):
        row = f"{figure.id}, {glyphs.name}, {width}"
        drawn = [*tile(figure, width, 9, glyphs), *week_chart(figure, width, 12, glyphs, 0)]
        assert len(tile(figure, width, 9, glyphs)) == 9, row
        assert max(line.cell_length for line in drawn) <= width, row
        if glyphs is ASCII and figure is not EVERY[0]:
            assert all(line.plain.replace("…", "").replace("–", "").isascii() for line in drawn), row


def test_a_year_of_weeks_keeps_the_newest_when_space_is_short() -> None:
    chart = plain(week_chart(make_columns(*[(1, 0)] * 52), 37, 6, ASCII, 51))
    assert chart[-1].endswith("^ 52 Nov")
    assert len(chart[-2]) == 37


def test_rows_with_hostile_names_are_plain_text() -> None:
    figure = make_bars(HOSTILE_LABEL)
    assert "\x1b" not in row_cells(figure, figure.rows[0], 10, DRAWN)["label"].plain


def test_a_year_labels_only_its_first_week() -> None:
    figure = make_columns(*[(1, 0)] * 4)
    days = ("28 Dec", "4 Jan 2027", "11 Jan 2027", "18 Jan 2027")
    rows = tuple(replace(row, label=label) for row, label in zip(figure.rows, days, strict=True))
    labels = plain(week_chart(replace(figure, rows=rows), 7 + 4 * 9, 8, ASCII))[-1]
    assert labels.split() == ["0'", "28", "Dec", "4", "Jan", "2027", "18", "Jan"]


def test_axis_ends_at_a_round_number() -> None:
    tops = {0: 1, 1: 1, 3: 4, 7: 8, 11: 20, 21: 30, 100: 100, 101: 200}
    assert {value: nice_top(value) for value in tops} == tops


def test_columns_show_parts_by_their_characters_below_the_edge_of_their_label() -> None:
    assert plain(week_chart(make_columns((9, 3), (0, 0), (8, 0)), 34, 8, ASCII, 2)) == [
        "# worked   = failed",
        "   20'|",
        "      |",
        "      |========",
        "   10'|########",
        "      |########          ########",
        "      |########          ########",
        "    0' 1 Nov    2 Nov    ^ 3 Nov",
    ]


def test_a_column_ends_at_its_value() -> None:
    """Each of 8 lines is 25 of 200; the end of a column is drawn in eighths of a line."""
    for value, lines in {123: 5, 100: 4, 200: 8, 24: 1, 1: 1}.items():
        chart = plain(week_chart(make_columns((200, 0), (value, 0)), 34, 10, DRAWN))[1:]
        column = [line[17:18].strip() for line in chart[:-1]]
        drawn = [mark for mark in column if mark]
        assert len(drawn) == lines
        eighths = sum(8 if mark == "█" else "▁▂▃▄▅▆▇".index(mark) + 1 for mark in drawn)
        assert eighths == max(round(value / 25 * 8), 1)
        assert chart[0].startswith("  200▔") and chart[4].startswith("  100▔") and chart[8].startswith("    0▔")


def test_small_parts_do_not_make_a_column_higher_than_its_value() -> None:
    figure = replace(make_columns((90, 0)), parts=("a", "b", "c"))
    rows = tuple(replace(figure.rows[0], values=values) for values in ((90, 5, 5), (12, 1, 1)))
    chart = plain(week_chart(replace(figure, rows=rows), 34, 6, ASCII))
    assert sum(line[16:17].strip() != "" for line in chart[:-1]) == 1


def test_a_week_without_a_rate_is_a_gap() -> None:
    chart = plain(week_chart(make_rates(0.5, None, 1.0), 34, 9, ASCII))
    assert [sum(line[at : at + 1] == "#" for line in chart) for at in (8, 17, 26)] == [4, 0, 8]
    assert chart[0].startswith("100 %'|") and chart[-1].startswith("  0 %'")


def test_legends_wrap_and_name_only_parts_with_a_value_with_a_glyph_of_each_state() -> None:
    assert plain(legend(make_columns((9, 3)), 12, ASCII)) == ["# worked", "= failed"]
    assert plain(legend(make_columns((9, 0)), 30, ASCII)) == ["# worked"]
    figure = replace(make_columns((1, 2)), parts=("established", "candidate"))
    assert plain(legend(figure, 60, ASCII)) == ["+ established   o candidate"]


def test_if_space_is_short_a_row_loses_its_bar_first_and_keeps_its_score() -> None:
    figure = make_spans((2, 4, 8))
    rows = tuple(replace(row, score="12 of 123", group="best") for row in figure.rows)
    figure = replace(figure, rows=rows, group="verdict", percent=True)
    wide, narrow = (
        {column.id: cells for column, cells in fit_columns(row_columns(figure, width, ASCII), width)}
        for width in (100, 50)
    )
    assert wide.keys() - narrow.keys() >= {"bar"}
    assert {"label", "group", "part0", "reach"} <= narrow.keys()
    assert narrow["part0"] >= len("12 of 123")
    assert sum(narrow.values()) + len(narrow) - 1 <= 50
    assert row_cells(figure, rows[0], 10, ASCII)["part0"].plain == "12 of 123"


def test_sections_without_data_are_one_line_below_the_tiles() -> None:
    empty = replace(make_columns(), title="Tokens", takeaway="No tokens.", rows=())
    flat = make_spans((4, 4, 4))
    lines = plain(tiles([empty, *EVERY[:2], flat], 100, 20, ASCII))
    assert [line for line in lines if line.startswith(("Tokens", "Iterations"))] == [
        "Tokens  No tokens.",
        "Iterations  -2.0 iterations",
    ]
    assert lines[-1].startswith("Iterations")
    assert lines[0].split() == ["Causes", "Evidence"]


def test_tiles_are_equal_and_fit() -> None:
    for width, height in ((60, 10), (98, 19), (145, 20), (185, 31), (240, 42)):
        lines = plain(tiles([*EVERY, *EVERY], width, height, ASCII))
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
        assert any("Causes" in line for line in lines)


def test_a_takeaway_wraps_and_is_never_cut_without_an_ellipsis() -> None:
    long = replace(make_rates(0.8, 0.5), takeaway="word " * 40)
    small, large = plain(tile(long, 40, 8, ASCII)), plain(tile(long, 40, 16, ASCII))
    assert small[1].endswith("…") and sum("word" in line for line in small) == 1
    assert sum("word" in line for line in large) == 5 and "…" not in "".join(large)


SECTIONS = [
    "Do lessons help?",
    "Patterns",
    "Uses",
    "Loops",
    "Reflections",
    "Tokens",
    "Cost of context",
    "Cost by lesson",
    "Failure causes",
    "Upcoming changes",
    "Questions",
    "Review coverage",
    "Reviewer accuracy",
]


async def export(user: User, name: str) -> None:
    await user.press("E", "ctrl+u")
    await user.paste(name)
    await user.press("enter")
    await user.settled()


async def test_all_sections_of_metrics_can_be_visited(
    sample: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_dashboard(sample, home, size=(80, 24), place="metrics") as user:
        place = user.place
        assert isinstance(place, MetricsScreen)
        effect = build_dashboard(user.app.view, "ana").lessons
        assert effect.best and effect.worst
        await user.sees(effect.best[0].score, effect.worst[0].score)
        figures = {figure.title: figure for figure in build_figures(build_dashboard(user.app.view, "ana"))}
        assert list(figures) == SECTIONS
        for title in SECTIONS:
            shown = str(place.query_one("#metrics-takeaway", Static).render())
            assert shown == figures[title].takeaway
            assert place.rows.keys or figures[title].missing[:40] in user.text()
            await user.press("j")
        await user.press("g", "right_square_bracket", "right_square_bracket")
        assert place.sections.cursor_key == "evidence"
        assert "▲ 16 Nov" in user.text()
        await user.press("right")
        await user.settled()
        assert "of 52" not in user.text()
        assert len(place.rows.keys) == 52
        await user.press("right")
        assert user.toasts()[-1] == "This is the longest time range"
        await user.press("left", "left")
        await user.settled()
        assert len(place.rows.keys) == 4

        await export(user, "report.md")
        await export(user, "numbers.csv")
        assert (tmp_path / "report.md").read_text().startswith("# Metrics of acme-api\n")
        assert len(list(csv.reader((tmp_path / "numbers.csv").open()))) > 30
        await export(user, "acme-api/.aiwg/report.md")
        assert "belongs to the loops" in user.toasts()[-1]
        (tmp_path / "report.md").write_text("mine")
        await export(user, "report.md")
        await user.press("n")
        assert (tmp_path / "report.md").read_text() == "mine"
        await user.press("P", "ctrl+u")
        await user.paste("screen.svg")
        await user.press("enter")
        await user.settled()
        picture = (tmp_path / "screen.svg").read_text()
        assert "Uses" in picture
        assert "font-face" not in picture

        await user.press("enter", "enter")
        await user.sees("3 Patterns")
        assert user.place.place == "patterns"
        await user.go("metrics")
        await user.press("escape", "g", *["j"] * SECTIONS.index("Failure causes"), "enter", "enter")
        assert user.place.place == "loops"
        await user.go("metrics")
        await user.press("escape", *["right_square_bracket"] * 2, "enter", "enter")
        assert user.place.place == "review"


async def test_other_sections_are_tiles_if_there_is_space(tmp_path: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with open_dashboard(project, tmp_path, size=(200, 50), glyphs="ascii", place="metrics") as user:
        await user.sees("Can't tell yet", "No lessons yet.", "No use in the last 12 weeks.", "No open questions.")
        await user.press("enter")
        assert user.toasts()[-1] == "This section has no rows"
