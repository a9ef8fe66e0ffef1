"""Typed and pasted text is untrusted."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.e2e.desk import AFTER_JUMP, at_question
from tests.e2e.stream import offences
from tests.e2e.terminal import Terminal, dashboard, environment

PASTE = (
    "\x00\x07\x08\x0b\x0e\x7f\x9b31m\x9d0;\u202e\u2066\u200b\u2028\ufeff\U000e0041\u2764\ufe0f\U0001f44d\U0001f3fd"
    "[/] [/b] [@click=app.exit()]x[/] [$primary] \\"
)
"""Everything except escape characters, which terminals remove from pasted text."""


def moved(terminal: Terminal, before: str) -> bool:
    return at_question(terminal.draw()) not in ("", before)


def go_on_to_an_inversion(terminal: Terminal) -> None:
    """Press each key when the previous one has taken effect; otherwise the last ones would skip the question."""
    terminal.sees("a  yes")
    while "Warn agents of it" not in terminal.draw():
        before = at_question(terminal.draw())
        terminal.press("n")
        terminal.until(partial(moved, terminal, before), "the next question")
        terminal.settles(0.2)


FIELDS = {
    "filter": "/",
    "palette": ":",
    "reason": "3d",
    "note": "3c",
    "rewrite": "2ne",
    "task": "6/",
}
"""Keys that open them, one after the other."""

SHOWS = {"3": "by score", "2": "a  yes", "6": "type task"}
"""A text on each screen."""


def open_field(terminal: Terminal, mark: str, *keys: str) -> None:
    """Press keys that open a field, and wait until it accepts a paste; `n` goes on to an inversion."""
    for key in keys:
        if key == "n":
            go_on_to_an_inversion(terminal)
        else:
            terminal.press(key)
            if key in SHOWS:
                terminal.sees(SHOWS[key])
                terminal.settles(AFTER_JUMP)
    for _ in range(20):
        terminal.paste(f"{mark} ")
        terminal.settles(0.3)
        if mark in terminal.draw():
            return
    raise AssertionError(f"no field takes a paste:\n{terminal.draw()}")


def test_a_paste_is_plain_text_in_every_field(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        for name, keys in FIELDS.items():
            open_field(terminal, f"RDX{name}", *keys)
            terminal.paste(f"{PASTE} the end")
            terminal.settles()
            terminal.paste(f"second{name}")
            terminal.sees(f"second{name}")
            terminal.press("escape", "escape")
        terminal.press("ctrl+c")
        assert terminal.end() == 0
        assert offences(bytes(terminal.raw)) == []


def test_hostile_bytes_and_reasons_are_harmless(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        terminal.write(b"\x9b\xff")  # bytes that are not text
        terminal.settles()
        open_field(terminal, "RDX", "3", "d")
        terminal.paste("because \u202e[/] [@click=app.exit()]RDX\x9b")
        terminal.press("enter")
        terminal.sees("deprecated pat-")
        terminal.press("L", "enter")
        terminal.sees("RDX")
        terminal.press("q")
        assert terminal.end() == 0
        assert offences(bytes(terminal.raw)) == []


def test_keys_typed_ahead_reach_the_opening_field_or_screen(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        for place in "3L6":
            terminal.press(place)
            terminal.settles()
            keys = f"pdrUxaq1{place}"  # all at once, as over a slow line: every one of them is a key that acts
            terminal.write(f"/{keys}".encode())
            terminal.sees(keys if place == "6" else f"❯  {keys}")
            terminal.press("escape", "escape")
        assert '"by":"ana"' not in (sample / ".aiwg/ralph/shared/curation/ledger.jsonl").read_text()
        terminal.press("3")
        terminal.sees("by score")
        terminal.settles(AFTER_JUMP)
        terminal.write(b"/id:pat-error-null-check-015\rdno good\rL")
        terminal.sees("Log", "no good")
        terminal.press("ctrl+c")
        assert terminal.end() == 0
