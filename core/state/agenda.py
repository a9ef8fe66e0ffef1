"""What Review asks at present: the best questions of each kind, and one row for the others of a kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.base.text import visible_line
from core.records.decisions import further_question_id
from core.state import review_items as kinds
from core.state.review_items import QuestionGroup, ReviewItem

if TYPE_CHECKING:
    from core.records.decisions import CurationState

BEST: Final = 5  # Questions that a row names, and that its answer opens.
MOST_OF_KIND: Final = 20  # Questions of one kind that are asked one by one.
MOST_OPTIONAL: Final = 5  # The same for optional kinds.
_OPTIONAL: Final = frozenset(
    {kinds.OFFER, kinds.LESSON, kinds.RECURRING, kinds.DUPLICATE, kinds.BROAD, kinds.UNRECONCILED}
)
"""Kinds that do no harm while they wait: no text is wrongly injected or withheld."""
_MAX_NAME: Final = 70  # Characters of a question that is named in a row.


def make_agenda(
    queue: Sequence[ReviewItem], curation: CurationState, now: datetime, asked: Collection[tuple[str, str]] = ()
) -> tuple[ReviewItem, ...]:
    """Return the questions to ask one by one, and a row for the others of each kind, in the order of the queue.

    A row has the place of its best question. If there are more than `MOST_OPTIONAL` questions of an optional kind, all
    are in its row, except extraction offers with a strong lesson. Urgent questions are never in a row, nor are those
    that were `asked` already, by kind and key; these count also after they are closed, so that a review session ends.
    A snoozed row is left out; its questions are still in the queue.
    """
    counts = Counter(item.kind for item in queue)
    crowded = {kind for kind, count in counts.items() if count > _most(kind)}
    taken = Counter(kind for kind, _ in asked)
    agenda: list[ReviewItem | str] = []  # questions, and the kinds whose rows have this place
    rest: dict[str, list[ReviewItem]] = defaultdict(list)
    for item in queue:
        kind = item.kind
        if kind not in crowded or item.is_urgent or (kind, item.question_key) in asked:
            agenda.append(item)
        elif taken[kind] < _most(kind) and (kind not in _OPTIONAL or item.has_strong_lesson):
            taken[kind] += 1
            agenda.append(item)
        else:
            if kind not in rest:
                agenda.append(kind)
            rest[kind].append(item)
    rows = {kind: items[0] if len(items) == 1 else _row(kind, items, counts[kind]) for kind, items in rest.items()}
    found = (rows[item] if isinstance(item, str) else item for item in agenda)
    return tuple(item for item in found if item.group is None or not _is_snoozed(item, curation, now))


def _most(kind: str) -> int:
    return MOST_OPTIONAL if kind in _OPTIONAL else MOST_OF_KIND


def _row(kind: str, items: Sequence[ReviewItem], count: int) -> ReviewItem:
    """Make the row of questions of one kind; `count` is the number of all open questions of this kind."""
    group, best = QuestionGroup(kind, tuple(items)), items[:BEST]
    which = f"the {len(best)} best" if len(items) > len(best) else "them"
    more = " more" if len(items) < count else ""
    return ReviewItem(
        kind=kinds.FURTHER,
        subject=kind,
        question=f"{len(items):,}{more} {group.noun} {group.verb}: read {which}?",
        reason="best: " + "; ".join(visible_line(item.short_name, _MAX_NAME) for item in best),
        priority=best[0].priority,
        impact=sum(item.impact for item in best),
        seconds=sum(item.seconds for item in best),
        evidence=len(items),
        group=group,
    )


def _is_snoozed(row: ReviewItem, curation: CurationState, now: datetime) -> bool:
    verdict = curation.inversions.get(further_question_id(row.subject))
    return verdict is not None and verdict.is_snoozed(now, row.evidence)
