"""What a person sets for themselves and keeps between runs, toasts, and copying: comforts of every place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from textual.app import App
from textual.filter import LineFilter, Monochrome
from textual.notifications import Notify, SeverityLevel
from textual.theme import Theme

from core.base.text import visible_line
from tui.present.glyphs import ASCII, DRAWN, GLYPH_SETS, Glyphs
from tui.screens.base_screen import BaseScreen
from tui.state.user_state import UserState
from tui.style_sheets import StyleSheets
from tui.terminal.bell import MODES as CALLS
from tui.terminal.bell import Bell
from tui.terminal.clipboard import Copier
from tui.terminal.line_filters import AsciiFilter, NoColourFilter
from tui.themes import DEFAULT_THEME, PLAIN_THEME
from tui.widgets.record_table import COMFORTABLE

MOST_TOASTS: Final = 2
"""Toasts that are up at once."""
TOAST_LINES: Final = 2
"""Lines of one toast."""
MOST_TOAST_LINES: Final = 3
"""Lines that toasts may cover, all together: what was decided in one, and a warning."""
TOAST_FRAME: Final = 3
"""Cells of a toast that are no text."""
WORD_CELLS: Final = 10
"""Cells that a line may lose where it is broken between two words."""
TOAST_SECONDS: Final = 3.0
"""How long a toast is up; a warning twice as long."""


class BaseApp(App[None], inherit_bindings=False):
    """An app with themes, marks, density, calls, toasts and a clipboard.

    Args:
        styles: The style sheets.
        kept: What was remembered, already loaded.
        themes: Label and theme, by name.
        theme: Name of the theme to start with; by default the remembered one.
    """

    def __init__(
        self,
        styles: list[Path],
        user_state: UserState,
        themes: Mapping[str, tuple[str, Theme]],
        theme: str | None = None,
    ) -> None:
        super().__init__(css_path=[str(path) for path in styles])
        self.no_color = bool(os.environ.get("NO_COLOR"))
        self._chosen_theme = theme
        self._ascii_filter, self._no_colour_filter = AsciiFilter(), NoColourFilter()
        self.stylesheet = StyleSheets(variables=self.get_css_variables())
        self.user_state = user_state
        self.themes = themes
        self._copier = Copier(self, self.say)
        self._has_copied = False
        """Whether the last key was ctrl+c, and copied."""
        self._bell = Bell(lambda: self.user_state.get("calls", "off"), self._write, monotonic)
        for _label, known in themes.values():
            self.register_theme(known)

    def on_load(self) -> None:
        """Take the theme on before there is anything to draw: nothing is parsed for another one first."""
        name = self._chosen_theme or self.user_state.get("theme", DEFAULT_THEME)
        name = PLAIN_THEME if self.no_color else name
        self.theme = name if name in self.themes else DEFAULT_THEME

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line passes through on its way to the terminal: without colours, in ASCII, or as it is."""
        own = [self._no_colour_filter] if self.no_color else super().get_line_filters()
        filters = [one for one in own if not isinstance(one, Monochrome)]  # Textual's, which sends greys
        return [*filters, self._ascii_filter] if self.glyphs is ASCII else filters

    @property
    def glyphs(self) -> Glyphs:
        """The marks in use."""
        return GLYPH_SETS.get(self.user_state.get("glyphs"), DRAWN)

    @property
    def row_lines(self) -> int:
        """Lines of a row in every list."""
        return COMFORTABLE if self.user_state.get("density") == "comfortable" else 1

    def use_theme(self, name: str) -> None:
        """Switch to a theme and remember it."""
        self.theme = name
        self.user_state.set("theme", name)
        for place in self._places():
            place.catch_up(anew=True)

    def say(self, text: str, *, severity: SeverityLevel = "information") -> None:
        """A toast; the text may be untrusted, and is cut at what two lines hold. A new one takes the place of older
        ones, lest they bury the screen.
        """
        seconds = TOAST_SECONDS if severity == "information" else 2 * TOAST_SECONDS
        most = TOAST_LINES * max(self.size.width - TOAST_FRAME - WORD_CELLS, 1)
        self.notify(visible_line(text, most), severity=severity, timeout=seconds, markup=False)

    def on_notify(self, event: Notify) -> None:
        """Make room for a toast before it is put up: older ones stay as long as all are no more than some lines."""
        room = max(self.size.width - TOAST_FRAME, 1)
        lines = -(-len(event.notification.message) // room)
        for number, old in enumerate(reversed(list(self._notifications)), 2):
            lines += -(-len(old.message) // room)
            if number > MOST_TOASTS or lines > MOST_TOAST_LINES:
                self._unnotify(old, refresh=False)

    def copy(self, text: str) -> None:
        """Copy an untrusted text to the clipboard, and say how."""
        self._copier.copy(text)

    def action_copy_or_quit(self) -> None:
        """Copy what is selected; leave, where nothing is, or that was copied a moment ago."""
        if (text := self._copier.selected()) and not self._has_copied:
            self._has_copied = True
            self.copy(text)
        else:
            self.exit()

    def action_theme(self) -> None:
        """The next theme."""
        if self.no_color:
            self.say("NO_COLOR is set: no theme is used", severity="warning")
            return
        names = list(self.themes)
        name = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.use_theme(name)
        self.say(f"theme: {self.themes[name][0]}")

    def action_density(self) -> None:
        """Rows of one line, or of two."""
        name = "compact" if self.row_lines > 1 else "comfortable"
        self.user_state.set("density", name)
        for place in self._places():
            place.catch_up(anew=True)
        self.say(f"density: {name}")

    def action_glyphs(self) -> None:
        """Drawn marks or plain ASCII."""
        names = list(GLYPH_SETS)
        self.user_state.set("glyphs", names[(names.index(self.glyphs.name) + 1) % len(names)])
        self.say(f"marks: {self.glyphs.name}")
        for place in self._places():
            place.catch_up(anew=True)
        for widget in self.screen.walk_children(with_self=True):
            widget.refresh()

    def action_calls(self) -> None:
        """The next way of calling; it calls at once, so that one sees whether the terminal can do it."""
        names = list(CALLS)
        now = self.user_state.get("calls", "off")
        name = names[(names.index(now) + 1) % len(names)] if now in names else names[0]
        self.user_state.set("calls", name)
        self._bell.call("calls look like this")
        self.say(CALLS[name])

    def _write(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)

    def _places(self) -> list[BaseScreen]:
        return [screen for stack in self._screen_stacks.values() for screen in stack if isinstance(screen, BaseScreen)]
