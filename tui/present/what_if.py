"""Other thresholds to try, and what they would have made of all history, as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from textual.content import Content

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.config.settings import Settings
from core.config.thresholds import Threshold, Unit, threshold, with_threshold
from core.learning.states import multiplier
from core.learning.threshold_replay import Replay, Turn
from core.records.patterns import Maturity
from core.state.project_state import ProjectState
from tui.present.glyphs import Cells, Glyphs, state_mark
from tui.present.numbers import day_text, stepped, written

_DOCUMENTS: Final = Settings()
_MS_PER_MINUTE: Final = 60_000.0


@dataclass(frozen=True, slots=True)
class Knob:
    """One threshold as it is turned on the screen.

    Attributes:
        threshold: What it is a value of.
        label: Its name beside the field, short.
        step: How far one key press goes, in the unit of the field.
        unit: Of the field; empty for a count, a share or a choice.
        scale: How much of the threshold's unit is one in the field.
        least: The least value that steps lead to.
    """

    threshold: Threshold
    label: str
    step: float = 1.0
    unit: str = ""
    scale: float = 1.0
    least: float = 0.0

    @property
    def name(self) -> str:
        """Of the threshold, such as `maturity.min_feedback`."""
        return self.threshold.name

    def text(self, settings: Settings) -> str:
        """The value in these settings, as it stands in the field."""
        value = self.threshold.value(settings)
        return self.threshold.text(settings) if isinstance(value, str) else written(value / self.scale)

    def put(self, settings: Settings, text: str) -> Settings:
        """`settings` with what the field says.

        Raises:
            BadInput: The field says no value that the threshold can have.
        """
        try:
            given = text if self.scale == 1 else repr(float(text) * self.scale)
        except ValueError:
            given = text
        return with_threshold(settings, self.name, given)

    def stepped(self, settings: Settings, steps: int) -> str:
        """The field's text so many steps above or below the value in these settings, on whole steps."""
        value = self.threshold.value(settings)
        if isinstance(value, str):
            choices = self.threshold.choices
            return choices[(choices.index(value) + steps) % len(choices)]
        most = 1.0 if self.threshold.unit is Unit.SHARE else inf
        return written(stepped(value / self.scale, self.step, steps, self.least, most))


def _knob(name: str, label: str, step: float = 1.0, unit: str = "", scale: float = 1.0, least: float = 0.0) -> Knob:
    return Knob(threshold(name), label, step, unit, scale, least)


GROUPS: Final[Mapping[str, tuple[Knob, ...]]] = {
    "Maturity": (
        _knob("maturity.half_life_days", "half-life", step=5, unit="days", least=1),
        _knob("maturity.min_feedback", "min feedback"),
        _knob("maturity.min_helpful", "min helpful"),
        _knob("maturity.max_harmful", "max harmful", step=0.01),
        _knob("maturity.deprecation_threshold", "deprecated above", step=0.05),
    ),
    "Inversion": (
        _knob("anti_pattern.min_observations", "min observations"),
        _knob("anti_pattern.failure_ratio_threshold", "failure ratio", step=0.05),
    ),
    "How loops came out": (
        _knob("learning.fast_completion_threshold_ms", "fast below", unit="min", scale=_MS_PER_MINUTE),
        _knob("learning.slow_completion_threshold_ms", "slow above", step=5, unit="min", scale=_MS_PER_MINUTE),
        _knob("learning.max_errors_for_helpful", "max errors"),
        _knob("learning.neutral_counts_as", "neutral means"),
    ),
    "Bursts of blame": (
        _knob("learning.max_marks", "max marks"),
        _knob("learning.burst_minutes", "within", step=5, unit="min"),
    ),
}
"""The thresholds on the screen, by heading."""


def reason(error: BadInput, knob: Knob) -> str:
    """Why the field's text is no value; what it says stands in the field already."""
    return visible_line(str(error).removeprefix(f"{knob.name} ").rpartition(", not ")[0] or str(error), 120)


def default_note(knob: Knob) -> Content:
    """Unit and the documents' value, beside the field."""
    return Content.styled(
        f" {knob.unit:<4}{knob.text(_DOCUMENTS):>5}" if knob.unit else knob.text(_DOCUMENTS), "$quiet"
    )


def about(knob: Knob) -> tuple[Content, Content]:
    """What a threshold is, and its name in the settings."""
    return Content.styled(knob.threshold.label, "$quiet"), Content.styled(knob.name, "$secondary")


# The answer


def by_consequence(replay: Replay, settings: Settings) -> list[Turn]:
    """The turned patterns, those first that loops would notice most.

    First new and dropped inversions, then what comes to or leaves deprecation, then by how far the multiplier moves;
    last the pinned ones, for which nothing changes until the pin is taken off.
    """

    worth = {state: multiplier(state, settings.maturity) for state in Maturity}

    def rank(turn: Turn) -> tuple[bool, bool, bool, float, str]:
        before, after = turn.before, turn.after
        dropped = (before.state is Maturity.DEPRECATED) is not (after.state is Maturity.DEPRECATED)
        moved = abs(worth[after.state] - worth[before.state])
        return turn.pinned, before.inverts is after.inverts, not dropped, -moved, turn.pattern_id

    return sorted(replay.turns, key=rank)


def headline(replay: Replay | None, *, as_today: bool, faulty: bool = False) -> Content:
    """What comes of it, in a sentence.

    Args:
        as_today: The thresholds that count are today's.
        faulty: What a field says is no value.
    """
    if replay is None:
        return Content.styled("replaying all history…", "$quiet")
    total = sum(replay.before.values())
    if as_today:
        if faulty:
            return Content.styled("The value marked ! does not count; today's does.", "$warning")
        return Content.assemble(("These are today's thresholds. ", "bold"), ("Change one.", "$quiet"))
    states = sum(turn.before.state is not turn.after.state for turn in replay.turns)
    more = sum(turn.after.inverts and not turn.before.inverts for turn in replay.turns)
    fewer = sum(turn.before.inverts and not turn.after.inverts for turn in replay.turns)
    parts = [f"{states} of {plural(total, 'pattern')} {'changes' if states == 1 else 'change'} state"]
    if not states:
        parts = ["no pattern changes state"] if more or fewer else ["Nothing changes"]
    parts += [f"{more} would invert"] * bool(more) + [f"{fewer} would no longer invert"] * bool(fewer)
    text = ", ".join(parts)
    return Content.styled(text[0].upper() + text[1:], "bold" if replay.turns else "")


def terms(*, wide: bool) -> Content:
    """What the counts leave out, so that those of Metrics differ; where there is room, also that nothing is written."""
    long = "A trial by the rules alone, without pins: nothing is written."
    return Content.styled(long if wide else "A trial by rule, without pins.", "$quiet")


def replayed(replay: Replay) -> Content:
    """How much was replayed."""
    return Content.styled(f"{plural(replay.events, 'result')} replayed", "$quiet")


def turn_cells(turn: Turn, view: ProjectState, glyphs: Glyphs) -> Cells:
    """One turned pattern."""
    before, after = turn.before, turn.after
    pattern = view.snapshot.patterns.get(turn.pattern_id)
    turned = after.state is not before.state
    change = state_mark(after.state, glyphs, short=True)
    if turned:
        start = state_mark(before.state, glyphs, short=True)
        change = Content.assemble(start.pad_right(7 - start.cell_length), (f" {glyphs.arrow} ", "$quiet"), change)
    return {
        "id": Content.styled(visible_line(turn.pattern_id, 120), "$secondary"),
        "change": change,
        "note": _note(turn, view),
        "title": Content.styled(visible_line(pattern.title, 200) if pattern is not None else "", "$quiet"),
    }


def _note(turn: Turn, view: ProjectState) -> Content:
    """What makes it more than another state, else since when it would have that."""
    before, after = turn.before, turn.after
    if after.inverts and not before.inverts:
        since = f" since {day_text(after.inverted_at, view.now)}" if after.inverted_at else ""
        return Content.styled(f"{'pinned, inverts' if turn.pinned else 'would invert'}{since}", "$warning")
    if before.inverts and not after.inverts:
        return Content("pinned, no longer inverts" if turn.pinned else "would no longer invert")
    if turn.pinned:
        return Content.styled("pinned: your decision holds", "$quiet")
    return Content.styled(f"since {day_text(after.since, view.now)}" if after.since else "", "$quiet")


def nothing_turned(*, as_today: bool) -> Content:
    """Where no pattern is listed: what to do, or that it is so."""
    if as_today:
        return Content.styled("Step a threshold with the left and right keys, or type another value.", "$quiet")
    return Content.styled("All that happened so far leads to the same states.", "$quiet")
