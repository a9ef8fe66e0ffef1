"""The filter line and the fields of values."""

from __future__ import annotations

from textual import events
from textual.app import App
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input

from tests.tui.kit.hosting import Host, hosted, until
from tui.kit.fields import FilterLine, ValueField


async def test_every_keystroke_updates_the_filter_and_pending_ones_once() -> None:
    line = FilterLine("hint")
    async with hosted(line, FilterLine.Changed, FilterLine.Left) as (host, pilot):
        line.focus_input()
        await pilot.press("n", "u", "backspace")
        await pilot.pause()
        assert [message.text for message in host.heard] == ["n", "nu", "n"]
        await pilot.press("enter")
        assert isinstance(host.heard.pop(), FilterLine.Left)
        assert line.text == "n"
        line.text = "state:proven"
        await pilot.pause()
        assert host.heard[-1].text == "state:proven", "what the program sets is posted, too"
        line.text = ""
        line.focus_input()
        await pilot.pause()
        host.heard.clear()
        for key in "decided":
            host.post_message(events.Key(key, key))
        await until(pilot, lambda: bool(host.heard))
        assert [message.text for message in host.heard] == ["decided"]


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


def a_field() -> ValueField:
    return ValueField("half-life", Content("[b]half-life[/b]"), Content("days"), "90")


def drawn(host: App[None]) -> list[str]:
    return [strip.text.rstrip() for strip in host.screen._compositor.render_strips()]


async def test_typing_replaces_the_value_and_is_posted() -> None:
    field = a_field()
    async with hosted(field, ValueField.Changed) as (host, pilot):
        field.enter()
        await pilot.press("7", "full_stop", "5")
        assert [message.text for message in host.heard if message.text != "90"] == ["7", "7.", "7.5"]
        field.put("80")
        await pilot.press("9")
        await pilot.pause()
        assert field.text == host.heard[-1].text == "9"
        await pilot.press("backspace")
        await pilot.pause()
        assert field.text == host.heard[-1].text == ""


async def test_a_long_text_shows_its_start_unless_it_is_edited() -> None:
    field = a_field()
    async with hosted(field) as (host, pilot):
        field.enter()
        await pilot.press(*"1234567890123456789")
        await pilot.pause()
        assert "1234567" not in drawn(host)[0].partition("half-life")[2][:9]
        host.screen.set_focus(None)
        await pilot.pause()
        assert "1234567" in drawn(host)[0]
        field.enter()
        await pilot.pause()
        assert "1234567" in drawn(host)[0]
        await pilot.press("backspace")
        assert field.text == "", "all of it is selected"
        await pilot.press(*"1234567890")
        field.put("44")
        await pilot.press("7")
        assert field.text == "7"


async def test_letters_and_arrows_remain_commands() -> None:
    pressed: list[str] = []

    class Listening(Host):
        def action_note(self, key: str) -> None:
            pressed.append(key)

    field = a_field()
    host = Listening(field)
    async with host.run_test() as pilot:
        for key in ("j", "R", "space", "left", "minus", "question_mark"):
            host._bindings.key_to_bindings[key] = [Binding(key, f"note('{key}')")]
        field.enter()
        await pilot.press("j", "R", "space", "left", "minus", "question_mark")
        assert pressed == ["j", "R", "space", "left", "minus", "question_mark"]
        assert field.text == "90"


async def test_focus_and_errors_are_shown_and_markup_is_plain_text() -> None:
    field = a_field()
    async with hosted(field, ValueField.Entered, ValueField.Left) as (host, pilot):
        assert "[b]half-life[/b]" in drawn(host)[0]
        field.enter()
        await pilot.pause()
        assert field.has_class("-entered")
        field.show_state(changed=True, fault="must be [i]more[/i]")
        await pilot.pause()
        assert drawn(host)[0].startswith(" !")
        assert drawn(host)[1].strip() == "must be [i]more[/i]"
        field.show_state(changed=True, fault="")
        await pilot.pause()
        assert drawn(host)[0].startswith(" *")
        assert drawn(host)[1] == ""
        host.screen.set_focus(None)
        await pilot.pause()
        assert not field.has_class("-entered")
        assert [type(message) for message in host.heard] == [ValueField.Entered, ValueField.Left]
