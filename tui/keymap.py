"""The keymap file: other keys for the actions, checked before they are used."""

from __future__ import annotations

import tomllib
from pathlib import Path

from core.text import visible_line
from tui.actions import ACTIONS, BY_ID, SCREENS


def load_keymap(path: Path) -> tuple[dict[str, str], list[str]]:
    """The keymap of a TOML file with lines like `promote = "P"` (several keys: `"P,f5"`), and what is wrong in it.

    What is wrong is left out; the rest applies. A missing file is an empty keymap.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError) as error:
        return {}, [f"{path.name}: {visible_line(str(error), 160)}"]
    keymap: dict[str, str] = {}
    problems: list[str] = []
    for name, keys in table.items():
        shown = visible_line(name, 40)
        if name not in BY_ID:
            problems.append(f"{path.name}: no action {shown!r}; the help (?) names them all")
        elif not isinstance(keys, str) or not keys.strip() or not keys.isprintable():
            problems.append(f'{path.name}: {shown} wants keys as text, for example {shown} = "P"')
        else:
            keymap[name] = ",".join(key.strip() for key in keys.split(","))
    while clash := next(filter(None, (_clash(name, keymap) for name in keymap)), None):
        name, other = clash
        problems.append(f"{path.name}: {name} and {other} would share a key; {name} keeps its own")
        del keymap[name]  # its own key may be taken by now: look again
    return keymap, problems


def _clash(name: str, keymap: dict[str, str]) -> tuple[str, str] | None:
    """`name` and another action that has one of its keys in a place where both exist, or None."""
    mine = set(keymap[name].split(","))
    for other in ACTIONS:
        theirs = set(keymap.get(other.id, other.keys).split(","))
        if other.id != name and mine & theirs and _meet(name, other.id):
            return name, other.id
    return None


def _meet(one: str, other: str) -> bool:
    everywhere = set(SCREENS)
    return bool((set(BY_ID[one].places) or everywhere) & (set(BY_ID[other].places) or everywhere))
