"""One registry makes bindings, key line, help and palette; each place must keep what it promises."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from textual.actions import parse

from tui.app import RalphdeckApp, screen_class
from tui.kit.actions import (
    ACTIONS,
    BY_ID,
    GROUPS,
    PLACES,
    SCREENS,
    Action,
    actions_of,
    bindings_of,
    key_name,
    load_keymap,
)
from tui.screens.base_screen import BaseScreen
from tui.screens.history import CompareScreen, WhatIfScreen
from tui.screens.replay import ReplayScreen

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


def test_no_key_has_two_actions_on_one_screen() -> None:
    for place in SCREENS:
        keys = Counter(key for action in actions_of(place) for key in action.keys.split(",") if key)
        assert [key for key, count in keys.items() if count > 1] == [], place


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


def test_every_action_of_a_screen_has_a_method_and_a_binding() -> None:
    for place in SCREENS:
        owners = {action: RalphdeckApp if action.command.startswith("app.") else CLASSES[place] for action in ACTIONS}
        assert [one.id for one in actions_of(place) if not hasattr(owners[one], method(one))] == [], place
        for binding in bindings_of(place):
            assert binding.id in BY_ID and binding.tooltip, place
        assert bindings_of(place) == CLASSES[place].BINDINGS, place


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


def test_the_name_of_a_key() -> None:
    names = {
        "equals_sign": "=", "minus": "-", "slash": "/", "underscore": "_", "right_square_bracket": "]", "G": "G",
        "exclamation_mark": "!", "space": "space", "escape": "esc", "tab": "tab", "ctrl+p": "ctrl+p", "left": "←",
        "f1": "f1", "no_such_key": "no such key",
    }  # fmt: skip
    assert {key: key_name(key) for key in names} == names


def read(folder: Path, text: str | bytes) -> tuple[dict[str, str], list[str]]:
    file = folder / "keymap.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_keymap(file)


def test_keys_are_replaced_swapped_added_and_shared_by_separate_screens(tmp_path: Path) -> None:
    assert load_keymap(tmp_path / "none.toml") == ({}, [])
    for text, keymap in (
        ('promote = "f6"\nfilter = "f5 , slash"\n', {"promote": "f6", "filter": "f5,slash"}),
        ('promote = "d"\ndeprecate = "p"', {"promote": "d", "deprecate": "p"}),
        ('minutes = "f8"', {"minutes": "f8"}),
        ('pick_loop = "z"', {"pick_loop": "z"}),
    ):
        assert read(tmp_path, text) == (keymap, [])


def test_an_invalid_key_is_ignored_and_reported(tmp_path: Path) -> None:
    for value in ("5", '""', '" "', '"a\\u0007"', "[]", "true"):
        keymap, problems = read(tmp_path, f'promote = {value}\nreset = "f7"')
        assert keymap == {"reset": "f7"}, value
        assert "promote needs keys" in problems[0]


def test_an_unknown_or_former_action_is_reported(tmp_path: Path) -> None:
    keymap, problems = read(tmp_path, '"no\\u001bsuch" = "x"\nreset = "f7"')
    assert keymap == {"reset": "f7"}
    assert "unknown action" in problems[0] and "\x1b" not in problems[0]
    keymap, problems = read(tmp_path, 'top_k = "K"\nreset = "f7"')
    assert keymap == {"reset": "f7"}
    assert problems == ["keymap.toml line 1: top_k has no key of its own now: see `more` in Context; remove the line"]


def test_an_action_keeps_its_key_if_another_action_would_lose_its_key(tmp_path: Path) -> None:
    keymap, problems = read(tmp_path, 'promote = "d"')
    assert keymap == {}
    assert "promote and deprecate would share d in Review" in problems[0]
    # deprecate can't have `a`, so it keeps `d`; then promote can't have `d`.
    keymap, problems = read(tmp_path, 'promote = "d"\ndeprecate = "a"')
    assert (keymap, len(problems)) == ({}, 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('promot = "P"', "line 2: unknown action 'promot'; is it 'promote'?"),
        ('"promote" = "ctlr+x"', "line 2: promote: unknown key 'ctlr+x'; is it 'ctrl+x'?"),
        ('promote = "pagdown"', "is it 'pagedown'?"),
        ('promote = "ctrl+banana"', "unknown key 'ctrl+banana'"),
        ('promote = "banana"', "unknown key 'banana'"),
        ('promote = "ctrl+é"', "unknown key 'ctrl+é'"),
        ('promote = "ctrl+"', "unknown key 'ctrl+'"),
        ('promote = "ctrl+B"', "'ctrl+B' is used by tmux"),
        ('promote = "ctrl+i"', "the same as tab"),
        ('promote = "3"', "3 already opens Patterns; promote keeps its own key"),
        ('promote = "m"', "promote and mark would share m in Patterns"),
        ('promote = "q"', "promote and quit would share q in Review"),
        ('promote = "', "line 2: "),
        ('reset = "f8"', "line 2: reset is repeated; the first one is used"),
    ],
)
def test_each_error_is_reported_with_its_line_and_other_lines_apply(tmp_path: Path, line: str, message: str) -> None:
    keymap, problems = read(tmp_path, f'reset = "f7"\n{line}\nnote = "f9"\n')
    assert keymap == {"reset": "f7", "note": "f9"}
    assert len(problems) == 1 and message in problems[0]


@pytest.mark.parametrize(
    ("written", "key"),
    [("esc", "escape"), ("Alt+PgDn", "alt+pagedown"), ("~", "tilde"), ("?", "question_mark"), ("ctrl+X", "ctrl+x"),
     ("ctrl+full_stop", "ctrl+full_stop"), ("§", "section_sign"), ("é", "é"),
     ("alt+left", "alt+left"), ("#, f5", "number_sign,f5"), ("f6,nokey", "f6")],
)  # fmt: skip
def test_keys_can_be_written_by_their_common_names(tmp_path: Path, written: str, key: str) -> None:
    keymap, _problems = read(tmp_path, f'extract = "{written}"\nback = "f12"\nhelp="f1"')
    assert keymap["extract"] == key


@pytest.mark.parametrize("text", ["promote = ", "[promote\n", b"\xff\xfe", b"# P\n\x00"])
def test_a_broken_file_is_reported_and_left_alone(tmp_path: Path, text: str | bytes) -> None:
    keymap, problems = read(tmp_path, text)
    assert keymap == {}
    assert len(problems) == 1
    assert problems[0].startswith("keymap.toml")
