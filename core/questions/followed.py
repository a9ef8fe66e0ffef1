"""Whether to drop a lesson that is given often and seldom followed: find it, ask, answer (docs/curation.md#review)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.learning.following import FollowCounts
from core.learning.statistics import jeffreys_interval
from core.questions.answer import Answer, no, yes
from core.questions.impact import WASTED_USE
from core.retrieval.rendering import count_entry_tokens

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.priority import ImpactEstimator

MIN_JUDGED: Final = 5  # clear verdicts that a question needs
_SELDOM: Final = 0.5  # the upper end of the interval of the followed share must be lower
_MOST_TRIED: Final = 20  # patterns whose verdicts are read, those that were given most often without a use
_MORE: Final = 5  # clear verdicts after which the question is asked again
DROPPED: Final = "given often, and seldom followed"


def seldom_followed(scales: ImpactEstimator) -> Iterator[ReviewItem]:
    """Ask about lessons of which most sessions that were given them did something else."""
    board = scales.board
    rows = np.flatnonzero((board.injected_only >= MIN_JUDGED) & ~scales.stakes.is_withheld)
    for row in rows[np.argsort(-board.injected_only[rows], kind="stable")][:_MOST_TRIED].tolist():
        pattern_id = board.ids[row]
        if pattern_id not in scales.patterns:
            continue
        counts = FollowCounts.of(board.verdicts(pattern_id))
        if is_seldom(counts, scales.settings.interval_level):
            impact = WASTED_USE * (1 - counts.followed / counts.judged) * scales.uses(pattern_id)
            make = partial(_make_item, scales, pattern_id, counts)
            yield scales.ask(kinds.SELDOM, pattern_id, make, counts, impact=impact)


def is_seldom(counts: FollowCounts, level: float) -> bool:
    """Return whether most sessions with a clear verdict did not follow a lesson, beyond chance."""
    if counts.judged < MIN_JUDGED:
        return False
    return jeffreys_interval(counts.followed, counts.not_followed, level)[1] < _SELDOM


def _make_item(scales: ImpactEstimator, pattern_id: str, counts: FollowCounts) -> ReviewItem:
    entry = scales.patterns[pattern_id], scales.board.assessment(pattern_id)
    tokens = count_entry_tokens(entry, scales.settings.injection)
    return scales.item(
        kinds.SELDOM,
        pattern_id,
        question="Agents seldom follow {}. Drop it?",
        reason=counts.text,
        place=f"about {plural(tokens, 'token')} of each context",
        evidence=counts.judged,
    )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which deprecates it, and no, which asks again after more verdicts."""
    drop = commands.Deprecate(item.subject, reason=DROPPED)
    yield yes("drop", "no agent gets it until reset", drop, why_not=why_refused(drop, state))
    more = commands.More(item.evidence, _MORE)
    command = commands.SnoozeQuestion(key=item.question_key, more=more, about=visible_line(item.about, 80))
    yield no("keep", f"asked again after {_MORE} more verdicts", command, matters=False)
