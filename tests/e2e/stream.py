"""Parses what a program wrote to its terminal, and draws the resulting screen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from rich.cells import cell_len

_TOKEN: Final = re.compile(
    r"""
      \x1b\[ (?P<parameters>[0-?]*) (?P<middle>[ -/]*) (?P<final>[@-~])
    | \x1b\] (?P<osc>[^\x07\x1b]*) (?:\x07|\x1b\\)
    | \x1b (?P<escape>[P_^X].*? \x1b\\ | .)
    | (?P<control>[\x00-\x1f\x7f-\x9f])
    | (?P<text>[^\x00-\x1f\x7f-\x9f]+)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a stream.

    Attributes:
        kind: text, control, csi, osc or escape.
        value: The characters; of a csi its parameters, intermediate and final characters.
    """

    kind: str
    value: str


def tokens(data: bytes) -> Iterator[Token]:
    """Split a stream into tokens; it must be valid UTF-8."""
    text = data.decode()
    at = 0
    for found in _TOKEN.finditer(text):
        assert found.start() == at, f"not to be read at {text[at : at + 40]!r}"
        at = found.end()
        yield _token(found)
    assert at == len(text), f"not to be read at {text[at : at + 40]!r}"


def distinct_tokens(data: bytes) -> Iterator[Token]:
    """Every token of a stream once: most are repeated many times."""
    text = data.decode()
    rest = _TOKEN.sub("", text)
    assert not rest, f"not to be read: {rest[:40]!r}"
    for piece in dict.fromkeys(found[0] for found in _TOKEN.finditer(text)):
        found = _TOKEN.match(piece)
        assert found
        yield _token(found)


def _token(found: re.Match[str]) -> Token:
    if found["final"]:
        return Token("csi", found["parameters"] + found["middle"] + found["final"])
    kind = found.lastgroup or ""
    return Token(kind, found[kind])


_ALLOWED_CSI: Final = re.compile(
    r"""
      [0-9;:]*m                                            # colours and styles
    | [0-9]+;[0-9]+H | H                                   # the cursor's place
    | \?(?:1000|1003|1004|1006|1015|1016|1049|2004|2026|2048|25|7)[hl]
    | \?(?:2026|2048)\$p                                   # does the terminal know these modes?
    | >[0-9]+u | <u                                        # keyboard protocol on, off
    | [0-9]*[AGKJ]                                         # panic text by rich
    """,
    re.VERBOSE,
)
_ALLOWED_CONTROLS: Final = "\r\n"
_ALLOWED_OSC: Final = re.compile(r"22;[a-z-]*")
"""Pointer shape."""


def offences(data: bytes, *, allowed_osc: re.Pattern[str] = _ALLOWED_OSC) -> list[str]:
    """Everything in a stream that Textual does not write itself, so it must come from data."""
    found = []
    for token in distinct_tokens(data):
        match token.kind:
            case "csi" if not _ALLOWED_CSI.fullmatch(token.value):
                found.append(f"control sequence {token.value!r}")
            case "osc" if not allowed_osc.fullmatch(token.value):
                found.append(f"operating system command {token.value[:60]!r}")
            case "escape":
                found.append(f"escape {token.value[:60]!r}")
            case "control" if token.value not in _ALLOWED_CONTROLS:
                found.append(f"control {token.value!r}")
            case "text" if not token.value.isascii():
                found += [f"character {char!r}" for char in token.value if not harmless(char)]
    return found


@cache
def harmless(char: str) -> bool:
    """Whether a character only draws itself: not a control, direction mark, invisible character or lone surrogate."""
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return False
    return not 0xFE00 <= ord(char) <= 0xFE0F


class Screen:
    """The screen of a terminal; supports the cursor movements that Textual uses.

    Args:
        width, height: In cells.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rows = [[" "] * width for _ in range(height)]
        self._x = self._y = 0

    def feed(self, found: Token) -> None:
        """Draw one token."""
        if found.kind == "text":
            end = self._x + len(found.value)
            if found.value.isascii() and 0 <= self._y < self.height and end <= self.width:
                self._rows[self._y][self._x : end] = found.value
                self._x = end
                return
            for char in found.value:
                self._put(char)
        elif found.kind == "control":
            if found.value == "\n":
                self._y += 1
            self._x = 0
        elif found.kind == "csi" and found.value.endswith("H"):
            row, _, column = found.value[:-1].partition(";")
            self._y, self._x = int(row or 1) - 1, int(column or 1) - 1
        elif found.kind == "csi" and found.value in {"?1049h", "?1049l"}:
            self.__init__(self.width, self.height)  # type: ignore[misc]

    def _put(self, char: str) -> None:
        size = cell_len(char)
        if 0 <= self._y < self.height and self._x + max(size, 1) <= self.width:
            if size == 0:
                return
            self._rows[self._y][self._x] = char
            if size == 2:
                self._rows[self._y][self._x + 1] = ""
        self._x += size

    @property
    def lines(self) -> list[str]:
        """The rows as text."""
        return ["".join(row) for row in self._rows]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)

    def find(self, text: str) -> tuple[int, int] | None:
        """Column and row of the first occurrence, from 0."""
        for y, row in enumerate(self._rows):
            cells = "".join(row)
            if text in cells:
                before = cells[: cells.index(text)]
                return cell_len(before), y
        return None


def feed(screen: Screen, data: bytes) -> int:
    """Draw the bytes except an incomplete sequence at the end; returns how many were drawn."""
    whole = max(data.rfind(b"\x1b"), 0)
    for token in tokens(data[:whole]):
        screen.feed(token)
    return whole
