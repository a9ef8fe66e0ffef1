"""Which patterns the policy of (3) `PruningPolicy` takes out of the registry, and why. Nothing is written."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np
from msgspec import Struct

from core.base.text import plural
from core.config.settings import PruningSettings
from core.learning.assessment import INVERSION, Assessment
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.patterns import Pattern
from core.records.snapshot import Snapshot


class PruneRule(StrEnum):
    """The rule of (3) `PruningPolicy` by which a pattern goes."""

    RATE = "success-rate"
    UNUSED = "unused"


class Prune(Struct, frozen=True, kw_only=True):
    """One pattern that the policy takes out.

    Attributes:
        reason: In words, as the archive will keep it.
        rules: All that apply.
        rate: Successes / uses with a result, 0..1, of the evidence; None without any.
        uses: Uses with a result.
        last_activity: When it was last used, or last heard of where no use is dated.
    """

    pattern_id: str
    reason: str
    rules: tuple[PruneRule, ...]
    rate: float | None
    uses: int
    last_activity: datetime | None


def to_prune(snapshot: Snapshot, board: Scoreboard, settings: PruningSettings) -> tuple[Prune, ...]:
    """What the policy takes out now (the board's time), in the order of the registry.

    What a person has pinned stays, also where the text has changed since; so do patterns that wait in
    quarantine or for a verdict on their inversion, copies outside the registry, and what has no date at all.
    Of an anti-pattern the rate is how often the avoided approach failed: a low one makes it a bad warning.
    """
    oldest = board.now - timedelta(days=settings.max_age_days)
    known = board.successes + board.failures
    failing = (known >= settings.min_usage_count) & (board.successes < settings.min_success_rate * known)
    recent = board.last_used >= oldest.timestamp()
    found = []
    for row in np.flatnonzero(failing | ~recent).tolist():
        pattern = snapshot.patterns[board.ids[row]]
        assessment = board.assessment(pattern.id)
        last_activity = _last_sign(pattern, assessment)
        uses = int(known[row])
        rate = assessment.successes / uses if uses else None
        reasons: dict[PruneRule, str] = {}
        if failing[row] and rate is not None:
            told = f"{rate:.0%} of {plural(uses, 'use')} succeeded, below {settings.min_success_rate:.0%}"
            reasons[PruneRule.RATE] = told
        if last_activity is not None and last_activity < oldest:
            reasons[PruneRule.UNUSED] = f"unused for {plural((board.now - last_activity).days, 'day')}"
        if reasons and not _stays(pattern, assessment, snapshot.curation):
            found.append(
                Prune(
                    pattern_id=pattern.id,
                    reason=", ".join(reasons.values()),
                    rules=tuple(reasons),
                    rate=rate,
                    uses=uses,
                    last_activity=last_activity,
                )
            )
    return tuple(found)


def _last_sign(pattern: Pattern, assessment: Assessment) -> datetime | None:
    """Its newest use or source loop, else its discovery."""
    times = [assessment.last_used, *(loop.at for loop in pattern.source_loops)]
    return max(filter(None, times), default=pattern.first_discovered)


def _stays(pattern: Pattern, assessment: Assessment, curation: CurationState) -> bool:
    """Whether something stronger than the policy speaks for a pattern (semantics 4)."""
    if not pattern.is_registered or pattern.id in curation.pins:
        return True
    arrival = curation.arrivals.get(pattern.id)
    if arrival is not None and arrival.blocks and arrival.waits(pattern.content_hash):
        return True
    verdict = curation.inversions.get(pattern.id)
    if verdict is not None and verdict.verdict == "rejected":
        return True
    return assessment.held or assessment.decided_by == INVERSION
