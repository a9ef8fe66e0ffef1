"""Uses and trials of patterns in all projects of the team, as rows of the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.base.text import plural, visible_line
from core.learning.experiments import Cell, Comparison, Tally, compare_arms, describe_verdict

if TYPE_CHECKING:
    from core.records.team_status import PooledTrials, TeamStatus

_NAME_CHARS: Final = 24
Counts = tuple[int, int, int]
"""Successes, failures and uses."""


def count_team_uses(status: TeamStatus, weeks: int) -> tuple[int, list[tuple[str, Counts]]]:
    """Return the uses of each project, most first, in the shortest known range of at least `weeks` weeks.

    Also returns the length of that range, or of the longest known one. Names of projects are untrusted.
    """
    known = sorted({length for one in status.uses for length in one.weeks})
    length = next((length for length in known if length >= weeks), known[-1] if known else weeks)
    counted = [(one.project, one.weeks.get(length, (0, 0, 0))) for one in status.uses]
    return length, sorted(counted, key=lambda project: (-project[1][2], project[0]))


def describe_team_uses(status: TeamStatus, weeks: int) -> dict[str, Any]:
    """Return takeaway and rows (label, values, count) of the section; empty if no project has a use."""
    length, counted = count_team_uses(status, weeks)
    used = [(name, counts) for name, counts in counted if counts[2]]
    at = f"; as of {status.uses_at:%Y-%m-%d %H:%M} UTC" if status.uses_at is not None else ""
    if not used:
        return {"takeaway": f"No use in {plural(len(counted), 'project')} of the team in {plural(length, 'week')}{at}"}
    good, bad, uses = (sum(counts[n] for _, counts in used) for n in range(3))
    among = f"{len(used):,} of {plural(len(counted), 'project')}"
    takeaway = f"{plural(uses, 'use')} in {among} in {plural(length, 'week')}: {good:,} worked, {bad:,} failed{at}"
    named = [("all projects", (good, bad, uses))] * (len(used) > 1)
    named += [(visible_line(name, _NAME_CHARS), counts) for name, counts in used]
    rows = [(name, (worked, failed), total) for name, (worked, failed, total) in named]
    return {"takeaway": takeaway, "rows": rows}


def compare_pooled(pool: PooledTrials) -> Comparison:
    """Compare the arms of one pattern in all projects of the team."""
    tally = Tally()
    for share, rate, is_held_out, outcome, trials in pool.cells:
        tally[(Cell(pool.pattern_id, share, rate, is_held_out, float(outcome)),)] += trials
    return compare_arms(tally, is_higher_better=pool.kind == "succeeded")


def describe_pool(pool: PooledTrials) -> str:
    """Describe the trials of one pattern: `3 projects, given: error in 2 of 40 tasks; held out: ...; helps`."""
    found = compare_pooled(pool)
    what = "success" if pool.kind == "succeeded" else "error"
    given, held_out = (f"{what} in {arm.total:,.0f} of {arm.trials:,}" for arm in (found.given, found.held_out))
    projects, verdict = plural(pool.projects, "project"), describe_verdict(found)
    return f"{projects}, given: {given} tasks; held out: {held_out}; {verdict}"
