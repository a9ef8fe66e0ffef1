"""Selection of patterns to prune; docs/metrics.md#pruning."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from core.base.text import plural
from core.learning.assessment import INVERSION, Assessment

if TYPE_CHECKING:
    from core.base.settings import PruningSettings
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import CurationState
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot


class PruneRule(StrEnum):
    RATE = "success-rate"
    UNUSED = "unused"


class Pruning(Struct, frozen=True):
    """A pattern that the policy prunes, and why."""

    pattern_id: str
    reason: str  # text for the archive
    rules: tuple[PruneRule, ...]  # all rules that apply
    rate: float | None  # success rate, 0..1; None without results
    uses: int  # uses with a result
    last_activity: datetime | None  # time of the last use or source loop, else of the discovery


def select_prunable(snapshot: Snapshot, board: Scoreboard, settings: PruningSettings) -> tuple[Pruning, ...]:
    """Select the patterns to prune at the time of the board, by ID.

    The policy never prunes pinned patterns (even if their text was edited since), patterns in quarantine, held
    patterns, patterns with an open or rejected inversion, unregistered copies, and patterns without any date. The rate
    of an anti-pattern is the share of failures of the approach that it warns of.
    """
    oldest = board.now - timedelta(days=settings.max_age_days)
    known = board.successes + board.failures
    failing = (known >= settings.min_usage_count) & (board.successes < settings.min_success_rate * known)
    recent = board.last_used >= oldest.timestamp()
    found = []
    for row in (failing | ~recent).nonzero()[0].tolist():
        pattern = snapshot.patterns[board.ids[row]]
        assessment = board.assessment(pattern.id)
        times = [assessment.last_used, *(loop.at for loop in pattern.source_loops)]
        last_activity = max(filter(None, times), default=pattern.first_discovered)
        uses = int(known[row])
        rate = assessment.successes / uses if uses else None
        reasons: dict[PruneRule, str] = {}
        if failing[row] and rate is not None:
            worked = f"{rate:.0%} of {plural(uses, 'use')} succeeded"
            reasons[PruneRule.RATE] = f"{worked}, below {settings.min_success_rate:.0%}"
        if last_activity is not None and last_activity < oldest:
            reasons[PruneRule.UNUSED] = f"unused for {plural((board.now - last_activity).days, 'day')}"
        if reasons and not _is_protected(pattern, assessment, snapshot.curation):
            reason, rules = ", ".join(reasons.values()), tuple(reasons)
            found.append(Pruning(pattern.id, reason, rules, rate, uses, last_activity))
    return tuple(sorted(found, key=attrgetter("pattern_id")))


def _is_protected(pattern: Pattern, assessment: Assessment, curation: CurationState) -> bool:
    """Return whether a decision or an open question protects the pattern."""
    arrival, verdict = curation.arrivals.get(pattern.id), curation.inversions.get(pattern.id)
    is_unread = arrival is not None and arrival.blocks and arrival.needs_review(pattern.content_hash)
    is_rejected = verdict is not None and verdict.verdict == "rejected"
    is_decided = not pattern.is_registered or pattern.id in curation.pins or is_unread or is_rejected
    return is_decided or assessment.held or assessment.decided_by == INVERSION
