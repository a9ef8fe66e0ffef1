"""Base of all screens: frame, updates, and the state of actions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, partial, partialmethod
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

import msgspec
from msgspec import structs
from textual import events, on
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input

from core.base.errors import BadInput, RalphdeckError
from core.base.text import capitalized, visible_line
from core.files.atomic_write import export_file, file_exists, write_file
from core.records.snapshot import UNCHECKED, Delta
from core.show.pages.document import Column
from core.show.pages.markdown import record_markdown
from tui.kit.actions import BY_ID, DECIDING, EXPORTING, GROUPS, PLACES, SCREENS, WRITING, actions_of, bindings_of
from tui.kit.bars import Item, ItemLine, KeyLine, TopBar
from tui.kit.drawing import TextPane
from tui.kit.record_table import RecordTable
from tui.kit.user_state import SavedView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widget import Widget

    from core.index.project_state import ProjectState
    from core.records.decisions import Decision
    from tui.kit.actions import Action
    from tui.kit.looks import Glyphs
    from tui.kit.user_state import FollowedLink
    from tui.screens.services import Services

MOVES: Final = frozenset({"down", "up", "first", "last", "page_down", "page_up", "half_down", "half_up"})
NOT_LISTED: Final = frozenset({"back", "more", "grow", "shrink", "undo", "previous_tab"})
"""Actions that the list of more actions omits."""
KEY_CELLS: Final = 7  # cells of a key in the list of more actions
SEEN_SCREENS: Final = "seen-screens"  # user state: the screens that were opened before
_ALL_ROWS: Final = 10**9  # exceeds the number of rows of any list
STEPS: Final = 20  # presses of a key that a pane would need to fill the screen
FEWEST_CELLS: Final = {"vertical": 4, "horizontal": 20}  # lines or columns of the smallest pane, by layout
_FONT_FACES: Final = re.compile(r"@font-face\s*\{[^}]*\}\s*")  # font faces that a browser would load from another host
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")


class ScreenTable(msgspec.Struct):
    """Texts and columns of one screen; `screens.toml` explains the fields."""

    about: str
    hint: str = ""
    empty: str = ""
    files: tuple[str, ...] = ()
    sorts: tuple[tuple[str, bool], ...] = ()
    columns: tuple[Column, ...] = ()
    other_columns: tuple[Column, ...] = ()


@cache
def load_tables() -> dict[str, ScreenTable]:
    """Load `screens.toml` as tables by screen ID."""
    return msgspec.toml.decode(Path(__file__).with_name("screens.toml").read_bytes(), type=dict[str, ScreenTable])


class BaseScreen(Screen[None], inherit_bindings=False):
    """A screen; subclasses set `place`, compose content, and refresh it.

    An action `<id>` is the method `action_<id>`; `why_not` gives the reason why it cannot run now.
    """

    place: ClassVar[str] = ""
    TABLE: ClassVar[ScreenTable]
    LIST: ClassVar[Mapping[str, Any]] = {}
    """Parts of `TABLE` that are stated in the core, such as the columns of a list."""
    IS_OVERLAY: ClassVar[bool] = False
    """Whether the screen opens over another one, to which `back` returns. Overlays make no decisions."""
    AUTO_FOCUS = "RecordTable, TextPane"
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init_subclass__(cls) -> None:
        """Take texts and columns from `screens.toml`, and keys from the action registry."""
        if cls.place:
            cls.TABLE = structs.replace(load_tables()[cls.place], **cls.LIST)
            cls.BINDINGS = [*bindings_of(cls.place)]
        super().__init_subclass__()

    def __init__(self) -> None:
        super().__init__(id=self.place)
        self._seen = -1
        self._pending = Delta()
        self._jobs: dict[str, tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None] | None]] = {}
        """Work and callbacks of the newest job of each group that has no result yet."""

    # What subclasses provide

    def compose_content(self) -> ComposeResult:
        """Yield the widgets between the top bar and the key line."""
        raise NotImplementedError

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Show a newer state. `delta` lists the changed records; None redraws everything."""
        raise NotImplementedError

    def embedding(self, done: int, total: int) -> None:
        """Handle progress: `done` of `total` embeddings for semantic search are computed."""

    def why_not(self, action: str) -> str | None:
        """Return the reason why an action cannot run now, or None if it can."""
        return None

    def subject(self) -> str:
        """Return the untrusted name of the record under the cursor, or "" without one."""
        return ""

    def label_for(self, action: str) -> str | None:
        """Return a key label that replaces the default, such as the effect of a decision."""
        return None

    def effect(self, action: str) -> str | None:
        """Describe what an action would do to the record under the cursor, for the help."""
        return self._back_text() if action == "back" and self.can_return() else self.label_for(action)

    def first_action(self) -> str:
        """Return the action that a record waits for, first in the key line; "" for none."""
        return ""

    def own_keys(self) -> frozenset[str]:
        """Return the actions whose keys the screen shows itself and the key line omits."""
        return frozenset()

    def go_to(self, key: str) -> None:
        """Move the cursor to a record, and clear the filter if it hides the record."""

    def follow_link(self, link: FollowedLink, show: Callable[[BaseScreen], None]) -> None:
        """Show the target of a link by calling `show`."""
        show(self)
        self.refresh_frame()

    def leave_link(self, link: FollowedLink, *, back: bool) -> None:
        """Restore the state from before the link; `back` if the user pressed back."""

    def can_return(self) -> bool:
        """Return True if `back` would return along a link, with nothing to leave first."""
        link = self.services.link
        return link is not None and link.place == self.place and not self.selections

    def restorer(self) -> Callable[[], BaseScreen] | None:
        """Return a factory that reopens this overlay for `back`; None for normal screens."""
        return None

    def current_view(self) -> SavedView:
        """Return the current list as a view that can be saved under a name."""
        return SavedView("", self.place if self.place in PLACES else "loops")

    def show_view(self, view: SavedView) -> None:
        """Show the list of a saved view."""

    def undone(self, decision: Decision) -> None:
        """Handle a decision that is about to be undone from this screen."""

    def answered(self, *, decided: bool) -> None:
        """Handle the result of a decision: written (`decided`), or refused."""

    def team_changed(self) -> None:
        """Show a new state of the team. Called while the screen is in front."""
        self.refresh_top()

    def when_shown(self, call: Callable[[], object]) -> None:
        """Call a function after the next frame that shows records."""
        self.call_after_refresh(call)

    def returned(self) -> None:
        """Handle that the user has been away for long: `last_visit` has changed."""

    def tick(self) -> None:
        """Redraw relative times. Called every second while the screen is in front."""

    # The frame

    @property
    def services(self) -> Services:
        """The app, as screens see it."""
        return cast("Services", self.app)

    @property
    def view(self) -> ProjectState:
        return self.services.view

    @property
    def glyphs(self) -> Glyphs:
        return self.services.glyphs

    def compose(self) -> ComposeResult:
        yield TopBar()
        seen = self.services.user_state.get(SEEN_SCREENS).split()
        if self.place not in seen:
            self.services.user_state.set(SEEN_SCREENS, " ".join([*seen, self.place]))
            key = self.services.shown_key("help")
            purpose = self.TABLE.about.partition(". ")[0].removesuffix(".")
            line = ItemLine(classes="purpose")
            line.show([Item(Content(f"{purpose}."))], [Item(Content.assemble((key, "bold"), " explains this screen"))])
            yield line
        yield from self.compose_content()
        yield KeyLine()

    @property
    def table(self) -> RecordTable:
        """The main list of the screen. Raises NoMatches if the screen has no list."""
        return self.query_one(RecordTable)

    @property
    def is_composed(self) -> bool:
        """Whether all widgets exist. The app may end before they are composed."""
        return bool(self.query(KeyLine))

    def on_mount(self) -> None:
        self.catch_up()

    def on_screen_resume(self) -> None:
        self.catch_up()

    def changed(self, delta: Delta) -> None:
        """Record changed data, and show it now if this screen is in front."""
        self._pending |= delta
        if self.is_current and self.is_mounted:
            self.catch_up()

    def redraw_all(self) -> None:
        """Redraw everything: now if this screen is in front, else when shown next."""
        self._seen = -1
        if self.is_current:
            self.catch_up()

    def catch_up(self, *, anew: bool = False) -> None:
        """Show the newest state if it is not shown yet. `anew` redraws everything."""
        if not self.is_composed:
            return
        for table in self.query(RecordTable):
            table.space(self.services.row_lines)
        view = self.view
        number = view.snapshot.number
        if anew or self._seen < 0:
            self.refresh_view(view, None)
        elif self._pending or number != self._seen:
            self.refresh_view(view, self._pending)
        self._seen, self._pending = number, Delta()
        self.refresh_frame()

    def refresh_frame(self) -> None:
        """Draw the top bar and the key line."""
        if not self.is_mounted:
            return
        self.refresh_top()
        line = self.query_one(KeyLine)
        line.say(self.services.notices)
        line.show(*self._key_items())

    def refresh_top(self) -> None:
        """Draw the top bar."""
        if self.is_mounted:
            self.query_one(TopBar).show(*self.services.top_items(self.place))

    def _key_items(self) -> tuple[list[Item], list[Item]]:
        offered: list[Item] = []
        disabled: list[Item] = []
        first = self.first_action()
        in_order = sorted(actions_of(self.place), key=lambda action: (action.id != first, GROUPS.index(action.group)))
        for action in in_order:
            is_offered = action.id == first or (action.shown and self.services.keys_of(action.id))
            if not is_offered or action.id in {"help", "undo", "more"} | self.own_keys():
                continue
            if self.reason_against(action.id) is None:
                offered.append(self._key_item(action.id, self.label_for(action.id) or action.label))
            else:  # a click gives the reason, as the key does
                text = f"{self.services.shown_key(action.id)} {action.label}"
                disabled.append(Item(Content.styled(text if disabled else f"not now: {text}", "$quiet"), action.id))
        right = [self._key_item("help", "help")]
        if self.reason_against("more") is None and "more" not in self.own_keys():
            right.insert(0, self._key_item("more", self.label_for("more") or "more"))
        if self.reason_against("undo") is None and (last := self.services.undo_hint()):
            right.insert(0, self._key_item("undo", last))
        if self.IS_OVERLAY:
            right.insert(0, self._key_item("quit", "back"))
        elif self.can_return():
            right.insert(0, self._key_item("back", self._back_text()))
        return offered + disabled, right

    def _back_text(self) -> str:
        if (link := self.services.link) is None:
            return "back"
        return f"back to {PLACES[link.start][1] if link.restorer is None else 'Replay'}"

    def _key_item(self, action: str, label: str) -> Item:
        key = self.services.shown_key(action)
        return Item(Content.assemble((key, "$accent bold"), " ", (visible_line(label), "$foreground")), action)

    # Work in threads

    def run_in_thread(
        self,
        group: str,
        work: Callable[[], _Result],
        show: Callable[[_Result], None],
        *,
        fail: Callable[[Exception], None] | None = None,
        pause: float = 0.0,
    ) -> None:
        """Run `work` in a thread, then `show` its result, or `fail` with its exception.

        Without `fail`, an exception ends the dashboard. Each group runs one job at a time, after `pause` seconds. Only
        the result of the newest one is shown.
        """
        is_running = self.is_computing(group)
        self._jobs[group] = (work, show, fail)
        if not is_running:
            self.run_worker(self._run_jobs(group, pause), group=group)

    async def _run_jobs(self, group: str, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            work, show, fail = job = self._jobs[group]
            then: Callable[[], None]
            try:
                then = partial(show, await asyncio.to_thread(work))
            except Exception as error:
                if fail is None:
                    raise
                then = partial(fail, error)
            if self._jobs[group] is job:
                del self._jobs[group]
                if self.app.is_running:  # else the widgets are being removed
                    then()  # a job that this adds runs on its own
                return

    def is_computing(self, group: str) -> bool:
        """Return True if the newest job of a group has no result yet."""
        return group in self._jobs

    # Panes

    def _panes(self) -> tuple[str, list[Widget]]:
        """Return how the panes are laid out, and those that are visible now."""
        for container in self.query(Container).filter(".body, .sides"):
            layout = layout_of(container)
            return layout, [child for child in container.children if child.display]
        return "vertical", []

    def _size_panes(self) -> None:
        """Give the panes the sizes that the user chose for this screen and layout."""
        layout, panes = self._panes()
        saved = self.services.user_state.get(f"{self.place}-{layout}-panes").split()
        sizes = [int(size) for size in saved if size.isdecimal()]
        set_sizes(panes, sizes if len(sizes) == len(panes) and min(sizes, default=0) > 0 else None, layout)

    @on(events.Resize)
    def _restore_panes(self) -> None:
        self.call_after_refresh(self._size_panes)  # a subclass may have changed the layout, which takes effect then

    def _resize(self, *, grow: bool) -> None:
        layout, panes = self._panes()
        ancestors = set(self.focused.ancestors_with_self) if self.focused is not None else set()
        number = next((n for n, pane in enumerate(panes) if pane in ancestors), 0)
        sizes = resized(cells_of(panes, layout), number, layout, grow=grow)
        self.services.user_state.set(f"{self.place}-{layout}-panes", " ".join(map(str, sizes)))
        set_sizes(panes, sizes, layout)

    action_grow = partialmethod(_resize, grow=True)
    action_shrink = partialmethod(_resize, grow=False)

    @on(ItemLine.Clicked)
    async def _clicked(self, message: ItemLine.Clicked) -> None:
        if isinstance(message.line, TopBar | KeyLine):
            message.stop()
            await self.run_id(message.value)

    @on(RecordTable.Chosen)
    async def _chosen(self, message: RecordTable.Chosen) -> None:
        message.stop()
        await self.run_id("open")

    def ask_user(self, dialog: Screen[_Answer | None], then: Callable[[_Answer], None]) -> None:
        """Open a dialog, and call `then` with the answer unless the user cancels."""
        self.app.push_screen(dialog, lambda answer: None if answer is None else then(answer))

    # Actions

    def _more_actions(self) -> Iterator[Action]:
        """Yield what can act now and the footer does not offer, decisions first."""
        actions = [action for group in ("Decide", "Look") for action in actions_of(self.place) if action.group == group]
        hidden = [action for action in actions if not (action.shown and action.keys) and action.id not in NOT_LISTED]
        yield from (action for action in hidden if self.reason_against(action.id) is None)

    def action_more(self) -> None:
        """List what else can be done here, and do what the user chooses."""
        from tui.screens.dialogs import Choose

        choices = [(action.id, self._choice(action)) for action in self._more_actions()]
        what = visible_line(self.subject(), 160) or SCREENS[self.place]
        self.ask_user(Choose(Content("More actions"), Content(what), choices, verb="run"), self._run_chosen)

    def _choice(self, action: Action) -> Content:
        key, label = self.services.shown_key(action.id), self.label_for(action.id) or action.label
        parts = (f"{key:<{KEY_CELLS}}", "$accent bold"), (f"{visible_line(label, 30):<22} ", "bold")
        return Content.assemble(*parts, (action.tooltip, "$quiet"))

    def _run_chosen(self, action: str) -> None:
        self.run_worker(self.run_id(action))

    async def run_id(self, action: str) -> None:
        await self.run_action(BY_ID[action].command)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return None for an action that cannot run now, so that Textual disables it."""
        return True if action not in BY_ID or self.reason_against(action) is None else None

    def writes(self, action: str) -> bool:
        """Return whether an action would change the project."""
        return action in WRITING

    def reason_against(self, action: str) -> str | None:
        """Return why an action cannot run now, on this screen or on all screens."""
        if self.services.project.is_readonly and self.writes(action):
            return "Read-only: restart without --readonly to decide"
        if self.services.project.is_readonly and self.services.is_web and action in EXPORTING:
            return "Read-only: a browser session cannot write files"
        if self.view.snapshot.as_of is not None and action in DECIDING:
            return UNCHECKED
        if reason := self.why_not(action):
            return capitalized(reason)
        if action == f"go_{self.place}":
            return f"{SCREENS[self.place]} is already open"
        if self.IS_OVERLAY and action in {"undo", "redo"}:
            return "No decisions on this screen"
        if action == "undo" and not self.services.may_undo:
            return "Nothing to undo"
        if action == "redo" and not self.view.snapshot.curation.redoable:
            return "Nothing to redo"
        if action == "back" and self._is_common(action) and not self._can_go_back():
            return "Nothing to leave"
        if action in {"grow", "shrink"} and len(self._panes()[1]) < 2:
            return "There is only one pane"
        if action == "more" and self._is_common(action) and next(self._more_actions(), None) is None:
            return "There is nothing else to do here"
        return self._why_not_move(action) if action in MOVES and self._is_common(action) else None

    def _is_common(self, action: str) -> bool:
        """Return True if the screen does not override an action of this class."""
        name = f"action_{action}"
        return getattr_static(type(self), name) is getattr_static(BaseScreen, name)

    def _why_not_move(self, action: str) -> str | None:
        """Return why a movement has no effect; None for single steps at a list's end."""
        mover = None if isinstance(self.focused, Input) else self._mover()
        if isinstance(mover, TextPane) and not mover.max_scroll_y:
            return "All of this text is visible"
        if not isinstance(mover, RecordTable):
            return None
        if not mover.keys:
            return "The list is empty"
        if action in {"first", "page_up", "half_up"} and mover.cursor == 0:
            return "This is the first row"
        if action in {"last", "page_down", "half_down"} and mover.cursor == len(mover.keys) - 1:
            return "This is the last row"
        return None

    def _can_go_back(self) -> bool:
        """Return True if there is a selection, a link, a pane or an overlay to leave."""
        table = next(iter(self.query(RecordTable)), None)
        elsewhere = table is not None and self.focused is not table
        return self.IS_OVERLAY or bool(self.selections) or self.can_return() or elsewhere

    def _mover(self) -> RecordTable | TextPane | None:
        """Return the widget that the movement keys scroll."""
        focused = self.focused
        if isinstance(focused, RecordTable | TextPane):
            return focused
        if isinstance(focused, Input):
            return next(iter(self.query(RecordTable)), None)
        return next((w for w in self.query("RecordTable, TextPane") if isinstance(w, RecordTable | TextPane)), None)

    def _move_by(self, rows: int = 0, *, half_pages: int = 0) -> None:
        if mover := self._mover():
            mover.move(rows + half_pages * mover.page // 2)

    action_down = partialmethod(_move_by, 1)
    action_up = partialmethod(_move_by, -1)
    action_page_down = partialmethod(_move_by, half_pages=2)
    action_page_up = partialmethod(_move_by, half_pages=-2)
    action_half_down = partialmethod(_move_by, half_pages=1)
    action_half_up = partialmethod(_move_by, half_pages=-1)
    action_first = partialmethod(_move_by, -_ALL_ROWS)
    action_last = partialmethod(_move_by, _ALL_ROWS)

    action_next_pane = partialmethod(Screen.focus_next, "RecordTable, TextPane, Input")
    action_previous_pane = partialmethod(Screen.focus_previous, "RecordTable, TextPane, Input")

    def action_back(self) -> None:
        """Close the overlay, return along a link, or deselect and focus the list."""
        if self.IS_OVERLAY:
            self.dismiss()
        elif self.can_return():
            self.services.go_back()
        else:
            self.clear_selection()
            for table in self.query(RecordTable)[:1]:
                table.focus()

    def action_copy(self) -> None:
        text = self.get_selected_text() or self.copy_text()
        self.clear_selection()
        self._copy(text)

    def action_copy_whole(self) -> None:
        self._copy(self.copy_markdown())

    def _copy(self, text: str) -> None:
        if text:
            self.services.copy(text)
        else:
            self.services.say("Nothing to copy", severity="warning")

    def copy_text(self) -> str:
        return ""

    def copy_markdown(self) -> str:
        """Return the text that `copy_whole` copies: by default all visible text panes."""
        panes = [pane for pane in self.query(TextPane) if pane.display and pane.plain.strip()]
        return record_markdown(self.subject() or SCREENS[self.place], (), [("", pane.plain) for pane in panes])

    # Exports to a file that the user names; overwriting needs confirmation

    def export(self, what: str, name: str, suffixes: Collection[str], make: Callable[[str], bytes]) -> None:
        """Ask for a file name (default `name`), then write `make`'s result in a worker.

        `make` gets the suffix, one of `suffixes`. `what` names the exported content in the dialog.
        """
        from tui.screens.dialogs import AskLine, Confirm

        def named(answer: str) -> None:
            if not answer:
                return
            try:
                file = export_file(answer, self.services.project.project, suffixes)
            except BadInput as error:
                self.services.say(str(error), severity="warning")
                return
            if file_exists(file):
                title, detail = f"Overwrite {visible_line(file.name, 80)}?", visible_line(str(file), 300)
                dialog = Confirm(Content(title), Content(detail), verb="overwrite")
                self.ask_user(dialog, lambda yes: self._write_export(file, make) if yes else None)
            else:
                self._write_export(file, make)

        formats = ", ".join(suffixes)
        detail = Content(f"File name, or a path; relative to the current folder. Formats: {formats}.")
        self.ask_user(AskLine(Content(f"Export {what}"), detail, verb="export", required=False, value=name), named)

    def export_picture(self) -> None:
        """Export this screen as SVG."""
        place = SCREENS[self.place]
        picture = make_portable(self.app.export_screenshot(title=visible_line(f"ralphdeck: {place}", 80)))
        data = picture.encode("utf-8", "replace")
        name = f"ralphdeck-{place.lower().replace(' ', '-')}-{self.services.now():%Y-%m-%d}.svg"
        self.export(f"a picture of {place}", name, (".svg",), lambda _suffix: data)

    def _write_export(self, file: Path, make: Callable[[str], bytes]) -> None:
        app, say = self.app, self.services.say

        def work() -> None:
            try:
                write_file(file, make(file.suffix.lower()))
            except RalphdeckError as error:
                app.call_from_thread(say, str(error), severity="error")
            else:
                app.call_from_thread(say, f"Wrote {file}")

        app.run_worker(work, thread=True, group="export")


def make_portable(svg: str) -> str:
    """Remove fonts of other hosts from a screenshot; keep leading spaces everywhere."""
    return _FONT_FACES.sub("", svg).replace("<svg ", '<svg xml:space="preserve" ', 1)


# Sizes of the panes of a screen, which lie beside or above one another


def layout_of(container: Container) -> str:
    """Return "horizontal" if the panes are side by side, otherwise "vertical"."""
    layout = container.styles.layout
    return layout.name if layout is not None and layout.name in FEWEST_CELLS else "vertical"


def resized(sizes: Sequence[int], number: int, layout: str, *, grow: bool) -> list[int]:
    """Return sizes in cells after a step of pane `number`, shared by the others.

    The sizes stay as they are where a pane would get too small.
    """
    step = max(sum(sizes) // STEPS, 1) * (1 if grow else -1)
    others = sum(sizes) - sizes[number]
    new = [size - round(step * size / others) for size in sizes]
    new[number] = sum(sizes) - sum(size for n, size in enumerate(new) if n != number)
    return new if min(new) >= FEWEST_CELLS[layout] else list(sizes)


def cells_of(panes: Sequence[Widget], layout: str) -> list[int]:
    """Return the height or width of each pane in cells, with its border."""
    return [pane.outer_size.height if layout == "vertical" else pane.outer_size.width for pane in panes]


def set_sizes(panes: Sequence[Widget], sizes: Sequence[int] | None, layout: str) -> None:
    """Give panes room in the ratio of `sizes`; None restores the style sheets' sizes."""
    for number, pane in enumerate(panes):
        share = f"{sizes[number]}fr" if sizes is not None else None
        pane.styles.height, pane.styles.width = (share, None) if layout == "vertical" else (None, share)


class OpeningScreen(Screen[None], inherit_bindings=False):
    """The top bar of a screen without content; needs only the project's name.

    `place` is the screen that opens next.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield KeyLine()

    def on_mount(self) -> None:
        for bar in self.query(TopBar):  # none if the next screen has replaced this one already
            bar.show(*cast("Services", self.app).top_items(self._place))
