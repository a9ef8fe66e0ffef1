"""Line filters for terminals without colours or without Unicode."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter

if TYPE_CHECKING:
    from textual.color import Color

_REPLACEMENTS: Final = {
    "-": "─━┄┅┈┉╌╍═╴╶╸╺—–‐‑−▬⎼⎽▔",
    "|": "│┃┆┇┊┋╎╏║┤├▌▐▎▏▍▊▋▉▕",
    "+": "┌┐└┘┬┴┼╭╮╯╰╔╗╚╝╠╣╦╩╬┏┓┗┛┣┫┳┻╋┠┨┯┷┡┩◐◆",
    "#": "█▓▇▆▅▮■",
    "=": "▒≡▄▃",
    ".": "░·•∙▁▂▫▯□◌",
    "~": "…≈",
    ">": "❯›→▸▶►»⇒",
    "<": "‹←◂◀◄«⇐",
    "^": "↑▲▴⌃⚑",
    "v": "↓▼▾⌄✓✔",
    "x": "✗✘×⊘⊗",
    "*": "●★",
    "o": "○◦◯⊙",
    "!": "≠‼",
    "'": "‘’‚",
    '"': "“”„",
    "@": "⟳↻",
    "%": "‡",
    "_": "⎯",
}
_TABLE: Final = str.maketrans({char: plain for plain, chars in _REPLACEMENTS.items() for char in chars} | {"🔎": "? "})


def ascii_text(text: str) -> str:
    """Replace drawing characters by ASCII characters of the same width."""
    return text if text.isascii() else text.translate(_TABLE)


class AsciiFilter(LineFilter):
    """Replaces borders, blocks, arrows and glyphs by ASCII. Letters are unchanged."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(ascii_text(text), style, control) for text, style, control in segments]


class NoColourFilter(LineFilter):
    """Removes colours, but not bold, reverse, underline and click actions.

    Textual's `NoColor` emits the default colours, which is a colour sequence too.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, None if style is None else _without_colour(style), control)
            for text, style, control in segments
        ]


@lru_cache(1024)
def _without_colour(style: Style) -> Style:
    plain = style.without_color
    return plain + Style.from_meta(style.meta) if style.meta else plain
