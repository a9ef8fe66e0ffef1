"""What is typed and pasted is untrusted, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.stream import offences
from tests.e2e.terminal import Terminal, dashboard, environment

PASTE = (
    "\x00\x07\x08\x0b\x0e\x7f\x9b31m\x9d0;\u202e\u2066\u200b\u2028\ufeff\U000e0041\u2764\ufe0f\U0001f44d\U0001f3fd"
    "[/] [/b] [@click=app.exit()]x[/] [$primary] \\"
)
"""Everything but escape characters: terminals leave them out of what they paste."""


def open_field(terminal: Terminal, *keys: str) -> None:
    """Press keys that open a field, and wait until it takes what is pasted; `n` goes on to an inversion."""
    for key in keys:
        terminal.press(key)
        for _ in range(30 if key == "n" else 0):
            terminal.settles(0.2)
            if "Turn this into a warning?" in terminal.draw():
                break
            terminal.press("n")
    for _ in range(20):
        terminal.paste("RDX ")
        terminal.settles(0.3)
        if "RDX" in terminal.draw():
            return
    raise AssertionError(f"no field takes a paste:\n{terminal.draw()}")


@pytest.mark.parametrize(
    "keys",
    [("/",), (":",), ("4", "/"), ("2", "d"), ("2", "c"), ("3", "n", "e")],
    ids=["filter", "palette", "task", "reason", "note", "rewrite"],
)
def test_a_paste_is_only_text(sample: Path, home: Path, keys: tuple[str, ...]) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        open_field(terminal, *keys)
        terminal.paste(f"{PASTE} the end")
        terminal.settles()
        terminal.paste("RDXsecond")
        terminal.sees("RDXsecond")
        terminal.press("escape", "escape", "ctrl+c")
        assert terminal.end() == 0
        assert offences(bytes(terminal.raw)) == []


def test_a_hostile_reason_is_told_and_kept_harmlessly(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        open_field(terminal, "2", "d")
        terminal.paste("because \u202e[/] [@click=app.exit()]RDX\x9b")
        terminal.press("enter")
        terminal.sees("deprecated", "⊘")
        terminal.press("8", "enter")
        terminal.sees("RDX")
        terminal.press("q")
        assert terminal.end() == 0
        assert offences(bytes(terminal.raw)) == []


def test_bytes_that_are_no_text_are_passed_over(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        terminal.write(b"\x9b\xff")
        terminal.settles()
        terminal.press("2")
        terminal.sees("score")
        terminal.press("q")
        assert terminal.end() == 0


@pytest.mark.parametrize("place", ["2", "8", "4"])
def test_what_is_typed_ahead_is_typed_into_the_field(sample: Path, home: Path, place: str) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        terminal.press(place)
        terminal.settles()
        terminal.write(b"/pdrUxaq1")  # in one go, as over a slow line: every one of them is a key that acts
        terminal.sees("❯  pdrUxaq1" if place != "4" else "pdrUxaq1")
        terminal.press("ctrl+c")
        assert terminal.end() == 0
    decided = (sample / ".aiwg/ralph/shared/curation/ledger.jsonl").read_text()
    assert '"by":"ana"' not in decided


def test_what_is_typed_behind_enter_is_for_where_that_leads(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        terminal.sees("live")
        terminal.press("2")
        terminal.settles()
        terminal.write(b"/id:pat-error-null-check-015\rdno good\r8")
        terminal.sees("Log", "no good")
        terminal.press("ctrl+c")
        assert terminal.end() == 0
