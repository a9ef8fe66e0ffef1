"""Every action of the dashboard, once: bindings, key line, help, palette and keymap file are made from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
"""Places by id, in order: the key that goes there, and the name."""

SCREENS: Final = {place: name for place, (_key, name) in PLACES.items()} | {
    "what_if": "What if",
    "replay": "Replay",
    "past": "Then and now",
}
"""The name of every screen that has actions: the places, and what may lie over one."""

GROUPS: Final = ("Decide", "Look", "Move", "Go", "Program")
"""Headings of the help, in the order in which the key line offers actions."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does.

    Attributes:
        id: Unique; the name in the keymap file, and of the method `do_<id>` that carries it out.
        keys: Comma-separated Textual key names; the first one is shown.
        label: One or two words for the key line.
        tooltip: A sentence for help and palette.
        group: One of `GROUPS`.
        places: Where it exists, of `SCREENS`; empty = everywhere.
        shown: Whether the key line offers it.
    """

    id: str
    keys: str
    label: str
    tooltip: str
    group: str
    places: tuple[str, ...] = ()
    shown: bool = True

    @property
    def binding(self) -> Binding:
        """The Textual binding; its id lets the keymap file give it other keys."""
        return Binding(self.keys, f"act('{self.id}')", self.label, show=self.shown, tooltip=self.tooltip, id=self.id)


_CONTEXT: Final = ("context",)
_TABLES: Final = ("loops", "patterns", "reflections", "memory", "log")
_MEMORY: Final = ("memory",)
_METRICS: Final = ("metrics",)
_REPLAY: Final = ("replay",)
_PAST: Final = ("past",)
_REVIEW: Final = ("review",)

ACTIONS: Final[tuple[Action, ...]] = (
    *(Action(f"go_{place}", key, name, f"Go to {name}", "Go", shown=False) for place, (key, name) in PLACES.items()),
    Action("next_pane", "tab", "pane", "Move to the next pane", "Move", shown=False),
    Action("previous_pane", "shift+tab", "pane back", "Move to the previous pane", "Move", shown=False),
    Action("down", "j,down", "down", "One line down", "Move", shown=False),
    Action("up", "k,up", "up", "One line up", "Move", shown=False),
    Action("first", "g,home", "first", "To the first one", "Move", shown=False),
    Action("last", "G,end", "last", "To the last one", "Move", shown=False),
    Action(
        "page_down",
        "pagedown,space",
        "page down",
        "One page down",
        "Move",
        tuple(screen for screen in SCREENS if screen not in _REPLAY),
        shown=False,
    ),
    Action("scroll_down", "pagedown", "page down", "One page of the text down", "Move", _REPLAY, shown=False),
    Action("page_up", "pageup", "page up", "One page up", "Move", shown=False),
    Action("next_item", "n", "next", "To the next one that waits for a decision", "Move", ("patterns", "review")),
    Action(
        "previous_item",
        "N",
        "previous",
        "To the previous one that waits for a decision",
        "Move",
        ("patterns", "review"),
        shown=False,
    ),
    Action(
        "minutes",
        "b",
        "minutes",
        "Say how many minutes you have: what brings most comes first",
        "Look",
        _REVIEW,
        shown=False,
    ),
    Action("next_answer", "right", "next key", "See what the next key would change", "Look", _REVIEW, shown=False),
    Action(
        "previous_answer", "left", "key before", "See what the key before would change", "Look", _REVIEW, shown=False
    ),
    Action("open_item", "o", "open", "Go to what the question is about", "Look", _REVIEW),
    Action("filter", "/", "filter", "Type a filter; every word narrows the list", "Look", _TABLES),
    Action("sort", "S", "sort", "Sort by the next column", "Look", _TABLES, shown=False),
    Action("play", "space", "play", "Play on from here, or stop", "Look", _REPLAY),
    Action("step_back", "left", "back", "The action before", "Look", _REPLAY),
    Action("step_on", "right", "on", "The next action", "Look", _REPLAY),
    Action("next_error", "n", "next error", "To the next action that went wrong", "Look", _REPLAY),
    Action("previous_error", "N", "error before", "To the last one before that went wrong", "Look", _REPLAY),
    Action("slower", "minus", "slower", "Play half as fast", "Look", _REPLAY),
    Action("faster", "plus,equals_sign", "faster", "Play twice as fast", "Look", _REPLAY),
    Action("compare", "c", "text", "The text alone, or with what the knobs change in it", "Look", _CONTEXT),
    Action("edit_task", "slash", "task", "Type the task to preview", "Look", _CONTEXT),
    Action("pick_loop", "l", "loop", "Take the task of the next running loop", "Look", _CONTEXT),
    Action("step_down", "left,minus", "less", "Step the value down", "Look", ("what_if", "context")),
    Action("step_up", "right,plus,equals_sign", "more", "Step the value up", "Look", ("what_if", "context")),
    Action("put_back", "r", "put back", "Put the value back to today's", "Look", ("what_if", "context")),
    Action("put_all_back", "R", "put all back", "Put all values back to today's", "Look", ("what_if", "context")),
    Action(
        "open",
        "enter",
        "open",
        "Open the details, or go to what this belongs to",
        "Look",
        (*_TABLES, "what_if", "past", "context", "metrics"),
    ),
    Action("more_weeks", "plus,equals_sign,right", "longer", "Look at a longer time", "Look", _METRICS, shown=False),
    Action("fewer_weeks", "minus,left", "shorter", "Look at a shorter time", "Look", _METRICS, shown=False),
    Action("export", "E", "export", "Write all sections into a file: report, numbers or pictures", "Look", _METRICS),
    Action("unfold", "right", "unfold", "Show what is below, or go there", "Look", _MEMORY, shown=False),
    Action("fold", "left", "fold", "Fold what is below away, or go up", "Look", _MEMORY, shown=False),
    Action("whole", "v", "details", "Give the details the whole screen", "Look", _MEMORY),
    Action("to_loop", "l", "loop", "To the loop that this belongs to", "Look", ("memory", "replay", "review")),
    Action("to_patterns", "p", "patterns", "To the patterns that this gave or used", "Look", ("memory", "replay")),
    Action("to_reflections", "r", "reflections", "To the reflections on this", "Look", ("memory", "replay")),
    Action("back", "escape", "back", "Leave the filter, the details, or clear the marks", "Look", shown=False),
    Action("mark", "m", "mark", "Mark this one, to act on many at once", "Look", ("patterns",)),
    Action("mark_many", "m,M", "mark", "Why nothing is marked here", "Look", ("review",), shown=False),
    Action(
        "mark_all",
        "M",
        "mark all",
        "Mark all that the filter shows, or none",
        "Look",
        ("patterns",),
        shown=False,
    ),
    Action("why", "w", "why", "Why it has this state, rule by rule", "Look", ("patterns", "review")),
    Action(
        "next_tab",
        "right_square_bracket",
        "next tab",
        "The next tab of the details, or the next section",
        "Look",
        ("patterns", "loops", "memory", "metrics"),
    ),
    Action(
        "previous_tab",
        "left_square_bracket",
        "tab back",
        "The previous tab of the details, or the section before",
        "Look",
        ("patterns", "loops", "memory", "metrics"),
        shown=False,
    ),
    Action(
        "in_context",
        "i",
        "in context",
        "See it in the context that a loop would get",
        "Look",
        ("patterns", "loops", "review"),
    ),
    Action("what_if", "t", "what if", "Try other thresholds on all history", "Look", ("patterns", "review")),
    Action("past", "H", "then and now", "What was known at a past moment, and what changed since", "Look", shown=False),
    Action("day_back", "left", "day back", "A day earlier", "Look", _PAST),
    Action("day_on", "right", "day on", "A day later", "Look", _PAST),
    Action("last_visit", "v", "last visit", "What changed since your last visit", "Look", _PAST),
    Action(
        "top_k", "n", "patterns", "To the number of patterns; left and right step it", "Look", _CONTEXT, shown=False
    ),
    Action("min_rate", "f", "min rate", "To the lowest success rate that is let in", "Look", _CONTEXT, shown=False),
    Action("budget", "b", "tokens", "To the most tokens that the context may have", "Look", _CONTEXT, shown=False),
    Action(
        "reflections",
        "m",
        "reflections",
        "To the number of reflections, what similar tasks learned; 0 for none",
        "Look",
        _CONTEXT,
        shown=False,
    ),
    Action("order", "o", "order", "By score, or by the lower bound of the interval", "Look", _CONTEXT, shown=False),
    Action("errors", "e", "errors", "Error patterns on or off", "Look", _CONTEXT, shown=False),
    Action("successes", "s", "successes", "Success patterns on or off", "Look", _CONTEXT, shown=False),
    Action("antis", "a", "anti", "Anti-patterns on or off", "Look", _CONTEXT, shown=False),
    Action("templates", "t", "templates", "Code templates on or off", "Look", _CONTEXT, shown=False),
    Action(
        "inject",
        "I",
        "record",
        "Write down that a running loop got these patterns; a fact, not to be undone",
        "Decide",
        _CONTEXT,
    ),
    Action("extract", "e", "extract", "Look at what a finished loop has learned, to extract it", "Decide", ("loops",)),
    Action(
        "group",
        "v",
        "by learning",
        "The learnings that several loops told, or each reflection",
        "Look",
        ("reflections",),
    ),
    Action(
        "draft",
        "e",
        "draft pattern",
        "Draft a candidate pattern from a learning that recurs, with lineage to all its loops",
        "Decide",
        ("reflections",),
    ),
    Action("give", "enter", "answer", "Give the highlighted answer", "Decide", _REVIEW),
    Action("accept", "a", "yes", "Answer yes to the question", "Decide", _REVIEW),
    Action("reject", "x", "no", "Answer no to the question", "Decide", _REVIEW),
    Action(
        "rewrite",
        "e",
        "rewrite",
        "Put the proposal in other words, or keep the other one of two",
        "Decide",
        ("review",),
    ),
    Action(
        "rewrite_in_editor",
        "E",
        "in editor",
        "Put the proposal in other words in $EDITOR",
        "Decide",
        ("review",),
        shown=False,
    ),
    Action(
        "alternative",
        "v",
        "alternative",
        "Name another pattern as what to do instead, or none",
        "Decide",
        ("review",),
        shown=False,
    ),
    Action(
        "restore_text", "R", "restore text", "Put the text back that was approved", "Decide", ("review",), shown=False
    ),
    Action("snooze", "s", "snooze", "Ask again in a week", "Decide", ("review",)),
    Action(
        "snooze_evidence",
        "W",
        "wait",
        "Ask again when there is new evidence, however long that takes",
        "Decide",
        ("review",),
        shown=False,
    ),
    Action("snooze_until", "S", "snooze…", "Choose for how long it is not asked again", "Decide", ("review",)),
    Action(
        "promote",
        "p",
        "promote",
        "Pin as proven: it stays so until you reset it",
        "Decide",
        ("patterns", "review"),
    ),
    Action(
        "deprecate",
        "d",
        "deprecate",
        "Pin as deprecated: never injected until you reset it",
        "Decide",
        ("patterns", "review"),
    ),
    Action(
        "reset",
        "r",
        "reset",
        "Take the pin off: the evidence decides again",
        "Decide",
        ("patterns", "review"),
    ),
    Action(
        "quarantine",
        "Q",
        "quarantine",
        "Suspend it, without a verdict: not injected until released",
        "Decide",
        ("patterns", "review"),
        shown=False,
    ),
    Action(
        "release",
        "a",
        "approve",
        "Approve a held or quarantined text: loops may get it",
        "Decide",
        ("patterns",),
        shown=False,
    ),
    Action(
        "archive",
        "D",
        "archive",
        "Move it out of the registry into the archive",
        "Decide",
        ("patterns", "review"),
        shown=False,
    ),
    Action("note", "c", "note", "Write a note beside it", "Decide", ("patterns", "review"), shown=False),
    Action(
        "undo_this", "x", "take back", "Take the decision under the cursor back, with its group", "Decide", ("log",)
    ),
    Action("undo", "u", "undo", "Take the newest decision back", "Decide"),
    Action("redo", "U", "redo", "Repeat the decision that was taken back", "Decide", shown=False),
    Action(
        "edit_file",
        "o",
        "open file",
        "Open the file that holds it in $EDITOR",
        "Look",
        ("loops", "patterns", "reflections", "memory", "replay"),
        shown=False,
    ),
    Action(
        "edit_item_file",
        "O",
        "open file",
        "Open the file that holds it in $EDITOR",
        "Look",
        _REVIEW,
        shown=False,
    ),
    Action("copy", "y", "copy", "Copy what the mouse has selected, else the id or text", "Look", shown=False),
    Action("copy_whole", "Y", "copy all", "Copy all that is shown of this, as Markdown", "Look", shown=False),
    Action("findings", "F", "findings", "What is wrong in the files", "Program", shown=False),
    Action("views", "V", "views", "Saved views: open one, or keep what is shown under a name", "Go", shown=False),
    Action("calls", "B", "calls", "Call by bell or message when something needs a decision", "Program", shown=False),
    Action("density", "Z", "density", "Rows of one line, or of two with more about each", "Program", shown=False),
    Action("screenshot", "P", "picture", "Write this screen into a file as an SVG picture", "Program", shown=False),
    Action("theme", "T", "theme", "The next theme", "Program", shown=False),
    Action("glyphs", "A", "ASCII", "Plain ASCII marks, or the drawn ones", "Program", shown=False),
    Action(
        "palette",
        "colon,ctrl+p",
        "palette",
        "Find any action, view or record by typing, archived ones too",
        "Program",
        shown=False,
    ),
    Action("help", "question_mark,f1", "help", "All keys, and what this place is for", "Program"),
    Action("quit", "q,ctrl+c", "quit", "Leave; with a selection, ctrl+c copies that first", "Program", shown=False),
)

BY_ID: Final = {action.id: action for action in ACTIONS}
DECIDING: Final = frozenset(action.id for action in ACTIONS if action.group == "Decide")
"""What decides something, or begins to."""
WRITING: Final = DECIDING | {"edit_file", "edit_item_file"}
"""What changes files of the project, or lets somebody do so."""
EXPORTING: Final = frozenset({"export", "screenshot"})
"""What writes a file wherever a person names one."""


def actions_of(place: str) -> tuple[Action, ...]:
    """The actions that exist in one place, in the order of the registry."""
    return tuple(action for action in ACTIONS if not action.places or place in action.places)


def bindings_of(place: str) -> list[Binding]:
    """The bindings of one place."""
    return [action.binding for action in actions_of(place)]


_KEY_NAMES: Final = {
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "slash": "/", "backslash": "\\", "at": "@", "minus": "-", "plus": "+", "underscore": "_",
}  # fmt: skip
"""What people call keys; other signs have their Unicode name."""


def key_name(key: str) -> str:
    """How a Textual key name is written for people: `question_mark` is `?`."""
    sign = key_to_character(key) or ""
    return _KEY_NAMES.get(key) or (sign if sign.isprintable() and not sign.isspace() else "") or key.replace("_", " ")
