"""Glyph sets and styles of signs, themes, style sheets, plain-terminal filters."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.css.stylesheet import Stylesheet
from textual.filter import LineFilter
from textual.theme import Theme

from core.base.text import visible_line
from core.learning.maturity import QUARANTINE
from core.records.patterns import Maturity
from core.show.pages.document import Sign
from core.show.pages.signs import state_sign
from tui.kit.textual_private import variables_of

if TYPE_CHECKING:
    from textual.color import Color

Cells = Mapping[str, Content]  # One row of a table: the content of each column, by column ID.


@dataclass(frozen=True, slots=True)
class Glyphs:
    """A set of glyphs; the defaults are the Unicode set `drawn`."""

    name: str = "drawn"
    candidate: str = "○"
    established: str = "◐"
    proven: str = "●"
    deprecated: str = "⊘"
    running: str = "●"
    paused: str = "‖"
    waiting: str = "…"
    done: str = "✓"
    failed: str = "✗"
    unknown: str = "?"
    no_result: str = "·"
    dash: str = "—"
    full: str = "▮"
    empty: str = "▯"
    sparks: str = "▁▂▃▄▅▆▇█"
    line: str = "┄"
    range: str = "━"
    point: str = "╋"
    live: str = "⟳"
    arrow: str = "→"
    pin: str = "⚑"
    quarantine: str = "◌"
    held: str = "⊙"
    suspect: str = "‡"
    differs: str = "≠"
    escalated: str = "▲"
    left: str = "◌"
    again: str = "↻"
    folded: str = "▸"
    unfolded: str = "▾"
    play: str = "▶"
    knot: str = "◆"
    branch: str = "├"
    branch_bar: str = "│"
    branch_end: str = "└"

    def __getitem__(self, name: str) -> str:
        """Return the glyph with this name; "" for the empty name."""
        return str(getattr(self, name)) if name else ""


DRAWN: Final = Glyphs()
ASCII: Final = Glyphs(
    "ascii", candidate="o", established="+", proven="*", deprecated="x", running=">", paused="=", waiting=".",
    done="v", failed="x", unknown="?", no_result="-", dash="-", full="#", empty="-", sparks="_.-=+*#@", line=".",
    range="-", point="|", live="@", arrow="->", pin="^", quarantine="q", held="h", suspect="%", differs="/",
    escalated="!", left="~", again="@", folded="+", unfolded="-", play=">", knot="+", branch="+",
    branch_bar="|", branch_end="+",
)  # fmt: skip
GLYPH_SETS: Final = {glyphs.name: glyphs for glyphs in (DRAWN, ASCII)}

STATE_STYLES: Final = {state: f"$state-{state.value}" for state in Maturity}
STATE_SHORT: Final = {
    Maturity.CANDIDATE: "cand",
    Maturity.ESTABLISHED: "estab",
    Maturity.PROVEN: "prov",
    Maturity.DEPRECATED: "depr",
    QUARANTINE: "quar",
}
_STYLES: Final = {
    "strong": "bold",
    "strike": "strike",
    "marked": "bold underline",
    "quiet": "$quiet",
    "name": "$secondary",
    "accent": "$accent",
    "good": "$success",
    "bad": "$error",
    "warning": "$warning",
    **{state.value: style for state, style in STATE_STYLES.items()},
}
"""Theme styles of the words in `core.show.pages.document.Sign.style`."""


def style_of(words: str) -> str:
    return " ".join(_STYLES[word] for word in words.split())


def draw(sign: Sign, glyphs: Glyphs) -> Content:
    """Draw the glyph and the text of a sign; the text may be untrusted."""
    words = filter(None, (glyphs[sign.glyph], visible_line(sign.text, 2000)))
    return Content.styled(" ".join(words), style_of(sign.style))


def draw_state(state: str, glyphs: Glyphs, *, short: bool = False) -> Content:
    """Draw the state of a pattern, such as `Assessment.shown`."""
    sign = state_sign(state)
    return draw(Sign(STATE_SHORT.get(state, state), sign.style, sign.glyph) if short else sign, glyphs)


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
