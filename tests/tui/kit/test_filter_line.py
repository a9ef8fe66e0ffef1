from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widgets import Input

from tests.tui.kit.hosting import hosted, until
from tui.kit.filter_line import FilterLine


async def test_every_keystroke_updates_the_filter() -> None:
    line = FilterLine("hint")
    async with hosted(line, FilterLine.Changed, FilterLine.Left) as (host, pilot):
        line.focus_input()
        await pilot.press("n", "u", "backspace")
        await pilot.pause()
        assert [message.text for message in host.heard] == ["n", "nu", "n"]
        await pilot.press("enter")
        assert isinstance(host.heard[-1], FilterLine.Left)
        assert line.text == "n"


async def test_pending_keys_update_the_filter_once() -> None:
    line = FilterLine("hint")
    async with hosted(line, FilterLine.Changed) as (host, pilot):
        line.focus_input()
        await pilot.pause()
        for key in "decided":
            host.post_message(events.Key(key, key))
        await until(pilot, lambda: bool(host.heard))
        assert [message.text for message in host.heard] == ["decided"]


async def test_a_filter_set_by_the_program_is_posted_too() -> None:
    line = FilterLine("hint")
    async with hosted(line, FilterLine.Changed) as (host, pilot):
        line.text = "state:proven"
        await pilot.pause()
        assert host.heard[-1].text == "state:proven"


async def test_the_filter_shows_a_count_and_plain_text() -> None:
    line = FilterLine("[red]hint[/]")
    async with hosted(line) as (host, pilot):
        line.count(Content("[b]12[/b] of 41"))
        await pilot.pause()
        drawn = "\n".join(strip.text for strip in host.screen._compositor.render_strips())
        assert "[b]12[/b] of 41" in drawn
        assert "[red]hint[/]" in drawn
        line.focus_input()
        assert isinstance(host.focused, Input)
