"""Part of the app with the actions of every screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.records.snapshot import UNCHECKED
from tui.actions import DECIDING, action_id
from tui.state.key_queue import JumpGuard, KeyQueue
from tui.team import TeamApp

if TYPE_CHECKING:
    from textual.actions import ActionParseResult
    from textual.app import SystemCommand
    from textual.command import Provider
    from textual.dom import DOMNode
    from textual.screen import Screen

    from core.project.trust import Arrivals
    from tui.screens.trust import Choice
    from tui.state.user_state import UserState


def _palette_commands() -> type[Provider]:
    from tui.palette import PaletteCommands

    return PaletteCommands


class GlobalActionApp(TeamApp, inherit_bindings=False):
    """An app that runs the actions of every screen, or says why one is not possible now."""

    COMMANDS = {_palette_commands}
    COMMAND_PALETTE_BINDING = "f9"

    key_queue: KeyQueue

    def __init__(self, user_state: UserState, theme: str | None, clock: Callable[[], float]) -> None:
        super().__init__(user_state, theme)
        self.is_open = False  # Whether the project is open, with `engine` and `view`.
        self.jump_guard = JumpGuard(clock)
        self._keymap_problems: tuple[str, ...] = ()

    @property
    def is_counting(self) -> bool:
        return self.view.is_count_open or (self.is_open and self.engine.is_searching)

    def forget_check(self) -> None:
        """Remove what says that the files are still being checked."""
        self.remove_toasts(UNCHECKED)
        if self._front() is None and len(self.screen_stack) > 1:
            from tui.screens.base_screen import BaseScreen
            from tui.screens.help import Help, topic_of

            below, screen = self.screen_stack[-2:]
            if isinstance(screen, Help) and isinstance(below, BaseScreen):
                screen.show_topic(topic_of(below))

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, or show a toast with the reason why this is not possible now."""
        id = action_id(action) if isinstance(action, str) else ""
        screen = self._front()
        if not id or screen is None or default_namespace not in (None, self, screen):
            return await super().run_action(action, default_namespace, namespaces)
        if not self.is_open:
            return True  # a click; keys wait
        if (reason := screen.reason_against(id)) is not None:
            if id != "back" and not id.startswith("go_"):  # these need no explanation
                self.say(reason, severity="warning")
        elif id in DECIDING and self.jump_guard.blocks(self.key_queue.typed_at):
            key = self.shown_key(id)
            self.say(f"{key} ignored: this screen has just appeared; press it again", severity="warning")
        else:
            await super().run_action(action, default_namespace, namespaces)
            screen.refresh_frame()
        return True

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        from tui.screens.file_export import export_picture

        if screen := self._front():
            export_picture(screen)

    def action_views(self) -> None:
        from tui.screens.view_list import ViewList

        if screen := self._front():
            screen.ask_user(ViewList(self.user_state, screen.current_view()), self.open_view)

    def action_command_palette(self) -> None:
        from tui.palette import Palette

        if not any(isinstance(screen, Palette) for screen in self.screen_stack):
            self.push_screen(Palette(id="--command-palette"))

    action_palette = action_command_palette

    def action_help(self) -> None:
        from tui.screens.help import Help, topic_of

        if screen := self._front():
            self.push_screen(Help(topic_of(screen)))

    def action_past(self) -> None:
        from tui.screens.compare import CompareScreen

        if isinstance(self.screen, CompareScreen):
            self.pop_screen()
        else:
            self.push_screen(CompareScreen())

    def action_what_if(self) -> None:
        from tui.screens.what_if import WhatIfScreen

        self.push_screen(WhatIfScreen())

    def action_trust(self) -> None:
        """Show what the project brings from elsewhere, and carry out the choice of the user."""
        from core.project.trust import find_arrivals

        if arrivals := find_arrivals(self.project):
            self.ask_about(arrivals)
        else:
            self.say("This project is trusted, and nothing has come from elsewhere since")

    def ask_about(self, arrivals: Arrivals) -> None:
        """Ask whether agents may get what came from elsewhere."""
        from tui.screens.trust import TrustDialog, answer

        if self.project.is_readonly:
            self.say("Read-only: nothing can be decided", severity="warning")

        def carry_out(choice: Choice | None) -> None:
            if choice is not None:
                self.engine.write(partial(answer, arrivals, choice))

        self.push_screen(TrustDialog(arrivals, self.view), carry_out)

    def action_findings(self) -> None:
        from tui.present.findings import findings_lines
        from tui.screens.dialogs import FindingsDialog

        keymap = [Content.styled(visible_line(problem, 300), "$error") for problem in self._keymap_problems]
        self.push_screen(FindingsDialog([*keymap, *findings_lines(self.view)]))

    async def action_quit(self) -> None:
        """Close the front screen if it is on top of another one; quit otherwise."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.exit()

    def get_system_commands(self, screen: Screen[Any]) -> list[SystemCommand]:
        """Return none of Textual's own commands: `actions.toml` replaces them."""
        return []

    def edit_file(self, relative: str) -> None:
        """Open a project file in $EDITOR, with the terminal handed over."""
        try:
            path = self.project.project.inside(relative)
        except RalphdeckError as error:
            self.say(f"Cannot open {relative}: {error}", severity="error")
        else:
            self.edit_path(path, relative)
