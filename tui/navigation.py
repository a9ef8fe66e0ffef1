"""Part of the app that switches screens, follows links and goes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ScreenStackError

from core.base.text import visible_line
from tui.base_app import BaseApp
from tui.screens.base_screen import BaseScreen
from tui.state.back_stack import FollowedLink

if TYPE_CHECKING:
    from core.state.project_state import ProjectState
    from tui.state.key_queue import JumpGuard
    from tui.state.saved_views import SavedView
    from tui.state.user_state import UserState


class NavigationApp(BaseApp, inherit_bindings=False):
    """An app whose screens link to each other's records."""

    view: ProjectState
    jump_guard: JumpGuard

    def __init__(self, user_state: UserState, theme: str | None) -> None:
        super().__init__(user_state, theme)
        self._links: list[FollowedLink] = []
        """Links that led to the front screen, the newest last."""

    def open_record(self, place: str, key: str, *, tab: str = "") -> None:
        from tui.screens.list_screen import ListScreen

        def show(screen: BaseScreen) -> None:
            screen.go_to(key)
            if isinstance(screen, ListScreen) and tab:
                screen.show_tab(screen.TABS.index(tab))

        self._lead(place, show)

    def open_filtered(self, place: str, text: str, key: str) -> None:
        from tui.screens.list_screen import ListScreen

        def show(screen: BaseScreen) -> None:
            if isinstance(screen, ListScreen):
                screen.show_filter(text, key)

        self._lead(place, show)

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
        return self._links[-1] if self._links else None

    def go_back(self) -> None:
        """Go back to where the last link was followed, and restore both screens."""
        link = self._links.pop()
        self._leave(link, back=True)
        self._show(link.start)
        if link.restorer is not None:
            self.push_screen(link.restorer())

    def _leave(self, link: FollowedLink, *, back: bool) -> None:
        stack = self._screen_stacks.get(link.place)
        if stack and isinstance(stack[0], BaseScreen):
            stack[0].leave_link(link, back=back)

    def open_view(self, view: SavedView) -> None:
        self.go(view.place)
        screen = self.screen
        if isinstance(screen, BaseScreen):
            self.call_after_refresh(screen.show_view, view)

    def preview_loop(self, loop_id: str) -> None:
        self._preview(self.view.loop(loop_id).task)

    def preview_pattern(self, pattern_id: str) -> None:
        pattern = self.view.pattern(pattern_id)
        self._preview(visible_line(f"{pattern.title} {' '.join(pattern.tags)}", 200), pattern_id)

    def _preview(self, task: str, pattern_id: str = "") -> None:
        from tui.screens.context import ContextScreen

        def show(screen: BaseScreen) -> None:
            if isinstance(screen, ContextScreen):
                screen.preview(task, pattern_id)

        self._lead("context", show)

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
        self.user_state.set_here("place", place)
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
