from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from textual.content import Content

from core.show.pages.document import Column
from tests.tui.kit.hosting import hosted, lines_of, painted_lines, until
from tui.kit.record_table import RecordTable

COLUMNS = (
    Column("state", "state", 6, keep=4),
    Column("id", "id", 12, flex=1, keep_end=4),
    Column("title", "what", 20, flex=3, keep=3),
    Column("uses", "uses", 6, align="right"),
)
MANY = [f"pat-{n:06d}" for n in range(100_000)]


class Rows:
    """Draws rows, and counts how often."""

    def __init__(self) -> None:
        self.drawn: Counter[str] = Counter()

    def __call__(self, key: str) -> dict[str, Content]:
        self.drawn[key] += 1
        return {"state": Content("ok"), "id": Content(key), "title": Content(f"title {key}"), "uses": Content("7")}


def make(keys: list[str]) -> tuple[RecordTable, Rows]:
    rows = Rows()
    table = RecordTable(COLUMNS, rows, lambda: Content("nothing here"))
    table.show(keys)
    return table, rows


async def test_only_the_visible_rows_of_a_huge_list_are_drawn() -> None:
    table, rows = make(MANY)
    async with hosted(table) as (_, pilot):
        assert set(rows.drawn) == set(MANY[:23])
        table.move(1)
        await pilot.pause()
        rows.drawn.clear()
        table.move(1)
        await pilot.pause()
        assert not rows.drawn, "a step draws no record again"
        table.move(10**9)
        await pilot.pause()
        assert set(rows.drawn) == set(MANY[-23:])
        assert table.cursor_key == MANY[-1]
        rows.drawn.clear()
        table.show(MANY[::-1])
        await pilot.pause()
        assert len(rows.drawn) < 100
        assert table.cursor == 0, "the cursor has stayed on its record"


@pytest.mark.usefixtures("drawn_at_once")
async def test_only_lines_that_look_different_are_painted() -> None:
    titles = {key: key for key in "abcdef"}
    drawn: list[str] = []

    def draw(key: str) -> dict[str, Content]:
        drawn.append(key)
        return {"id": Content(key), "title": Content(titles[key])}

    table = RecordTable(COLUMNS, draw, lambda: Content(""))
    table.show(list("abcdef"))
    async with hosted(table) as (_, pilot):
        steps: list[tuple[Callable[[], object], set[int]]] = [
            (lambda: table.redraw(), set()),
            (lambda: table.move(1), {1, 2}),
            (lambda: titles.update(c="changed"), set()),
            (lambda: table.show(table.keys, changed={"a"}), set()),
            (lambda: table.show(table.keys, changed={"c"}), {3}),
            (lambda: table.show(table.keys, sorted_by=("id", True)), {0}),
            (lambda: table.show(["a", "b", "d", "c", "e", "f"], sorted_by=("id", True)), {3, 4}),
            (lambda: table.toggle_mark(["f"]), {6}),
            (lambda: setattr(table, "hover", 4), {5}),
        ]
        for change, painted in steps:
            with painted_lines() as lines:
                change()
                await pilot.pause()
            assert lines == painted
        drawn.clear()
        table.redraw({"d"})
        assert drawn == ["d"]


async def test_other_columns_of_the_same_records_are_drawn() -> None:
    table, _ = make(["a", "b"])
    async with hosted(table) as (_, pilot):
        for columns, has_title in ((COLUMNS[:2], False), (COLUMNS, True)):
            table.use(columns)
            table.show(table.keys)
            await pilot.pause()
            assert ("title a" in lines_of(table)[1]) is has_title


async def test_the_cursor_stays_on_its_record_or_near_a_removed_one() -> None:
    table, _ = make(["a", "b", "c", "d"])
    async with hosted(table, RecordTable.Highlighted) as (host, pilot):
        table.move(1)
        await pilot.pause()
        host.heard.clear()
        table.show(["d", "c", "b", "a"])
        await pilot.pause()
        assert (table.cursor, table.cursor_key) == (2, "b")
        assert host.heard == [], "it is the same record, so there is nothing to say"
        table.show(["d", "c", "a"])
        await pilot.pause()
        assert table.cursor_key == "a"
        assert [message.key for message in host.heard] == ["a"]
        table.show(["d"])
        assert table.cursor_key == "d"
        table.show([])
        await pilot.pause()
        assert table.keys == []
        assert host.heard[-1].key is None
        table.show(["x", "y"])
        assert table.cursor_key == "x"


async def test_an_empty_list_explains_what_to_do_in_wrapped_lines() -> None:
    text = " ".join(f"word-{n}" for n in range(30))
    table = RecordTable(COLUMNS, Rows(), lambda: Content(text))
    async with hosted(table):
        assert " ".join(" ".join(lines_of(table)[2:]).split()) == text
        table.move(1)
        assert table.cursor_key is None


async def test_selections_follow_their_records() -> None:
    table, _ = make(["a", "b", "c"])
    async with hosted(table) as (_, pilot):
        table.toggle_mark(["a", "c"])
        await pilot.pause()
        assert [line[1:2] for line in lines_of(table)[1:4]] == ["*", " ", "*"]
        table.show(["c", "b"])
        assert table.marked == {"c"}
        table.toggle_mark(["b", "c"])
        assert table.marked == {"b", "c"}, "what is not marked yet is marked first"
        table.toggle_mark(["b", "c"])
        assert table.marked == frozenset()


async def test_columns_are_dropped_when_space_is_short() -> None:
    table, _ = make(["pat-1"])
    async with hosted(table, size=(100, 5)) as (_, pilot):
        for width, titles in (
            (100, "state id what uses"),
            (50, "state id what uses"),
            (49, "state id uses"),
            (30, "state id uses"),
            (24, "id uses"),
        ):
            await pilot.resize_terminal(width, 5)
            await until(pilot, lambda: table.size.width == width)  # noqa: B023
            assert " ".join(lines_of(table)[0].split()) == titles, width


async def test_a_row_is_never_wider_than_the_table_and_never_cut_by_it() -> None:
    table = RecordTable(
        (Column("a", "first", 8, flex=2), Column("b", "last", 8, flex=1, align="right")),
        lambda key: {"a": Content("left"), "b": Content("right")},
        lambda: Content(""),
    )
    table.show(["x"])
    async with hosted(table, size=(20, 4)) as (_, pilot):
        for width in (20, 33, 60, 79, 200):
            await pilot.resize_terminal(width, 4)
            await until(pilot, lambda: table.size.width == width)  # noqa: B023
            header, row = lines_of(table)[:2]
            assert header.split() == ["first", "last"]
            assert row.split() == ["▌", "left", "right"]
            assert cell_len(row) <= width


async def test_long_ids_that_differ_at_the_end_stay_different() -> None:
    ids = [f"ralph-the-same-long-beginning-of-a-task-{n:08x}" for n in (1, 2)]
    table, _ = make(ids)
    async with hosted(table, size=(52, 5)):
        one, other = lines_of(table)[1:3]
        assert "0001" in one
        assert "0002" in other
        assert "…" in one


async def test_a_click_on_a_heading_sorts_by_it() -> None:
    table, _ = make(MANY)
    async with hosted(table, RecordTable.HeaderClicked) as (host, pilot):
        header = lines_of(table)[0]
        for name, title in (("state", "state"), ("title", "what"), ("uses", "uses")):
            await pilot.click(table, offset=(header.index(title), 0))
            assert host.heard[-1].column == name
        assert table.cursor == 0
        table.show(MANY, sorted_by=("uses", True))
        assert "uses ↓" in lines_of(table)[0]


async def test_a_click_selects_a_double_click_opens_and_the_wheel_keeps_the_cursor() -> None:
    table, _ = make(MANY)
    async with hosted(table, RecordTable.Chosen) as (host, pilot):
        table.move(1000)
        await pilot.pause()
        await pilot.click(table, offset=(5, 3))
        at = table.cursor_key
        assert at == MANY[1000 - 22 + 2]
        assert host.heard == []
        await pilot.click(table, offset=(5, 3), times=2)
        assert [message.key for message in host.heard] == [at]
        table.scroll_to(y=500, animate=False)
        await pilot.pause()
        assert MANY[500] in lines_of(table)[1]
        assert table.cursor_key == at
        table.move(1)
        await pilot.pause()
        assert table.scroll_offset.y > 900, "a key goes back to the cursor"
        assert table.go_to(MANY[70_000])
        await pilot.pause()
        assert MANY[70_000] in "\n".join(lines_of(table))
        assert not table.go_to("pat-none")
        assert table.cursor == 70_000


async def test_wide_characters_keep_the_columns_straight() -> None:
    texts = {"a": "日本語のタスク名がとても長いので切られる", "b": "plain", "c": "e\u0301clair 👍"}
    table = RecordTable(
        (Column("t", "task", 15), Column("n", "n", 4, align="right")),
        lambda key: {"t": Content(texts[key]), "n": Content("9")},
        lambda: Content(""),
    )
    table.show(list(texts))
    async with hosted(table, size=(40, 6)):
        ends = {cell_len(line) for line in lines_of(table)[1:4]}
        assert len(ends) == 1


async def test_a_row_of_two_lines_scrolls_and_clicks_as_one() -> None:
    keys = [f"row-{n}" for n in range(50)]
    table = RecordTable(
        COLUMNS, lambda key: {"id": Content(key)}, lambda: Content(""), below=lambda key: Content(f"below {key}")
    )
    table.show(keys)
    async with hosted(table, size=(60, 11)) as (_, pilot):
        table.space(2)
        await pilot.pause()
        lines = lines_of(table)
        assert "row-0" in lines[1] and lines[2].strip("▌ ") == "below row-0" and "row-1" in lines[3]
        assert table.page == 5
        table.move(table.page)
        await pilot.pause()
        assert "row-5" in lines_of(table)[9] and "below row-5" in lines_of(table)[10]
        await pilot.click(table, offset=(5, 8))
        assert table.cursor_key == "row-4"
        table.space(1)
        await pilot.pause()
        assert table.cursor_key == "row-4" and "row-4" in "".join(lines_of(table))


ROOMY = (
    Column("title", "what", 20, flex=1, best=30),
    Column("state", "state", 5, best=12),
    Column("uses", "uses", 6, align="right", keep=2),
)


async def test_columns_are_complete_when_there_is_space() -> None:
    table = RecordTable(ROOMY, lambda key: {}, lambda: Content(""))
    async with hosted(table, size=(20, 5)) as (_, pilot):
        for width, *cells in (
            (20, 11, 5, 0),
            (36, 20, 5, 6),
            (44, 28, 5, 6),
            (46, 30, 5, 6),
            (52, 36, 5, 6),
            (60, 37, 12, 6),
        ):
            await pilot.resize_terminal(width, 5)
            await until(pilot, lambda: table.size.width == width)  # noqa: B023
            assert [table.width_of(column) for column in ("title", "state", "uses")] == cells, width
