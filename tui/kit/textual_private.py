"""Private names of Textual that ralphdeck uses; the tests check each name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any

from textual._xterm_parser import XTermParser as XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.keys import _character_to_key

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.css.stylesheet import Stylesheet
    from textual.driver import Driver
    from textual.screen import Screen
    from textual.style import Style
    from textual.widget import Widget


class HookedApp(App[None], inherit_bindings=False):
    """An app that a subclass can end in its own way; knows its driver and screens."""

    def handle_error(self, error: Exception) -> None:
        """End the app because of an unexpected error."""
        super()._handle_exception(error)

    def _handle_exception(self, error: Exception) -> None:
        self.handle_error(error)

    def _fatal_error(self) -> None:  # Textual's own prints local variables, which may be secret
        self.panic()

    @property
    def is_ending(self) -> bool:
        return self._exit

    @property
    def terminal(self) -> Driver | None:
        """The driver of the terminal, None before the start."""
        return self._driver

    def fail_with(self, code: int) -> None:
        """Set the exit code of the process."""
        self._return_code = code

    def stacks(self) -> Iterable[list[Screen[Any]]]:
        """Return the screens of each mode that was shown, the front one last."""
        return self._screen_stacks.values()


class HookedDriver(LinuxDriver):
    """A driver of a terminal whose file can be replaced."""

    @property
    def file(self) -> IO[str]:
        assert self._file is not None
        return self._file

    @file.setter
    def file(self, file: Any) -> None:
        self._file = file

    @property
    def is_debugged(self) -> bool:
        return self._debug


def key_of_character(character: str) -> str:
    """Return Textual's name of the key that types a character."""
    return _character_to_key(character)


def bindings_of_screen(screen: Screen[Any]) -> Iterable[Binding]:
    """Return the bindings of a screen, without those of its widgets and of the app."""
    return [binding for bindings in screen._bindings.key_to_bindings.values() for binding in bindings]


def style_parser(widget: Widget) -> Callable[[str | Style], Style]:
    """Return a parser of styles such as `$accent bold` with the theme of a widget."""
    return widget._get_style


def variables_of(sheet: Stylesheet) -> dict[str, str]:
    """Return the theme variables that a style sheet was parsed with."""
    return sheet._variables
