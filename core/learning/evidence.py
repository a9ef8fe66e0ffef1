"""Evidence: which uses of a pattern are known, each counted once (semantics 1).

Five sources, most trusted first: the event log, what loops say of injected patterns, the discovery, the
effectiveness trend, and the sums that the pattern's own record claims. A later source adds only what the
earlier ones leave unexplained.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from core.records.events import Event, Observation
from core.records.findings import Finding, Severity
from core.records.loops import InjectedUse, Loop
from core.records.patterns import Claim, Pattern, PatternType, SourceLoop
from core.text import plural, visible_line

EVENT_LOG: Final = "event-log"
LOOP: Final = "loop"
DISCOVERY: Final = "discovery"
TREND: Final = "trend"
AGGREGATE: Final = "aggregate"

MAX_COUNT: Final = 10**15
"""Larger claims are read as this: beyond it a float no longer holds every whole number."""

_UNDATED: Final = datetime.max.replace(tzinfo=UTC)


def uses_by_pattern(loops: Iterable[Loop]) -> dict[str, list[tuple[Loop, InjectedUse]]]:
    """Which loops had which pattern injected."""
    found: dict[str, list[tuple[Loop, InjectedUse]]] = {}
    for loop in loops:
        for use in loop.injected:
            found.setdefault(use.pattern_id, []).append((loop, use))
    return found


def discoverers(loops: Iterable[Loop]) -> dict[str, Loop]:
    """The loop that says of itself that it extracted a new pattern; the earliest if several do."""
    found: dict[str, Loop] = {}
    for loop in loops:
        for extracted in loop.extracted:
            known = found.get(extracted.pattern_id)
            if extracted.new and (known is None or _order(loop) < _order(known)):
                found[extracted.pattern_id] = loop
    return found


def _order(loop: Loop) -> tuple[datetime, str]:
    return loop.started_at or _UNDATED, loop.id


def events_by_pattern(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events that name a pattern, by its id."""
    found: dict[str, list[Event]] = {}
    for event in events:
        if event.pattern_id:
            found.setdefault(event.pattern_id, []).append(event)
    return found


def observations_of(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]] = (),
    events: Sequence[Event] = (),
    discoverer: Loop | None = None,
) -> tuple[Observation, ...]:
    """All evidence on one pattern, no use counted twice, oldest first (undated last).

    One use is one loop's use in one iteration; an entry without an iteration is the same use as one with it.
    A pattern that was injected and not applied gives an exposure (kind `injected`), one applied without a
    known result a use without success or failure.

    Args:
        pattern: The record; its claim and trend are sources 4 and 5.
        uses: Loops' entries for this pattern, source 2.
        events: Events that name this pattern, source 1.
        discoverer: A loop that says it extracted the pattern, for a record that names no source loop.
    """
    recorded: list[Observation] = []
    if uses or events:
        table = _UseTable(pattern)
        table.add_events(events)
        table.add_loops(uses)
        recorded = table.observations()
    found = _discovery(pattern, uses, recorded, discoverer)
    if found is not None:
        recorded.append(found)
    claimed = _Counts.claimed(pattern.claim)
    recorded.extend(_unrecorded(pattern, recorded, claimed))
    if len(recorded) > 1:
        recorded.sort(key=_age_order)
    return tuple(recorded)


def _age_order(observation: Observation) -> tuple[datetime, str, int, str]:
    return (
        observation.at or _UNDATED,
        observation.loop_id,
        -1 if observation.iteration is None else observation.iteration,
        f"{observation.kind} {observation.success}",
    )


# Sources 1 and 2: uses that somebody recorded.


@dataclass(slots=True)
class _Use:
    """Facts on one use; each is set by the most trusted source that tells it."""

    loop_id: str
    iteration: int | None
    at: datetime | None
    source: str
    kind: str = "injected"
    success: bool | None = None
    weight: float = 1.0


class _UseTable:
    """Joins what several records say of the same use."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._by_loop: dict[str, list[_Use]] = {}
        self._alone: list[_Use] = []

    def add_events(self, events: Iterable[Event]) -> None:
        """Source 1. The newest result of a use stands; an id counts once; an event of weight 0 not at all."""
        seen: set[str] = set()
        for event in sorted(events, key=lambda event: (event.at, event.id)):
            if event.id in seen or not event.weight > 0:
                continue
            if event.id:
                seen.add(event.id)
            if event.kind == "extracted":
                self._add_extraction(event)
            elif event.kind in ("injected", "applied", "outcome", "feedback"):
                self._add_event(event)

    def _add_extraction(self, event: Event) -> None:
        uses = self._by_loop.setdefault(event.loop_id, [])
        if any(use.kind == "discovered" for use in uses):
            return
        uses.append(_Use(event.loop_id, event.iteration, event.at, EVENT_LOG, "discovered", True, _weight(event)))

    def _add_event(self, event: Event) -> None:
        if event.kind in ("outcome", "feedback") and event.success is None:
            return
        use = self._find(event.loop_id, event.iteration) if event.loop_id else None
        if use is None:
            use = _Use(event.loop_id, event.iteration, event.at, EVENT_LOG)
            (self._by_loop.setdefault(event.loop_id, []) if event.loop_id else self._alone).append(use)
        if use.iteration is None:
            use.iteration = event.iteration
        if event.kind == "injected":
            return
        if use.kind == "injected":
            use.kind = "feedback" if event.kind == "feedback" else "applied"
            use.at = event.at
        if event.success is not None:
            use.success = event.success
            use.weight = _weight(event)

    def _find(self, loop_id: str, iteration: int | None) -> _Use | None:
        """The use that an entry is about: the same iteration, else one of an unknown iteration; for an entry
        without iteration the newest one, preferably still without a result."""
        uses = [use for use in self._by_loop.get(loop_id, ()) if use.kind != "discovered"]
        for use in uses:
            if use.iteration == iteration:
                return use
        if iteration is None:
            candidates = [use for use in uses if use.success is None] or uses
            return candidates[-1] if candidates else None
        return next((use for use in uses if use.iteration is None), None)

    def add_loops(self, uses: Iterable[tuple[Loop, InjectedUse]]) -> None:
        """Source 2. Fills in what the event log leaves open; of two entries for one use a failure wins."""
        dates = {source.loop_id: source.at for source in reversed(self._pattern.source_loops) if source.at}
        for loop, entry in sorted(uses, key=_use_order):
            for alias in loop.aliases:
                if alias in self._by_loop and alias != loop.id:
                    self._by_loop.setdefault(loop.id, []).extend(self._by_loop.pop(alias))
            use = self._find(loop.id, entry.iteration)
            if use is None:
                use = _Use(loop.id, entry.iteration, _date(loop, entry, dates), LOOP)
                self._by_loop.setdefault(loop.id, []).append(use)
            if use.iteration is None:
                use.iteration = entry.iteration
            if not entry.applied:
                continue
            if use.kind == "injected":
                use.kind = "applied"
            if use.source == LOOP and False in (use.success, entry.successful):
                use.success = False
            elif use.success is None:
                use.success = entry.successful

    def observations(self) -> list[Observation]:
        """Every use as one observation."""
        return [
            Observation(
                pattern_id=self._pattern.id,
                kind=use.kind,
                source=use.source,
                loop_id=loop_id,
                at=use.at,
                success=use.success,
                weight=use.weight,
                iteration=use.iteration,
            )
            for loop_id, uses in (*self._by_loop.items(), ("", self._alone))
            for use in uses
        ]


def _use_order(pair: tuple[Loop, InjectedUse]) -> tuple[str, bool, int, bool, str]:
    """Entries that name their iteration first; otherwise any order that does not depend on the file's."""
    loop, use = pair
    return loop.id, use.iteration is None, use.iteration or 0, not use.applied, str(use.successful)


def _weight(event: Event) -> float:
    return min(event.weight, 1.0)


def _date(loop: Loop, entry: InjectedUse, dates: dict[str, datetime]) -> datetime | None:
    named = (dates[name] for name in (loop.id, *loop.aliases) if name in dates)
    return entry.at or next(named, None) or loop.ended_at or loop.last_sign or loop.started_at


# Source 3: the discovery.


def origin(pattern: Pattern) -> SourceLoop | None:
    """The source loop that discovered the pattern: that of `first_discovered`, else the first (C20)."""
    if not pattern.source_loops:
        return None
    if pattern.first_discovered is not None:
        for source in pattern.source_loops:
            if source.at == pattern.first_discovered:
                return source
    return pattern.source_loops[0]


def _discovery(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]],
    recorded: Sequence[Observation],
    discoverer: Loop | None,
) -> Observation | None:
    """The discovering loop's first success (0), unless it is recorded already.

    It is recorded if the event log has the extraction, or if the same loop says that it applied the pattern
    and gives no time that would tell that use from the discovery. A record that claims uses and not one
    success refutes it.
    """
    source = origin(pattern)
    if source is not None:
        names: tuple[str, ...] = (source.loop_id,)
        outcome = source.outcome
        at = source.at or pattern.first_discovered
    elif discoverer is not None:
        names = (discoverer.id, *discoverer.aliases)
        outcome = ""
        at = pattern.first_discovered or discoverer.ended_at or discoverer.last_sign or discoverer.started_at
    else:
        return None
    if at is None and pattern.trend:
        at = min((point.at for point in pattern.trend if point.at), default=None)
    for observation in recorded:
        if observation.loop_id in names and observation.kind == "discovered":
            return None
    for loop, entry in uses:
        if entry.applied and entry.at in (None, at) and not {loop.id, *loop.aliases}.isdisjoint(names):
            return None
    claim = _Counts.claimed(pattern.claim)
    if claim is not None and claim.failures and not claim.successes:
        return None
    return Observation(
        pattern_id=pattern.id,
        kind="discovered",
        source=DISCOVERY,
        loop_id=names[0],
        at=at,
        success={"failure": False, "partial": None}.get(outcome, True),
    )


# Sources 4 and 5: sums that the record keeps.


@dataclass(slots=True)
class _Counts:
    """So many successes and failures among so many uses; `uses` may exceed their sum."""

    successes: int
    failures: int
    uses: int
    derived: bool = False

    @classmethod
    def claimed(cls, claim: Claim) -> _Counts | None:
        """What a record claims, explicit counts before rates (formats C21); None if it counts nothing."""
        uses = None if claim.uses is None else _whole(claim.uses)
        if claim.successes is not None or claim.failures is not None:
            good = None if claim.successes is None else _whole(claim.successes)
            bad = None if claim.failures is None else _whole(claim.failures)
            if good is None:
                good = max((uses or 0) - (bad or 0), 0)
            if bad is None:
                bad = max((uses or 0) - good, 0)
            return cls(good, bad, max(uses or 0, good + bad))
        if uses is None:
            return None
        rate = claim.rate
        if rate is None or not 0.0 <= rate <= 1.0:
            return cls(0, 0, uses, derived=True)
        good = min(rounded(rate * uses), uses)
        return cls(good, uses - good, uses, derived=True)

    def less(self, observations: Iterable[Observation]) -> _Counts:
        """What is left when `observations` are taken off, nothing below 0 and no more results than uses.

        A recorded use without a result is one of the counted ones, nobody knows which; the results left over
        are then scaled to the uses left over, in their own proportion.
        """
        good, bad, uses = self.successes, self.failures, self.uses
        for observation in observations:
            if observation.kind == "injected":
                continue
            uses -= observation.count
            if observation.success is True:
                good -= observation.count
            elif observation.success is False:
                bad -= observation.count
        good, bad, uses = max(good, 0), max(bad, 0), max(uses, 0)
        if good + bad > uses:
            share = (2 * good * uses + good + bad) // (2 * (good + bad))
            good, bad = share, uses - share
        return _Counts(good, bad, uses, self.derived)


def _whole(count: int) -> int:
    return min(max(count, 0), MAX_COUNT)


def rounded(value: float) -> int:
    """Half up, as the documents round (formats C25)."""
    return math.floor(value + 0.5)


def _unrecorded(pattern: Pattern, recorded: Sequence[Observation], claim: _Counts | None) -> list[Observation]:
    """Sources 4 and 5: the uses that no record tells of."""
    added: list[Observation] = []
    if pattern.trend:
        steps = _trend_steps(pattern)
        total = _Counts(
            sum(step.successes for step in steps),
            sum(step.failures for step in steps),
            sum(step.uses for step in steps),
            derived=True,
        )
        if claim is None or claim.uses < total.uses:
            claim = total
        added = _trend_observations(pattern, steps, recorded, claim)
    if claim is None:
        return added
    left = claim.less((*recorded, *added) if added else recorded)
    if not left.uses:
        return added
    at = pattern.last_used or _newest(pattern)
    unknown = left.uses - left.successes - left.failures
    for success, count in ((True, left.successes), (False, left.failures), (None, unknown)):
        if count:
            added.append(
                Observation(
                    pattern_id=pattern.id,
                    kind="aggregate",
                    source=AGGREGATE,
                    at=at,
                    success=success,
                    count=count,
                    derived=claim.derived,
                )
            )
    return added


def _newest(pattern: Pattern) -> datetime | None:
    """The newest time that the record gives at all, for a type that has no `last_used`."""
    times = [source.at for source in pattern.source_loops if source.at]
    times += [point.at for point in pattern.trend if point.at]
    return max(times, default=pattern.first_discovered)


@dataclass(slots=True)
class _Step:
    """What happened between the snapshot before and `at`."""

    at: datetime
    successes: int
    failures: int

    @property
    def uses(self) -> int:
        return self.successes + self.failures


def growing_trend(pattern: Pattern) -> list[tuple[datetime, int, float]]:
    """The usable snapshots as (time, sample size, rate) in order of time, without those that do not grow."""
    points = sorted(
        (point.at, _whole(point.sample_size), point.rate)
        for point in pattern.trend
        if point.at and point.sample_size and point.rate is not None and 0.0 <= point.rate <= 1.0
    )
    growing: list[tuple[datetime, int, float]] = []
    for point in points:
        if not growing or point[1] > growing[-1][1]:
            growing.append(point)
    return growing


def _trend_steps(pattern: Pattern) -> list[_Step]:
    steps: list[_Step] = []
    size_before = good_before = 0
    for at, size, rate in growing_trend(pattern):
        good = min(max(rounded(rate * size), good_before), good_before + size - size_before)
        steps.append(_Step(at, good - good_before, size - size_before - (good - good_before)))
        size_before, good_before = size, good
    return steps


def _trend_observations(
    pattern: Pattern, steps: list[_Step], recorded: Sequence[Observation], claim: _Counts
) -> list[Observation]:
    """Dated counts for what the recorded uses leave unexplained.

    A recorded use explains one of its own step's; what the claim then has no room for is taken off the newest
    steps, since snapshots lag behind.
    """
    times = [step.at for step in steps]
    for observation in recorded:
        if observation.at is None or observation.kind == "injected":
            continue
        place = bisect_left(times, observation.at)
        if place == len(steps):
            continue
        if observation.success is True and steps[place].successes:
            steps[place].successes -= 1
        elif observation.success is False and steps[place].failures:
            steps[place].failures -= 1
    room = claim.less(recorded)
    good, bad = room.successes, room.failures
    for step in steps:
        step.successes = min(step.successes, good)
        step.failures = min(step.failures, bad)
        good -= step.successes
        bad -= step.failures
    return [
        Observation(
            pattern_id=pattern.id,
            kind="trend",
            source=TREND,
            at=step.at,
            success=success,
            count=count,
            derived=True,
        )
        for step in steps
        for success, count in ((True, step.successes), (False, step.failures))
        if count
    ]


# What the record says, held against the evidence.


def reconcile(
    pattern: Pattern,
    observations: Sequence[Observation],
    now: datetime,
    loop_ids: Container[str] | None = None,
) -> tuple[Finding, ...]:
    """Where the record's own numbers, dates and loops disagree with the evidence; empty if they agree.

    Args:
        loop_ids: Every loop that this project knows; None leaves orphans alone.
    """
    noted: list[Finding] = []

    def note(pointer: str, severity: Severity, code: str, message: str) -> None:
        noted.append(Finding(pattern.file, pattern.pointer + pointer, severity, code, message))

    counter = "/occurrence_count" if pattern.type is PatternType.ANTI else "/usage_count"
    for code, severity, message in _count_notes(pattern, observations):
        note(counter, severity, code, message)
    future = [seen.at for seen in observations if seen.at is not None and seen.at > now]
    if future:
        when = f"{max(future):%Y-%m-%d %H:%M} UTC"
        note(
            "",
            Severity.WARNING,
            "future-time",
            f"evidence is dated in the future ({when}); it counts as of now",
        )
    if len(growing_trend(pattern)) < len(pattern.trend):
        message = "a snapshot is incomplete or does not grow; it is left out"
        note("/effectiveness_trend", Severity.WARNING, "bad-trend", message)
    seen_ids: set[str] = set()
    for place, source in enumerate(pattern.source_loops):
        shown = visible_line(source.loop_id, 80)
        if source.loop_id in seen_ids:
            note(f"/source_loops/{place}", Severity.INFO, "duplicate-loop", f"loop {shown} is listed twice")
        elif loop_ids is not None and source.loop_id not in loop_ids:
            message = f"loop {shown} is not in this project"
            note(f"/source_loops/{place}", Severity.INFO, "orphan-loop", message)
        seen_ids.add(source.loop_id)
    return tuple(noted)


def _count_notes(pattern: Pattern, observations: Sequence[Observation]) -> Iterable[tuple[str, Severity, str]]:
    claim = _Counts.claimed(pattern.claim)
    uses = [seen for seen in observations if seen.kind != "injected"]
    recorded = [seen for seen in uses if seen.source not in (TREND, AGGREGATE)]
    shown = sum(seen.count for seen in recorded)
    total = sum(seen.count for seen in uses)
    if claim is None:
        if shown:
            yield "no-count", Severity.INFO, f"registry gives no count of uses, loops show {shown}"
        return
    says = f"registry says {plural(claim.uses, 'use')}"
    if claim.uses < total:
        message = f"{says}, the evidence shows {total}; the evidence counts"
        yield "claim-below-evidence", Severity.WARNING, message
    elif claim.uses > shown:
        message = f"{says}, loops show {shown}, {claim.uses - shown:,} unrecorded"
        yield "unrecorded-uses", Severity.INFO, message
    for word, value, result in (("successes", claim.successes, True), ("failures", claim.failures, False)):
        evident = sum(seen.count for seen in recorded if seen.success is result)
        if evident > value and claim.uses >= total:
            message = f"registry says {value} {word}, loops show {evident}; the loops count"
            yield "claim-disagrees", Severity.WARNING, message
