"""The help on a screen: purpose, columns, and what each key does on the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.widgets import Input

from core.base.text import visible_line
from tui.kit.actions import ACTIONS, GROUPS, SCREENS, Action, actions_of, key_name
from tui.kit.drawing import TextPane
from tui.kit.record_table import RecordTable
from tui.screens.dialogs import HelpLine, Section, Topic
from tui.screens.frame import help_rows

if TYPE_CHECKING:
    from tui.screens.base_screen import BaseScreen


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
        HelpLine("tab", "", "Go to the next pane and keep the text"),
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
