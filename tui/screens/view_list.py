"""The list of saved views: open, save, rename, delete."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from core.base.text import visible_line
from tui.actions import PLACES
from tui.screens.dialogs import AskLine, Dialog
from tui.state.saved_views import (
    BUILT_IN,
    LONGEST_NAME,
    MOST_VIEWS,
    SavedView,
    delete_view,
    own_views,
    rename_view,
    save_view,
)
from tui.state.user_state import UserState
from tui.widgets.line_view import fit

NAME_CELLS = 30
"""Cells of a name in the list."""


class ViewList(Dialog[SavedView | None]):
    """The user's views, then the built-in ones. Dismissed with the view to open, or None.

    Args:
        user_state: Where they are stored, for all projects.
        shown: The current list, without a name.
    """

    HELP_TITLE = "saved views"
    ABOUT = "A view is a place with its filter, order and tab. They are kept for all your projects, outside of them."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "open", tooltip="Go there, with its filter, order and tab"),
        Binding("s", "save", "save", tooltip="Keep what is shown now under a name; a name that exists is replaced"),
        Binding("r", "rename", "rename", tooltip="Give one of your own another name"),
        Binding("d", "delete", "delete", tooltip="Forget one of your own"),
        Binding("escape,q,V", "cancel", "close", tooltip="Leave everything as it is"),
        Binding("j,down", "move(1)", "down", show=False, tooltip="The next one"),
        Binding("k,up", "move(-1)", "up", show=False, tooltip="The one before"),
    ]

    def __init__(self, user_state: UserState, shown: SavedView) -> None:
        super().__init__()
        self._kept = user_state
        self._shown = shown
        self._views: tuple[SavedView, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog--wide"):
            yield Static(Content("Saved views"), classes="dialog--title")
            yield OptionList()
            yield Static(Content(""), classes="dialog--keys")

    def on_mount(self) -> None:
        self._list()

    def _list(self, name: str = "") -> None:
        self._kept.load()
        self._views = (*own_views(self._kept), *BUILT_IN)
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([view_line(view, own=view not in BUILT_IN) for view in self._views])
        options.highlighted = next((n for n, view in enumerate(self._views) if view.name == name), 0)
        self._say("")

    def _say(self, problem: str) -> None:
        keys = Content.from_markup(
            "[$accent b]enter[/] open  [$accent b]s[/] save what is shown  [$accent b]r[/] rename  "
            "[$accent b]d[/] delete  [$accent b]esc[/] close"
        )
        told = Content.styled(visible_line(problem, 200), "$warning")
        self.query_one(".dialog--keys", Static).update(told if problem else keys)

    @property
    def _chosen(self) -> SavedView:
        return self._views[self.query_one(OptionList).highlighted or 0]

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._views[event.option_index])

    def action_take(self) -> None:
        self.dismiss(self._chosen)

    def action_save(self) -> None:
        shown = self._shown

        def answered(text: str | None) -> None:
            if not text:
                return
            name = text[:LONGEST_NAME]
            view = SavedView(name, shown.place, shown.filter, shown.sort, shown.tab)
            if save_view(self._kept, view):
                self._kept.save()
                self._list(name)
            else:
                self._say(f"there are {MOST_VIEWS} views already: delete one first")

        detail = Content.assemble("It keeps ", _what(shown), ".")
        self.app.push_screen(AskLine(Content("A name for what is shown"), detail, required=True), answered)

    def action_rename(self) -> None:
        view = self._chosen
        if view in BUILT_IN:
            self._say("this one is built in: open it, and save it under a name of your own")
            return

        def answered(text: str | None) -> None:
            name = (text or "")[:LONGEST_NAME]
            if name and not rename_view(self._kept, view.name, name):
                self._say(f"there is a view called {name!r} already")
            elif name:
                self._kept.save()
                self._list(name)

        title = Content(f"Another name for {visible_line(view.name, LONGEST_NAME)}")
        self.app.push_screen(AskLine(title, _what(view), required=True, value=view.name), answered)

    def action_delete(self) -> None:
        view = self._chosen
        if view in BUILT_IN:
            self._say("this one is built in and stays")
            return
        delete_view(self._kept, view.name)
        self._kept.save()
        self._list()

    def action_move(self, rows: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if rows > 0 else options.action_cursor_up()

    def action_cancel(self) -> None:
        self.dismiss(None)


def view_line(view: SavedView, *, own: bool) -> Content:
    """One row: name, owner and content of a view."""
    name = fit(Content(visible_line(view.name, LONGEST_NAME)), NAME_CELLS)
    whose = Content.styled("yours   " if own else "built in", "$quiet")
    return Content.assemble(name, "  ", whose, "  ", _what(view))


def _what(view: SavedView) -> Content:
    """Screen, filter, order and tab in words."""
    sort = f" by {view.sort.partition(' ')[0].replace('_', ' ')}" if view.sort else ""
    tab = f", {view.tab}" if view.tab else ""
    return Content.assemble(
        (PLACES[view.place][1], "$secondary"),
        (f" {visible_line(view.filter, 200)}" if view.filter else ""),
        (visible_line(f"{sort}{tab}", 60), "$quiet"),
    )
