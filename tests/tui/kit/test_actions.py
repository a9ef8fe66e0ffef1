"""One registry makes bindings, key line, help and palette; each place must keep what it promises."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from textual.actions import parse

from tui.app import RalphdeckApp, screen_class
from tui.kit.actions import ACTIONS, BY_ID, GROUPS, PLACES, SCREENS, Action, actions_of, bindings_of, key_name
from tui.screens.base_screen import BaseScreen
from tui.screens.compare import CompareScreen
from tui.screens.replay import ReplayScreen
from tui.screens.what_if import WhatIfScreen

CLASSES: dict[str, type[BaseScreen]] = {
    **{name: screen_class(name) for name in PLACES},
    "what_if": WhatIfScreen,
    "replay": ReplayScreen,
    "past": CompareScreen,
}
TAKEN_BY_OTHERS = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+q", "ctrl+z"}
"""tmux, screen and the shell."""


def test_every_id_is_unique_and_every_group_and_place_is_known() -> None:
    assert len(BY_ID) == len(ACTIONS)
    for action in ACTIONS:
        assert action.group in GROUPS
        assert set(action.places) <= set(SCREENS)
        assert action.tooltip[0].isupper()
        assert not action.tooltip.endswith(".")


@pytest.mark.parametrize("place", SCREENS)
def test_no_key_has_two_actions_on_one_screen(place: str) -> None:
    keys = Counter(key for action in actions_of(place) for key in action.keys.split(",") if key)
    assert [key for key, count in keys.items() if count > 1] == []


SHARED_KEYS = {
    **dict.fromkeys(("n", "N"), "next and previous"),
    **dict.fromkeys(("left", "right"), "one step"),
    **dict.fromkeys(("m", "asterisk"), "select"),
    "enter": "open",
    "a": "yes",
    "x": "no",
    "e": "open a draft",
    "o": "open the file",
    "r": "restore",
    "v": "switch the view",
    "pagedown": "one page down",
    "space": "one page down; the exception is Replay, where it plays as in any player",
}
"""What a key means that several actions have; all others have one action."""


def test_a_key_has_one_meaning_on_all_screens() -> None:
    keys = Counter(key for action in ACTIONS for key in action.keys.split(",") if key)
    assert {key for key, count in keys.items() if count > 1} == set(SHARED_KEYS)


def test_the_user_guide_lists_every_key() -> None:
    guide = (Path(__file__).parents[3] / "docs/screens.md").read_text()
    listed = set(re.findall(r"`([^`]+)`", "".join(line for line in guide.splitlines() if line.startswith("|"))))
    keys = {key_name(key) for action in ACTIONS for key in action.keys.split(",") if key}
    assert keys - {name for text in listed for name in text.split()} == set()


def method(action: Action) -> str:
    return f"action_{parse(action.command)[1]}"


@pytest.mark.parametrize("place", SCREENS)
def test_every_action_of_a_screen_has_a_method(place: str) -> None:
    missing = [
        action.id
        for action in actions_of(place)
        if not hasattr(RalphdeckApp if action.command.startswith("app.") else CLASSES[place], method(action))
    ]
    assert missing == []


@pytest.mark.parametrize("place", SCREENS)
def test_bindings_carry_id_and_tooltip(place: str) -> None:
    for binding in bindings_of(place):
        assert binding.id in BY_ID
        assert binding.tooltip
    assert bindings_of(place) == CLASSES[place].BINDINGS


def test_no_key_reserved_by_the_terminal_is_bound() -> None:
    keys = {key for action in ACTIONS for key in action.keys.split(",")}
    assert keys & TAKEN_BY_OTHERS == set()


def test_keys_are_named_for_people() -> None:
    for action in ACTIONS:
        for key in filter(None, action.keys.split(",")):
            name = key_name(key)
            assert name.strip()
            assert len(name) <= 9
            assert "_" not in name, action.id


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *(
            ("equals_sign", "="),
            ("minus", "-"),
            ("slash", "/"),
            ("underscore", "_"),
            ("right_square_bracket", "]"),
            ("exclamation_mark", "!"),
            ("G", "G"),
        ),
        *(("space", "space"), ("escape", "esc"), ("tab", "tab"), ("ctrl+p", "ctrl+p"), ("left", "←"), ("f1", "f1")),
        ("no_such_key", "no such key"),
    ],
)
def test_the_name_of_a_key(key: str, name: str) -> None:
    assert key_name(key) == name
