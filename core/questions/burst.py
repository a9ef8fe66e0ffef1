"""Whether the reports of a source count that blamed many patterns at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.base.text import plural
from core.decisions import commands
from core.index import review_items as kinds
from core.learning.bursts import format_burst, format_source
from core.questions.answer import Answer, no, yes

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.priority import ImpactEstimator


def bursts(scales: ImpactEstimator) -> Iterator[ReviewItem]:
    """Ask about suspicious reports, which do not count until a person decides."""
    for burst in scales.board.bursts:
        count = len(burst.patterns)
        question = f"{{}} blamed {plural(count, 'lesson')} at once. Ignore its reports?"
        if burst.is_of_member:
            results = plural(burst.successes + burst.failures, "unconfirmed result")
            question = f"{{}} sent {results}. Ignore them?"
        yield scales.item(
            kinds.BURST,
            burst.source,
            question=question,
            name=format_source(burst.source),
            this="A member" if burst.is_of_member else "A session",
            reason=format_burst(burst),
            place="",
            impact=sum(scales.either(id) for id in burst.patterns if id in scales.board) / 2,
            chars=0,
            further=count,
            burst=burst,
            evidence=count,
        )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which discards the reports, and no, which counts them."""
    assert item.burst is not None
    yield yes("discard", "the reports never count", commands.DiscardReports(source=item.subject, burst=item.burst))
    yield no("count them", "the reports count", commands.CountReports(source=item.subject, burst=item.burst))
