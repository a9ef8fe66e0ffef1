"""The help dialog of a screen: its purpose, its columns, then its keys, with a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from core.base.text import visible_line
from tui.kit.actions import ACTIONS, GROUPS, SCREENS, Action, actions_of, key_name
from tui.kit.record_table import RecordTable
from tui.kit.text_pane import TextPane
from tui.screens.document import hanging, heading
from tui.screens.frame import help_rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui.screens.base_screen import BaseScreen


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
        self.query_one(Input).focus()

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


# What each key does on the selected record


ON_RECORDS: Final = frozenset({"copy", "copy_whole", "edit_file", "back"})
"""Actions of every screen on the record under the cursor."""
MOVES: Final = frozenset(action.id for action in ACTIONS if action.group == "Move" and not action.places)
"""Movements in any list or text."""


def topic_of(place: BaseScreen) -> Topic:
    """Return the help on a screen, with the focused pane first."""
    actions = actions_of(place.place)
    here = [a for a in actions if a.id not in MOVES and (a.places or a.id in ON_RECORDS)]
    taken = {action.id for action in here} | MOVES
    title, note = _focus(place)
    decide = tuple(_line(place, action) for group in GROUPS for action in here if action.group == group)
    sections = [Section(title, decide, note)]
    if isinstance(place.focused, Input):
        what = place.subject()
        after = Section(f"In the list: {visible_line(what, 60)}" if what else "In the list", decide)
        sections = [Section(title, _typing(place), note), after]
    sections.append(Section("Moving", tuple(_line(place, action) for action in actions if action.id in MOVES)))
    for group in GROUPS:
        others = tuple(_line(place, a) for a in actions if a.id not in taken and a.group == group)
        sections.append(Section({"Decide": "Undo", "Look": "View", "Go": "Screens"}.get(group, group), others))
    columns = tuple((column.title or column.id, column.about) for column in place.TABLE.columns if column.about)
    team = place.services.team
    rows = tuple(help_rows(team, place.services.now())) if team is not None else ()
    return Topic(SCREENS[place.place], place.TABLE.about, tuple(sections), columns, rows)


def _focus(place: BaseScreen) -> tuple[str, str]:
    """Return a heading and a note about the focused widget."""
    focused, what = place.focused, visible_line(place.subject(), 60)
    if isinstance(focused, Input):
        return "You are typing", "letters are text"
    if isinstance(focused, TextPane):
        return (f"On the text of {what}" if what else "On the text"), "it has focus"
    if isinstance(focused, RecordTable):
        return (f"On {what}" if what else "On the list"), "under the cursor"
    return (f"On {what}" if what else "Here"), ""


def _typing(place: BaseScreen) -> tuple[HelpLine, ...]:
    keys = place.services.keys_of
    lines = [
        HelpLine("enter", "", "Accept the text"),
        HelpLine("esc", "", "Leave the line and clear a filter"),
        HelpLine("tab", "", "Go to the next pane; the text stays"),
        HelpLine("ctrl+u", "", "Delete up to the cursor"),
        HelpLine("ctrl+c", "", "Copy the selected text"),
        HelpLine(_names(keys("help")).split()[-1], "help", "This help, because ? is text"),
    ]
    if fields := getattr(place, "FIELDS", ()):
        lines.append(HelpLine("field:", "", f"Fields of this filter: {' '.join(f'{field}:' for field in fields)}"))
        lines.append(HelpLine("-field:", "", "Exclude matches; quotes keep spaces"))
    return tuple(lines)


def _line(place: BaseScreen, action: Action) -> HelpLine:
    against = place.reason_against(action.id) or ""
    now = "" if against else place.effect(action.id) or ""
    keys = _names(place.services.keys_of(action.id))
    return HelpLine(keys, action.id, action.tooltip, now if now != action.label else "", against)


def _names(keys: str) -> str:
    return " ".join(key_name(key) for key in keys.split(","))
