"""Whether to leave a pattern whose recorded counts contradict the evidence: find it, ask, answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.text import visible_line
from core.curation import commands
from core.curation.rules import why_refused
from core.learning.evidence import UseCounts
from core.questions.answer import Answer, dismissal, no
from core.records.findings import Finding, Severity
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard
    from core.questions.priority import ImpactEstimator
    from core.records.patterns import Pattern
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

_AT_ONCE: Final = 100  # Records compared with the evidence in one step, at most about 10 ms.
_WRONG_COUNTS: Final = frozenset({"claim-below-evidence", "claim-disagrees"})
"""Codes of findings on counts that need a person."""


class CountSearch:
    """Compares recorded counts with the evidence, some in a step; not thread-safe.

    `found` has, by pattern, how both disagree.
    """

    def __init__(self) -> None:
        self.found: Mapping[str, Finding] = {}
        self._ids: tuple[str, ...] = ()
        self._facts = np.zeros(0, np.int64)
        """Hash of the recorded counts and the evidence of each of `_ids` when it was checked; 0 before."""
        self._evidence: object = None
        """That of the last board that was checked."""
        self._waiting: Iterator[tuple[str, int, tuple[int, int, int]]] = iter(())
        """Patterns to check: ID, row, and successes, failures and uses."""

    def look(self, patterns: Mapping[str, Pattern], board: Scoreboard) -> bool | None:
        """Do one step; whether `found` changed, None if nothing is left to check."""
        if self._evidence is not board.evidence:
            self._evidence = board.evidence
            self._follow(tuple(board.ids))
            # Each of these columns is computed when it is asked for.
            columns = (board.successes.tolist(), board.failures.tolist(), board.uses.tolist())
            self._waiting = zip(board.ids, range(len(self._ids)), zip(*columns, strict=True), strict=True)
        found = dict(self.found)
        checked = 0
        for id, row, evidence in self._waiting:
            checked += 1
            if (pattern := patterns.get(id)) is None:
                continue
            facts = hash((pattern.content_hash, pattern.recorded_counts, evidence))
            if self._facts[row] != facts:
                self._facts[row] = facts
                found.pop(id, None)
                if (doubt := _find_wrong_count(board, UseCounts(*evidence), pattern)) is not None:
                    found[id] = doubt
            if checked == _AT_ONCE:
                break
        if not checked:
            return None
        found = {id: doubt for id, doubt in found.items() if id in patterns}
        changed, self.found = found != self.found, found
        return changed

    def _follow(self, ids: tuple[str, ...]) -> None:
        """Put the facts in the order of `ids`."""
        before = len(self._ids)
        if ids[:before] == self._ids:
            self._facts = np.append(self._facts, np.zeros(len(ids) - before, np.int64))
        else:
            known = dict(zip(self._ids, self._facts.tolist(), strict=True))
            self._facts = np.array([known.get(id, 0) for id in ids], np.int64)
        self._ids = ids


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
