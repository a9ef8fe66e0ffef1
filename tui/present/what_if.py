"""Texts of the What-if screen: trial thresholds and the states they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.config.settings import DEFAULTS, Settings, find_threshold
from core.learning.states import multiplier
from core.records.patterns import Maturity
from tui.present.compare import change_cells, change_text
from tui.present.glyphs import Cells, Glyphs, draw_state
from tui.present.knobs import Knob
from tui.present.numbers import day_text

if TYPE_CHECKING:
    from core.base.errors import BadInput
    from core.learning.threshold_replay import PatternDifference, Replay
    from core.state.project_state import ProjectState

_NAMES: Final = {
    "Maturity": "maturity.half_life_days min_feedback min_helpful max_harmful maturity.deprecation_threshold",
    "Inversion": "min_observations failure_ratio_threshold",
    "Loop outcomes": "fast_completion_threshold_ms slow_completion_threshold_ms "
    "max_errors_for_helpful neutral_counts_as",
    "Suspicious reports": "max_marks burst_minutes",
}
GROUPS: Final[Mapping[str, tuple[Knob, ...]]] = {
    heading: tuple(Knob(find_threshold(name)) for name in names.split()) for heading, names in _NAMES.items()
}


def reason(error: BadInput, knob: Knob) -> str:
    """Return the reason why the text of a field is invalid."""
    return visible_line(str(error).removeprefix(f"{knob.setting.name} ").rpartition(", not ")[0] or str(error), 120)


def default_note(knob: Knob) -> Content:
    return Content.styled(f" {knob.unit:<4}{knob.text(DEFAULTS):>5}" if knob.unit else knob.text(DEFAULTS), "$quiet")


def threshold_help(knob: Knob) -> tuple[Content, Content]:
    """Return the help text of a threshold, and its name in the settings."""
    return Content.styled(knob.setting.help, "$quiet"), Content.styled(knob.setting.name, "$secondary")


def by_consequence(replay: Replay, settings: Settings) -> list[PatternDifference]:
    """Return the changed patterns, largest consequence first.

    New and dropped inversions come first, then deprecations, then the change of the multiplier. Pinned patterns come
    last: their state does not change until they are reset.
    """
    multipliers = {state: multiplier(state, settings.maturity) for state in Maturity}

    def rank(turn: PatternDifference) -> tuple[bool, bool, bool, float, str]:
        before, after = turn.before, turn.after
        dropped = (before.state is Maturity.DEPRECATED) is not (after.state is Maturity.DEPRECATED)
        moved = abs(multipliers[after.state] - multipliers[before.state])
        return turn.pinned, before.inverts is after.inverts, not dropped, -moved, turn.pattern_id

    return sorted(replay.turns, key=rank)


def headline(replay: Replay | None, *, as_today: bool, faulty: bool = False) -> Content:
    """Return a summary of the changes; `as_today`: no threshold is changed."""
    if replay is None:
        return Content.styled("replaying all history…", "$quiet")
    total = sum(replay.before.values())
    if as_today:
        if faulty:
            return Content.styled("The value marked ! is invalid; the current one is used.", "$warning")
        return Content.assemble(("These are the current thresholds. ", "bold"), ("Change one.", "$quiet"))
    changes = [(turn.before, turn.after) for turn in replay.turns]
    states = sum(before.state is not after.state for before, after in changes)
    more = sum(after.inverts and not before.inverts for before, after in changes)
    fewer = sum(before.inverts and not after.inverts for before, after in changes)
    parts = [f"{states} of {plural(total, 'pattern')} {'changes' if states == 1 else 'change'} state"]
    if not states:
        parts = ["no pattern changes state"] if more or fewer else ["Nothing changes"]
    parts += [f"{more} would invert"] * bool(more) + [f"{fewer} would no longer invert"] * bool(fewer)
    text = ", ".join(parts)
    return Content.styled(text[0].upper() + text[1:], "bold" if replay.turns else "")


def scope_note(*, wide: bool) -> Content:
    """Return a note that pins are ignored, unlike in Metrics."""
    long = "Rules only, without pins. Nothing is written."
    return Content.styled(long if wide else "Rules only, without pins.", "$quiet")


def replay_size(replay: Replay) -> Content:
    return Content.styled(f"{plural(replay.events, 'result')} replayed", "$quiet")


def turn_cells(turn: PatternDifference, view: ProjectState, glyphs: Glyphs) -> Cells:
    pattern = view.snapshot.patterns.get(turn.pattern_id)
    start, end = (draw_state(one.state, glyphs, short=True) for one in (turn.before, turn.after))
    change = end if turn.before.state is turn.after.state else change_text(start, end, glyphs)
    return change_cells(turn.pattern_id, change, _note(turn, view), pattern.title if pattern is not None else "")


def _note(turn: PatternDifference, view: ProjectState) -> Content:
    """Return the change of inversion, or the pin, or the start of the new state."""
    before, after = turn.before, turn.after
    if after.inverts and not before.inverts:
        since = f" since {day_text(after.inverted_at, view.now)}" if after.inverted_at else ""
        return Content.styled(f"{'pinned, inverts' if turn.pinned else 'would invert'}{since}", "$warning")
    if before.inverts and not after.inverts:
        return Content("pinned, no longer inverts" if turn.pinned else "would no longer invert")
    if turn.pinned:
        return Content.styled("pinned: state stays", "$quiet")
    return Content.styled(f"since {day_text(after.since, view.now)}" if after.since else "", "$quiet")


def nothing_turned(*, as_today: bool) -> Content:
    if as_today:
        return Content.styled("Change a threshold with the left and right keys, or type another value.", "$quiet")
    return Content.styled("The recorded history leads to the same states.", "$quiet")
