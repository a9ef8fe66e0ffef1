from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.content import Content

from tests.tui.kit.hosting import hosted, lines_of, until
from tui.kit import drawing
from tui.kit.drawing import LONG, TextPane, wrap


def paragraphs(count: int, text: str = "paragraph {n}") -> list[Content]:
    return [Content(text.format(n=n)) for n in range(count)]


def test_text_is_broken_into_lines() -> None:
    rows: list[tuple[str, int, list[str]]] = [
        ("short", 10, ["short"]),
        ("aaa bbb ccc", 7, ["aaa bbb", "ccc"]),
        ("  indented text goes on", 12, ["  indented", "  text goes", "  on"]),
        ("one\n\nthree", 10, ["one", "", "three"]),
        ("x" * 20, 8, ["x" * 8, "x" * 8, "x" * 4]),
        ("日本語日本語", 7, ["日本語", "日本語"]),
        ("\tx\ty", 20, ["    x   y"]),
        ("", 5, [""]),
        (" \N{CJK RADICAL REPEAT}", 2, ["", "\N{CJK RADICAL REPEAT}"]),
    ]
    for text, width, expected in rows:
        assert [line.plain for line in wrap([Content(text)], width)] == expected, text


def test_every_line_of_a_marked_paragraph_is_marked() -> None:
    marks = [Content("+ "), Content("  ")]
    lines = wrap([Content("  aaa bbb ccc"), Content("ddd eee")], 11, marks)
    assert [line.plain for line in lines] == ["+   aaa bbb", "+   ccc", "  ddd eee"]


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Cn"]), max_size=200), st.integers(2, 40)
)
@settings(max_examples=100)
def test_no_line_is_wider_than_the_pane_and_no_word_is_lost(text: str, width: int) -> None:
    lines = wrap([Content(text)], width)
    assert all(line.cell_length <= width for line in lines)
    assert "".join("".join(line.plain for line in lines).split()) == "".join(text.split())


async def test_text_is_wrapped_to_the_pane_and_again_when_it_changes_size() -> None:
    pane = TextPane()
    async with hosted(pane, size=(40, 10)) as (_, pilot):
        pane.show([Content("word " * 40)])
        await pilot.pause()
        assert len([line for line in lines_of(pane) if line]) == 6
        await pilot.resize_terminal(80, 10)
        await until(pilot, lambda: len([line for line in lines_of(pane) if line]) == 3)
        pane.show([Content("nine char " * 100)])
        await pilot.pause()
        assert pane.show_vertical_scrollbar
        assert not any("…" in line for line in lines_of(pane)), "not cut when the scrollbar appears"


async def test_live_text_keeps_the_scroll_position_and_shorter_text_leaves_no_remains() -> None:
    pane = TextPane()
    async with hosted(pane, size=(40, 10)) as (_, pilot):
        pane.show(paragraphs(100))
        await pilot.pause()
        pane.move(30)
        await pilot.pause()
        for count, top, first in ((101, False, 30), (3, False, 0), (100, False, 0), (102, True, 0)):
            pane.show(paragraphs(count), top=top)
            await pilot.pause()
            assert lines_of(pane)[0].strip() == f"paragraph {first}"
        pane.move(90)
        await pilot.pause()
        pane.show(paragraphs(102), top=True)
        await pilot.pause()
        assert lines_of(pane)[0].strip() == "paragraph 0"


async def test_a_change_of_style_only_is_drawn() -> None:
    pane = TextPane()
    async with hosted(pane, size=(40, 4)) as (_, pilot):
        pane.show([Content.styled("same", "$error")])
        await pilot.pause()
        red = list(pane.render_line(0))
        pane.show([Content.styled("same", "$success")])
        await pilot.pause()
        assert list(pane.render_line(0)) != red


async def test_scrolling_reaches_hidden_paragraphs_and_keeps_visible_ones() -> None:
    pane = TextPane()
    async with hosted(pane, size=(40, 10)) as (_, pilot):
        pane.show([Content("word " * 15)] * 20)
        await pilot.pause()
        pane.reach(15)
        await pilot.pause()
        assert pane.scroll_offset.y == 44
        pane.reach(16)
        await pilot.pause()
        assert pane.scroll_offset.y == 44


async def test_long_text_is_wrapped_outside_of_the_ui_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    real = drawing.wrap

    def watched(part: list[Content], width: int, marks: list[Content]) -> list[Content]:
        threads.add(threading.current_thread().name)
        return real(part, width, marks)

    monkeypatch.setattr(drawing, "wrap", watched)
    pane = TextPane()
    async with hosted(pane, size=(60, 10)) as (_, pilot):
        threads.clear()
        pane.show(paragraphs(20_000, "line {n} with some words that go on and on until it has to be broken somewhere"))
        assert threads == set()
        await until(pilot, lambda: bool(lines_of(pane)[0].strip()))
        assert lines_of(pane)[0].strip().startswith("line 0")
        assert threading.current_thread().name not in threads
        pane.move(10**9)
        await pilot.pause()
        assert "somewhere" in lines_of(pane)[-1]


async def test_a_result_for_an_outdated_text_is_dropped() -> None:
    pane = TextPane()
    async with hosted(pane, size=(60, 10)) as (host, pilot):
        pane.show([Content("x " * LONG)])
        pane.show([Content("new text")])
        await until(pilot, lambda: all(worker.is_finished for worker in host.workers))
        assert [line.strip() for line in lines_of(pane) if line] == ["new text"]
