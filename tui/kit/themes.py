"""Themes from `styles/themes.toml`, a cache of parsed style sheets, and filters for plain terminals."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.css.stylesheet import Stylesheet
from textual.filter import LineFilter
from textual.theme import Theme

from tui.kit.textual_private import variables_of

if TYPE_CHECKING:
    from textual.color import Color


STYLES: Final = Path(__file__).parents[2] / "styles"
"""The folder of style sheets and themes, beside this package in the repository and in the wheel."""

DEFAULT_THEME: Final = "dark"
PLAIN_THEME: Final = "ansi"  # Theme in the terminal's own colours; the only one that is readable without colours.


def load_themes() -> dict[str, tuple[str, Theme]]:
    """Return label and theme by name, in the order of the file."""
    text = (STYLES / "themes.toml").read_text(encoding="utf-8")
    themes: dict[str, tuple[str, Theme]] = {}
    for name, values in tomllib.loads(text).items():
        label = str(values.pop("label"))
        themes[name] = (label, Theme(name=name, **values))
    return themes


class StyleSheets(Stylesheet):
    """Style sheets that are parsed again only when theme variables change.

    Without this Textual parses them three times at the start, which takes a tenth of the time to the first frame.
    """

    _outdated = False

    def set_variables(self, variables: dict[str, str]) -> None:
        if variables != variables_of(self):
            super().set_variables(variables)
            self._outdated = True

    def reparse(self) -> None:
        """Parse again if variables changed; raises `StylesheetParseError`."""
        if self._outdated:
            self.parse()
            self._outdated = False


# Filters for terminals without colours or without Unicode


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
