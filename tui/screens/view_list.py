"""Dialog that opens, saves, renames and deletes saved views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList

from core.base.errors import BadInput, Unwritable
from core.base.text import visible_line
from tui.kit.actions import PLACES
from tui.kit.drawing import fit
from tui.kit.saved_views import (
    BUILT_IN,
    LONGEST_NAME,
    SavedView,
    delete_view,
    order_text,
    own_views,
    rename_view,
    save_view,
)
from tui.screens.dialogs import OPTION_MOVES, AskLine, Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui.kit.user_state import UserState

NAME_CELLS: Final = 30  # cells of a name in the list


class ViewList(Dialog[SavedView | None]):
    """Lists own and built-in views. The result is the view to open, or None. `shown` is the current list."""

    HELP_TITLE = "saved views"
    ABOUT = "A view is a screen with its filter, order and tab. Views are stored per user, for all projects."
    STYLE = "dialog--wide"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "open", tooltip="Open the screen with its filter, order and tab"),
        Binding("s", "save", "save current", tooltip="Save the current list, replacing a view of that name"),
        Binding("r", "rename", "rename", tooltip="Rename one of your views"),
        Binding("d", "delete", "delete", tooltip="Delete one of your views"),
        Binding("escape,q,V", "cancel", "close", tooltip="Change nothing"),
        *OPTION_MOVES,
    ]

    def __init__(self, user_state: UserState, shown: SavedView) -> None:
        super().__init__(Content("Saved views"))
        self._user_state = user_state
        self._shown = shown
        self._views: tuple[SavedView, ...] = ()

    def compose_body(self) -> ComposeResult:
        yield OptionList()

    def on_mount(self) -> None:
        self._list()

    def _list(self, name: str = "") -> None:
        self._user_state.load()
        self._views = (*own_views(self._user_state), *BUILT_IN)
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([view_line(view, own=view not in BUILT_IN) for view in self._views])
        options.highlighted = next((n for n, view in enumerate(self._views) if view.name == name), 0)
        self.show_keys()

    @property
    def _chosen(self) -> SavedView:
        return self._views[self.query_one(OptionList).highlighted or 0]

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._views[event.option_index])

    def action_take(self) -> None:
        self.dismiss(self._chosen)

    def action_save(self) -> None:
        def answered(text: str | None) -> None:
            name = (text or "")[:LONGEST_NAME]
            if name:
                with self._refusals():
                    save_view(self._user_state, replace(self._shown, name=name))
                    self._list(name)

        detail = Content.assemble("Saves ", _describe_view(self._shown), ".")
        title = Content("Name of the new view")
        self.app.push_screen(AskLine(title, detail, verb="save"), answered)

    def action_rename(self) -> None:
        view = self._chosen
        if view in BUILT_IN:
            self.show_keys("Built-in views cannot be renamed; open it and save it under another name.")
            return

        def answered(text: str | None) -> None:
            name = (text or "")[:LONGEST_NAME]
            if name:
                with self._refusals():
                    rename_view(self._user_state, view.name, name)
                    self._list(name)

        title = Content(f"New name for {visible_line(view.name, LONGEST_NAME)}")
        self.app.push_screen(AskLine(title, _describe_view(view), verb="rename", value=view.name), answered)

    def action_delete(self) -> None:
        view = self._chosen
        if view in BUILT_IN:
            self.show_keys("Built-in views cannot be deleted.")
            return
        with self._refusals():
            delete_view(self._user_state, view.name)
            self._list()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Show why the views could not be changed."""
        try:
            yield
        except (BadInput, Unwritable) as error:
            self.show_keys(visible_line(str(error), 200))


def view_line(view: SavedView, *, own: bool) -> Content:
    """Return the row of a view: name, owner and content."""
    name = fit(Content(visible_line(view.name, LONGEST_NAME)), NAME_CELLS)
    owner = Content.styled("yours   " if own else "built in", "$quiet")
    return Content.assemble(name, "  ", owner, "  ", _describe_view(view))


def _describe_view(view: SavedView) -> Content:
    """Describe the screen, filter, order and tab of a view."""
    column, _, direction = view.sort.partition(" ")
    sort = order_text(column, column.replace("_", " "), descending=direction == "down") if column else ""
    tab = f", {view.tab}" if view.tab else ""
    return Content.assemble(
        (PLACES[view.place][1], "$secondary"),
        (f" {visible_line(view.filter, 200)}" if view.filter else ""),
        (visible_line(f"{sort}{tab}", 60), "$quiet"),
    )
