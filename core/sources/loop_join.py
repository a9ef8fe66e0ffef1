"""Which facts are about the same loop, and how they are merged into it.

See docs/file-formats.md#loops and docs/file-formats.md#joining-loops.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from msgspec.structs import replace

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, Loop, LoopStatus, LoopValues
from core.records.times import minute_of, newest
from core.sources import record_kinds as sources
from core.sources.liveness import Moment, check_liveness
from core.sources.record_kinds import DETAILS, loop_directory, loop_home


class LoopFact(LoopValues, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The information about a loop in one file, registry entry or loop folder.

    `source` is the kind of file. Facts from `DETAILS` add details to a loop, but do not show that one exists, unless
    they are in the loop's directory. `file` and `directory` are project-relative; the path of a folder ends in `/`.

    `loop_id` is the name of the loop's directory, otherwise the ID in the file, otherwise the stem of the file's name.
    "" means the registry itself, which exists even without entries. `inner_id` is the ID in the file if it differs.

    `status` is `unknown` if the file has no known status; `raw_status` is the word in the file. `modified_at` is the
    file's mtime, None for registry entries. `last_activity_at` is the newest time of an update, iteration, heartbeat,
    start or end in the file. `pid` is the process of the loop itself; `launcher_pid` is only used for joining.
    `quality` is 0..1 per iteration, in order. `duration_ms` comes from analytics, or from the loop itself. `crashes` is
    the number of entries in its crash log, and `crashed_at` the time of the newest.
    """

    source: str
    file: str
    loop_id: str = ""
    inner_id: str = ""
    last_activity_at: datetime | None = None
    launcher_pid: int | None = None
    crashed_at: datetime | None = None


def directory_fact(directory: str, modified_at: datetime | None = None) -> LoopFact | None:
    """Return the fact that a loop directory exists; None for any other path."""
    directory = directory.rstrip("/")
    if loop_directory(directory) != directory or not directory:
        return None
    name = directory.rpartition("/")[2]
    return LoopFact(
        source=sources.DIRECTORY, file=f"{directory}/", loop_id=name, directory=directory, modified_at=modified_at
    )


SAME_START: Final = timedelta(seconds=5)  # Maximum difference between the start times that two files have for one loop.
_TASK_CHARS: Final = 80  # Number of compared characters of a task; registries truncate the text.
_MATCH_ORDER: Final = {
    sources.EXTERNAL_STATE: 0,
    sources.LAUNCHER: 1,
    sources.ANALYTICS: 2,
    sources.BEST_OUTPUT: 3,
    sources.HEARTBEAT: 4,
}
"""Order in which facts with another ID are matched; a heartbeat has no task and needs earlier matches."""
_DETAILS_BY_UUID: Final = frozenset({sources.ANALYTICS, sources.BEST_OUTPUT, sources.HEARTBEAT})
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXTERNAL_TREE: Final = ".aiwg/ralph-external/"
EXTERNAL_GROUP: Final = "external"
"""Key of all facts about external loops, which `group_by_loop` groups."""
REGISTRY_GROUP: Final = "registry"
"""Key of the facts that a registry exists."""
LOOP_GROUP: Final = "loop:"
"""Prefix of the key of an internal loop."""


def group_keys(fact: LoopFact) -> tuple[str, ...]:
    """Group keys of a fact; a UUID may belong to an internal or external loop."""
    if not fact.loop_id:
        return (REGISTRY_GROUP,)
    if fact.file.startswith(_EXTERNAL_TREE):
        return (EXTERNAL_GROUP,)
    key = sys.intern(LOOP_GROUP + fact.loop_id)  # several files of each loop have it
    return (key, EXTERNAL_GROUP) if fact.source in _DETAILS_BY_UUID and _UUID.fullmatch(fact.loop_id) else (key,)


def group_by_loop(facts: Iterable[LoopFact]) -> dict[str, list[LoopFact]]:
    """Group external facts by the ID of the loop's directory or registry entry.

    The session and the launcher of an external loop have other IDs. Their facts are matched with a loop by its ID, by
    the pid that launcher and registry share, or by the same task and nearly the same start. Facts that only add details
    are dropped if they match no loop.
    """
    groups = _LoopGroups()
    others = []
    for fact in facts:
        if fact.directory or fact.source not in _MATCH_ORDER:
            groups.add(fact.loop_id, fact)
        else:
            others.append(fact)
    for fact in sorted(others, key=lambda fact: (_MATCH_ORDER[fact.source], fact.file)):
        groups.match(fact)
    return groups.by_id


class _LoopGroups:
    """Groups of facts, with indexes for matching further facts."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[LoopFact]] = {}
        self._same_loop: dict[str, str] = {}
        self._starts: dict[str, list[tuple[datetime, str]]] = {}
        self._pids: dict[int, list[LoopFact]] = {}

    def match(self, fact: LoopFact) -> None:
        """Find the loop of a fact that may have another ID, and add the fact to it."""
        loop_id = self._same_loop.get(fact.loop_id, fact.loop_id)
        known = self.by_id.get(loop_id, ())
        if all(other.source in DETAILS for other in known):  # this is not the ID of a loop
            found = self._by_pid(fact) if fact.source == sources.LAUNCHER else ""
            found = found or self._by_start(fact)
            if found:
                self.by_id[found].extend(self.by_id.pop(loop_id, ()))
                self._same_loop[fact.loop_id] = loop_id = found
            elif fact.source in DETAILS:
                return
        self.add(loop_id, fact)

    def add(self, loop_id: str, fact: LoopFact) -> None:
        self.by_id.setdefault(loop_id, []).append(fact)
        if fact.source in DETAILS:
            return
        if fact.started_at and fact.task:
            insort(self._starts.setdefault(_task_key(fact.task), []), (fact.started_at, loop_id))
        for pid in (fact.pid, fact.launcher_pid):
            if pid is not None:
                self._pids.setdefault(pid, []).append(fact)

    def _by_pid(self, fact: LoopFact) -> str:
        for other in self._pids.get(fact.launcher_pid or 0, ()):
            if not fact.task or not other.task or _task_key(fact.task) == _task_key(other.task):
                return self._same_loop.get(other.loop_id, other.loop_id)
        return ""

    def _by_start(self, fact: LoopFact) -> str:
        """ID of the loop with the same task and the nearest start in `SAME_START`, or ""."""
        if fact.started_at is None or not fact.task:
            return ""
        starts = self._starts.get(_task_key(fact.task), [])
        after = bisect_left(starts, (fact.started_at, ""))
        near = [(abs(started - fact.started_at), loop_id) for started, loop_id in starts[max(after - 1, 0) : after + 1]]
        distance, loop_id = min(near, default=(SAME_START, ""))
        return self._same_loop.get(loop_id, loop_id) if distance < SAME_START else ""


def _task_key(task: str) -> str:
    return " ".join(task.split())[:_TASK_CHARS].casefold()


_ORDER: Final = (
    *(sources.LOOPS, sources.ARCHIVE, sources.EXTERNAL_ARCHIVE, sources.EXTERNAL_STATE, sources.EXTERNAL),
    *(sources.CURRENT, sources.REGISTRY, sources.EXTERNAL_REGISTRY, sources.LAUNCHER),
    *(sources.ANALYTICS, sources.BEST_OUTPUT, sources.HEARTBEAT, sources.CRASH_LOG, sources.DIRECTORY),
)
_PRECEDENCE: Final = {source: rank for rank, source in enumerate(_ORDER)}
"""Precedence of sources if they disagree; 0 is the highest."""
_EXTERNAL_STATES: Final = frozenset({sources.EXTERNAL_STATE, sources.EXTERNAL, sources.LAUNCHER})
_WITH_ACTIVITY: Final = _PRECEDENCE.keys() - (DETAILS - {sources.HEARTBEAT})
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_CLOCK_TOLERANCE: Final = timedelta(seconds=60)
"""Tolerance for differing clocks; a time further in the future is ignored as a mistake."""


def merge_facts(loop_id: str, facts: Sequence[LoopFact], moment: Moment, findings: list[Finding]) -> Iterator[Loop]:
    """Merge facts with one ID into a loop, or two if an archived run has the ID too.

    Facts that only add details (a heartbeat, analytics) give no loop.
    """
    homes = {home for directory in {fact.directory for fact in facts} if (home := loop_home(directory))}
    archives = homes & sources.ARCHIVES
    if len(homes) < 2 or not archives:
        if homes or any(fact.source not in DETAILS and fact.loop_id for fact in facts):
            yield merge_loop(loop_id, facts, moment, findings)
        return
    archived = [fact for fact in facts if loop_home(fact.directory) in archives]
    live = [fact for fact in facts if loop_home(fact.directory) not in archives]
    starts = {fact.started_at for fact in live if fact.directory} - {None}
    if not starts.isdisjoint(fact.started_at for fact in archived):  # the archive holds a copy of the same run
        yield merge_loop(loop_id, facts, moment, findings)
        return
    yield merge_loop(loop_id, live, moment, findings)
    yield merge_loop(f"{loop_id}@archive", archived, moment, findings)


def merge_loop(loop_id: str, facts: Sequence[LoopFact], moment: Moment, findings: list[Finding]) -> Loop:
    """Merge all facts into one loop; adds a finding for each contradiction."""
    # Within a source, facts in the loop's directory come first.
    facts = sorted(facts, key=lambda fact: (_PRECEDENCE[fact.source], not fact.directory, fact.file))
    main = [fact for fact in facts if fact.source not in DETAILS]
    details = [fact for fact in facts if fact.source in DETAILS]
    directory = next((fact.directory for fact in facts if fact.directory), "")
    home = loop_home(directory)
    if directory and not main:
        name = visible_line(directory.rpartition("/")[2], 80)
        message = f"loop directory {name} has no readable state file; the status is unknown"
        findings.append(Finding(directory, "", Severity.WARNING, "no-state", message))
    _check_times(main, moment.now, findings)
    names = {name for fact in facts for name in (fact.loop_id, fact.inner_id)}
    iterations = _first(main, "iterations") or ()
    source = _status_source(main)
    status = source.status if source else LoopStatus.UNKNOWN
    modified_at = newest(*[fact.modified_at for fact in facts if fact.source in _WITH_ACTIVITY])
    modified_at = modified_at or _first(facts, "modified_at")
    last_activity = _last_activity(facts, moment.now)
    started_at, updated_at = _first(facts, "started_at"), newest(*[fact.updated_at for fact in main])
    values, is_archived = _values_of(main), home in sources.ARCHIVES
    if is_archived and not status.ended:
        liveness, reason = Liveness.ENDED, "archived"
    else:
        liveness, reason = check_liveness(status, values.get("pid"), last_activity, modified_at, moment)
        crashed_at = newest(*[fact.crashed_at for fact in facts])
        if status.active and crashed_at and (last_activity is None or crashed_at > last_activity):
            reason = f"{reason}; crash.log reports a crash at {minute_of(crashed_at)} UTC"
    is_dead = liveness is Liveness.DEAD
    ended_at, is_approximate = None, False
    if liveness is Liveness.ENDED or is_dead:
        latest = moment.now + _CLOCK_TOLERANCE
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
        badges=tuple(sorted(_badges(facts, home, status, liveness, moment.has_registry))),
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
    if len({fact.status for fact in facts if fact.source not in DETAILS} - {LoopStatus.UNKNOWN}) > 1:
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


def mark_stale_wait(loop: Loop, moment: Moment) -> Loop:
    """Return a waiting loop as stale, or not any more."""
    last = loop.last_activity or loop.modified_at
    is_stale = loop.liveness is not Liveness.ALIVE and last is not None and moment.now - last > moment.stale_after
    if is_stale == (loop.liveness is Liveness.STALE):
        return loop
    badges = {*loop.badges, "stale"} if is_stale else {*loop.badges} - {"stale"}
    liveness = Liveness.STALE if is_stale else Liveness.FRESH
    return replace(loop, liveness=liveness, badges=tuple(sorted(badges)))
