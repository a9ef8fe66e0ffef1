"""Evidence on a pattern, each use counted once; docs/scoring.md#evidence."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, structs

from core.base.steps import group_pairs
from core.learning.following import WorkVerdict, find_loop_verdicts
from core.records.events import EVENT_LOG, INJECTED_REFLECTION, VERDICT, Event, Observation
from core.records.loops import ExtractedPattern, InjectedUse, Loop
from core.records.patterns import Pattern, PatternType, RecordedCounts, SourceLoop

_EVENT_USES: Final = frozenset({"injected", "applied"})
_RESULTS: Final = frozenset({"outcome", "feedback"})
_KINDS: Final = _EVENT_USES | _RESULTS | {"extracted", VERDICT}
LOOP: Final = "loop"
_BY_TIME: Final = attrgetter("at", "id")
DISCOVERY: Final = "discovery"
TREND: Final = "trend"
AGGREGATE: Final = "aggregate"
INVERSION: Final = "inversion"
_ROUNDING: Final = 1e-9
_SAME_TIME: Final = timedelta(seconds=60)  # maximum time between updating a record and logging the event
_USES: Final = ("applied", "outcome", "feedback")
_RECORDED: Final = (EVENT_LOG, LOOP)  # sources with one observation for each use
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_UNDATED: Final = datetime.max.replace(tzinfo=UTC)
_Uses: TypeAlias = Sequence[tuple[Loop, InjectedUse]]
MAX_COUNT: Final = 10**15  # larger counts are reduced to this; a float cannot represent every larger whole number
RATE_TOLERANCE: Final = 0.05
"""Maximum difference between a recorded rate, which may be rounded, and the ratio of its counts."""


@dataclass(frozen=True, slots=True)
class UseCounts:
    """Number of successes, of failures, and of all uses, with or without a result."""

    successes: int
    failures: int
    uses: int
    derived: bool = False

    @classmethod
    @lru_cache(4096)  # many records have equal counts
    def of_record(cls, recorded_counts: RecordedCounts) -> UseCounts | None:
        """Return the counts of a record; None if it has none.

        A recorded rate is converted to results only if it is a ratio of whole numbers; see `successes_from_rate`.
        """
        uses, good, bad = (
            None if count is None else min(max(count, 0), MAX_COUNT)
            for count in (recorded_counts.uses, recorded_counts.successes, recorded_counts.failures)
        )
        if good is not None or bad is not None:
            good = max((uses or 0) - (bad or 0), 0) if good is None else good
            bad = max((uses or 0) - good, 0) if bad is None else bad
            return cls(good, bad, max(uses or 0, good + bad))
        if uses is None:
            return None
        good = successes_from_rate(recorded_counts.rate, uses)
        return cls(0, 0, uses, derived=True) if good is None else cls(good, uses - good, uses, derived=True)

    @property
    def has_results(self) -> bool:
        return self.successes + self.failures > 0

    def subtract(self, observations: Iterable[Observation]) -> UseCounts:
        """Subtract `observations`; no count falls below 0.

        An observation without a result only reduces `uses`, since its result in the record is unknown. If more results
        than uses are left, both kinds of results are scaled down in proportion.
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
        return UseCounts(good, bad, uses, self.derived)


def round_half_up(value: float) -> int:
    return math.floor(value + 0.5)


def successes_from_rate(rate: float | None, uses: int) -> int | None:
    """Return the number of successes in `uses` if the rate fits a whole number.

    A rate of 0.92 over 12 uses means 11 successes. For 0.85 over 4 uses the result is None, since neither 3/4 nor 4/4
    is near it (docs/scoring.md#claimed-rates).
    """
    if rate is None or not uses or not 0.0 <= rate <= 1.0:
        return None
    good = min(round_half_up(rate * uses), uses)
    return good if abs(good / uses - rate) <= RATE_TOLERANCE + _ROUNDING else None


def claimed_rate(recorded_counts: RecordedCounts) -> float | None:
    """Return the recorded rate (0..1) if the recorded counts do not confirm it."""
    if recorded_counts.claimed is not None:
        return recorded_counts.claimed
    rate, counts = recorded_counts.rate, UseCounts.of_record(recorded_counts)
    if rate is None or not 0.0 <= rate <= 1.0 or (counts is not None and not counts.uses):
        return None
    if counts is None or not counts.has_results:
        return rate
    share = counts.successes / (counts.successes + counts.failures)
    return None if abs(share - rate) <= RATE_TOLERANCE + _ROUNDING else rate


def list_unrecorded(
    pattern: Pattern, recorded: Sequence[Observation], recorded_counts: UseCounts | None
) -> list[Observation]:
    """List the uses in the trend and counts of the record that are not in `recorded`."""
    added: list[Observation] = []
    if pattern.trend and (steps := _trend_steps(pattern)):
        good, bad = sum(step.successes for step in steps), sum(step.failures for step in steps)
        total = UseCounts(good, bad, good + bad, derived=True)
        if recorded_counts is None or recorded_counts.uses < total.uses:
            recorded_counts = total
        elif not recorded_counts.has_results:
            recorded_counts = replace(recorded_counts, successes=good, failures=bad)
        added = _trend_observations(pattern, steps, recorded, recorded_counts)
    if recorded_counts is None:
        return added
    elsewhere = (*recorded, *added) if added else recorded
    return added + list_aggregates(pattern, recorded_counts.subtract(elsewhere) if elsewhere else recorded_counts)


def list_aggregates(pattern: Pattern, left: UseCounts) -> list[Observation]:
    """List the uses that only the record counts, dated by the last use it records."""
    if (at := pattern.last_used) is None:
        times = [source.at for source in pattern.source_loops if source.at]
        times += [point.at for point in pattern.trend if point.at]
        at = max(times, default=pattern.first_discovered)
    unknown = left.uses - left.successes - left.failures
    return _make_observations(pattern, AGGREGATE, at, left.derived, (left.successes, left.failures, unknown))


def _make_observations(
    pattern: Pattern, source: str, at: datetime | None, derived: bool, counts: tuple[int, int, int]
) -> list[Observation]:
    """Return one observation per count of successes, failures and unknown results."""
    return [
        Observation(
            pattern_id=pattern.id, kind=source, source=source, at=at, success=success, count=count, derived=derived
        )
        for success, count in zip((True, False, None), counts, strict=True)
        if count
    ]


@dataclass(slots=True)
class _Step:
    """Results between the previous trend snapshot and `at`."""

    at: datetime
    successes: int
    failures: int


def usable_trend(pattern: Pattern) -> list[tuple[datetime, int, float]]:
    """Return snapshots with growing samples as (time, sample size, rate), in order."""
    points = sorted(
        (point.at, min(max(point.sample_size, 0), MAX_COUNT), point.rate)
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
    for at, size, rate in usable_trend(pattern):
        good = min(max(round_half_up(rate * size), good_before), good_before + size - size_before)
        steps.append(_Step(at, good - good_before, size - size_before - (good - good_before)))
        size_before, good_before = size, good
    return steps


def _trend_observations(
    pattern: Pattern, steps: list[_Step], recorded: Sequence[Observation], recorded_counts: UseCounts
) -> list[Observation]:
    """Return dated counts of the results that no recorded use explains.

    A recorded use explains one result of the step that contains its time. If the steps contain more results than the
    record counts, the newest ones are dropped.
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
    room = recorded_counts.subtract(recorded)
    good, bad = room.successes, room.failures
    for step in steps:
        step.successes, step.failures = min(step.successes, good), min(step.failures, bad)
        good, bad = good - step.successes, bad - step.failures
    observed = (_make_observations(pattern, TREND, step.at, True, (step.successes, step.failures, 0)) for step in steps)
    return list(chain.from_iterable(observed))


def find_discoverer(loops: Iterable[Loop]) -> Loop | None:
    """Return the earliest of the loops that record a pattern as new."""
    return min(loops, key=lambda loop: (loop.started_at or _UNDATED, loop.id), default=None)


def collect_observations(
    pattern: Pattern,
    uses: _Uses,
    events: Sequence[Event],
    discoverer: Loop | None,
    work_items: WorkItems,
    revoked: Sequence[Observation] = (),
    inherited: Sequence[Observation] = (),
) -> tuple[Observation, ...]:
    """Collect all evidence on one pattern, oldest first, undated last.

    `events` name the pattern; `uses` are entries of loops. `discoverer` is a loop that recorded the extraction, for a
    pattern without source loops. `revoked` are uses whose results do not count: they are subtracted from the counts of
    the record, which may contain them. `inherited` are the uses of the pattern that this one warns of.
    """
    recorded: list[Observation] = []
    if uses or events:
        table = UseTable(pattern, work_items)
        table.add_events(events)
        table.add_loops(uses)
        recorded = table.observations()
    recorded += inherited
    counted_event = find_counted_event(pattern, events) if events else None
    if counted_event is not None:
        held = (  # reports that do not count, but may have been counted in the record
            Observation(pattern_id=pattern.id, kind="applied", source=EVENT_LOG, at=event.at, success=False)
            for event in events
            if event.kind in _USES and event.success is False and work_items.ignores(event)
        )
        return _collect_after_count(pattern, recorded, counted_event.unrecorded, uses, work_items, (*revoked, *held))
    found = None if inherited else _find_discovery(pattern, uses, recorded, discoverer, work_items)
    if found is not None:
        recorded.append(found)
    counted = [use for use in recorded if _may_be_counted(use, pattern, work_items)]
    counted += revoked
    unrecorded = list_unrecorded(pattern, counted, UseCounts.of_record(pattern.recorded_counts))
    observations = [*merge_votes(recorded, work_items), *unrecorded]
    if len(observations) > 1:
        observations.sort(key=_age_order)
    return tuple(observations)


def merge_votes(observations: Sequence[Observation], work_items: WorkItems) -> list[Observation]:
    """Merge the uses of one pattern by each loop or task, with the newest result.

    The success of the loop that found the pattern first is part of its sighting. A loop that applied a pattern and
    found it again has one use. Injections without a use stay as they are. See docs/scoring.md#votes.
    """
    observations = _without_given_sightings(observations, work_items)
    named = [one for one in observations if one.loop_id and one.kind != "injected" and one.source in _RECORDED]
    if len(named) < 2:
        return list(observations)
    votes = group_pairs((work_items.voter_id(one.loop_id), one) for one in named)
    if len(votes) == len(named):
        return list(observations)
    first = min((one for one in named if one.is_sighting), key=_age_order, default=None)
    merged = [one for one in observations if one not in named]
    for group in votes.values():
        uses = [one for one in group if not one.is_sighting]
        sightings = sorted((one for one in group if one.is_sighting), key=_age_order)
        newest = max(uses, key=_vote_order, default=None)
        is_first = first is not None and first in sightings
        if is_first and newest is not None and newest.success is not False:
            newest = None
        if newest is not None:
            seen = 1 if any(one.seen for one in sightings) and not is_first else 0
            merged.append(structs.replace(newest, given=sum(one.given for one in uses), seen=seen))
        if sightings and (is_first or newest is None):
            given = sum(one.given for one in uses) if newest is None else 0
            merged.append(structs.replace(sightings[0], given=given))
    return merged


def _without_given_sightings(observations: Sequence[Observation], work_items: WorkItems) -> Sequence[Observation]:
    """Clear `seen` of later sightings by work that was given the pattern before."""
    sightings = sorted((one for one in observations if one.is_sighting), key=_age_order)
    given = [one for one in observations if one.given and one.loop_id] if len(sightings) > 1 else []
    if not given:
        return observations
    since: dict[str, datetime] = {}
    for one in given:
        work, time = work_items.voter_id(one.loop_id), one.at or _LONG_AGO
        since[work] = min(since.get(work, time), time)
    when_given = {
        id(one)
        for one in sightings[1:]
        if (at := since.get(work_items.voter_id(one.loop_id))) is not None and at <= (one.at or _LONG_AGO)
    }
    return [structs.replace(one, seen=0) if id(one) in when_given else one for one in observations]


def _vote_order(use: Observation) -> tuple[bool, datetime, int]:
    iteration = -1 if use.iteration is None else use.iteration
    return use.success is not None, use.at or _LONG_AGO, iteration


def invert_uses(pattern: Pattern, original: Sequence[Observation]) -> list[Observation]:
    """Return an approach's uses until its inversion as uses of the warning."""
    until = pattern.first_discovered
    return [
        structs.replace(
            use,
            pattern_id=pattern.id,
            kind=use.kind if use.kind in (AGGREGATE, TREND) else "applied",
            source=INVERSION,
            success=None if use.success is None else not use.success,
            given=0,
            seen=0,
        )
        for use in original
        if use.is_use and (use.at is None or until is None or use.at <= until)
    ]


def find_counted_event(pattern: Pattern, events: Iterable[Event]) -> Event | None:
    """Return the newest `counted` event, if the record still contains its counts.

    A record that counts fewer uses than the event was replaced by another program; then the result is None.
    """
    counted = (event for event in events if event.kind == "counted")
    newest = max(counted, key=attrgetter("at", "id"), default=None)
    if newest is None:
        return None
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    in_record = max(recorded_counts.uses if recorded_counts else 0, *(size for _, size, _ in usable_trend(pattern)), 0)
    in_event = sum(use.count for use in newest.unrecorded if use.kind != "discovered")
    return newest if in_event <= in_record else None


def _collect_after_count(
    pattern: Pattern,
    recorded: list[Observation],
    unrecorded: Iterable[Observation],
    uses: _Uses,
    work_items: WorkItems,
    ignored: Iterable[Observation],
) -> tuple[Observation, ...]:
    """Collect the evidence on a pattern that has a `counted` event."""
    before = [
        use
        for use in unrecorded
        if use.kind != "discovered"
        or not _is_recorded((work_items.owner_id(use.loop_id), use.loop_id), use.at, recorded, uses)
    ]
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    beyond: list[Observation] = []
    if recorded_counts is not None:
        counted = (use for use in (*recorded, *ignored) if not is_later(use, pattern))
        beyond = list_aggregates(pattern, recorded_counts.subtract((*before, *counted)))
    return tuple(sorted((*merge_votes(recorded, work_items), *before, *beyond), key=_age_order))


def _may_be_counted(use: Observation, pattern: Pattern, work_items: WorkItems) -> bool:
    """Return whether the record may count a use: it has a result and is not too new."""
    without_result = use.success is None and use.kind == "applied"
    if without_result and (not use.loop_id or work_items.is_open(use.loop_id)):
        return False
    return not is_later(use, pattern)


def is_later(use: Observation, pattern: Pattern) -> bool:
    """Return whether a use is later than `last_used` of the record."""
    return pattern.last_used is not None and use.at is not None and use.at - pattern.last_used > _SAME_TIME


def _age_order(observation: Observation) -> tuple[datetime, str, int, str]:
    iteration = -1 if observation.iteration is None else observation.iteration
    return observation.at or _UNDATED, observation.loop_id, iteration, f"{observation.kind} {observation.success}"


def _find_discovery(
    pattern: Pattern, uses: _Uses, recorded: Sequence[Observation], discoverer: Loop | None, work_items: WorkItems
) -> Observation | None:
    """Return the discovery as the first success, unless it is recorded elsewhere.

    If the record counts failures but no success, there is no such success.
    """
    source = find_origin(pattern)
    if source is not None:
        names: tuple[str, ...] = (work_items.owner_id(source.loop_id), source.loop_id)
        outcome = source.outcome
        at = source.at or pattern.first_discovered
    elif discoverer is not None:
        names = (discoverer.id, *discoverer.aliases)
        outcome = ""
        at = pattern.first_discovered or discoverer.ended_at or discoverer.last_activity or discoverer.started_at
    else:
        return None
    if at is None and pattern.trend:
        at = min((point.at for point in pattern.trend if point.at), default=None)
    if _is_recorded(names, at, recorded, uses):
        return None
    recorded_counts = UseCounts.of_record(pattern.recorded_counts)
    if recorded_counts is not None and recorded_counts.failures and not recorded_counts.successes:
        return None
    return Observation(
        pattern_id=pattern.id,
        kind="discovered",
        source=DISCOVERY,
        loop_id=names[0],
        at=at,
        success={"failure": False, "partial": None}.get(outcome, True),
        seen=1,
    )


def _is_recorded(names: tuple[str, ...], at: datetime | None, recorded: Iterable[Observation], uses: _Uses) -> bool:
    """Return whether an event or loop with one of these names records the discovery."""
    if any(use.loop_id in names and use.kind == "discovered" for use in recorded):
        return True
    return any(
        entry.applied and entry.at in (None, at) and not {loop.id, *loop.aliases}.isdisjoint(names)
        for loop, entry in uses
    )


@dataclass(slots=True, eq=False)
class _Use:
    """One use; each field comes from the most trusted source that has it."""

    iteration: int | None
    at: datetime | None
    source: str
    kind: str = "injected"
    success: bool | None = None
    weight: float = 1.0
    given: int = 0  # how often the pattern was injected
    is_ignored: bool = False  # the newest result does not count, so the result is unknown


class WorkItems(Protocol):
    """Looks up loops and attempts."""

    def owner_id(self, work_id: str) -> str:
        """Return the ID of the loop that the uses of a work item count for.

        This is `work_id` itself if it is neither an alias of a loop nor an attempt at its task.
        """

    def voter_id(self, owner_id: str) -> str:
        """Return the loop or task with one vote: the attempts at a task share it."""

    def outcome_success(self, work_id: str) -> bool | None:
        """Return the result of applied patterns according to the work item's outcome."""

    def is_open(self, work_id: str) -> bool:
        """Return whether a work item has not finished."""

    def ignores(self, event: Event) -> bool:
        """Return whether an event is a harmful report that does not count."""


class _LoopUses:
    """The uses of one pattern by one loop; `every` also contains a discovery."""

    __slots__ = ("_by_iteration", "every")

    def __init__(self) -> None:
        self.every: list[_Use] = []
        self._by_iteration: dict[int | None, _Use] = {}  # at most one use in an unknown iteration

    def add(self, use: _Use) -> _Use:
        self.every.append(use)
        if use.kind != "discovered":
            self._by_iteration.setdefault(use.iteration, use)
        return use

    def find(self, iteration: int | None) -> _Use | None:
        """Find the use that an entry describes.

        This is the use in the same iteration, or one in an unknown iteration. An entry without an iteration describes
        the newest use, preferably one without a result.
        """
        if not self.every:  # most loops use a pattern once
            return None
        found = self._by_iteration.get(iteration) or self._by_iteration.get(None)
        if found is not None or iteration is not None:
            return found
        newest_first = [use for use in reversed(self.every) if use.kind != "discovered"]
        return next((use for use in newest_first if use.success is None), newest_first[0] if newest_first else None)

    def place(self, use: _Use, iteration: int | None) -> None:
        """Set the iteration of a use whose iteration is unknown."""
        if use.iteration is None and iteration is not None:
            del self._by_iteration[None]
            use.iteration = iteration
            self._by_iteration[iteration] = use


class UseTable:
    """Merges all records of the uses of one pattern."""

    def __init__(self, pattern: Pattern, work_items: WorkItems) -> None:
        self._pattern = pattern
        self._work_items = work_items
        self._by_loop: defaultdict[str, _LoopUses] = defaultdict(_LoopUses)

    def add_events(self, events: Iterable[Event]) -> None:
        """Add uses from events. The newest result of a use counts; weight 0 is ignored."""
        known: set[str] = set()
        for event in sorted(events, key=_BY_TIME):
            if (event.id and event.id in known) or not event.weight > 0:
                continue
            known.add(event.id)
            if event.kind == "extracted":
                uses = self._by_loop[self._work_items.owner_id(event.loop_id)]
                if not any(use.kind == "discovered" for use in uses.every):
                    uses.add(_Use(event.iteration, event.at, EVENT_LOG, "discovered", True, min(event.weight, 1.0)))
            elif event.kind in _EVENT_USES or (event.kind in _RESULTS and event.success is not None):
                self._add_event(event)

    def _add_event(self, event: Event) -> None:
        loop_id = self._work_items.owner_id(event.loop_id)
        uses = self._by_loop[loop_id]
        use = uses.find(event.iteration) if loop_id else None
        if self._work_items.ignores(event):
            if use is not None:
                use.success, use.is_ignored = None, True
            return
        if use is None:
            use = uses.add(_Use(event.iteration, event.at, EVENT_LOG))
        uses.place(use, event.iteration)
        if event.kind == "injected":
            use.given += 1
            return
        if use.kind == "injected":
            use.kind = "feedback" if event.kind == "feedback" else "applied"
            use.at = event.at
        if event.success is not None:
            use.success, use.is_ignored, use.weight = event.success, False, min(event.weight, 1.0)

    def add_loops(self, uses: Iterable[tuple[Loop, InjectedUse]]) -> None:
        """Add uses from loops where events have gaps; a failure overrides a success."""
        sources = {source.loop_id: source for source in reversed(self._pattern.source_loops) if source.at}
        discovered = find_origin(self._pattern)
        for loop, entry in sorted(uses, key=_use_order):
            known = self._by_loop[loop.id]
            use = known.find(entry.iteration)
            if use is None or (use.kind == "injected" and entry.applied):
                source = next((sources[name] for name in (loop.id, *loop.aliases) if name in sources), None)
                first = entry.applied and not any(other.kind != "injected" for other in known.every)
                at = _date(loop, entry, source, first and source is not discovered)
                if use is None:
                    use = known.add(_Use(entry.iteration, at, LOOP))
                else:  # an injection is not a use: use the time of the loop's entry
                    use.at, use.source = at or use.at, LOOP
            known.place(use, entry.iteration)
            use.given = max(use.given, 1)
            if not entry.applied:
                continue
            if use.kind == "injected":
                use.kind = "applied"
            if use.source == LOOP and False in (use.success, entry.successful):
                use.success = False
            elif use.success is None:
                use.success = entry.successful

    def observations(self) -> list[Observation]:
        """Return every use; a use without a result gets the result of its loop."""
        found = []
        for loop_id, uses in self._by_loop.items():
            for use in uses.every:
                success = use.success
                if success is None and use.kind == "applied" and loop_id and not use.is_ignored:
                    success = self._work_items.outcome_success(loop_id)
                observation = Observation(
                    pattern_id=self._pattern.id,
                    kind=use.kind,
                    source=use.source,
                    loop_id=loop_id,
                    at=use.at,
                    success=success,
                    weight=use.weight,
                    iteration=use.iteration,
                    inferred=success is not use.success,
                    given=use.given,
                    seen=int(use.kind == "discovered"),
                )
                found.append(observation)
        return found


def _use_order(pair: tuple[Loop, InjectedUse]) -> tuple[str, bool, int, bool, str]:
    """Sort key: entries with an iteration first, in an order that no file determines."""
    loop, use = pair
    return loop.id, use.iteration is None, use.iteration or 0, not use.applied, str(use.successful)


def _date(loop: Loop, entry: InjectedUse, source: SourceLoop | None, is_first_use: bool) -> datetime | None:
    """Return the time of a use.

    A record lists each source loop once, with the time when it first applied the pattern. This time is exact for the
    first use; for others the time of the entry has priority. The discovering loop is listed for its discovery.
    """
    listed = source.at if source else None
    own = (listed, entry.at) if is_first_use else (entry.at, listed)
    return own[0] or own[1] or loop.ended_at or loop.last_activity or loop.started_at


def find_origin(pattern: Pattern) -> SourceLoop | None:
    """Return the source loop at discovery time, else the first; skip lessons."""
    if not pattern.source_loops:
        return None
    sources = [source for source in pattern.source_loops if not source.file]
    same_time = (one for one in sources if pattern.first_discovered is not None and one.at == pattern.first_discovered)
    return next(same_time, sources[0] if sources else None)


class LoopPatterns(Struct, frozen=True, kw_only=True):
    """Patterns of one loop in the order of discovery, with results from the evidence."""

    uses: tuple[Observation, ...] = ()  # kinds: `injected` (not applied), `applied` and `feedback`
    extracted: tuple[ExtractedPattern, ...] = ()  # `new` is False if another loop discovered the pattern
    reflections: tuple[str, ...] = ()  # IDs of the reflections in its context, oldest first
    verdicts: dict[str, WorkVerdict] = {}  # whether it followed each pattern that it was given, by ID
    held_out: tuple[str, ...] = ()  # IDs of the patterns that the experiment held out of its work

    @property
    def injected_ids(self) -> list[str]:
        """IDs of the patterns that were injected or applied, each once."""
        return list(dict.fromkeys(use.pattern_id for use in self.uses))

    @property
    def applied_ids(self) -> list[str]:
        """IDs of the patterns that were applied, each once."""
        return list(dict.fromkeys(use.pattern_id for use in self.uses if use.kind != "injected"))

    @property
    def followed_ids(self) -> list[str]:
        """IDs of the patterns that were given and followed, or reported as applied."""
        return list(dict.fromkeys([*self.applied_ids, *(id for id, one in self.verdicts.items() if one.is_followed)]))

    @property
    def ignored_ids(self) -> list[str]:
        """IDs of the patterns that were given and not followed."""
        return [id for id, one in self.verdicts.items() if one.is_followed is False]


def is_about_pattern(event: Event) -> bool:
    """Return whether an event uses or finds a pattern, or injects a reflection."""
    return bool(event.pattern_id and event.kind in _KINDS) or event.kind == INJECTED_REFLECTION


def collect_loop_patterns(
    loop: Loop,
    entries: Sequence[InjectedUse],
    events: Sequence[Event],
    patterns: Mapping[str, Pattern],
    work_items: WorkItems,
    held_out: tuple[str, ...] = (),
) -> LoopPatterns:
    """Collect the patterns of a loop, with each use and extraction once.

    `entries` are the `injected` entries of the loop, without reports that do not count. `events` name the loop, one of
    its aliases, or an attempt at its task. `patterns` are the registered patterns.
    """
    uses: list[Observation] = []
    ids = dict.fromkeys([*(entry.pattern_id for entry in entries), *(one.pattern_id for one in events)])
    for pattern_id in filter(None, ids):
        pattern = patterns.get(pattern_id) or Pattern(id=pattern_id, type=PatternType.ERROR, title="")
        table = UseTable(pattern, work_items)
        table.add_events(event for event in events if event.pattern_id == pattern_id)
        table.add_loops((loop, entry) for entry in entries if entry.pattern_id == pattern_id)
        uses += (use for use in table.observations() if use.kind != "discovered")
    extracted = {entry.pattern_id: entry for entry in loop.extracted}
    for event in events:
        if event.kind == "extracted" and event.pattern_id not in extracted:
            found = patterns.get(event.pattern_id)
            first = find_origin(found) if found else None
            new = first is None or first.loop_id in (loop.id, *loop.aliases, event.loop_id)
            extracted[event.pattern_id] = ExtractedPattern(pattern_id=event.pattern_id, new=new)
    shown = dict.fromkeys(event.reflection_id for event in events if event.kind == INJECTED_REFLECTION)
    reflections = tuple(filter(None, shown))
    verdicts = find_loop_verdicts(events, entries)
    return LoopPatterns(
        uses=tuple(uses),
        extracted=tuple(extracted.values()),
        reflections=reflections,
        verdicts=verdicts,
        held_out=held_out,
    )


def loops_with_reflections(events: Iterable[Event]) -> set[str]:
    """Return the IDs of loops whose context contains reflections, as in the events."""
    return {event.loop_id for event in events if event.kind == INJECTED_REFLECTION and event.loop_id}
