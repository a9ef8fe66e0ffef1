"""Whether to leave a pattern whose recorded counts contradict the evidence: find it, ask, answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from core.base.text import visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.learning.evidence import UseCounts
from core.questions.answer import Answer, dismissal, no
from core.records.findings import Finding, Severity

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scoreboard import Scoreboard
    from core.questions.priority import ImpactEstimator
    from core.records.patterns import Pattern

_WRONG_COUNTS: Final = frozenset({"claim-below-evidence", "claim-disagrees"})
"""Codes of findings on counts that need a person."""


def find_wrong_counts(view: ProjectState) -> Steps[dict[str, Finding]]:
    """Compare the recorded counts of each pattern with the evidence; returns how both disagree, by pattern."""
    board, patterns = view.board, view.snapshot.patterns
    # Each of these columns is computed when it is asked for.
    columns = (board.successes.tolist(), board.failures.tolist(), board.uses.tolist())
    found = {}
    for id, *counts in zip(board.ids, *columns, strict=True):
        pattern = patterns.get(id)
        if pattern is not None and (doubt := _find_wrong_count(board, UseCounts(*counts), pattern)) is not None:
            found[id] = doubt
        yield
    return found


def _find_wrong_count(board: Scoreboard, counts: UseCounts, pattern: Pattern) -> Finding | None:
    own = UseCounts.of_record(pattern.recorded_counts)
    is_low = own and (own.uses < counts.uses or own.successes < counts.successes or own.failures < counts.failures)
    if not is_low:
        return None  # a cheap check before the costly one
    doubts = board.reconcile(pattern.id)
    return next((one for one in doubts if one.code in _WRONG_COUNTS and one.severity is Severity.WARNING), None)


def unreconciled(scales: ImpactEstimator, doubts: Mapping[str, Finding]) -> Iterator[ReviewItem]:
    """Ask about records whose counts contradict the evidence."""
    for pattern_id, doubt in doubts.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is not None and pattern_id in scales.board:
            make = partial(_unreconciled, scales, pattern_id, doubt)
            yield scales.ask(kinds.UNRECONCILED, pattern_id, make, doubt, impact=scales.held(pattern_id))


def _unreconciled(scales: ImpactEstimator, pattern_id: str, doubt: Finding) -> ReviewItem:
    return scales.item(
        kinds.UNRECONCILED,
        pattern_id,
        question="Recorded counts of {} contradict its results. Leave them?",
        reason=visible_line(doubt.message, 160),
    )


WRONG_COUNTS: Final = "its recorded counts contradict the evidence"
"""Default reason to quarantine a pattern whose counts disagree."""


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which leaves it, and no, which holds it back."""
    summary = f"left the counts of {visible_line(item.subject, 80)} as they are"
    yield dismissal(item, "accept", "leave", summary, "its results count")
    quarantine = commands.Quarantine(item.subject, reason=WRONG_COUNTS)
    effect = "no agent gets it until the counts are corrected and it is released"
    yield no("quarantine", effect, quarantine, why_not=why_refused(quarantine, state))
