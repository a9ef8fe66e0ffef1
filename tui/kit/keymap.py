"""Keymap file: load and validate the user's key bindings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from textual.keys import REPLACED_KEYS, Keys, key_to_character

from core.base.text import visible_line
from tui.kit.actions import ACTIONS, BY_ID, PLACES, SCREENS, key_name
from tui.kit.textual_private import key_of_character

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
