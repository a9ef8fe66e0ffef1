"""The marks that stand for states: by glyph and word and colour, drawn or plain ASCII."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.records.loops import LoopStatus, Outcome
from core.records.patterns import Maturity, PatternType

Cells = Mapping[str, Content]
"""One row of a table: what stands in each column, by column id."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of marks."""

    name: str
    candidate: str
    established: str
    proven: str
    deprecated: str
    running: str
    paused: str
    waiting: str
    done: str
    failed: str
    unknown: str
    full: str
    empty: str
    sparks: str
    line: str
    range: str
    point: str
    live: str
    arrow: str
    pin: str
    quarantine: str
    held: str
    suspect: str
    differs: str
    escalated: str
    left: str
    folded: str
    unfolded: str
    play: str

    def state(self, state: Maturity) -> str:
        """The mark of a pattern's state."""
        return {
            Maturity.CANDIDATE: self.candidate,
            Maturity.ESTABLISHED: self.established,
            Maturity.PROVEN: self.proven,
            Maturity.DEPRECATED: self.deprecated,
        }[state]


DRAWN: Final = Glyphs(
    "drawn", candidate="○", established="◐", proven="●", deprecated="⊘", running="●", paused="‖", waiting="…",
    done="✓", failed="✗", unknown="?", full="▮", empty="▯", sparks="▁▂▃▄▅▆▇█", line="┄", range="━", point="╋",
    live="⟳", arrow="→", pin="⚑", quarantine="◌", held="⊙", suspect="‡", differs="≠", escalated="▲", left="◌",
    folded="▸", unfolded="▾", play="▶",
)  # fmt: skip
ASCII: Final = Glyphs(
    "ascii", candidate="o", established="+", proven="*", deprecated="x", running=">", paused="=", waiting=".",
    done="v", failed="x", unknown="?", full="#", empty="-", sparks="_.-=+*#@", line=".", range="-", point="|",
    live="@", arrow="->", pin="^", quarantine="q", held="h", suspect="%", differs="/", escalated="!", left="~",
    folded="+", unfolded="-", play=">",
)  # fmt: skip
GLYPH_SETS: Final = {glyphs.name: glyphs for glyphs in (DRAWN, ASCII)}

STATE_STYLES: Final = {state: f"$state-{state.value}" for state in Maturity}
STATE_SHORT: Final = {
    Maturity.CANDIDATE: "cand",
    Maturity.ESTABLISHED: "estab",
    Maturity.PROVEN: "prov",
    Maturity.DEPRECATED: "depr",
}
TYPE_LETTERS: Final = {
    PatternType.ERROR: "E",
    PatternType.SUCCESS: "S",
    PatternType.ANTI: "A",
    PatternType.TEMPLATE: "T",
}


def state_mark(state: Maturity, glyphs: Glyphs, *, short: bool = False) -> Content:
    """Glyph and word of a pattern's state."""
    word = STATE_SHORT[state] if short else state.value
    return Content.styled(f"{glyphs.state(state)} {word}", STATE_STYLES[state])


def shown_mark(state: str, glyphs: Glyphs, *, short: bool = False) -> Content:
    """Glyph and word of a state as people are told it, see `Assessment.shown`."""
    if state == QUARANTINE:
        return Content.styled(f"{glyphs.quarantine} {'quar' if short else 'quarantine'}", "$warning")
    if state == HELD:
        return Content.styled(f"{glyphs.held} held", "$warning")
    return state_mark(Maturity(state), glyphs, short=short)


def shown_glyph(state: str, glyphs: Glyphs) -> Content:
    """The glyph alone."""
    if state in (QUARANTINE, HELD):
        return Content.styled(glyphs.held if state == HELD else glyphs.quarantine, "$warning")
    return Content.styled(glyphs.state(Maturity(state)), STATE_STYLES[Maturity(state)])


def standing_mark(assessment: Assessment, glyphs: Glyphs, *, short: bool = False) -> Content:
    """Glyph and word of a pattern's state as it is shown: held or in quarantine, else the state."""
    return shown_mark(assessment.shown, glyphs, short=short)


_STATUS_STYLES: Final = {
    LoopStatus.RUNNING: "$success",
    LoopStatus.COMPLETING: "$success",
    LoopStatus.RECOVERING: "$warning",
    LoopStatus.PAUSED: "$warning",
    LoopStatus.WAITING: "$quiet",
    LoopStatus.COMPLETED: "$secondary",
    LoopStatus.PARTIAL: "$warning",
    LoopStatus.FAILED: "$error",
    LoopStatus.LIMIT: "$warning",
    LoopStatus.ABORTED: "$quiet",
    LoopStatus.CRASHED: "$error bold",
    LoopStatus.UNKNOWN: "$quiet",
}


def status_mark(status: LoopStatus, glyphs: Glyphs) -> Content:
    """Glyph and word of a loop's status."""
    glyph = {
        LoopStatus.RUNNING: glyphs.running,
        LoopStatus.COMPLETING: glyphs.running,
        LoopStatus.RECOVERING: glyphs.running,
        LoopStatus.PAUSED: glyphs.paused,
        LoopStatus.WAITING: glyphs.waiting,
        LoopStatus.COMPLETED: glyphs.done,
        LoopStatus.PARTIAL: glyphs.done,
        LoopStatus.FAILED: glyphs.failed,
        LoopStatus.CRASHED: glyphs.failed,
        LoopStatus.LIMIT: glyphs.deprecated,
        LoopStatus.ABORTED: glyphs.deprecated,
        LoopStatus.UNKNOWN: glyphs.unknown,
    }[status]
    return Content.styled(f"{glyph} {status.value}", _STATUS_STYLES[status])


def result_mark(success: bool | None, glyphs: Glyphs) -> Content:
    """The mark of one use: worked, failed, or not known."""
    if success is None:
        return Content.styled(glyphs.empty if glyphs is ASCII else "·", "$quiet")
    return Content.styled(glyphs.done, "$success") if success else Content.styled(glyphs.failed, "$error")


def outcome_mark(outcome: Outcome, glyphs: Glyphs) -> Content:
    """Glyph and word of an outcome."""
    if outcome is Outcome.SUCCESS:
        return Content.styled(f"{glyphs.done} success", "$success")
    if outcome in {Outcome.FAILURE, Outcome.TIMEOUT}:
        return Content.styled(f"{glyphs.failed} {outcome.value}", "$error")
    if outcome is Outcome.UNKNOWN:
        return Content.styled("—" if glyphs is DRAWN else "-", "$quiet")
    return Content.styled(outcome.value, "$quiet")
