from __future__ import annotations

import pytest
from textual.content import Content

from tests.tui.kit.hosting import hosted, lines_of, until
from tui.kit.bars import Item, ItemLine, KeyLine, Notice, TabLine


def items(*texts: str) -> list[Item]:
    return [Item(Content(text), text) for text in texts]


async def test_bar_items_are_aligned_left_and_right() -> None:
    line = ItemLine()
    line.show(items("one", "two"), items("right"))
    async with hosted(line, size=(40, 3)):
        assert lines_of(line) == [" one  two" + " " * 25 + "right"]


async def test_items_that_do_not_fit_are_dropped_from_the_end_but_help_stays() -> None:
    line = ItemLine()
    line.show(items("first", "second", "third"), items("undo something", "help"))
    async with hosted(line, size=(30, 3)) as (_, pilot):
        assert lines_of(line) == [" first   undo something  help"]
        await pilot.resize_terminal(16, 3)
        await until(pilot, lambda: lines_of(line)[0].split() == ["first", "help"])


async def test_a_line_is_never_wider_than_the_screen() -> None:
    line = ItemLine()
    line.show(items("a" * 50, "b" * 50), items("c" * 50))
    async with hosted(line, size=(30, 3)):
        assert line.render_line(0).cell_length == 30


async def test_a_click_on_an_item_posts_its_value() -> None:
    line = ItemLine()
    line.show([*items("one", "two"), Item(Content("plain"))], items("right"))
    async with hosted(line, ItemLine.Clicked, size=(40, 3)) as (host, pilot):
        text = lines_of(line)[0]
        for name in ("one", "two", "right"):
            await pilot.click(line, offset=(text.index(name), 0))
            await pilot.click(line, offset=(text.index(name) + len(name) - 1, 0))
        await pilot.click(line, offset=(text.index("plain"), 0))
        await pilot.click(line, offset=(30, 0))
        assert [message.value for message in host.heard] == ["one", "one", "two", "two", "right", "right"]


async def test_notices_take_at_most_half_of_the_line_or_what_keys_leave_warnings_first() -> None:
    line = KeyLine()
    line.show(items("a yes", "x no", "n later"), items("? help"))
    async with hosted(line, KeyLine.Clicked, size=(60, 3)) as (host, pilot):
        line.say((Notice("refused", "warning"), Notice("written", "information")))
        await until(pilot, lambda: lines_of(line)[0].startswith(" refused |  written |  a yes  x no"))
        assert lines_of(line)[0].endswith("? help")
        line.say((Notice("written", "information"), Notice("long " * 20, "error")))
        await until(pilot, lambda: lines_of(line)[0].startswith(" long long long long long"))
        assert 25 < lines_of(line)[0].index("…") < 30 and "written" not in lines_of(line)[0]
        assert " a yes  x no " in lines_of(line)[0] and lines_of(line)[0].endswith("? help")
        await pilot.click(line, offset=(3, 0))
        assert [message.value for message in host.heard] == ["findings"]
        line.show(items("a yes"), items("? help"))
        await until(pilot, lambda: lines_of(line)[0].index("…") > 35)
        assert lines_of(line)[0].endswith("? help")
        line.say(())
        await until(pilot, lambda: lines_of(line)[0].startswith(" a yes "))


@pytest.mark.slow
async def test_a_hidden_item_cannot_be_clicked() -> None:
    line = ItemLine()
    line.show(items("first", "second", "third"))
    async with hosted(line, ItemLine.Clicked, size=(18, 3)) as (host, pilot):
        for x in range(18):
            await pilot.click(line, offset=(x, 0))
        assert {message.value for message in host.heard} == {"first", "second"}


async def test_tabs_show_the_active_one_and_a_note() -> None:
    line = TabLine()
    async with hosted(line, ItemLine.Clicked, size=(60, 4)) as (host, pilot):
        line.show_tabs(["Now", "Files"], 1, Content("note"))
        await pilot.pause()
        drawn = [segment for segment in line.render_line(0) if segment.text == "Files"]
        assert drawn[0].style is not None
        assert drawn[0].style.underline
        assert "".join(s.text for s in line.render_line(0)).endswith("note ")
        await pilot.click(line, offset=(2, 1))
        assert [message.value for message in host.heard] == ["0"]
