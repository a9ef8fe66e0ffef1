"""Base of the filtered lists that links and saved views can open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.widgets import Input

from core.base.text import capitalized
from tui.kit.actions import PLACES
from tui.kit.back_stack import FollowedLink, ListState
from tui.kit.saved_views import SavedView
from tui.screens.filtered_list import FilteredList

if TYPE_CHECKING:
    from tui.screens.base_screen import BaseScreen


class ListScreen(FilteredList):
    """A filtered list that links and saved views can open."""

    def __init__(self) -> None:
        super().__init__()
        self._pending_state: ListState | None = None
        """The state of the list to restore at the next visit, after a link led here."""

    def catch_up(self, *, anew: bool = False) -> None:
        super().catch_up(anew=anew)
        if self.is_current:
            self._restore_pending()

    def list_state(self) -> ListState:
        whole, table = self.has_class("-detail"), self.table
        return ListState(self.filter_line.text, table.cursor_key, self._tab, whole=whole, marked=table.marked)

    def follow_link(self, link: FollowedLink, show: Callable[[BaseScreen], None]) -> None:
        """Show the target of a link, and save the state of the list before and after."""
        self._restore_pending()
        link.before = self.list_state()
        self.set_class(False, "-detail")
        self.table.focus()
        show(self)
        link.after = self.list_state()
        self.refresh_frame()

    def leave_link(self, link: FollowedLink, *, back: bool) -> None:
        """Restore the list from before the link, unless the user typed a filter and did not go back."""
        if link.before is None or link.after is None:
            return
        text = self.filter_line.text if self._pending_state is None else self._pending_state.filter
        if back or text in {"", link.after.filter}:
            self._pending_state = link.before
            self._save_filter(link.before.filter)

    def _restore_pending(self) -> None:
        list_state, self._pending_state = self._pending_state, None
        if list_state is not None:
            self.restore_list(list_state)

    def restore_list(self, list_state: ListState) -> None:
        """Restore the filter, tab, cursor and focus of the list."""
        self._put_filter(list_state.filter)
        self._tab = list_state.tab
        if list_state.key is not None:
            self.table.go_to(list_state.key)
        self.set_class(list_state.whole, "-detail")
        (self.pane if list_state.whole else self.table).focus()
        self._show_details()
        self.refresh_frame()

    def can_return(self) -> bool:
        link = self.services.link
        if link is None or link.after is None or not super().can_return():
            return super().can_return()
        if self.has_class("-detail") or isinstance(self.focused, Input) or self.focused is self.pane:
            return False
        is_links_filter = self.filter_line.text in {"", link.after.filter}
        return is_links_filter and self.table.marked in (frozenset(), link.after.marked)

    def show_filter(self, text: str, key: str) -> None:
        """Apply the filter of a link without saving it, and move the cursor to a record."""
        self._put_filter(text)
        self.table.go_to(key)
        self.table.focus()

    def current_view(self) -> SavedView:
        sort = f"{self._sort[0]} {'down' if self._sort[1] else 'up'}" if self._sort is not None else ""
        tab = self.tab(self.table.cursor_key)
        return SavedView("", self.place, self.filter_line.text, sort, tab if tab != self.TABS[0] else "")

    def show_view(self, view: SavedView) -> None:
        """Apply the filter, order and tab of a saved view, with the cursor on the first row."""
        column, _, direction = view.sort.partition(" ")
        if column in dict(self.TABLE.sorts):
            self._sort_by(column, direction == "down")
        self._tab = view.tab or self._tab
        self._put_filter(view.filter)
        self._save_filter(view.filter)
        self.table.cursor = self.first_match()
        self.table.focus()
        self._show_details()
        self.refresh_frame()

    def go_to(self, key: str) -> None:
        if self.table.position(key) is None:
            self._put_filter("")
            if self.services.link is None:
                self._save_filter("")
        if not self.table.go_to(key):
            place = PLACES[self.place][1]
            self.services.say(capitalized(f"{self.named(key)} is no longer in {place}"), severity="warning")
