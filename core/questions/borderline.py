"""Whether a pattern keeps its state, which is close to another one or may be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.learning.states import STATES, state_codes
from core.questions.answer import REJECTED, Answer, dismissal, no, reset_effect, yes
from core.records.decisions import RE_ENABLE
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scores import Flags, Floats, Ints
    from core.questions.priority import ImpactEstimator

_FIRST_TRIED: Final = 2000  # Patterns of the highest impact that are tried first.
MOST_BORDERLINE: Final = 50  # Maximum number of borderline questions at a time, highest impact first.


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


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield answers that re-enable a deprecated pattern, or keep a state."""
    id, name, assessment = item.subject, visible_line(item.subject, 80), state.assessment(item.subject)
    if assessment.state is Maturity.DEPRECATED:
        if assessment.pin is None:
            effect = "established: given again, with the weight of its evidence"
            if state.has_low_rate(id):
                least = state.settings.injection.min_success_rate
                effect = f"established, but left out of prompts until its rate is at least {least:.0%}"
            yield yes(RE_ENABLE.word, effect, commands.Release(id), needs_reason=assessment.blocked)
        else:
            yield yes(RE_ENABLE.word, reset_effect(assessment), commands.Reset(id))
        yield dismissal(item, "reject", "leave", f"left {name} deprecated: the evidence decides", "no agent gets it")
    else:
        yield dismissal(
            item, "accept", "keep", f"kept injecting {name}: the evidence decides", "it stays: the evidence decides"
        )
        deprecate = commands.Deprecate(id, reason=REJECTED)
        yield no("deprecate", "no agent gets it until reset", deprecate, why_not=why_refused(deprecate, state))
