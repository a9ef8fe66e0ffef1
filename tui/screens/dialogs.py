"""Dialogs: questions, help, saved views. Escape always cancels, F1 lists keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, cast

from msgspec.structs import replace
from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Input, OptionList, Static, TextArea

from core.base.errors import BadInput, Unwritable
from core.base.text import visible, visible_line
from core.index.project_state import ProjectState
from tui.kit.actions import PLACES, key_name
from tui.kit.bars import Item, ItemLine, KeyLine
from tui.kit.drawing import TextPane, fit
from tui.kit.textual_private import bindings_of_screen
from tui.kit.user_state import (
    BUILT_IN,
    LONGEST_NAME,
    SavedView,
    delete_view,
    order_text,
    own_views,
    rename_view,
    save_view,
)
from tui.screens.document import hanging, heading

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui.kit.user_state import UserState
    from tui.screens.services import Services

FRAME_LINES: Final = 8  # lines of a dialog around its text: border, padding, title, keys
CONFIRM: Final = "confirm"  # description of the binding whose label is the verb of the dialog
OPTION_MOVES: Final[list[BindingType]] = [
    Binding("j,down", "move(1)", "down", show=False, tooltip="The next row"),
    Binding("k,up", "move(-1)", "up", show=False, tooltip="The previous row"),
]


class Dialog(ModalScreen[ScreenResultType]):
    """Base of all dialogs: title, detail, body and keys with tooltips for the help.

    `title` is the question and `detail` explains the effect. Without a `verb` the confirming key is hidden.
    """

    ABOUT: ClassVar[str] = ""  # the question and the effect of an answer, for the help
    HELP_TITLE: ClassVar[str] = "this dialog"
    STYLE: ClassVar[str] = ""  # further style classes of the box
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "help", "help", show=False, tooltip="This help; while typing, F1 only")
    ]

    def __init__(self, title: Content, detail: Content | None = None, *, verb: str = "") -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self.verb = verb

    @property
    def services(self) -> Services:
        """The app, as dialogs see it."""
        return cast("Services", self.app)

    def compose(self) -> ComposeResult:
        with Vertical(classes=f"dialog {self.STYLE}"):
            yield Static(self._title, classes="dialog--title")
            if self._detail is not None:
                yield Static(self._detail, classes="dialog--detail")
            yield from self.compose_body()
            yield Static(classes="dialog--keys")

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between the detail and the keys."""
        return iter(())

    def begin(self) -> None:
        """Fill and focus the widgets, all of which exist."""

    def on_mount(self) -> None:
        """Show the keys in the dialog; replace those of the screen in its key line."""
        if not self.query(".dialog--keys"):  # a key closed the dialog before its widgets were composed
            return
        self.begin()
        line = KeyLine()
        self.mount(line)
        line.say(self.services.notices)
        line.show([Item(_key(key, label), action) for action, (key, label) in self._shown_keys().items()])
        self.show_keys()

    def _shown_keys(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for one in bindings_of_screen(self):
            label = self.verb if one.description == CONFIRM else one.description
            if one.show and label:
                found.setdefault(one.action, (key_name(one.key), label))
        return found

    def show_keys(self, problem: str = "") -> None:
        """Show the keys, or a problem and the key that cancels."""
        keys = [_key(key, label) for key, label in self._shown_keys().values()]
        if problem:
            keys = [Content.styled(problem, "$error"), *keys[-1:]]
        self.query_one(".dialog--keys", Static).update(Content("   ").join(keys))

    @on(ItemLine.Clicked)
    async def _key_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        await self.run_action(message.value)

    def action_help(self) -> None:
        lines: dict[str, list[str]] = {}
        of_every_screen = {one.action for one in Screen.BINDINGS if isinstance(one, Binding)}
        for one in bindings_of_screen(self):
            text = one.tooltip or (self.verb if one.description == CONFIRM else one.description)
            if text and one.action not in of_every_screen:
                lines.setdefault(text, []).append(key_name(one.key))
        own_first = sorted(lines.items(), key=lambda line: "f1" in line[1])
        keys = tuple(HelpLine(" ".join(names), "", text[:1].upper() + text[1:]) for text, names in own_first)
        self.app.push_screen(Help(Topic(self.HELP_TITLE, self.ABOUT, (Section("Keys", keys),))))

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_move(self, rows: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if rows > 0 else options.action_cursor_up()


def _key(key: str, label: str) -> Content:
    return Content.assemble((key, "$accent bold"), f" {label}")


Overtaken = Callable[[ProjectState], str]
"""Given a newer state, returns a warning if another person decided about the same record, otherwise ""."""


def overtaken(seen: ProjectState, *about: str) -> Overtaken:
    """Return a function that detects decisions on these subjects made since `seen`."""
    from core.decisions.conflicts import newer_decision_text

    known = len(seen.snapshot.decisions)
    return lambda view: newer_decision_text(about, known, view.snapshot.decisions, view.now)


class AskLine(Dialog[str | None]):
    """Asks for one line of text, such as a reason. The result is the text or None.

    If `required`, an empty answer is refused. `overtaken` detects that another person decided first.
    """

    ABOUT = "One line of text, stored with the decision in the log. Undo reverses the decision."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", CONFIRM, tooltip="Decide, with the typed text as the reason"),
        Binding("escape", "cancel", "cancel", tooltip="Close without a decision"),
    ]

    def __init__(
        self,
        title: Content,
        detail: Content,
        *,
        verb: str,
        required: bool = True,
        value: str = "",
        overtaken: Overtaken = lambda view: "",
    ) -> None:
        super().__init__(title, detail, verb=verb)
        self._required, self._value, self._overtaken = required, value, overtaken

    def compose_body(self) -> ComposeResult:
        yield Input(visible_line(self._value), max_length=500)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if text or not self._required:
            self.dismiss(text)
        else:
            self.show_keys("Type a text first: it is stored with the decision.")

    def follow(self, view: ProjectState) -> None:
        """Warn, while the user types, if the decision would be refused."""
        if other := self._overtaken(view):
            text = f"{other}. Press esc and review it again: this decision would be refused."
            self.query_one(".dialog--detail", Static).update(Content.styled(text, "$warning"))

    async def action_submit(self) -> None:
        await self.query_one(Input).action_submit()


class AskText(Dialog[str | None]):
    """Asks for a text of several lines. The result is the text or None."""

    ABOUT = "Edit the text; Enter starts a new line."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+j", "submit", "accept this text", priority=True, tooltip="Accept this text"),
        Binding("escape", "cancel", "cancel", tooltip="Change nothing"),
    ]

    def __init__(self, title: Content, value: str) -> None:
        super().__init__(title)
        self._value = value

    def compose_body(self) -> ComposeResult:
        yield TextArea(visible(self._value), soft_wrap=True, show_line_numbers=False)

    def begin(self) -> None:
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)

    def action_submit(self) -> None:
        if text := self.query_one(TextArea).text.strip():
            self.dismiss(text)


class Confirm(Dialog[bool | None]):
    """Asks for confirmation, for example before a file is overwritten."""

    ABOUT = "Confirms that a file is overwritten or another person's decision is undone."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "answer(True)", CONFIRM),
        Binding("escape,n", "answer(False)", "cancel", tooltip="Change nothing"),
    ]

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Choose(Dialog[str | None]):
    """Asks for one record of `choices`, (key, content); the result is a key or None."""

    ABOUT = "Enter or a click chooses the row under the cursor."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", CONFIRM, tooltip="Choose the row under the cursor"),
        Binding("escape,q", "cancel", "cancel", tooltip="Close without a choice"),
        *OPTION_MOVES,
    ]

    def __init__(self, title: Content, detail: Content, choices: Sequence[tuple[str, Content]], *, verb: str) -> None:
        super().__init__(title, detail, verb=verb)
        self._choices = choices

    def compose_body(self) -> ComposeResult:
        yield OptionList(*(shown for _key, shown in self._choices))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index][0])

    def action_take(self) -> None:
        self.query_one(OptionList).action_select()


class LongTextDialog(Dialog[ScreenResultType]):
    """A dialog with scrollable text, as high as the text if there is room."""

    STYLE = "dialog--tall"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False, tooltip="Move one line down"),
        Binding("k,up", "move(-1)", "up", show=False, tooltip="Move one line up"),
        Binding("space,pagedown", "page(1)", "page down", show=False, tooltip="Move one page down"),
        Binding("pageup", "page(-1)", "page up", show=False, tooltip="Move one page up"),
    ]

    def __init__(self, title: Content, paragraphs: Sequence[Content], *, verb: str = "") -> None:
        super().__init__(title, verb=verb)
        self._paragraphs = paragraphs

    def compose_body(self) -> ComposeResult:
        yield TextPane()

    def begin(self) -> None:
        pane = self.query_one(TextPane)
        pane.show(self._paragraphs)
        pane.focus()

    def on_resize(self) -> None:
        self._fit()

    @on(TextPane.Widened)
    def _fit(self) -> None:
        """Set the height of the text to the number of its lines."""
        most = (self.size.height - 1) * 9 // 10 - FRAME_LINES  # without the key line
        for pane in self.query(TextPane):
            pane.styles.height = max(min(pane.virtual_size.height, most), 1)

    def action_move(self, rows: int) -> None:
        self.query_one(TextPane).move(rows)

    def action_page(self, pages: int) -> None:
        pane = self.query_one(TextPane)
        pane.move(pages * pane.page)


class PreviewDialog(LongTextDialog[bool | None]):
    """Shows a long text before a decision. The result is True if the user accepts."""

    ABOUT = "Nothing is written before you accept."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,enter", "answer(True)", CONFIRM, tooltip="Accept, if there is anything to accept"),
        Binding("escape,q,n", "answer(False)", "close", tooltip="Close without writing"),
    ]

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer and bool(self.verb))


class FindingsDialog(LongTextDialog[None]):
    """Lists the problems found in the project's files."""

    HELP_TITLE = "the list of file problems"
    ABOUT = "All problems found in files. `ralphdeck doctor` lists them in a shell."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,F", "cancel", "close")]

    def __init__(self, paragraphs: Sequence[Content]) -> None:
        super().__init__(Content("File problems"), paragraphs)


# The help of a screen or a dialog: its purpose, its columns, then its keys, with a search


LONGEST: Final = 60  # characters of a search
KEY_CELLS: Final = 10
LOW_LINES: Final = 14  # fewest lines of a terminal that leave some for a border and a title
NAME_CELLS: Final = 14
COLUMN_CELLS: Final = 14
GAP: Final = 2  # Cells before the keys.


@dataclass(frozen=True, slots=True)
class HelpLine:
    """Help for `keys`; `name` is the action in the keymap file, if any.

    `now` describes the effect on the selected record, `against` why the action is disabled; both may be untrusted.
    """

    keys: str
    name: str
    text: str
    now: str = ""
    against: str = ""

    def fits(self, words: Sequence[str]) -> bool:
        """Whether the line contains all `words`, which are in lower case."""
        text = f"{self.keys}\n{self.name}\n{self.text}\n{self.now}\n{self.against}".lower()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    lines: tuple[HelpLine, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """The content of the help at one moment."""

    title: str
    about: str
    sections: tuple[Section, ...]
    columns: tuple[tuple[str, str], ...] = ()  # titles of the columns and what they show
    team: tuple[tuple[str, str], ...] = ()  # labels and displayable texts


def help_lines(topic: Topic, search: str, width: int) -> list[Content]:
    """Return the lines that contain all words of `search`, matching keys first."""
    words = search.lower().split()
    if not words:
        lines: list[Content] = []
        if topic.about:
            lines += [Content(""), *hanging(Content(" " * GAP), Content(topic.about), width)]
        for name, rows in (("Columns", topic.columns), ("Team", topic.team)):
            lines += heading(name) if rows else []
            for title, about in rows:
                label = Content.assemble(" " * GAP, (f"{title:<{COLUMN_CELLS}} ", "bold"))
                lines += hanging(label, Content(about), width)
        for section in topic.sections:
            if section.lines:
                title = visible_line(section.title, max(width - len(section.note) - 4, 20))
                lines += [*heading(title, section.note), *_draw_lines(section.lines, width)]
        return lines[1:]
    every = [line for section in topic.sections for line in section.lines]
    exact = [line for line in every if search.strip() in line.keys.split()]
    found = [*exact, *(line for line in every if line not in exact and line.fits(words))]
    if not found:
        return [Content.styled(f"No help contains {visible_line(search, 60)!r}", "$quiet")]
    return _draw_lines(found, width)


def _draw_lines(found: Sequence[HelpLine], width: int) -> list[Content]:
    lines: list[Content] = []
    for line in found:
        key_style, style = ("$quiet", "$quiet") if line.against else ("$accent bold", "")
        name = (f"{line.name:<{NAME_CELLS}} ", "$quiet")
        label = Content.assemble(" " * GAP, (f"{line.keys:<{KEY_CELLS}} ", key_style), name)
        lines += hanging(label, Content.styled(line.text, style), width)
        below = Content(" " * label.cell_length)
        if line.against:
            lines += hanging(below, Content.styled(f"not now: {visible_line(line.against, 300)}", "$warning"), width)
        elif line.now:
            lines += hanging(below, Content.styled(f"now: {visible_line(line.now, 200)}", "$secondary"), width)
    return lines


class Help(ModalScreen[None]):
    """Lists all keys of one screen, filtered by the typed text."""

    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW_LINES, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close_or_clear", "close"),
        Binding("f1,question_mark", "close", "close", priority=True),
        Binding("down", "move(1)", "down", show=False, priority=True),
        Binding("up", "move(-1)", "up", show=False, priority=True),
        Binding("pagedown", "page(1)", "page down", show=False, priority=True),
        Binding("pageup", "page(-1)", "page up", show=False, priority=True),
    ]

    def __init__(self, topic: Topic) -> None:
        super().__init__()
        self._topic = topic

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog--tall help"):
            yield Static(Content(f"Help on {self._topic.title}"), classes="dialog--title")
            yield Input(placeholder="Search for a key or a word", max_length=LONGEST)
            yield TextPane()
            keys = Content.from_markup(
                "[$accent b]↑ ↓ pgdn[/] scroll  [$accent b]esc[/] close   "
                'change keys in keymap.toml: [b]name = "key"[/]'
            )
            yield Static(keys, classes="dialog--keys")

    def on_mount(self) -> None:
        for line in self.query(Input):  # none if the help is closed already
            line.focus()

    def show_topic(self, topic: Topic) -> None:
        """Show newer help on the same screen."""
        self._topic = topic
        self._show()

    @on(TextPane.Widened)
    @on(Input.Changed)
    def _show(self) -> None:
        pane = self.query_one(TextPane)
        search = self.query_one(Input).value
        pane.show(help_lines(self._topic, search, pane.scrollable_content_region.width))

    def action_move(self, rows: int) -> None:
        self.query_one(TextPane).move(rows)

    def action_page(self, pages: int) -> None:
        pane = self.query_one(TextPane)
        pane.move(pages * pane.page)

    def action_close_or_clear(self) -> None:
        """Clear the search, or close the dialog if the search is empty."""
        search = self.query_one(Input)
        if search.value:
            search.value = ""
        else:
            self.dismiss(None)

    def action_close(self) -> None:
        self.dismiss(None)


VIEW_NAME_CELLS: Final = 30  # cells of the name of a view in the list


class ViewList(Dialog[SavedView | None]):
    """Lists own and built-in views, `shown`; the result is the view to open, or None."""

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

    def begin(self) -> None:
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
    name = fit(Content(visible_line(view.name, LONGEST_NAME)), VIEW_NAME_CELLS)
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
