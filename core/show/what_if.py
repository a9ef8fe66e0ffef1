"""The page of a what-if: which patterns would have another state under other thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.learning.states import multiplier
from core.records.patterns import Maturity
from core.show.comparison import count_table, state_change
from core.show.pages import document as doc
from core.show.pages.document import line
from core.show.pages.signs import state_sign
from core.show.table import Cells, Column, list_table

if TYPE_CHECKING:
    from core.base.declaration import Setting
    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.learning.threshold_replay import PatternDifference, Replay

COLUMNS: Final = (
    Column("title", "what", 30, flex=3, about="the error, or the name of the pattern"),
    Column("change", "now → what if", 27, about="its state now and with the changed thresholds"),
    Column("why", "besides", 24, flex=1, about="what changes besides"),
    Column("id", "id", 34, keep=0, keep_end=4, about="the ID, as commands take it"),
)


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


def summary(replay: Replay) -> str:
    """Return how many patterns would change, as a sentence."""
    total = sum(replay.before.values())
    changes = [(turn.before, turn.after) for turn in replay.turns]
    states = sum(before.state is not after.state for before, after in changes)
    more = sum(after.inverts and not before.inverts for before, after in changes)
    fewer = sum(before.inverts and not after.inverts for before, after in changes)
    parts = [f"{states} of {plural(total, 'pattern')} {'changes' if states == 1 else 'change'} state"]
    if not states:
        parts = ["no pattern changes state"] if more or fewer else ["Nothing changes"]
    parts += [f"{more} would invert"] * bool(more) + [f"{fewer} would no longer invert"] * bool(fewer)
    text = ", ".join(parts)
    return text[0].upper() + text[1:]


def difference_cells(turn: PatternDifference, state: ProjectState) -> Cells:
    """Return the cells of a row."""
    pattern = state.snapshot.patterns.get(turn.pattern_id)
    start, end = (state_sign(one.state.value) for one in (turn.before, turn.after))
    return {
        "title": (pattern_title(pattern) if pattern is not None else turn.pattern_id,),
        "change": (end,) if turn.before.state is turn.after.state else state_change(start, end),
        "why": _note(turn),
        "id": ((turn.pattern_id, "quiet"),),
    }


def _note(turn: PatternDifference) -> doc.Text:
    """Return the change of inversion, or the pin, or the start of the new state."""
    before, after = turn.before, turn.after
    if after.inverts and not before.inverts:
        since = (" since ", doc.Moment(after.inverted_at, "warning")) if after.inverted_at else ()
        return (("pinned, inverts" if turn.pinned else "would invert", "warning"), *since)
    if before.inverts and not after.inverts:
        return ("pinned, no longer inverts" if turn.pinned else "would no longer invert",)
    if turn.pinned:
        return (("pinned: state stays", "quiet"),)
    return (("since ", "quiet"), doc.Moment(after.since)) if after.since else ()


def what_if_document(replay: Replay, tried: Sequence[Setting], settings: Settings, state: ProjectState) -> doc.Document:
    """Return the page of a what-if; `tried` are the changed thresholds, whose values are in `settings`."""
    return doc.Document(
        "What if",
        (
            *(line(f"{known.name}: {known.text(state.settings)} → {known.text(settings)}") for known in tried),
            line(
                (summary(replay), "strong"),
                (f"  {plural(replay.events, 'result')} replayed, states by rule, without pins", "quiet"),
            ),
            count_table(replay.before, replay.after, ("now", "what if")),
            *_changes(by_consequence(replay, settings), state),
        ),
    )


def _changes(turns: Sequence[PatternDifference], state: ProjectState) -> Iterable[doc.Block]:
    if turns:
        rows = [difference_cells(turn, state) for turn in turns]
        yield from doc.section("Patterns", [list_table(COLUMNS, rows, ("title", "change", "id", "why"))])
