"""Glyph sets, Unicode and ASCII, and styles of states and signs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from core.base.text import visible_line
from core.learning.assessment import QUARANTINE
from core.records.patterns import Maturity
from core.show.pages.document import Sign
from core.show.pages.signs import state_sign

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
