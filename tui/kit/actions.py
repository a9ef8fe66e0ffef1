"""The registry of actions for bindings, help and palette (`actions.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from textual.actions import parse
from textual.binding import Binding
from textual.keys import key_to_character

PLACES: Final = {
    "now": ("1", "Now"),
    "review": ("2", "Review"),
    "patterns": ("3", "Patterns"),
    "loops": ("4", "Loops"),
    "reflections": ("5", "Reflections"),
    "context": ("6", "Context"),
    "metrics": ("M", "Metrics"),
    "log": ("L", "Log"),
}
"""The main screens by ID, in order: key and name."""

FORMER_PLACES: Final = {"memory": "loops"}
"""Screens by the ID of a former screen whose rows they list; saved views may name it."""

SCREENS: Final = {place: name for place, (_key, name) in PLACES.items()} | {
    "what_if": "What-if",
    "replay": "Replay",
    "past": "Compare",
}
"""Name by ID of every screen that has actions: the main ones, and those shown on top of one of them."""

GROUPS: Final = ("Decide", "Look", "Move", "Go", "Program")
"""Headings of the help; the key line lists actions in this order."""

OF_APP: Final = frozenset(
    {
        "undo",
        "redo",
        "past",
        "what_if",
        "views",
        "trust",
        "findings",
        "calls",
        "density",
        "screenshot",
        "theme",
        "glyphs",
    }
    | {"palette", "help", "quit"}
)
"""Actions that the app carries out on every screen."""
_GO: Final = "go_"


@dataclass(frozen=True, slots=True)
class Action:
    """An action that keys run; the head of `actions.toml` describes the fields."""

    id: str
    keys: str
    label: str
    tooltip: str
    group: str
    places: tuple[str, ...] = ()
    shown: bool = False

    @property
    def command(self) -> str:
        if self.id.startswith(_GO):
            return f"app.go('{self.id.removeprefix(_GO)}')"
        return f"app.{self.id}" if self.id in OF_APP else self.id

    @property
    def binding(self) -> Binding:
        """Textual binding; the keymap file refers to it by its ID."""
        # Textual needs a key, also where only the keymap file may give one: this name is none that a terminal sends.
        keys = self.keys or f"no-key-{self.id}"
        return Binding(keys, self.command, self.label, show=self.shown, tooltip=self.tooltip, id=self.id)


def _load() -> Iterator[Action]:
    yield from (Action(f"{_GO}{place}", key, name, f"Go to {name}", "Go") for place, (key, name) in PLACES.items())
    table = tomllib.loads((Path(__file__).parent / "actions.toml").read_text(encoding="utf-8"))
    for id, values in table.items():
        yield Action(id, **{**values, "places": tuple(values.get("places", ()))})


ACTIONS: Final = tuple(_load())
BY_ID: Final = {action.id: action for action in ACTIONS}
DECIDING: Final = frozenset(action.id for action in ACTIONS if action.group == "Decide")
"""IDs of actions that decide something or open a dialog for a decision."""
WRITING: Final = DECIDING | {"edit_file", "edit_item_file"}
"""IDs of actions that change project files or open them for editing."""
EXPORTING: Final = frozenset({"export", "screenshot"})
"""IDs of actions that write a file at a path that the user chooses."""


def actions_of(place: str) -> tuple[Action, ...]:
    """Return the actions of one screen, in the order of the registry."""
    return tuple(action for action in ACTIONS if not action.places or place in action.places)


def action_id(command: str) -> str:
    """Return the ID of the action that Textual runs as `command`, or "" if unknown."""
    _, name, parameters = parse(command)
    found = f"{_GO}{parameters[0]}" if name == "go" and parameters else name
    return found if found in BY_ID else ""


def bindings_of(place: str) -> list[Binding]:
    return [action.binding for action in actions_of(place)]


_KEY_NAMES: Final = {
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "slash": "/", "backslash": "\\", "at": "@", "minus": "-", "plus": "+", "underscore": "_",
}  # fmt: skip
"""Names of keys that differ from their Unicode name."""


def key_name(key: str) -> str:
    """Return the label of a key by its Textual name: `?` for `question_mark`, "" for no key."""
    sign = (key_to_character(key) if key else "") or ""
    return _KEY_NAMES.get(key) or (sign if sign.isprintable() and not sign.isspace() else "") or key.replace("_", " ")
