"""Other thresholds to try, and what they would have made of all history, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.content import Content

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.config.settings import DEFAULTS, Settings
from core.learning.states import multiplier
from core.learning.threshold_replay import Replay, Turn
from core.records.patterns import Maturity
from core.state.project_state import ProjectState
from tui.present.glyphs import Cells, Glyphs, draw_state
from tui.present.knobs import Knob, threshold_knob
from tui.present.numbers import day_text

GROUPS: Final[Mapping[str, tuple[Knob, ...]]] = {
    heading: tuple(map(threshold_knob, names.split()))
    for heading, names in (
        (
            "Maturity",
            "maturity.half_life_days min_feedback min_helpful max_harmful maturity.deprecation_threshold",
        ),
        ("Inversion", "min_observations failure_ratio_threshold"),
        (
            "Loop outcomes",
            "fast_completion_threshold_ms slow_completion_threshold_ms max_errors_for_helpful neutral_counts_as",
        ),
        ("Suspicious reports", "max_marks burst_minutes"),
    )
}
"""The thresholds on the screen, by heading."""


def reason(error: BadInput, knob: Knob) -> str:
    """Why the field's text is no value; what it says stands in the field already."""
    return visible_line(str(error).removeprefix(f"{knob.name} ").rpartition(", not ")[0] or str(error), 120)


def default_note(knob: Knob) -> Content:
    """Unit and default value, beside the field."""
    return Content.styled(f" {knob.unit:<4}{knob.text(DEFAULTS):>5}" if knob.unit else knob.text(DEFAULTS), "$quiet")


def about(knob: Knob) -> tuple[Content, Content]:
    """What a threshold is, and its name in the settings."""
    return Content.styled(knob.setting.help, "$quiet"), Content.styled(knob.name, "$secondary")


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
    long = "Rules only, without pins. Nothing is written."
    return Content.styled(long if wide else "Rules only, without pins.", "$quiet")


def replayed(replay: Replay) -> Content:
    """How much was replayed."""
    return Content.styled(f"{plural(replay.events, 'result')} replayed", "$quiet")


def turn_cells(turn: Turn, view: ProjectState, glyphs: Glyphs) -> Cells:
    """One turned pattern."""
    before, after = turn.before, turn.after
    pattern = view.snapshot.patterns.get(turn.pattern_id)
    turned = after.state is not before.state
    change = draw_state(after.state, glyphs, short=True)
    if turned:
        start = draw_state(before.state, glyphs, short=True)
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
