"""Merge all facts into a `Loop` (docs/file-formats.md#joining-loops)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, Loop, LoopStatus
from core.records.times import minute_of
from core.sources import loop_facts as sources
from core.sources.liveness import Processes, check_liveness
from core.sources.loop_facts import LoopFact, loop_home, newest

_ORDER: Final = (
    *(sources.LOOPS, sources.ARCHIVE, sources.EXTERNAL_ARCHIVE, sources.EXTERNAL_STATE, sources.EXTERNAL),
    *(sources.CURRENT, sources.REGISTRY, sources.EXTERNAL_REGISTRY, sources.LAUNCHER),
    *(sources.ANALYTICS, sources.BEST_OUTPUT, sources.HEARTBEAT, sources.CRASH_LOG, sources.DIRECTORY),
)
_PRECEDENCE: Final = {source: rank for rank, source in enumerate(_ORDER)}
"""Precedence of sources if they disagree; 0 is the highest."""
_EXTERNAL_STATES: Final = frozenset({sources.EXTERNAL_STATE, sources.EXTERNAL, sources.LAUNCHER})
_WITH_ACTIVITY: Final = _PRECEDENCE.keys() - (sources.DETAILS - {sources.HEARTBEAT})
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_CLOCK_TOLERANCE: Final = timedelta(seconds=60)
"""Tolerance for differing clocks; a time further in the future is ignored as a mistake."""


class Context(Struct, frozen=True):
    """Inputs for the state of a loop that are not in its facts.

    A loop without a known process is stale if it had no activity for `stale_after`. `has_registry` is True if a
    registry exists, which should list the loop.
    """

    now: datetime
    stale_after: timedelta
    processes: Processes
    has_registry: bool


def merge_facts(loop_id: str, facts: Sequence[LoopFact], context: Context, findings: list[Finding]) -> Iterator[Loop]:
    """Merge facts with one ID into a loop, or two if an archived run has the ID too.

    Facts that only add details (a heartbeat, analytics) give no loop.
    """
    homes = {home for directory in {fact.directory for fact in facts} if (home := loop_home(directory))}
    archives = homes & sources.ARCHIVES
    if len(homes) < 2 or not archives:
        if homes or any(fact.source not in sources.DETAILS and fact.loop_id for fact in facts):
            yield merge_loop(loop_id, facts, context, findings)
        return
    archived = [fact for fact in facts if loop_home(fact.directory) in archives]
    live = [fact for fact in facts if loop_home(fact.directory) not in archives]
    starts = {fact.started_at for fact in live if fact.directory} - {None}
    if not starts.isdisjoint(fact.started_at for fact in archived):  # the archive holds a copy of the same run
        yield merge_loop(loop_id, facts, context, findings)
        return
    yield merge_loop(loop_id, live, context, findings)
    yield merge_loop(f"{loop_id}@archive", archived, context, findings)


def merge_loop(loop_id: str, facts: Sequence[LoopFact], context: Context, findings: list[Finding]) -> Loop:
    """Merge all facts into one loop; adds a finding for each contradiction."""
    facts = sorted(facts, key=_precedence)
    main = [fact for fact in facts if fact.source not in sources.DETAILS]
    details = [fact for fact in facts if fact.source in sources.DETAILS]
    directory = next((fact.directory for fact in facts if fact.directory), "")
    home = loop_home(directory)
    if directory and not main:
        name = visible_line(directory.rpartition("/")[2], 80)
        message = f"loop directory {name} has no readable state file; the status is unknown"
        findings.append(Finding(directory, "", Severity.WARNING, "no-state", message))
    _check_times(main, context.now, findings)
    names = {name for fact in facts for name in (fact.loop_id, fact.inner_id)}
    iterations = _first(main, "iterations") or ()
    source = _status_source(main)
    status = source.status if source else LoopStatus.UNKNOWN
    modified_at = newest(*[fact.modified_at for fact in facts if fact.source in _WITH_ACTIVITY])
    modified_at = modified_at or _first(facts, "modified_at")
    last_activity = _last_activity(facts, context.now)
    started_at, updated_at = _first(facts, "started_at"), newest(*[fact.updated_at for fact in main])
    values, is_archived = _values_of(main), home in sources.ARCHIVES
    if is_archived and not status.ended:
        liveness, reason = Liveness.ENDED, "archived"
    else:
        liveness, reason = check_liveness(
            *(status, values.get("pid"), last_activity, modified_at),
            *(context.now, context.stale_after, context.processes),
        )
        crashed_at = newest(*[fact.crashed_at for fact in facts])
        if status.active and crashed_at and (last_activity is None or crashed_at > last_activity):
            reason = f"{reason}; crash.log reports a crash at {minute_of(crashed_at)} UTC"
    is_dead = liveness is Liveness.DEAD
    ended_at, is_approximate = None, False
    if status.ended or is_dead or is_archived:
        latest = context.now + _CLOCK_TOLERANCE
        ended_at, is_approximate = _end(
            main, status, is_dead, started_at, latest, (updated_at, last_activity or modified_at)
        )
    return Loop(
        id=loop_id,
        aliases=tuple(sorted(names - {loop_id, ""})),
        task=_first(facts, "task") or "",
        status=LoopStatus.CRASHED if is_dead else status,
        raw_status=source.raw_status if source else "",
        sources=tuple(sorted({fact.source for fact in main} | ({home} if home else set()))),
        badges=tuple(sorted(_badges(facts, home, status, liveness, context.has_registry))),
        archived=is_archived,
        iteration=_iteration(facts, main),
        max_iterations=next((fact.max_iterations for fact in main if fact.max_iterations is not None), None),
        started_at=started_at,
        ended_at=ended_at,
        ended_approximate=is_approximate,
        updated_at=updated_at,
        last_activity=last_activity,
        modified_at=modified_at,
        liveness=liveness,
        liveness_reason=reason,
        iterations=iterations,
        quality=_first(details, "quality") or _first(main, "quality") or (),
        last_result=_first(main, "last_result") or (iterations[-1].result if iterations else ""),
        crashes=sum([fact.crashes for fact in details]),
        duration_ms=_first(details, "duration_ms") or _first(main, "duration_ms"),
        files=tuple(dict.fromkeys([fact.file for fact in facts if fact.source != sources.DIRECTORY])),
        directory=directory,
        **values,
    )


_FROM_MAIN: Final = (
    *("criteria", "owner", "priority", "tags", "pid"),
    *("learnings", "injected", "extracted", "improvement"),
)
"""Fields of a loop that are taken from the first fact with a value, ignoring facts from `DETAILS`."""
_read_main: Final = attrgetter(*_FROM_MAIN)


def _values_of(main: Sequence[LoopFact]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact in reversed(main):
        found |= {name: value for name, value in zip(_FROM_MAIN, _read_main(fact), strict=True) if value}
    return found


def _precedence(fact: LoopFact) -> tuple[int, bool, str]:
    """Sort key by source; within a source, facts in the loop's directory come first."""
    return _PRECEDENCE[fact.source], not fact.directory, fact.file


def _first(facts: Sequence[LoopFact], name: str) -> Any:
    for fact in facts:
        if value := getattr(fact, name):
            return value
    return None


def _status_source(main: Sequence[LoopFact]) -> LoopFact | None:
    """The fact whose status is used: the first one; for external loops, the newest."""
    with_status = [fact for fact in main if fact.raw_status or fact.status is not LoopStatus.UNKNOWN]
    if with_status and with_status[0].source in _EXTERNAL_STATES:
        dated = [fact for fact in with_status if fact.source in _EXTERNAL_STATES and fact.last_activity_at]
        return max(dated, key=lambda fact: fact.last_activity_at or _LONG_AGO, default=with_status[0])
    return with_status[0] if with_status else None


def _iteration(facts: Sequence[LoopFact], main: Sequence[LoopFact]) -> int | None:
    """Current iteration; for external loops the highest, as entries can be outdated."""
    if any(fact.source.startswith("external") or fact.source == sources.LAUNCHER for fact in main):
        return max((fact.iteration for fact in facts if fact.iteration is not None), default=None)
    return next((fact.iteration for fact in main if fact.iteration is not None), None)


def _last_activity(facts: Sequence[LoopFact], now: datetime) -> datetime | None:
    """Newest time, not in the future, in the loop's files, otherwise in a registry."""
    horizon = now + _CLOCK_TOLERANCE
    dated = [fact for fact in facts if fact.last_activity_at is not None and fact.last_activity_at <= horizon]
    own = newest(*[fact.last_activity_at for fact in dated if fact.source not in sources.REGISTRIES])
    return own or newest(*[fact.last_activity_at for fact in dated])


def _end(
    main: Sequence[LoopFact],
    status: LoopStatus,
    is_dead: bool,
    started_at: datetime | None,
    latest: datetime,
    others: tuple[datetime | None, datetime | None],
) -> tuple[datetime | None, bool]:
    """End of a loop, and whether it was inferred (for example for a dead process).

    `others` are the times of its last update and its last activity.
    """
    earliest = started_at or _LONG_AGO
    candidates: tuple[datetime | None, ...] = others[1:]
    if not is_dead:
        for fact in main:
            if fact.ended_at and earliest <= fact.ended_at <= latest:
                return fact.ended_at, False
        if status is not LoopStatus.CRASHED:
            candidates = newest(*[item.at for fact in main for item in fact.iterations]), *others
    for time in candidates:
        if time and earliest <= time <= latest:
            return time, True
    return started_at, True


def _badges(
    facts: Sequence[LoopFact], home: str, status: LoopStatus, liveness: Liveness, has_registry: bool
) -> Iterator[str]:
    is_registered = any(fact.source in sources.REGISTRIES for fact in facts)
    if home in (sources.LOOPS, sources.EXTERNAL) and has_registry and not is_registered:
        yield "unregistered" if status.ended or status is LoopStatus.UNKNOWN else "orphan"
    if home in sources.ARCHIVES and is_registered:
        yield "archived-but-registered"
    if is_registered and not home and all(fact.source != sources.CURRENT for fact in facts):
        yield "registered-only"
    if len({fact.status for fact in facts if fact.source not in sources.DETAILS} - {LoopStatus.UNKNOWN}) > 1:
        yield "status-disagrees"
    if any(fact.directory and fact.inner_id for fact in facts):
        yield "id-disagrees"
    if status is LoopStatus.CRASHED or liveness is Liveness.DEAD:
        yield "crashed"
    if liveness is Liveness.STALE:
        yield "stale"


def _check_times(main: Sequence[LoopFact], now: datetime, findings: list[Finding]) -> None:
    latest = now + _CLOCK_TOLERANCE
    for fact in main:
        for name, time in (("start", fact.started_at), ("end", fact.ended_at), ("update", fact.updated_at)):
            if time and time > latest:
                loop_id = visible_line(fact.loop_id, 80)
                message = f"the {name} of loop {loop_id} is in the future: {minute_of(time)} UTC"
                findings.append(Finding(fact.file, "", Severity.WARNING, "future-time", message))
        if fact.started_at and fact.ended_at and fact.ended_at < fact.started_at:
            name = visible_line(fact.loop_id, 80)
            message = f"loop {name} ends before it starts; its end is inferred from other times"
            findings.append(Finding(fact.file, "", Severity.WARNING, "end-before-start", message))
