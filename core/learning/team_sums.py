"""Sums of a team's other projects per pattern; docs/scoring.md#evidence-of-a-team."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from core.learning.decay import SECONDS_PER_DAY
from core.records.events import Observation

if TYPE_CHECKING:
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.records.team import TeamEvidence, TeamSums

TEAM: Final = "team"  # source of the observations of `list_team_results`


def find_team_sums(snapshot: Snapshot, pattern: Pattern) -> TeamSums | None:
    """Return the sums of a pattern and of those merged into it; None without any."""
    team, patterns = snapshot.team.sums, snapshot.patterns
    found = team.get(pattern.id)
    for alias in dict.fromkeys(pattern.aliases):
        if alias not in patterns and (merged := team.get(alias)) is not None:
            found = merged if found is None else found + merged
    return found


def list_team_results(sums: TeamSums, evidence: TeamEvidence) -> tuple[Observation, ...]:
    """Return at most four observations with the counts and decayed sums of all results.

    Those that decay are of the time of the last use, with the sums at that time as weights, which may be above 1.
    """
    found: list[Observation] = []
    age = 0.0
    if sums.last_used is not None:
        age = (evidence.epoch - sums.last_used).total_seconds() / SECONDS_PER_DAY / evidence.half_life_days
    for success, count, moving, fixed in (
        (True, sums.successes, sums.helpful, sums.fixed_helpful),
        (False, sums.failures, sums.harmful, sums.fixed_harmful),
    ):
        value = 2.0 ** (math.log2(moving) + age) if moving else 0.0
        undated = min(count, 1 if moving else count) if fixed else 0
        for at, part, weight in ((sums.last_used, count - undated, value), (None, undated, fixed)):
            if part:
                observation = Observation(
                    pattern_id=sums.pattern_id,
                    kind=TEAM,
                    source=TEAM,
                    at=at,
                    success=success,
                    weight=weight / part,
                    count=part,
                )
                found.append(observation)
    return tuple(found)
