"""Colours that reach a terminal."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.desk import AFTER_JUMP
from tests.e2e.stream import tokens
from tests.e2e.terminal import Terminal, dashboard, environment

_COLOURS = {*range(30, 50), *range(90, 108)}


def colour_sequences(data: bytes) -> list[str]:
    """The sequences of a stream that set a colour, including the default colours."""
    styles = [token.value for token in tokens(data) if token.kind == "csi" and token.value.endswith("m")]
    return [style for style in styles if _COLOURS & {int(code) for code in style[:-1].split(";") if code}]


def test_no_color_sends_no_colour_even_with_a_named_theme(sample: Path, home: Path) -> None:
    with Terminal([*dashboard(sample), "--theme", "light"], environment(home, NO_COLOR="1")) as terminal:
        terminal.sees("Loops", "live")
        for key in "3458":
            terminal.press(key)
        terminal.press("3")
        terminal.sees("by score")
        terminal.settles(AFTER_JUMP)
        terminal.press("d", "escape", "?", "escape", ":", "escape", "t")
        terminal.sees("max errors")
        terminal.press("escape", "q")
        assert terminal.end() == 0
    assert colour_sequences(bytes(terminal.raw)) == []
    assert b"\x1b[7m" in bytes(terminal.raw), "the cursor shows by reverse video"
