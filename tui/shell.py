"""The app around the project: themes, messages, clipboard, editor, navigation."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import shlex
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, RenderableType
from rich.text import Text
from textual.app import ScreenStackError, SuspendNotSupported
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter, Monochrome

from core.base.text import visible, visible_line
from tui.kit.actions import ACTIONS, key_name
from tui.kit.bars import KeyLine, Notice
from tui.kit.looks import (
    ASCII,
    DEFAULT_THEME,
    DRAWN,
    GLYPH_SETS,
    PLAIN_THEME,
    STYLES,
    AsciiFilter,
    Glyphs,
    NoColourFilter,
    StyleSheets,
    load_themes,
)
from tui.kit.record_table import COMFORTABLE
from tui.kit.terminal import MODES as CALLS
from tui.kit.terminal import Bell, Copier, JumpGuard, ResilientDriver
from tui.kit.textual_private import HookedApp
from tui.kit.user_state import FollowedLink
from tui.screens.base_screen import BaseScreen

if TYPE_CHECKING:
    from textual.app import SystemCommand
    from textual.command import Provider
    from textual.driver import Driver
    from textual.notifications import SeverityLevel
    from textual.screen import Screen
    from textual.theme import Theme

    from tui.kit.user_state import SavedView, UserState

log = logging.getLogger("ralphdeck")

MOST_NOTICES: Final = 2  # notices in the footer at once: one decision and one warning
KEPT_NOTICES: Final = 20  # notices of this session that the dialog of the findings lists
NOTICE_CHARS: Final = 400
MOST_TYPED: Final = 40_000  # Bytes of an edited text that are read back.
NOTICE_SECONDS: Final = 3.0  # seconds that a notice stays; a warning stays twice as long


def _palette_commands() -> type[Provider]:
    from tui.palette import PaletteCommands

    return PaletteCommands


class Shell(HookedApp, inherit_bindings=False):
    """An app with themes, glyphs, row height, notices, clipboard and linked screens.

    `user_state` is loaded; `theme` is the first one, by default the last used; `clock` returns monotonic seconds.
    """

    COMMANDS = {_palette_commands}
    COMMAND_PALETTE_BINDING = "f9"

    def __init__(self, user_state: UserState, theme: str | None, clock: Callable[[], float]) -> None:
        self.themes: Mapping[str, tuple[str, Theme]] = load_themes()
        super().__init__(css_path=[str(path) for path in sorted(STYLES.glob("*.tcss"))])
        self.no_color = bool(os.environ.get("NO_COLOR"))
        self._chosen_theme = theme
        self._ascii_filter, self._no_colour_filter = AsciiFilter(), NoColourFilter()
        self.stylesheet = StyleSheets(variables=self.get_css_variables())
        self.user_state = user_state
        self.notices: tuple[Notice, ...] = ()  # those in the footer, the newest last
        self.past_notices: deque[Notice] = deque(maxlen=KEPT_NOTICES)
        self._copier = Copier(self, self.say)
        self._has_copied = False
        """Whether the last key was ctrl+c, and copied."""
        self._bell = Bell(lambda: self.user_state.get("calls", "off"), self._write, monotonic)
        self._keys = {action.id: action.keys for action in ACTIONS}
        self.jump_guard = JumpGuard(clock)
        self._links: list[FollowedLink] = []
        """Links that led to the front screen, the newest last."""
        for _label, known in self.themes.values():
            self.register_theme(known)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return defaults of ralphdeck's own theme variables."""
        return self.themes[DEFAULT_THEME][1].variables

    async def run_async(self, **how: Any) -> None:
        """Run the app; a signal ends it cleanly, even before the first frame."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, partial(self.exit, return_code=128 + number))
        await super().run_async(**how)

    def get_driver_class(self) -> type[Driver]:
        """Return a terminal driver that tolerates invalid bytes and a closed terminal."""
        found = super().get_driver_class()
        return ResilientDriver if found is LinuxDriver else found

    def handle_error(self, error: Exception) -> None:
        if self.is_ending:  # a half-composed screen while the app ends: keep the exit code
            log.warning("while leaving: %s", visible("".join(traceback.format_exception(error))))
        else:
            super().handle_error(error)

    def panic(self, *renderables: RenderableType) -> None:
        """Exit after an unexpected error; print and log its text with safe characters."""
        if sys.exc_info()[0] is None:
            plain = Console(file=io.StringIO(), width=100, color_system=None)
            with plain.capture() as capture:
                plain.print(*renderables)
            text = visible(capture.get())
        else:
            text = visible(traceback.format_exc())
        log.error("fatal: %s", text)
        self.fail_with(1)
        super().panic(Text(text))

    def on_load(self) -> None:
        """Set the theme before the first frame, so that only this theme is parsed."""
        name = self._chosen_theme or self.user_state.get("theme", DEFAULT_THEME)
        name = PLAIN_THEME if self.no_color else name
        self.theme = name if name in self.themes else DEFAULT_THEME

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the line filters: one removes colours, one replaces non-ASCII glyphs."""
        own = [self._no_colour_filter] if self.no_color else super().get_line_filters()
        filters = [one for one in own if not isinstance(one, Monochrome)]  # Textual's own filter would produce greys
        return [*filters, self._ascii_filter] if self.glyphs is ASCII else filters

    @property
    def glyphs(self) -> Glyphs:
        return GLYPH_SETS.get(self.user_state.get("glyphs"), DRAWN)

    @property
    def row_lines(self) -> int:
        """Number of lines of a row in every list: 1 or 2."""
        return COMFORTABLE if self.user_state.get("density") == "comfortable" else 1

    def keys_of(self, action: str) -> str:
        """Return the keys of an action as comma-separated Textual names."""
        return self._keys[action]

    def shown_key(self, action: str) -> str:
        return key_name(self._keys[action].split(",")[0])

    def use_theme(self, name: str) -> None:
        self.theme = name
        self.user_state.set("theme", name)
        self._redraw_screens()

    def say(self, text: str, *, severity: SeverityLevel = "information") -> None:
        """Show a notice in the footer's line for some seconds; the text may be untrusted."""
        notice = Notice(visible_line(text, NOTICE_CHARS), severity)
        self.past_notices.append(notice)
        others = [other for other in self.notices if other.text != notice.text]
        self._show_notices((*others[1 - MOST_NOTICES :], notice))
        seconds = NOTICE_SECONDS if severity == "information" else 2 * NOTICE_SECONDS
        self.set_timer(seconds, partial(self._forget, notice))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show what Textual reports where all notices are shown, not over the content."""
        self.say(f"{title}: {message}" if title else message, severity=severity)

    def clear_notifications(self) -> None:
        self._show_notices(())

    def forget_notice(self, text: str) -> None:
        """Remove the notice with exactly this text, if it is shown."""
        self._show_notices(tuple(notice for notice in self.notices if notice.text != text))

    def _forget(self, notice: Notice) -> None:
        """Remove a notice; one with the same text that was shown later stays."""
        self._show_notices(tuple(other for other in self.notices if other is not notice))

    def _show_notices(self, notices: tuple[Notice, ...]) -> None:
        self.notices = notices
        with contextlib.suppress(ScreenStackError):  # at the start and end of the app
            for screen in self.screen_stack:
                for line in screen.query(KeyLine):
                    line.say(notices)

    def copy(self, text: str) -> None:
        self._copier.copy(text)

    def action_copy_or_quit(self) -> None:
        """Copy the selection; quit if there is none or it was just copied."""
        if (text := self._copier.selected()) and not self._has_copied:
            self._has_copied = True
            self.copy(text)
        else:
            self.exit()

    def edit_text(self, text: str) -> str | None:
        """Let the user edit a text in $EDITOR; returns None if that failed.

        The temporary file is outside the project, private to the user, and removed afterwards.
        """
        try:
            with TemporaryDirectory(prefix="ralphdeck-") as folder:
                path = Path(folder) / "text.md"
                path.write_bytes(text.encode("utf-8", "replace"))
                if not self.edit_path(path, "the text"):
                    return None
                with path.open("rb") as file:
                    return file.read(MOST_TYPED).decode("utf-8", "replace").strip()
        except OSError as error:
            self.say(f"Cannot edit the text: {error}", severity="error")
            return None

    def edit_path(self, path: Path, name: str) -> bool:
        """Open a file in $EDITOR in the same terminal; returns whether that succeeded."""
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        if not command:
            self.say("Set $EDITOR to open files", severity="warning")
            return False
        try:
            with self.suspend():
                done = subprocess.run([*command, str(path)], check=False)  # argv list, never a shell
        except (OSError, SuspendNotSupported) as error:
            self.say(f"Cannot open {name}: {error}", severity="error")
            return False
        return done.returncode == 0

    def action_theme(self) -> None:
        if self.no_color:
            self.say("NO_COLOR is set: themes are disabled", severity="warning")
            return
        name = _next_name(self.theme, self.themes)
        self.use_theme(name)
        self.say(f"Theme: {self.themes[name][0]}")

    def action_density(self) -> None:
        name = "compact" if self.row_lines > 1 else "comfortable"
        self.user_state.set("density", name)
        self._redraw_screens()
        self.say(f"Rows: {name}")

    def action_glyphs(self) -> None:
        self.user_state.set("glyphs", _next_name(self.glyphs.name, GLYPH_SETS))
        self.say(f"Glyphs: {self.glyphs.name}")
        self._redraw_screens()
        for widget in self.screen.walk_children(with_self=True):
            widget.refresh()

    def action_calls(self) -> None:
        """Switch to the next notification method and send a sample notification."""
        name = _next_name(self.user_state.get("calls", "off"), CALLS)
        self.user_state.set("calls", name)
        self._bell.call("sample notification")
        self.say(CALLS[name])

    # The way between screens

    def open_record(self, place: str, key: str, *, tab: str = "") -> None:
        """Go to a screen, with the cursor on a record and one tab of its details."""
        from tui.screens.list_screen import ListScreen

        def show(screen: BaseScreen) -> None:
            screen.go_to(key)
            if isinstance(screen, ListScreen) and tab:
                screen.show_tab(screen.TABS.index(tab))

        self._lead(place, show)

    def open_filtered(self, place: str, text: str, key: str) -> None:
        """Go to a list with a temporary filter, with the cursor on a record."""
        from tui.screens.list_screen import ListScreen

        def show(screen: BaseScreen) -> None:
            if isinstance(screen, ListScreen):
                screen.show_filter(text, key)

        self._lead(place, show)

    def open_place(self, place: str, text: str = "") -> None:
        """Go to a screen, from which `back` returns, with a temporary filter if `text`."""
        if text:
            self.open_filtered(place, text, "")
        else:
            self._lead(place, lambda screen: None)

    def _lead(self, place: str, show: Callable[[BaseScreen], None]) -> None:
        start, front = self.current_mode, self.screen
        link = None
        if start != place:
            link = FollowedLink(start, place, front.restorer() if isinstance(front, BaseScreen) else None)
            self._links.append(link)
        self._show(place)
        screen = self.screen

        def follow() -> None:
            if not isinstance(screen, BaseScreen) or (link is not None and link not in self._links):
                return  # the user has left the screen meanwhile
            if link is None:
                show(screen)
            else:
                screen.follow_link(link, show)

        self.call_after_refresh(follow)

    @property
    def link(self) -> FollowedLink | None:
        """The link that led to the front screen, if any."""
        return self._links[-1] if self._links else None

    def go_back(self) -> None:
        """Go back to where the last link was followed, and restore both screens."""
        link = self._links.pop()
        self._leave(link, back=True)
        self._show(link.start)
        if link.restorer is not None:
            self.push_screen(link.restorer())

    def _leave(self, link: FollowedLink, *, back: bool) -> None:
        for stack in self.stacks():
            if stack and isinstance(stack[0], BaseScreen) and stack[0].place == link.place:
                stack[0].leave_link(link, back=back)

    def open_view(self, view: SavedView) -> None:
        self.go(view.place)
        screen = self.screen
        if isinstance(screen, BaseScreen):
            self.call_after_refresh(screen.show_view, view)

    def action_go(self, place: str) -> None:
        self.go(place)

    def go(self, place: str) -> None:
        """Switch to a screen; close the screens on top and forget the followed links."""
        while self._links:
            self._leave(self._links.pop(), back=False)
        self._show(place)

    def _show(self, place: str) -> None:
        before = self.screen
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.switch_mode(place)
        if self.screen is not before:
            self.jump_guard.arm()
            self.call_after_refresh(self.jump_guard.arm)  # the user has seen the screen only when it is drawn

    def _front(self) -> BaseScreen | None:
        """Return the front screen; None if a dialog is in front, or at start and end."""
        try:
            screen = self.screen
        except ScreenStackError:
            return None
        return screen if isinstance(screen, BaseScreen) and screen.is_composed else None

    # Actions of every screen

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        if screen := self._front():
            screen.export_picture()

    def action_views(self) -> None:
        from tui.screens.dialogs import ViewList

        if screen := self._front():
            screen.ask_user(ViewList(self.user_state, screen.current_view()), self.open_view)

    def action_command_palette(self) -> None:
        from tui.palette import Palette

        if not any(isinstance(screen, Palette) for screen in self.screen_stack):
            self.push_screen(Palette(id="--command-palette"))

    action_palette = action_command_palette

    def action_help(self) -> None:
        from tui.screens.dialogs import Help
        from tui.screens.help import topic_of

        if screen := self._front():
            self.push_screen(Help(topic_of(screen)))

    def action_past(self) -> None:
        from tui.screens.history import CompareScreen

        if isinstance(self.screen, CompareScreen):
            self.pop_screen()
        else:
            self.push_screen(CompareScreen())

    def action_what_if(self) -> None:
        from tui.screens.history import WhatIfScreen

        self.push_screen(WhatIfScreen())

    async def action_quit(self) -> None:
        """Close the front screen if it is on top of another one; quit otherwise."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.exit()

    def get_system_commands(self, screen: Screen[Any]) -> list[SystemCommand]:
        """Return none of Textual's own commands: `actions.toml` replaces them."""
        return []

    def _write(self, text: str) -> None:
        if self.terminal is not None:
            self.terminal.write(text)

    def _places(self) -> list[BaseScreen]:
        return [screen for stack in self.stacks() for screen in stack if isinstance(screen, BaseScreen)]

    def _redraw_screens(self) -> None:
        for place in self._places():
            place.catch_up(anew=True)


def _next_name(name: str, names: Iterable[str]) -> str:
    """Return the name after `name`, in a cycle; the first one if `name` is unknown."""
    found = list(names)
    return found[(found.index(name) + 1) % len(found)] if name in found else found[0]
