"""Questions about the registry: states, broad triggers, counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.learning.states import STATES, state_codes
from core.records.patterns import Maturity
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.learning.scores import Flags, Floats, Ints
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState, Pin
    from core.state.review_items import ReviewItem

_FIRST_TRIED: Final = 2000  # Patterns of the highest impact that are tried first.
MOST_BORDERLINE: Final = 50  # Maximum number of borderline questions at a time, highest impact first.


def inversions(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Ask about patterns that fail often enough to become anti-patterns."""
    board, settings = scales.board, scales.settings
    for row in np.flatnonzero(board.inversion_due).tolist():
        pattern_id = board.ids[row]
        if pattern_id not in scales.patterns:
            continue
        failures = int(board.failures[row])
        total = failures + int(board.successes[row])
        verdict, again = curation.inversions.get(pattern_id), ""
        if verdict is not None and verdict.verdict == "accepted":
            continue  # the board may be older than the last decision
        if verdict is not None and verdict.verdict == "rejected":
            more = failures - verdict.failures
            if more < settings.anti_pattern.failures_until_asked_again:
                continue
            again = f"; rejected on {format_day(verdict.at)}, {plural(more, 'further failure')} since"
        make = partial(
            scales.item,
            kinds.INVERSION,
            pattern_id,
            question=f"{failures} of {plural(total, 'use')} of {{}} failed. Warn agents of it instead?",
            reason=f"{failures} of {plural(total, 'use')} failed{again}",
        )
        impact, propose = scales.unwarned(pattern_id), partial(board.proposal, pattern_id)
        yield scales.ask(kinds.INVERSION, pattern_id, make, failures, total, again, impact=impact, propose=propose)


def pins(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Ask about pins whose text has changed, or that later evidence contradicts."""
    board = scales.board
    for pattern_id, pin in curation.pins.items():
        if pattern_id not in board or pattern_id not in scales.patterns:
            continue
        row = board.row(pattern_id)
        is_deprecated = pin.state is Maturity.DEPRECATED
        if board.pin_stale[row]:
            impact = scales.unseen(pattern_id, is_withheld=is_deprecated)
            yield scales.ask(
                kinds.STALE_PIN, pattern_id, partial(_stale_pin, scales, pattern_id, pin), pin, impact=impact
            )
        elif board.contradicted[row]:
            impact, place = scales.since(pattern_id, is_withheld=is_deprecated)
            facts = pin, scales.board.results_since_pin(pattern_id), place
            make = partial(_contradicted, scales, pattern_id, *facts)
            yield scales.ask(kinds.CONTRADICTED, pattern_id, make, *facts, impact=impact)


_NOUNS: Final = {Maturity.PROVEN: "promotion", Maturity.DEPRECATED: "deprecation"}
"""Nouns of the decisions that can be confirmed."""


def _decided(pin: Pin) -> str:
    return f"{pin.verb} by {visible_line(pin.by, 40)} on {format_day(pin.at)}"


def _stale_pin(scales: ImpactEstimator, pattern_id: str, pin: Pin) -> ReviewItem:
    return scales.item(
        kinds.STALE_PIN,
        pattern_id,
        question=f"The text of {{}} has changed since. Keep it {pin.verb}?"
        if pin.state in _NOUNS
        else "The text of {} has changed since it was accepted. Reset it?",
        reason=f"{_decided(pin)}; its text has changed since",
    )


def _contradicted(
    scales: ImpactEstimator, pattern_id: str, pin: Pin, results: tuple[int, int], place: str
) -> ReviewItem:
    good, bad = results
    is_warning, is_deprecated = scales.is_warning(pattern_id), pin.state is Maturity.DEPRECATED
    words = ("right", "wrong") if is_warning else ("succeeded", "failed")
    against, word = (good, words[0]) if is_deprecated else (bad, words[1])
    uses = f"{against} of {plural(good + bad, 'use')} {word}"
    since = f"the warning was {word} in {against} of {good + bad}" if is_warning else uses
    noun = _NOUNS.get(pin.state, "decision")
    return scales.item(
        kinds.CONTRADICTED,
        pattern_id,
        question=f"{visible_line(pin.by, 40)} {pin.verb} {{}}; {uses} since. Undo the {noun}?",
        reason=f"{_decided(pin)}; since then {since}",
        place=place,
    )


def borderline(scales: ImpactEstimator, asked: Set[str]) -> Iterator[ReviewItem]:
    """Ask about unpinned states, not `asked` yet, that may change or be wrong."""
    if not scales.patterns:
        return
    board, settings, stakes = scales.board, scales.settings, scales.stakes
    maturity, now = settings.maturity, board.computed_codes
    later = board.rescored(board.now + timedelta(days=settings.review.soon_days))
    undecided: Flags = ~(board.pinned | board.quarantined | board.inversion_pending) & (board.uses > 0)
    undecided[board.rows_of(id for id in asked if id in board)] = False
    rows = np.flatnonzero(undecided)
    for count in (_FIRST_TRIED, len(rows)):
        tried = _highest(rows, stakes.held, count)
        helpful, harmful = board.helpful[tried], board.harmful[tried]
        turned = (
            state_codes(helpful + 1.0, harmful, maturity),
            state_codes(helpful, harmful + 1.0, maturity),
            state_codes(later.helpful[tried], later.harmful[tried], maturity),
        )
        wrong = np.where(stakes.is_withheld[tried], 1.0 - stakes.chance[tried], stakes.chance[tried])
        on_border = (wrong >= settings.review.doubt) | np.any([codes != now[tried] for codes in turned], axis=0)
        places = np.flatnonzero(on_border)
        places = places[np.argsort(-stakes.held[tried[places]], kind="stable")[:MOST_BORDERLINE]]
        if len(places) == MOST_BORDERLINE or len(tried) == len(rows):
            break
    for place in places.tolist():
        row = int(tried[place])
        pattern_id = board.ids[row]
        pattern = scales.patterns.get(pattern_id)
        if pattern is None or pattern.copy_folder:
            continue
        if stakes.is_withheld[row] and STATES[now[row]] is not Maturity.DEPRECATED:
            continue  # withheld for its low rate: only a promotion could change that
        states = tuple(STATES[codes[place]] for codes in (now[tried], *turned))
        facts = bool(stakes.is_withheld[row]), _results_text(scales, row), states, scales.place(pattern_id)
        make = partial(_borderline, scales, pattern_id, *facts)
        yield scales.ask(kinds.BORDERLINE, pattern_id, make, *facts, impact=float(stakes.held[row]))


def _borderline(
    scales: ImpactEstimator, pattern_id: str, is_withheld: bool, results: str, states: Sequence[Maturity], place: str
) -> ReviewItem:
    return scales.item(
        kinds.BORDERLINE,
        pattern_id,
        question="Let agents have {} again?" if is_withheld else "Keep giving {} to agents?",
        reason=f"{states[0]}, {results}{_border(scales, pattern_id, *states)}",
        place=place,
    )


def _results_text(scales: ImpactEstimator, row: int) -> str:
    """Describe results of a pattern, or how often its warning was right."""
    board = scales.board
    uses = int(board.uses[row])
    if scales.is_warning(board.ids[row]):
        return f"the warning was right in {int(board.successes[row])} of {uses}"
    return f"{int(board.failures[row])} of {plural(uses, 'use')} failed"


def _highest(rows: Ints, values: Floats, count: int) -> Ints:
    """Return the rows with the `count` highest values, and those with equal ones; in the order of the rows."""
    if count < len(rows):
        least = np.partition(values[rows], len(rows) - count)[len(rows) - count]
        rows = rows[values[rows] >= least]
    return rows


def _border(
    scales: ImpactEstimator, pattern_id: str, now: Maturity, better: Maturity, worse: Maturity, later: Maturity
) -> str:
    """Describe what would change the state.

    The states are those now, with one more success, with one more failure, and soon, by age alone.
    """
    failure, success = "failure", "success"
    if scales.is_warning(pattern_id):
        failure, success = "wrong warning", "right warning"
    turns = ((worse, failure), (better, success))
    parts = [f"one more {result} makes it {state}" for state, result in turns if state is not now]
    if later is not now:
        parts.append(f"decays to {later} within {scales.settings.review.soon_days:g} days")
    return "".join(f"; {part}" for part in parts)
