"""Comparison of recorded counts with evidence; docs/scoring.md#reconciliation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from core.base.formatting import format_percent
from core.base.text import plural, visible_line
from core.learning.evidence import AGGREGATE, TREND, UseCounts, claimed_rate, is_later, usable_trend
from core.records.findings import Finding, Severity
from core.records.patterns import Pattern, PatternType
from core.records.times import minute_of

if TYPE_CHECKING:
    from core.records.events import Observation


def reconcile_record(
    pattern: Pattern, observations: Sequence[Observation], now: datetime, *known: Container[str]
) -> tuple[Finding, ...]:
    """Return a finding for each difference between a record and the evidence.

    `known` are the IDs that source loops may have, e.g. of loops and of tasks; without any, they are not checked.
    Lessons and loops of other runners, whose IDs have a `:`, are not checked: their files can be outside the project.
    """
    noted: list[Finding] = []

    def note(pointer: str, severity: Severity, code: str, message: str) -> None:
        noted.append(Finding(pattern.file, pattern.pointer + pointer, severity, code, message))

    counter = "/occurrence_count" if pattern.type is PatternType.ANTI else "/usage_count"
    for code, severity, message in _count_notes(pattern, observations):
        note(counter, severity, code, message)
    if future := [use.at for use in observations if use.at is not None and use.at > now]:
        when = f"{minute_of(max(future))} UTC"
        note("", Severity.WARNING, "future-time", f"evidence is dated in the future ({when}); it counts as of now")
    if len(usable_trend(pattern)) < len(pattern.trend):
        message = "a snapshot is incomplete or its sample does not grow; it is ignored"
        note("/effectiveness_trend", Severity.WARNING, "bad-trend", message)
    listed: set[str] = set()
    for place, source in enumerate(pattern.source_loops):
        shown = visible_line(source.loop_id, 80)
        if source.loop_id in listed:
            note(f"/source_loops/{place}", Severity.INFO, "duplicate-loop", f"loop {shown} is listed twice")
        elif known and ":" not in source.loop_id and not any(source.loop_id in ids for ids in known):
            message = f"loop {shown} is not in this project"
            note(f"/source_loops/{place}", Severity.INFO, "orphan-loop", message)
        listed.add(source.loop_id)
    return tuple(noted)


def _count_notes(pattern: Pattern, observations: Sequence[Observation]) -> Iterable[tuple[str, Severity, str]]:
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    known = [use for use in observations if use.kind != "injected"]
    uses = [use for use in known if not is_later(use, pattern)]
    if later := sum(use.count for use in known) - sum(use.count for use in uses):
        yield "later-uses", Severity.INFO, f"{plural(later, 'use')} since the last one that the registry counts"
    recorded = [use for use in uses if use.source not in (TREND, AGGREGATE)]
    shown, total = sum(use.count for use in recorded), sum(use.count for use in uses)
    if (claimed := claimed_rate(pattern.recorded_counts)) is not None:
        message = f"the recorded rate of {format_percent(claimed)} differs from that of the counts; it is not evidence"
        yield "claimed-rate", Severity.INFO, message
    if recorded_counts is None:
        if shown:
            yield "no-count", Severity.INFO, f"the record has no use count, loops show {plural(shown, 'use')}"
        return
    recorded_text = f"registry records {plural(recorded_counts.uses, 'use')}"
    if recorded_counts.uses < total:
        message = f"{recorded_text}, the evidence shows {total}; the evidence is used"
        yield "claim-below-evidence", Severity.WARNING, message
    elif recorded_counts.uses > shown:
        message = f"{recorded_text}, loops show {shown}, {recorded_counts.uses - shown:,} unrecorded"
        yield "unrecorded-uses", Severity.INFO, message
    if not recorded_counts.has_results:
        return
    counts = ("successes", recorded_counts.successes, True), ("failures", recorded_counts.failures, False)
    for word, value, result in counts:
        evident = sum(use.count for use in recorded if use.success is result)
        if evident > value and recorded_counts.uses >= total:
            message = f"registry records {value} {word}, loops show {evident}; the results of the loops are used"
            yield "claim-disagrees", Severity.WARNING, message
