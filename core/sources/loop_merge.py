"""The facts about one loop to its row: whom to believe, when it ended, whether it lives (formats C14-C18)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, Loop, LoopStatus
from core.records.times import minute_of
from core.sources.liveness import Processes, judge
from core.sources.loop_facts import LoopFact, newest
from core.sources.loop_paths import (
    ANALYTICS,
    ARCHIVE,
    BEST_OUTPUT,
    CRASH_LOG,
    CURRENT,
    DETAILS,
    DIRECTORY,
    EXTERNAL,
    EXTERNAL_ARCHIVE,
    EXTERNAL_REGISTRY,
    EXTERNAL_STATE,
    HEARTBEAT,
    LAUNCHER,
    LOOPS,
    REGISTRY,
    loop_home,
)

_TRUST: Final = {
    source: rank
    for rank, source in enumerate(
        (
            *(LOOPS, ARCHIVE, EXTERNAL_ARCHIVE, EXTERNAL_STATE, EXTERNAL, CURRENT),
            *(REGISTRY, EXTERNAL_REGISTRY, LAUNCHER),
            *(ANALYTICS, BEST_OUTPUT, HEARTBEAT, CRASH_LOG, DIRECTORY),
        )
    )
}
"""Which file is asked first about a loop."""
_REGISTRIES: Final = frozenset({REGISTRY, EXTERNAL_REGISTRY})
_OF_EXTERNAL: Final = frozenset({EXTERNAL_STATE, EXTERNAL, LAUNCHER})
_ARCHIVES: Final = frozenset({ARCHIVE, EXTERNAL_ARCHIVE})
_SEEN: Final = _TRUST.keys() - {ANALYTICS, BEST_OUTPUT, CRASH_LOG, DIRECTORY}
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_FUTURE: Final = timedelta(seconds=60)
"""Clocks of different machines differ; a time later than this is no sign of life but a mistake."""


class Context(Struct, frozen=True):
    """What a row is judged by, besides its facts.

    Attributes:
        now: The present, UTC.
        stale_after: Silence that makes a loop without a process to ask stale.
        processes: Whom to ask about a pid.
        registered: Whether there is a registry that could know the loop.
    """

    now: datetime
    stale_after: timedelta
    processes: Processes
    registered: bool


def rows(loop_id: str, facts: Sequence[LoopFact], context: Context, findings: list[Finding]) -> Iterator[Loop]:
    """The rows of all facts that go by one id: none, one, or two where an archived run used the same id.

    Facts that only add detail (a heartbeat, analytics) make no row.
    """
    homes = {home for fact in facts if (home := loop_home(fact.directory))}
    archives = homes & _ARCHIVES
    if len(homes) < 2 or not archives:
        if homes or any(fact.source not in DETAILS and fact.loop_id for fact in facts):
            yield row(loop_id, facts, context, findings)
        return
    archived = [fact for fact in facts if loop_home(fact.directory) in archives]
    live = [fact for fact in facts if loop_home(fact.directory) not in archives]
    if _same_run(live, archived):
        yield row(loop_id, facts, context, findings)
        return
    yield row(loop_id, live, context, findings)
    yield row(f"{loop_id}@archive", archived, context, findings)


def _same_run(live: Sequence[LoopFact], archived: Sequence[LoopFact]) -> bool:
    """Whether the archive holds a copy of the loop that is still in its place."""
    starts = {fact.started_at for fact in live if fact.directory} - {None}
    return not starts.isdisjoint(fact.started_at for fact in archived)


def row(loop_id: str, facts: Sequence[LoopFact], context: Context, findings: list[Finding]) -> Loop:
    """One row of everything that is told about one loop; what contradicts itself is added to `findings`."""
    facts = sorted(facts, key=_trust)
    told = [fact for fact in facts if fact.source not in DETAILS]
    details = [fact for fact in facts if fact.source in DETAILS]
    directory = next((fact.directory for fact in facts if fact.directory), "")
    home = loop_home(directory)
    state = _judged(facts, told, home, context)
    ended_at, approximate = _end(told, state, context.now) if state.over else (None, False)
    if directory and not told:
        findings.append(_no_state(directory))
    _check_times(told, context.now, findings)
    names = {name for fact in facts for name in (fact.loop_id, fact.inner_id)}
    iterations = _first(told, "iterations") or ()
    return Loop(
        id=loop_id,
        aliases=tuple(sorted(names - {loop_id, ""})),
        task=_first(facts, "task") or "",
        criteria=_first(told, "criteria") or (),
        status=LoopStatus.CRASHED if state.liveness is Liveness.DEAD else state.status,
        raw_status=state.raw_status,
        sources=tuple(sorted({fact.source for fact in told} | ({home} if home else set()))),
        badges=tuple(sorted(_badges(facts, home, state, context.registered))),
        archived=home in _ARCHIVES,
        owner=_first(told, "owner") or "",
        priority=_first(told, "priority") or "",
        tags=_first(told, "tags") or (),
        iteration=_iteration(facts, told),
        max_iterations=next((fact.max_iterations for fact in told if fact.max_iterations is not None), None),
        started_at=state.started_at,
        ended_at=ended_at,
        ended_approximate=approximate,
        updated_at=newest(*[fact.updated_at for fact in told]),
        last_activity=state.last_activity,
        modified_at=state.modified_at,
        pid=state.pid,
        liveness=state.liveness,
        liveness_reason=state.reason,
        iterations=iterations,
        quality=_first(details, "quality") or _first(told, "quality") or (),
        last_result=_first(told, "last_result") or (iterations[-1].result if iterations else ""),
        learnings=_first(told, "learnings") or (),
        injected=_first(told, "injected") or (),
        extracted=_first(told, "extracted") or (),
        improvement=_first(told, "improvement"),
        crashes=sum(fact.crashes for fact in details),
        duration_ms=_first(details, "duration_ms") or _first(told, "duration_ms"),
        files=tuple(dict.fromkeys(fact.file for fact in facts if fact.source != DIRECTORY)),
        directory=directory,
    )


class _State(Struct, frozen=True, gc=False):
    """What a loop does by its files (`status`, `raw_status`), and what was found out about it."""

    status: LoopStatus
    raw_status: str
    started_at: datetime | None
    last_activity: datetime | None
    modified_at: datetime | None
    pid: int | None
    liveness: Liveness
    reason: str
    archived: bool

    @property
    def over(self) -> bool:
        """Whether the loop does nothing more: it ended, its process is gone, or it lies in an archive."""
        return self.status.ended or self.liveness is Liveness.DEAD or self.archived


def _judged(facts: Sequence[LoopFact], told: Sequence[LoopFact], home: str, context: Context) -> _State:
    speaker = _speaker(told)
    status = speaker.status if speaker else LoopStatus.UNKNOWN
    last_activity = _last_sign(facts, context.now)
    modified_at = newest(*[fact.modified_at for fact in facts if fact.source in _SEEN]) or _first(facts, "modified_at")
    pid = _first(told, "pid")
    archived = home in _ARCHIVES
    if archived and not status.ended:
        liveness, reason = Liveness.ENDED, "archived"
    else:
        liveness, reason = judge(
            status, pid, last_activity, modified_at, context.now, context.stale_after, context.processes
        )
        crashed_at = newest(*[fact.crashed_at for fact in facts])
        if status.active and crashed_at and (last_activity is None or crashed_at > last_activity):
            reason = f"{reason}; crash.log tells of a crash at {minute_of(crashed_at)} UTC"
    return _State(
        status=status,
        raw_status=speaker.raw_status if speaker else "",
        started_at=_first(facts, "started_at"),
        last_activity=last_activity,
        modified_at=modified_at,
        pid=pid,
        liveness=liveness,
        reason=reason,
        archived=archived,
    )


def _trust(fact: LoopFact) -> tuple[int, bool, str]:
    """Order of belief: by kind; of one kind, what lies in the loop's own directory first."""
    return _TRUST[fact.source], not fact.directory, fact.file


def _first(facts: Sequence[LoopFact], name: str) -> Any:
    """The first value of a field that is not empty; None if all are."""
    for fact in facts:
        value = getattr(fact, name)
        if value:
            return value
    return None


def _speaker(told: Sequence[LoopFact]) -> LoopFact | None:
    """Whose status counts: the state's; of an external loop at work, of whoever wrote last."""
    speaking = [fact for fact in told if fact.raw_status or fact.status is not LoopStatus.UNKNOWN]
    if speaking and speaking[0].source in _OF_EXTERNAL:
        dated = [fact for fact in speaking if fact.source in _OF_EXTERNAL and fact.last_activity_at]
        return max(dated, key=_told_at, default=speaking[0])
    return speaking[0] if speaking else None


def _told_at(fact: LoopFact) -> float:
    return fact.last_activity_at.timestamp() if fact.last_activity_at else 0.0


def _iteration(facts: Sequence[LoopFact], told: Sequence[LoopFact]) -> int | None:
    """Of an external loop the highest that any file tells: its registered twin never advances (3.12)."""
    if any(fact.source.startswith("external") or fact.source == LAUNCHER for fact in told):
        return max((fact.iteration for fact in facts if fact.iteration is not None), default=None)
    return next((fact.iteration for fact in told if fact.iteration is not None), None)


def _last_sign(facts: Sequence[LoopFact], now: datetime) -> datetime | None:
    """Newest time told by the loop's own files, else by a registry; times to come are none."""
    horizon = now + _FUTURE
    signs = [fact for fact in facts if fact.last_activity_at is not None and fact.last_activity_at <= horizon]
    own = newest(*[fact.last_activity_at for fact in signs if fact.source not in _REGISTRIES])
    return own or newest(*[fact.last_activity_at for fact in signs])


def _end(told: Sequence[LoopFact], state: _State, now: datetime) -> tuple[datetime | None, bool]:
    """When a loop ended, and whether that was inferred: of one whose process is gone from its last sign."""
    earliest, latest = state.started_at or _LONG_AGO, now + _FUTURE
    last_activity = state.last_activity or state.modified_at
    inferred = [last_activity]
    if state.liveness is not Liveness.DEAD:
        for fact in told:
            if fact.ended_at and earliest <= fact.ended_at <= latest:
                return fact.ended_at, False
        if state.status is not LoopStatus.CRASHED:
            iterations = [item.at for fact in told for item in fact.iterations]
            inferred = [newest(*iterations), newest(*[fact.updated_at for fact in told]), last_activity]
    for moment in inferred:
        if moment and earliest <= moment <= latest:
            return moment, True
    return state.started_at, True


def _badges(facts: Sequence[LoopFact], home: str, state: _State, registered: bool) -> set[str]:
    """What the files say about each other, and what was found out."""
    badges = set()
    known = any(fact.source in _REGISTRIES for fact in facts)
    if home in (LOOPS, EXTERNAL) and registered and not known:
        at_work = not state.status.ended and state.status is not LoopStatus.UNKNOWN
        badges.add("orphan" if at_work else "unregistered")
    if state.archived and known:
        badges.add("archived-but-registered")
    if known and not home and all(fact.source != CURRENT for fact in facts):
        badges.add("registered-only")
    words = {fact.status for fact in facts if fact.source not in DETAILS} - {LoopStatus.UNKNOWN}
    if len(words) > 1:
        badges.add("status-disagrees")
    if any(fact.directory and fact.inner_id for fact in facts):
        badges.add("id-disagrees")
    if state.status is LoopStatus.CRASHED or state.liveness is Liveness.DEAD:
        badges.add("crashed")
    if state.liveness is Liveness.STALE:
        badges.add("stale")
    return badges


def _no_state(directory: str) -> Finding:
    name = visible_line(directory.rpartition("/")[2], 80)
    message = f"loop directory {name} has no state that can be read; its status is unknown"
    return Finding(directory, "", Severity.WARNING, "no-state", message)


def _check_times(told: Sequence[LoopFact], now: datetime, findings: list[Finding]) -> None:
    """Findings for times that can't be."""
    latest = now + _FUTURE
    for fact in told:
        for name, moment in (("start", fact.started_at), ("end", fact.ended_at), ("update", fact.updated_at)):
            if moment and moment > latest:
                message = (
                    f"the {name} of loop {visible_line(fact.loop_id, 80)} is in the future: {minute_of(moment)} UTC"
                )
                findings.append(Finding(fact.file, "", Severity.WARNING, "future-time", message))
        if fact.started_at and fact.ended_at and fact.ended_at < fact.started_at:
            message = f"loop {visible_line(fact.loop_id, 80)} ends before it starts; the end was inferred"
            findings.append(Finding(fact.file, "", Severity.WARNING, "end-before-start", message))
