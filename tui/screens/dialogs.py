"""Dialogs: one question, one answer. Escape always means no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static, TextArea

from core.text import visible, visible_line
from tui.actions import ACTIONS, GROUPS, SCREENS, key_name
from tui.widgets.line_input import LineInput
from tui.widgets.text_pane import TextPane


class AskLine(ModalScreen[str | None]):
    """Asks for one line of text, such as the reason of a decision. Dismissed with the text, or None.

    Args:
        title: What is asked.
        detail: What will happen, under the title.
        required: Whether an empty answer is refused.
        value: The text to start with.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel")]

    def __init__(self, title: Content, detail: Content, *, required: bool, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self._required = required
        self._value = value

    def compose(self) -> ComposeResult:
        """Title, detail, input, keys."""
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog--title")
            yield Static(self._detail, classes="dialog--detail")
            yield LineInput(visible_line(self._value), max_length=500)
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
            self.query_one(LineInput).stay()
            self.query_one(".dialog--keys", Static).update(
                Content.from_markup(
                    "[$error]a reason is needed: it is kept with the decision[/]   [$accent b]esc[/] cancel"
                )
            )

    def action_cancel(self) -> None:
        """No answer."""
        self.dismiss(None)


class AskText(ModalScreen[str | None]):
    """Asks for a text of several lines. Dismissed with the text, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel"),
        Binding("ctrl+j,f2", "submit", "do it", priority=True),
    ]

    def __init__(self, title: Content, value: str) -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        """Title, text area, keys."""
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
        """Write on where the text ends."""
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)

    def action_submit(self) -> None:
        """Answer with the text."""
        text = self.query_one(TextArea).text.strip()
        if text:
            self.dismiss(text)

    def action_cancel(self) -> None:
        """No answer."""
        self.dismiss(None)


class Confirm(ModalScreen[bool]):
    """Asks before many records are written; a single decision has undo and needs no asking."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", "no"),
        Binding("enter,y", "answer(True)", "yes"),
    ]

    def __init__(self, title: Content, detail: Content) -> None:
        super().__init__()
        self._title = title
        self._detail = detail

    def compose(self) -> ComposeResult:
        """Title, detail, keys."""
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog--title")
            yield Static(self._detail, classes="dialog--detail")
            yield Static(
                Content.from_markup("[$accent b]y[/] or [$accent b]enter[/] do it   [$accent b]n[/] cancel"),
                classes="dialog--keys",
            )

    def action_answer(self, answer: bool) -> None:
        """Give the answer."""
        self.dismiss(answer)


class Choose(ModalScreen[str | None]):
    """Asks for one of a few records. Dismissed with its key, or None.

    Args:
        title: What is asked.
        detail: What will happen, under the title.
        choices: Key and what is shown of each.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "cancel"),
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
    ]

    def __init__(self, title: Content, detail: Content, choices: Sequence[tuple[str, Content]]) -> None:
        super().__init__()
        self._title = title
        self._detail = detail
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Title, detail, choices, keys."""
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

    def action_move(self, rows: int) -> None:
        """The next or previous one."""
        options = self.query_one(OptionList)
        options.action_cursor_down() if rows > 0 else options.action_cursor_up()

    def action_cancel(self) -> None:
        """None of them."""
        self.dismiss(None)


class Preview(ModalScreen[bool]):
    """A long text before a decision. Dismissed with whether to go on.

    Args:
        title: What would be done.
        paragraphs: The text.
        answer: What going on is called, "" if there is nothing to go on with.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "answer(False)", "no"),
        Binding("a,enter", "answer(True)", "yes"),
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("space,pagedown", "move(10)", "page down", show=False),
        Binding("pageup", "move(-10)", "page up", show=False),
    ]

    def __init__(self, title: Content, paragraphs: Sequence[Content], answer: str) -> None:
        super().__init__()
        self._title = title
        self._paragraphs = paragraphs
        self._answer = answer

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        with Vertical(classes="dialog dialog--tall"):
            yield Static(self._title, classes="dialog--title")
            yield TextPane()
            yield Static(
                Content.from_markup("[$accent b]a[/] $answer   [$accent b]esc[/] cancel", answer=self._answer)
                if self._answer
                else Content.from_markup("[$accent b]esc[/] close"),
                classes="dialog--keys",
            )

    def on_mount(self) -> None:
        """Show the text."""
        pane = self.query_one(TextPane)
        pane.show(self._paragraphs)
        pane.focus()

    def action_move(self, rows: int) -> None:
        """Scroll."""
        self.query_one(TextPane).move(rows)

    def action_answer(self, answer: bool) -> None:
        """Give the answer."""
        self.dismiss(answer and bool(self._answer))


class Help(ModalScreen[None]):
    """All keys of one place, by group, and what the place is for.

    Args:
        place: The place that is in front.
        about: A sentence or two about it.
        keys: Action id to the keys in use.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,f1", "close", "close")]

    def __init__(self, place: str, about: str, keys: dict[str, str]) -> None:
        super().__init__()
        self._place = place
        self._about = about
        self._keys = keys

    def compose(self) -> ComposeResult:
        """The text."""
        with VerticalScroll(classes="dialog dialog--tall"):
            yield Static(Content(SCREENS[self._place]), classes="dialog--title")
            yield Static(Content(self._about), classes="dialog--detail")
            for group in GROUPS:
                yield Static(self._group(group))
            yield Static(
                Content.from_markup(
                    'Other keys: write `action = "key"` lines into [b]keymap.toml[/] of the config folder.   '
                    "[$accent b]esc[/] close"
                ),
                classes="dialog--keys",
            )

    def _group(self, group: str) -> Content:
        lines: list[Content] = [Content.styled(group, "bold $secondary")]
        for action in ACTIONS:
            here = not action.places or self._place in action.places
            if action.group == group and here:
                keys = " ".join(key_name(key) for key in self._keys[action.id].split(","))
                lines.append(
                    Content.assemble(
                        (f"  {keys:<12} ", "$accent bold"), (f"{action.id:<14} ", "$quiet"), action.tooltip
                    )
                )
        return Content("\n").join(lines) if len(lines) > 1 else Content("")

    def action_close(self) -> None:
        """Back to the place."""
        self.dismiss(None)


class Findings(ModalScreen[None]):
    """What is wrong in the files of the project.

    Args:
        paragraphs: The text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,F", "close", "close"),
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
    ]

    def __init__(self, paragraphs: Sequence[Content]) -> None:
        super().__init__()
        self._paragraphs = paragraphs

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        with Vertical(classes="dialog dialog--tall"):
            yield Static(Content("What is wrong in the files"), classes="dialog--title")
            yield TextPane()
            yield Static(
                Content.from_markup("Data beside it still works; nothing is written over.   [$accent b]esc[/] close"),
                classes="dialog--keys",
            )

    def on_mount(self) -> None:
        """Show the text."""
        pane = self.query_one(TextPane)
        pane.show(self._paragraphs)
        pane.focus()

    def action_move(self, rows: int) -> None:
        """Scroll."""
        self.query_one(TextPane).move(rows)

    def action_close(self) -> None:
        """Back to the place."""
        self.dismiss(None)
