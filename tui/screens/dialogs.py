"""Dialogs that ask one question. Escape always cancels, and F1 lists the keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Input, OptionList, Static, TextArea

from core.base.errors import BadInput, RalphdeckError
from core.base.text import visible, visible_line
from core.files.atomic_write import export_file, file_exists, write_file
from core.index.project_state import ProjectState
from tui.kit.actions import SCREENS, key_name
from tui.kit.bars import Item, ItemLine, KeyLine
from tui.kit.text_pane import TextPane
from tui.kit.textual_private import bindings_of_screen
from tui.screens.help import Help, HelpLine, Section, Topic

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui.app import RalphdeckApp
    from tui.screens.base_screen import BaseScreen


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
    def services(self) -> RalphdeckApp:
        """The app, with its type."""
        return cast("RalphdeckApp", self.app)

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

    def on_mount(self) -> None:
        """Show the keys in the dialog, and replace the keys of the screen in its key line."""
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

    def on_mount(self) -> None:
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
    """Asks for one of a few records. `choices` has the key and content of each row. The result is a key or None."""

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
    """A dialog with a text that can be scrolled, as high as the text if there is room."""

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

    def on_mount(self) -> None:
        pane = self.query_one(TextPane)
        pane.show(self._paragraphs)
        pane.focus()

    def on_resize(self) -> None:
        self._fit()

    @on(TextPane.Widened)
    def _fit(self) -> None:
        """Set the height of the text to the number of its lines."""
        pane = self.query_one(TextPane)
        most = (self.size.height - 1) * 9 // 10 - FRAME_LINES  # without the key line
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


# Exports to a file that the user names; overwriting needs confirmation


_FONT_FACES: Final = re.compile(r"@font-face\s*\{[^}]*\}\s*")  # font faces that a browser would load from another host


def export(screen: BaseScreen, what: str, name: str, suffixes: Collection[str], make: Callable[[str], bytes]) -> None:
    """Ask for a file name (default `name`), then write the result of `make` in a worker.

    `make` gets the suffix, one of `suffixes`. `what` names the exported content in the dialog.
    """

    def named(answer: str) -> None:
        if not answer:
            return
        try:
            file = export_file(answer, screen.services.project.project, suffixes)
        except BadInput as error:
            screen.services.say(str(error), severity="warning")
            return
        if file_exists(file):
            title, detail = f"Overwrite {visible_line(file.name, 80)}?", visible_line(str(file), 300)
            dialog = Confirm(Content(title), Content(detail), verb="overwrite")
            screen.ask_user(dialog, lambda yes: _write(screen, file, make) if yes else None)
        else:
            _write(screen, file, make)

    formats = ", ".join(suffixes)
    detail = Content(f"File name, or a path; relative to the current folder. Formats: {formats}.")
    screen.ask_user(AskLine(Content(f"Export {what}"), detail, verb="export", required=False, value=name), named)


def make_portable(svg: str) -> str:
    """Remove fonts of other hosts from a screenshot, and keep leading spaces in every viewer."""
    return _FONT_FACES.sub("", svg).replace("<svg ", '<svg xml:space="preserve" ', 1)


def export_picture(screen: BaseScreen) -> None:
    """Export the current screen as SVG."""
    place = SCREENS[screen.place]
    picture = make_portable(screen.app.export_screenshot(title=visible_line(f"ralphdeck: {place}", 80)))
    data = picture.encode("utf-8", "replace")
    name = f"ralphdeck-{place.lower().replace(' ', '-')}-{screen.services.now():%Y-%m-%d}.svg"
    export(screen, f"a picture of {place}", name, (".svg",), lambda _suffix: data)


def _write(screen: BaseScreen, file: Path, make: Callable[[str], bytes]) -> None:
    app, say = screen.app, screen.services.say

    def work() -> None:
        try:
            write_file(file, make(file.suffix.lower()))
        except RalphdeckError as error:
            app.call_from_thread(say, str(error), severity="error")
        else:
            app.call_from_thread(say, f"Wrote {file}")

    app.run_worker(work, thread=True, group="export")
