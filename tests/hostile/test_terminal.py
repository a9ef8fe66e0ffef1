"""The dashboard on the hostile projects in a real terminal: every screen, tab, dialog and toast, and the mouse."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.e2e.stream import distinct_tokens, harmless, offences
from tests.e2e.terminal import Terminal, dashboard, environment
from tests.hostile.payloads import MARK, PAYLOADS
from tests.hostile.tree import write_texts, write_wrong_patterns

OWN_COMMANDS: Final = re.compile(r"22;[a-z-]*|52;c;[A-Za-z0-9+/=]*")
"""Operating system commands that the dashboard sends: pointer shape and copying."""


def assert_harmless(raw: bytes) -> None:
    assert offences(raw, allowed_osc=OWN_COMMANDS) == []
    for token in distinct_tokens(raw):
        if token.kind == "osc":
            assert MARK not in token.value
            if token.value.startswith("52;"):
                copied = base64.b64decode(token.value.removeprefix("52;c;")).decode()
                assert all(char in "\n\t" or harmless(char) for char in copied)
    for payload in PAYLOADS:
        if payload.acts:
            assert payload.text.encode("utf-8", "surrogatepass") not in raw, payload.name


def browse(terminal: Terminal, tabs: int) -> None:
    """Open rows in all parts of a list, every tab of one, and one in full size."""
    terminal.press("jjjj", "G", *"]" * tabs)
    terminal.press("enter", "\x1b[6~", "G", "escape", "S", "S", "y")


def patterns(terminal: Terminal) -> None:
    """Filter, select, decide with dialogs, undo."""
    browse(terminal, 5)
    for word in ("close", "boldred"):
        terminal.press("/", f"{MARK}{word}", "enter", "g", "escape", "escape")
    terminal.press("/", "state:proven", "enter", "g", "p")
    terminal.sees("undo promote")
    terminal.press("u", "j", "d", "nobody reads this [/] [b]", "enter", "c", "note [@click=app.exit()]x[/]")
    terminal.press("enter", "U", "u", "M", "p", "n", "d", "escape", "escape")


def review(terminal: Terminal) -> None:
    """Open some questions, rewrite a text, give answers."""
    terminal.press("n", "n", "n", "N", "\t", "G", "e", "escape", "a", "x", "s", "u", "p", "r", "i")
    terminal.press("2", "w", "2", "o")


def context(terminal: Terminal) -> None:
    """Take the tasks of running loops and change values."""
    terminal.press("escape", "n", ".", "right", "left", "enter", "escape", "v", "n", "n", "\t", "G", "y", "n", "v")
    terminal.press("+", "-")
    terminal.press("/", f" {MARK} fix name approach", "enter", "escape")


WALKS: Final[tuple[tuple[str, str, Callable[[Terminal], None]], ...]] = (
    (
        "1",
        "Needs you",
        lambda terminal: terminal.press("G", "y", "Y", "[", "enter", "escape", "g", "j", "enter", "escape"),
    ),
    ("4", "newest", lambda terminal: browse(terminal, 5)),
    ("3", "score", patterns),
    ("2", "a  yes", review),
    ("6", "The exact text that an agent gets", context),
    ("5", "What agents wrote", lambda terminal: browse(terminal, 1)),
    ("L", "decision", lambda terminal: browse(terminal, 1)),
)


def click(terminal: Terminal) -> None:
    """Click the markup in the rows of each list and beside them."""
    for place, sight in (("4", "What your agents are"), ("3", "score"), ("5", "What agents wrote"), ("L", "decision")):
        terminal.press("escape", "escape", place)
        terminal.sees(sight)
        terminal.settles(0.3)
        terminal.press("/", f"{MARK}click", "enter")
        terminal.until(lambda: terminal.screen.find("[@click=") is not None, f"[@click= in place {place}")
        for y, line in enumerate(terminal.screen.lines):
            for found in list(re.finditer(re.escape("[@click="), line))[:2]:
                terminal.click(found.end() + 3, y)
        for text in (f"{MARK}click", f"{MARK}click2"):
            if (at := terminal.screen.find(text)) is not None:
                terminal.click(at[0] + 2, at[1])
        terminal.settles()
    terminal.press("escape", "escape")


def test_nothing_hostile_reaches_the_terminal_and_clicks_on_it_have_no_effect(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    write_texts(project)
    write_wrong_patterns(project)
    home.mkdir()
    with Terminal(dashboard(project), environment(home)) as terminal:
        terminal.sees("⟳", "Needs you")
        for key, sight, walk in WALKS:
            terminal.press(key)
            terminal.sees(sight)
            terminal.settles(0.3)
            walk(terminal)
            terminal.press("escape", "escape")
            terminal.settles(0.3)  # an open input line would take the next key as text
            terminal.press("?")
            terminal.sees("Help on")
            terminal.press("escape")
            terminal.until(lambda: "Help on" not in terminal.screen.text, "the help to go")
        click(terminal)
        for word in (MARK, "[/"):
            terminal.press(":", word, "down", "escape")
        terminal.press(":", f"{MARK}boldred", "down", "enter", "T", "A")
        terminal.settles()
        terminal.press("ctrl+c")
        assert terminal.end() == 0
        raw = bytes(terminal.raw)
    assert_harmless(raw)
    assert f"[bold red]{MARK}boldred".encode() in raw, "markup is shown as it is written"
