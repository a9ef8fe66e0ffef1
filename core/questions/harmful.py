"""Whether agents still get a lesson that hurts by an experiment: ask, answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from core.base.text import visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.questions.answer import Answer, dismissal, yes

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.index.trials import PatternTrials
    from core.questions.priority import ImpactEstimator


def harmful(scales: ImpactEstimator, found: Sequence[PatternTrials]) -> Iterator[ReviewItem]:
    """Ask about lessons with which work goes worse, in tasks for which chance decided."""
    for one in found:
        if one.pattern_id not in scales.board or scales.stakes.is_withheld[scales.board.row(one.pattern_id)]:
            continue
        yield scales.item(
            kinds.HARMFUL,
            one.pattern_id,
            question="An experiment shows that {} hurts. Stop giving it?",
            reason=f"decided by chance, {one.counts}: {one.interval}",
            impact=max(one.judged.difference or 0.0, 0.0) * scales.uses(one.pattern_id),
        )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which deprecates it, and no, which goes on."""
    deprecate = commands.Deprecate(item.subject, reason=f"it hurts: {item.reason}")
    yield yes("deprecate", "no agent gets it until reset", deprecate, why_not=why_refused(deprecate, state))
    summary = f"kept {visible_line(item.subject, 80)} in spite of the experiment"
    yield dismissal(item, "reject", "keep", summary, "agents still get it")
