"""Dialogs: one question, one answer. Escape always cancels, F1 lists the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Input, OptionList, Static, TextArea

from core.base.text import visible, visible_line
from core.curation.conflicts import newer_decision_text
from core.state.project_state import ProjectState
from tui.actions import key_name
from tui.present.help_text import HelpLine, Section, Topic
from tui.screens.help import Help
from tui.widgets.bars import Item, ItemLine, KeyLine
from tui.widgets.text_pane import TextPane


class Dialog(ModalScreen[ScreenResultType]):
    """Base of all dialogs, with help. The tooltip of a binding, else its description, explains the key."""

    ABOUT: ClassVar[str] = ""
    """The question and the effect of an answer, for the help."""
    HELP_TITLE: ClassVar[str] = "this dialog"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "help", "help", show=False, tooltip="This help; where text is typed, F1 alone")
    ]

    def on_mount(self) -> None:
        """Show the keys of the dialog in place of those of the screen."""
        keys: dict[str, Binding] = {}
        for bindings in self._bindings.key_to_bindings.values():
            for one in bindings:
                if one.show and one.description:
                    keys.setdefault(one.action, one)
        line = KeyLine()
        self.mount(line)
        line.show(
            [
                Item(Content.assemble((key_name(one.key), "$accent bold"), f" {one.description}"), action)
                for action, one in keys.items()
            ]
        )

    @on(ItemLine.Clicked)
    async def _key_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        await self.run_action(message.value)

    def action_help(self) -> None:
        """List the keys."""
        lines: dict[str, list[str]] = {}
        of_every_screen = {one.action for one in Screen.BINDINGS if isinstance(one, Binding)}
        for bindings in self._bindings.key_to_bindings.values():
            for one in bindings:
                if one.action not in of_every_screen:
                    lines.setdefault(one.tooltip or one.description, []).append(key_name(one.key))
        own_first = sorted(lines.items(), key=lambda line: "f1" in line[1])
        keys = tuple(HelpLine(" ".join(names), "", text[:1].upper() + text[1:]) for text, names in own_first)
        self.app.push_screen(Help(Topic(self.HELP_TITLE, self.ABOUT, (Section("Keys", keys),))))


Overtaken = Callable[[ProjectState], str]
"""From a newer state, a sentence on a decision that someone else made about the same record; "" if none."""


def overtaken(seen: ProjectState, *about: str) -> Overtaken:
    """Detect other decisions on some patterns or questions since `seen`."""
    known = len(seen.snapshot.decisions)
    return lambda view: newer_decision_text(about, known, view.snapshot.decisions, view.now)


class AskLine(Dialog[str | None]):
    """Asks for one line of text, such as the reason of a decision. Dismissed with the text, or None.

    Args:
        title: The question.
        detail: What will happen.
        required: Whether an empty answer is refused.
        value: The initial text.
        verb: Label of the confirming key.
        overtaken: For a decision: detects that someone else decided first.
    """

    ABOUT = "One line of text, kept with the decision in the log. Undo takes the decision back."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", tooltip="Decide nothing"),
        Binding("enter", "submit", "do it", tooltip="Decide, with what is typed as the reason"),
    ]

    def __init__(
        self,
        title: Content,
        detail: Content,
        *,
        required: bool,
        value: str = "",
        overtaken: Overtaken | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self._required = required
        self._value = value
        self._overtaken = overtaken

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog--title")
            yield Static(self._detail, classes="dialog--detail")
            yield Input(visible_line(self._value), max_length=500)
            yield Static(
                Content.from_markup("[$accent b]enter[/] do it   [$accent b]esc[/] cancel"),
                classes="dialog--keys",
            )

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if text or not self._required:
            self.dismiss(text)
        else:
            self.query_one(".dialog--keys", Static).update(
                Content.from_markup(
                    "[$error]a reason is needed: it is kept with the decision[/]   [$accent b]esc[/] cancel"
                )
            )

    def follow(self, view: ProjectState) -> None:
        """Warn while the user types if the decision will be refused."""
        told = self._overtaken(view) if self._overtaken is not None else ""
        if told:
            text = f"{told}. Nothing is decided from here: esc, and look again."
            self.query_one(".dialog--detail", Static).update(Content.styled(text, "$warning"))

    async def action_submit(self) -> None:
        await self.query_one(Input).action_submit()

    def action_cancel(self) -> None:
        self.dismiss(None)


class AskText(Dialog[str | None]):
    """Asks for a text of several lines. Dismissed with the text, or None."""

    ABOUT = "A text of your own; Enter begins a new line in it."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", tooltip="Leave everything as it was"),
        Binding("ctrl+j,f2", "submit", "do it", priority=True, tooltip="Take this text"),
    ]

    def __init__(self, title: Content, value: str) -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog--title")
            yield TextArea(visible(self._value), soft_wrap=True, show_line_numbers=False)
            yield Static(
                Content.from_markup(
                    "[$accent b]f2[/] or [$accent b]ctrl+j[/] accept this text   [$accent b]esc[/] cancel"
                ),
                classes="dialog--keys",
            )

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)

    def action_submit(self) -> None:
        text = self.query_one(TextArea).text.strip()
        if text:
            self.dismiss(text)

    def action_cancel(self) -> None:
        self.dismiss(None)


class Confirm(Dialog[bool]):
    """Asks before many records are written; a single decision has undo instead."""

    ABOUT = "Asked before many records are written, or what somebody else decided is taken back."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", "no", tooltip="Write nothing"),
        Binding("enter,y", "answer(True)", "yes", tooltip="Do what is asked"),
    ]

    def __init__(self, title: Content, detail: Content) -> None:
        super().__init__()
        self._title = title
        self._detail = detail

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog--title")
            yield Static(self._detail, classes="dialog--detail")
            yield Static(
                Content.from_markup("[$accent b]y[/] or [$accent b]enter[/] do it   [$accent b]n[/] cancel"),
                classes="dialog--keys",
            )

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Choose(Dialog[str | None]):
    """Asks for one of a few records. Dismissed with its key, or None.

    Args:
        title: The question.
        detail: What will happen.
        choices: Key and content of each row.
        verb: Label of the confirming key.
    """

    ABOUT = "Enter, or a click, takes the one under the cursor."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "this one"),
        Binding("escape,q", "cancel", "cancel", tooltip="None of them"),
        Binding("j,down", "move(1)", "down", show=False, tooltip="The next one"),
        Binding("k,up", "move(-1)", "up", show=False, tooltip="The one before"),
    ]

    def __init__(self, title: Content, detail: Content, choices: Sequence[tuple[str, Content]]) -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog--title")
            yield Static(self._detail, classes="dialog--detail")
            yield OptionList(*(shown for _key, shown in self._choices))
            yield Static(
                Content.from_markup("[$accent b]enter[/] this one   [$accent b]esc[/] cancel"),
                classes="dialog--keys",
            )

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index][0])

    def action_take(self) -> None:
        self.query_one(OptionList).action_select()

    def action_move(self, rows: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if rows > 0 else options.action_cursor_up()

    def action_cancel(self) -> None:
        self.dismiss(None)


FRAME_LINES: Final = 8
"""Lines of a dialog around its text: border, padding, title, keys."""


class _LongText(Dialog[ScreenResultType]):
    """A dialog with a title, a scrolling text, and a line of keys.

    Args:
        title: Of the text.
        paragraphs: The text.
        keys: The line below it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False, tooltip="One line down"),
        Binding("k,up", "move(-1)", "up", show=False, tooltip="One line up"),
        Binding("space,pagedown", "page(1)", "page down", show=False, tooltip="One page down"),
        Binding("pageup", "page(-1)", "page up", show=False, tooltip="One page up"),
    ]

    def __init__(self, title: Content, paragraphs: Sequence[Content], keys: Content) -> None:
        super().__init__()
        self._title = title
        self._paragraphs = paragraphs
        self._keys = keys

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog--tall"):
            yield Static(self._title, classes="dialog--title")
            yield TextPane()
            yield Static(self._keys, classes="dialog--keys")

    def on_mount(self) -> None:
        pane = self.query_one(TextPane)
        pane.show(self._paragraphs)
        pane.focus()

    def action_move(self, rows: int) -> None:
        self.query_one(TextPane).move(rows)

    def action_page(self, pages: int) -> None:
        pane = self.query_one(TextPane)
        pane.move(pages * pane.page)


class Preview(_LongText[bool]):
    """A long text before a decision. Dismissed with whether to go on.

    Args:
        title: What would be done.
        paragraphs: The text.
        answer: Label of the confirming key, "" if there is nothing to confirm.
    """

    ABOUT = "Nothing is written before you accept."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,enter", "answer(True)", "yes", tooltip="Go on, where there is something to go on with"),
        Binding("escape,q,n", "answer(False)", "no", tooltip="Leave, and write nothing"),
    ]

    def __init__(self, title: Content, paragraphs: Sequence[Content], answer: str) -> None:
        keys = (
            Content.from_markup("[$accent b]a[/] $answer   [$accent b]esc[/] cancel", answer=answer)
            if answer
            else Content.from_markup("[$accent b]esc[/] close")
        )
        super().__init__(title, paragraphs, keys)
        self._answer = answer

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer and bool(self._answer))


class Findings(_LongText[None]):
    """The problems found in the project's files.

    Args:
        paragraphs: The text.
    """

    HELP_TITLE = "the list of what is wrong"
    ABOUT = "Everything that was found wrong while reading; `ralphdeck doctor` says the same in a shell."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,F", "close", "close")]

    def __init__(self, paragraphs: Sequence[Content]) -> None:
        keys = Content.from_markup("Data beside it still works; nothing is written over.   [$accent b]esc[/] close")
        super().__init__(Content("What is wrong in the files"), paragraphs, keys)

    def on_mount(self) -> None:
        """Shrink to the lines of the text."""
        super().on_mount()
        self.query_one(".dialog").add_class("dialog--fit")

    @on(TextPane.Widened)
    def _fit(self) -> None:
        pane = self.query_one(TextPane)
        most = self.size.height * 9 // 10 - FRAME_LINES
        pane.styles.height = max(min(pane.virtual_size.height, most), 1)

    def action_close(self) -> None:
        self.dismiss(None)
