"""The registry of actions (`actions.toml`), and the keymap file of the user."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from textual.actions import parse
from textual.binding import Binding
from textual.keys import REPLACED_KEYS, Keys, key_to_character

from core.base.text import visible_line
from tui.kit.textual_private import key_of_character

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
    """Return the label of a Textual key: `?` for `question_mark`, "" for no key."""
    sign = (key_to_character(key) if key else "") or ""
    return _KEY_NAMES.get(key) or (sign if sign.isprintable() and not sign.isspace() else "") or key.replace("_", " ")


TAKEN: Final = {
    "ctrl+a": "screen",
    "ctrl+b": "tmux",
    "ctrl+c": "ralphdeck itself (quit)",
    "ctrl+q": "the terminal (resume output)",
    "ctrl+s": "the terminal (stop output)",
    "ctrl+z": "the shell",
}
"""Keys that never reach the dashboard, and the program that uses them."""
SAME_AS: Final = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape"}
"""Keys that terminals send as another key."""
FORMER: Final = {"go_memory": "go_loops"}
"""Actions by a former name that keymap files may still use."""
WITHOUT_KEY: Final = {
    **dict.fromkeys(("top_k", "min_rate", "budget", "reflections", "order", "errors", "successes"), "Context"),
    **dict.fromkeys(("antis", "templates", "compare"), "Context"),
}
"""Former actions that keymap files may still name, and the screen where `more` leads to what they did."""
MOST_LINES: Final = 1_000
_ALSO: Final = {"esc": "escape", "return": "enter", "pgdn": "pagedown", "pgup": "pageup", "del": "delete"}
_NAMED: Final = frozenset(
    (*(key.value for key in Keys if not key.value.startswith("<") and key.value != "ctrl-at"), *REPLACED_KEYS)
)
_MODIFIERS: Final = frozenset({"ctrl", "shift", "alt", "meta", "super", "hyper"})


def load_keymap(path: Path) -> tuple[dict[str, str], list[str]]:
    """Load a TOML keymap of lines like `promote = "f6,J"`; {} without a file.

    Returns the valid lines, and a message with line number for each invalid one.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError) as error:
        return {}, [f"{path.name}: {visible_line(str(error), 160)}"]
    table, lines, wrong = _table(text)
    problems = [f"{path.name}{where}: {problem}" for where, problem in wrong]
    keymap: dict[str, str] = {}
    for name, keys in table.items():
        renamed = FORMER.get(name, name)
        read, problem = _line(renamed, keys)
        if renamed != name:
            problems.append(f"{path.name}{lines.get(name, '')}: {name} is now {renamed}; change the name in the file")
        if read and (renamed == name or renamed not in table):
            keymap[renamed] = ",".join(read)
        if problem:
            problems.append(f"{path.name}{lines.get(name, '')}: {problem}")
    while clash := next(filter(None, (_clash(name, keymap) for name in keymap)), None):
        name, other, key = clash
        problems.append(f"{path.name}{lines.get(name, '')}: {_clash_message(name, other, key)}")
        del keymap[name]  # its default key may now conflict with another line
    return keymap, problems


def _table(text: str) -> tuple[dict[str, Any], dict[str, str], list[tuple[str, str]]]:
    """Return values by name, the line of each name as ` line 3`, and syntax errors."""
    rows = text.splitlines()[:MOST_LINES]
    lines: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        name = row.partition("=")[0].strip().strip("\"'")
        lines.setdefault(name, f" line {number}")
    try:
        return tomllib.loads(text), lines, []
    except ValueError:
        pass
    table: dict[str, Any] = {}
    wrong: list[tuple[str, str]] = []
    for number, row in enumerate(rows, 1):
        try:
            found = tomllib.loads(row)
        except ValueError as error:
            reason = re.sub(r" \(at .*\)$", "", str(error))
            wrong.append((f" line {number}", f'{visible_line(reason, 100)}; write lines like: promote = "f6"'))
            continue
        if again := table.keys() & found.keys():
            wrong.append((f" line {number}", f"{visible_line(min(again), 40)} is repeated; the first one is used"))
        table = {**found, **table}
    return table, lines, wrong


def _line(name: str, keys: object) -> tuple[list[str], str]:
    """Validate the keys of one line; returns the valid keys, and a message or ""."""
    shown = visible_line(name, 40)
    if place := WITHOUT_KEY.get(name):
        return [], f"{name} has no key of its own now: see `more` in {place}; remove the line"
    if name not in BY_ID:
        return [], f"unknown action {shown!r}{_suggestion(name, BY_ID)}; see the help (?)"
    if not isinstance(keys, str) or not keys.strip() or not keys.isprintable():
        return [], f'{shown} needs keys as text, for example {shown} = "f6"'
    read, problems = [], []
    for written in keys.split(",") if keys.strip() != "," else [keys.strip()]:
        key, problem = _key(written.strip())
        if problem:
            problems.append(problem)
        else:
            read.append(key)
    return read, f"{shown}: {'; '.join(problems)}" if problems else ""


def _key(written: str) -> tuple[str, str]:
    """Return Textual's name of a key as people write it, and a message or ""."""
    key = key_of_character(written) if len(written) == 1 else written
    *modifiers, base = key.split("+") if len(key) > 1 else [key]
    base = _ALSO.get(base.lower(), base if len(base) == 1 and not modifiers else base.lower())
    key = "+".join((*(one.lower() for one in modifiers), base))
    shown = repr(visible_line(written, 30))
    if keeper := TAKEN.get(key):
        return key, f"{shown} is used by {keeper}"
    if other := SAME_AS.get(key):
        return key, f"{shown} is the same as {other} in a terminal"
    is_character = (key_to_character(base) or "\x80").isascii()
    known = key in _NAMED or base in _NAMED or is_character or (len(written) == 1 and not modifiers)
    if not known or not _MODIFIERS.issuperset(key.split("+")[:-1]):
        return key, f"unknown key {shown}{_suggestion(key, _NAMED | _MODIFIERS)}"
    return key, ""


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; is it 'promote'?` if a known name is similar, or ""."""
    near = get_close_matches(name[:40].lower(), list(known), n=1, cutoff=0.6)
    return f"; is it {near[0]!r}?" if near else ""


def _clash_message(name: str, other: str, key: str) -> str:
    if other.startswith("go_"):
        return f"{key_name(key)} already opens {PLACES[other.removeprefix('go_')][1]}; {name} keeps its own key"
    common = _common_places(name, other)
    where = "everywhere" if len(common) == len(SCREENS) else f"in {SCREENS[common[0]]}"
    return f"{name} and {other} would share {key_name(key)} {where}; {name} keeps its own"


def _clash(name: str, keymap: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return `name`, an action with the same key on the same screen, and the key."""
    mine = keymap[name].split(",")
    for other in ACTIONS:
        theirs = set(keymap.get(other.id, other.keys).split(",")) - {""}
        shared = [key for key in mine if key in theirs]
        if other.id != name and shared and _common_places(name, other.id):
            return name, other.id, shared[0]
    return None


def _common_places(one: str, other: str) -> list[str]:
    sets = [BY_ID[action].places or tuple(SCREENS) for action in (one, other)]
    return [place for place in SCREENS if place in sets[0] and place in sets[1]]
