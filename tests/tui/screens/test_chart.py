from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.content import Content

from tui.kit.glyphs import ASCII, DRAWN
from tui.screens.chart import AXIS_CELLS, MAX_STEP, Run, line_chart
from tui.screens.document import hanging


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
