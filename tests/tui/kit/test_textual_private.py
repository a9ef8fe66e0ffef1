"""Textual has the private names that `tui/kit/textual_private.py` uses, and they do what is expected of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Static

from tests.tui.kit.hosting import hosted
from tui.kit.looks import StyleSheets
from tui.kit.textual_private import (
    HookedApp,
    HookedDriver,
    XTermParser,
    bindings_of_screen,
    key_of_character,
    style_parser,
    variables_of,
)

TUI = Path(__file__).parents[3] / "tui"


def test_the_parser_reads_keys() -> None:
    assert [event.key for event in XTermParser(False).feed("a\x1b[A") if isinstance(event, Key)] == ["a", "up"]


def test_the_file_of_the_driver_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(driver: Any, *_: Any) -> None:
        driver._file, driver._debug = io.StringIO(), True

    monkeypatch.setattr(LinuxDriver, "__init__", start)
    driver, file = HookedDriver(HookedApp()), io.StringIO()
    driver.file = file
    driver.write = driver.file.write  # type: ignore[method-assign]
    driver.write("text")
    assert file.getvalue() == "text" and driver.is_debugged


def test_a_character_has_the_name_of_its_key() -> None:
    assert [key_of_character(sign) for sign in "/a+"] == ["slash", "a", "plus"]


def test_the_bindings_of_a_screen_are_its_own() -> None:
    class Bound(Screen[None], inherit_bindings=False):
        BINDINGS = [Binding("x,y", "leave", "leave")]

    assert [(one.key, one.action) for one in bindings_of_screen(Bound())] == [("x", "leave"), ("y", "leave")]


async def test_styles_are_read_with_the_theme_of_a_widget() -> None:
    async with hosted(widget := Static("text")):
        parsed = style_parser(widget)("$accent bold")
        assert parsed.bold and parsed.foreground is not None
        assert style_parser(widget)(parsed) == parsed
        assert isinstance(parsed, Style)


def test_a_style_sheet_knows_its_variables() -> None:
    assert variables_of(StyleSheets(variables={"quiet": "red"})) == {"quiet": "red"}


async def test_an_app_knows_its_screens_its_driver_and_its_end() -> None:
    app = HookedApp()
    async with app.run_test():
        await app.push_screen(Screen[None]())
        assert [len(stack) for stack in app.stacks()] == [2]
        endings = [app.is_ending]
        app.exit(return_code=0)
        endings.append(app.is_ending)
        assert app.terminal is not None and endings == [False, True]
    app.fail_with(3)
    assert app.return_code == 3


async def test_an_app_handles_an_error_of_a_message_itself() -> None:
    class Failing(HookedApp, inherit_bindings=False):
        handled: Exception | None = None

        def on_key(self) -> None:
            raise ValueError("wrong")

        def handle_error(self, error: Exception) -> None:
            self.handled = error
            super().handle_error(error)

    app = Failing()
    with pytest.raises(ValueError, match="wrong"):
        async with app.run_test() as pilot:
            await pilot.press("a")
    assert isinstance(app.handled, ValueError)


async def test_an_error_without_a_text_of_its_own_ends_the_app_with_a_panic() -> None:
    class Failing(HookedApp, inherit_bindings=False):
        panicked = False

        def panic(self, *_: Any) -> None:
            self.panicked = True
            self.exit()

    app = Failing()
    with pytest.raises(ValueError, match="wrong"):
        async with app.run_test() as pilot:
            app.handle_error(ValueError("wrong"))
            await pilot.pause()
    assert app.panicked


def test_no_other_file_imports_private_names_of_textual() -> None:
    for file in TUI.rglob("*.py"):
        text = file.read_text()
        is_private = any("textual._" in line or "import _" in line for line in text.splitlines() if "textual" in line)
        assert file.name == "textual_private.py" or not is_private, file
