"""The registry of actions, from which bindings, help and palette are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual.actions import parse
from textual.binding import Binding
from textual.keys import key_to_character

PLACES: Final = {
    "loops": ("1", "Loops"),
    "patterns": ("2", "Patterns"),
    "review": ("3", "Review"),
    "context": ("4", "Context"),
    "reflections": ("5", "Reflections"),
    "memory": ("6", "Memory"),
    "metrics": ("7", "Metrics"),
    "log": ("8", "Log"),
}
"""The eight screens by id, in order: key and name."""

SCREENS: Final = {place: name for place, (_key, name) in PLACES.items()} | {
    "what_if": "What if",
    "replay": "Replay",
    "past": "Compare",
}
"""The name of every screen that has actions: the eight, and those that may lie over one of them."""

GROUPS: Final = ("Decide", "Look", "Move", "Go", "Program")
"""Headings of the help, in the order in which the key line offers actions."""

OF_APP: Final = frozenset(
    {"undo", "redo", "past", "what_if", "views", "findings", "calls", "density", "screenshot", "theme", "glyphs"}
    | {"palette", "help", "quit"}
)
"""Actions that the app carries out on every screen."""
_GO: Final = "go_"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does.

    Attributes:
        id: Unique; the name in the keymap file, and of the method `action_<id>` that carries it out.
        keys: Comma-separated Textual key names; the first one is shown.
        label: Verb for the key line.
        tooltip: A sentence for help and palette.
        group: One of `GROUPS`.
        places: The screens that have it, of `SCREENS`; empty = all.
        shown: Whether the key line offers it.
    """

    id: str
    keys: str
    label: str
    tooltip: str
    group: str
    places: tuple[str, ...] = ()
    shown: bool = False

    @property
    def command(self) -> str:
        """The action as Textual runs it."""
        if self.id.startswith(_GO):
            return f"app.go('{self.id.removeprefix(_GO)}')"
        return f"app.{self.id}" if self.id in OF_APP else self.id

    @property
    def binding(self) -> Binding:
        """The Textual binding; its id lets the keymap file give it other keys."""
        return Binding(self.keys, self.command, self.label, show=self.shown, tooltip=self.tooltip, id=self.id)


_TABLES: Final = ("loops", "patterns", "reflections", "memory", "log")
_DECIDE: Final = ("patterns", "review")
_TABBED: Final = ("patterns", "loops", "memory", "metrics")
_FILES: Final = ("loops", "patterns", "reflections", "memory", "replay")
_VALUES: Final = ("what_if", "context")
_MEMORY: Final = ("memory", "replay")
_PAGED: Final = tuple(screen for screen in SCREENS if screen != "replay")

ACTIONS: Final[tuple[Action, ...]] = (
    *(Action(f"{_GO}{place}", key, name, f"Go to {name}", "Go") for place, (key, name) in PLACES.items()),
    Action("next_pane", "tab", "next pane", "Move to the next pane", "Move"),
    Action("previous_pane", "shift+tab", "previous pane", "Move to the previous pane", "Move"),
    Action("down", "j,down", "down", "One line down", "Move"),
    Action("up", "k,up", "up", "One line up", "Move"),
    Action("first", "g,home", "first", "To the first row or line", "Move"),
    Action("last", "G,end", "last", "To the last row or line", "Move"),
    Action("page_down", "pagedown,space", "page down", "One page down", "Move", _PAGED),
    Action("scroll_down", "pagedown", "page down", "One page of the text down", "Move", ("replay",)),
    Action("page_up", "pageup", "page up", "One page up", "Move"),
    Action("next_item", "n", "next", "To the next one that needs a decision", "Move", _DECIDE, True),
    Action("previous_item", "N", "previous", "To the previous one that needs a decision", "Move", _DECIDE),
    Action("minutes", "b", "set minutes", "Set the minutes you have; best questions first", "Look", ("review",)),
    Action("next_answer", "right", "next answer", "Show what the next answer would change", "Look", ("review",)),
    Action("previous_answer", "left", "previous answer", "Show what the previous answer changes", "Look", ("review",)),
    Action("open_item", "o", "open", "Go to the record in question", "Look", ("review",), True),
    Action("filter", "/", "filter", "Type a filter; every word narrows the list", "Look", _TABLES, True),
    Action("sort", "S", "sort", "Sort by the next column", "Look", _TABLES),
    Action("play", "space", "play", "Play on from here, or stop", "Look", ("replay",), True),
    Action("step_back", "left", "back", "To the previous action", "Look", ("replay",), True),
    Action("step_on", "right", "on", "To the next action", "Look", ("replay",), True),
    Action("next_error", "n", "next error", "To the next action that failed", "Look", ("replay",), True),
    Action("previous_error", "N", "previous error", "To the previous action that failed", "Look", ("replay",), True),
    Action("slower", "minus", "slower", "Play half as fast", "Look", ("replay",), True),
    Action("faster", "plus,equals_sign", "faster", "Play twice as fast", "Look", ("replay",), True),
    Action("compare", "c", "compare", "The text alone, or what the values change in it", "Look", ("context",), True),
    Action("edit_task", "slash", "type task", "Type the task to preview", "Look", ("context",), True),
    Action("pick_loop", "l", "next loop", "Take the task of the next running loop", "Look", ("context",), True),
    Action("step_down", "left,minus", "less", "Decrease the value", "Look", _VALUES, True),
    Action("step_up", "right,plus,equals_sign", "more", "Increase the value", "Look", _VALUES, True),
    Action("put_back", "r", "restore", "Restore the current setting of this value", "Look", _VALUES, True),
    Action("put_all_back", "R", "restore all", "Restore the current settings of all values", "Look", _VALUES, True),
    Action("open", "enter", "open", "Open the details, or go to the record", "Look",
           (*_TABLES, "what_if", "past", "context", "metrics"), True),
    Action("more_weeks", "plus,equals_sign,right", "more weeks", "Show a longer time", "Look", ("metrics",)),
    Action("fewer_weeks", "minus,left", "fewer weeks", "Show a shorter time", "Look", ("metrics",)),
    Action("export", "E", "export", "Write all sections to a file: report, numbers or pictures", "Look",
           ("metrics",), True),
    Action("unfold", "right", "unfold", "Show the rows below, or go there", "Look", ("memory",)),
    Action("fold", "left", "fold", "Hide the rows below, or go up", "Look", ("memory",)),
    Action("whole", "v", "zoom", "Give the details the whole screen", "Look", ("memory",), True),
    Action("to_loop", "l", "show loop", "Go to the loop of this record", "Look", (*_MEMORY, "review"), True),
    Action("to_patterns", "p", "show patterns", "Go to the patterns extracted or used here", "Look", _MEMORY, True),
    Action("to_reflections", "r", "show reflections", "Go to the reflections on this", "Look", _MEMORY, True),
    Action("back", "escape", "back", "Leave the filter or the details, or clear the selection", "Look"),
    Action("mark", "m", "select", "Select this row, to decide about many at once", "Look", ("patterns",), True),
    Action("mark_many", "m,M", "select", "Shows why rows cannot be selected here", "Look", ("review",)),
    Action("mark_all", "M", "select all", "Select all rows that match the filter, or none", "Look", ("patterns",)),
    Action("why", "w", "explain", "Explain its state, rule by rule", "Look", _DECIDE, True),
    Action("next_tab", "right_square_bracket", "next tab", "The next tab or section", "Look", _TABBED, True),
    Action("previous_tab", "left_square_bracket", "previous tab", "The previous tab or section", "Look", _TABBED),
    Action("in_context", "i", "show in context", "Show it in the context that a loop would get", "Look",
           ("patterns", "loops", "review"), True),
    Action("what_if", "t", "what if", "Try other thresholds on all history", "Look", _DECIDE, True),
    Action("past", "H", "compare", "Compare now with an earlier moment", "Look"),
    Action("day_back", "left", "day back", "One day earlier", "Look", ("past",), True),
    Action("day_on", "right", "day on", "One day later", "Look", ("past",), True),
    Action("last_visit", "v", "since last visit", "Show changes since your last visit", "Look", ("past",), True),
    Action("top_k", "n", "set patterns", "To the number of patterns; left and right change it", "Look", ("context",)),
    Action("min_rate", "f", "set min rate", "To the lowest success rate that is injected", "Look", ("context",)),
    Action("budget", "b", "set tokens", "To the token limit of the context", "Look", ("context",)),
    Action("reflections", "m", "set reflections", "To the number of reflections of similar tasks; 0 for none", "Look",
           ("context",)),
    Action("order", "o", "change order", "By score, or by the lower bound of the interval", "Look", ("context",)),
    Action("errors", "e", "switch errors", "Error patterns on or off", "Look", ("context",)),
    Action("successes", "s", "switch successes", "Success patterns on or off", "Look", ("context",)),
    Action("antis", "a", "switch anti-patterns", "Anti-patterns on or off", "Look", ("context",)),
    Action("templates", "t", "switch templates", "Code templates on or off", "Look", ("context",)),
    Action("inject", "I", "record", "Record that a running loop got these patterns; cannot be undone", "Decide",
           ("context",), True),
    Action("extract", "e", "extract", "Preview the patterns of a finished loop, to extract them", "Decide",
           ("loops",), True),
    Action("group", "v", "group", "Group by learning, or list each reflection", "Look", ("reflections",), True),
    Action("draft", "e", "draft pattern", "Draft a candidate pattern from a learning of several loops", "Decide",
           ("reflections",), True),
    Action("give", "enter", "answer", "Give the highlighted answer", "Decide", ("review",), True),
    Action("accept", "a", "yes", "Answer yes", "Decide", ("review",), True),
    Action("reject", "x", "no", "Answer no", "Decide", ("review",), True),
    Action("rewrite", "e", "rewrite", "Edit the proposal, or keep the other one of two", "Decide", ("review",), True),
    Action("rewrite_in_editor", "E", "use editor", "Edit the proposal in $EDITOR", "Decide", ("review",)),
    Action("alternative", "v", "set alternative", "Choose another pattern as the alternative, or none", "Decide",
           ("review",)),
    Action("restore_text", "R", "restore text", "Restore the approved text", "Decide", ("review",)),
    Action("snooze", "s", "snooze", "Ask again in a week", "Decide", ("review",), True),
    Action("snooze_evidence", "W", "wait", "Ask again when there is new evidence", "Decide", ("review",)),
    Action("snooze_until", "S", "snooze…", "Choose how long to snooze", "Decide", ("review",), True),
    Action("promote", "p", "promote", "Pin as proven until you reset it", "Decide", _DECIDE, True),
    Action("deprecate", "d", "deprecate", "Pin as deprecated: not injected until you reset it", "Decide", _DECIDE,
           True),
    Action("reset", "r", "reset", "Remove the pin: the evidence decides again", "Decide", _DECIDE, True),
    Action("quarantine", "Q", "quarantine", "Suspend it: not injected until released", "Decide", _DECIDE),
    Action("release", "a", "approve", "Approve a held or quarantined text for injection", "Decide", ("patterns",)),
    Action("archive", "D", "archive", "Move it from the registry to the archive", "Decide", _DECIDE),
    Action("note", "c", "note", "Add a note", "Decide", _DECIDE),
    Action("undo_this", "x", "undo this", "Undo the decision under the cursor, with its group", "Decide", ("log",),
           True),
    Action("undo", "u", "undo", "Undo the newest decision", "Decide", (), True),
    Action("redo", "U", "redo", "Redo the decision that was undone", "Decide"),
    Action("edit_file", "o", "open file", "Open the file that holds it in $EDITOR", "Look", _FILES),
    Action("edit_item_file", "O", "open file", "Open the file that holds it in $EDITOR", "Look", ("review",)),
    Action("copy", "y", "copy", "Copy the mouse selection, else the id or the text", "Look"),
    Action("copy_whole", "Y", "copy all", "Copy everything shown about this, as Markdown", "Look"),
    Action("findings", "F", "show findings", "List the problems found in files", "Program"),
    Action("views", "V", "open view", "Saved views: open one, or save the current list", "Go"),
    Action("calls", "B", "set notifications", "Notifications: off, bell or desktop (OSC 9)", "Program"),
    Action("density", "Z", "change density", "Rows of one line, or of two with more details", "Program"),
    Action("screenshot", "P", "save picture", "Save this screen as an SVG picture", "Program"),
    Action("theme", "T", "change theme", "Switch to the next theme", "Program"),
    Action("glyphs", "A", "change glyphs", "Switch between drawn and ASCII glyphs", "Program"),
    Action("palette", "colon,ctrl+p", "open palette", "Find any action, view or record by typing, archived ones too",
           "Program"),
    Action("help", "question_mark,f1", "help", "All keys, and what this screen is for", "Program", (), True),
    Action("quit", "q,ctrl+c", "quit", "Leave; with a selection, ctrl+c copies it first", "Program"),
)  # fmt: skip

BY_ID: Final = {action.id: action for action in ACTIONS}
DECIDING: Final = frozenset(action.id for action in ACTIONS if action.group == "Decide")
"""What decides something, or begins to."""
WRITING: Final = DECIDING | {"edit_file", "edit_item_file"}
"""What changes files of the project, or opens them for editing."""
EXPORTING: Final = frozenset({"export", "screenshot"})
"""What writes a file at a path that the user names."""


def actions_of(place: str) -> tuple[Action, ...]:
    """The actions that exist on one screen, in the order of the registry."""
    return tuple(action for action in ACTIONS if not action.places or place in action.places)


def action_id(command: str) -> str:
    """The id of the action that Textual runs as `command`; "" if it is unknown."""
    _, name, parameters = parse(command)
    found = f"{_GO}{parameters[0]}" if name == "go" and parameters else name
    return found if found in BY_ID else ""


def bindings_of(place: str) -> list[Binding]:
    """The bindings of one screen."""
    return [action.binding for action in actions_of(place)]


_KEY_NAMES: Final = {
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "slash": "/", "backslash": "\\", "at": "@", "minus": "-", "plus": "+", "underscore": "_",
}  # fmt: skip
"""Names of keys that differ from their Unicode name."""


def key_name(key: str) -> str:
    """How a Textual key name is written for people: `question_mark` is `?`."""
    sign = key_to_character(key) or ""
    return _KEY_NAMES.get(key) or (sign if sign.isprintable() and not sign.isspace() else "") or key.replace("_", " ")
