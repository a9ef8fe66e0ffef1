"""Joins sessions to the loops that began them; docs/adapters.md#joined-sessions.

A session belongs to the loop that names it, else to the only loop that ran in its folder when it began. Nothing is
joined if several loops ran then. A loop whose file is the plan of another runner's loop is joined to that one.

When the sessions of each loop are known, its claim of success is checked (docs/scoring.md#claims-of-other-runners).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.records.findings import Finding, Severity
from core.records.loops import (
    CONTRADICTED,
    TESTS_FAILED,
    Iteration,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
    Progress,
    StateSource,
    Usage,
)
from core.records.times import newest

if TYPE_CHECKING:
    from core.records.debug_sessions import Failure

INTERACTIVE: Final = "interactive"  # tag of a session that a person started
HEADLESS: Final = "headless"  # tag of a session that a program started; sessions of some agents have neither tag
NOT_JOINED: Final = "not-joined"  # badge of a session that several loops may have started
_ID: Final = attrgetter("id")
_RUNNER: Final = attrgetter("runner")
_BEFORE: Final = timedelta(seconds=5)  # a session may begin before its loop: times are rounded
_AFTER: Final = timedelta(minutes=2)  # between the last sign of a loop and its next session
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_FAR: Final = datetime.max.replace(tzinfo=UTC) - _AFTER
_MAX_PARENTS: Final = 20  # of a subagent
_MAX_FAILURES: Final = 20  # of an iteration
_MAX_DURATION_MS: Final = 1e10  # of an iteration, about 100 days


class Joined(Struct, frozen=True):
    """Loops after joining: sessions that belong to a loop are only in that loop."""

    loops: list[Loop]
    findings: list[Finding]


def join_loops(loops: Iterable[Loop], project: Path) -> Joined:
    """Join the loops of all adapters, given in any order; the result is sorted by ID."""
    ordered = sorted(loops, key=_ID)
    if all(map(is_session, filter(_RUNNER, ordered))):
        return Joined([check_claim(loop) for loop in ordered], [])
    parts = _Parts(ordered)
    parts.join_plans()
    parts.join_named_sessions()
    findings = parts.join_by_time(str(project))
    parts.join_children()
    return Joined([check_claim(loop) for loop in parts.merged()], findings)


def is_session(loop: Loop) -> bool:
    """Return whether a loop is one or several agent sessions without a known runner."""
    return bool(loop.runner) and loop.runner == loop.owner


class _Parts:
    """The loops that are joined to each loop."""

    def __init__(self, loops: Sequence[Loop]) -> None:
        self._loops = {loop.id: loop for loop in loops}
        self._owners: dict[str, str] = {}  # ID of the loop that another one is joined to
        self._sessions = [loop for loop in loops if is_session(loop)]
        self._runners = [loop for loop in loops if loop.runner and not is_session(loop)]

    def join_plans(self) -> None:
        """Join plan-only loops to the newest loop of another runner that uses the plan."""
        plans = {loop.files[0]: loop for loop in self._runners if loop.files}
        for loop in sorted(self._runners, key=start_order, reverse=True):
            for file in loop.files[1:]:
                plan = plans.get(file)
                if plan is not None and plan.runner != loop.runner and plan.id not in self._owners:
                    self._owners[plan.id] = loop.id
        self._runners = [loop for loop in self._runners if loop.id not in self._owners]

    def join_named_sessions(self) -> None:
        """Join the sessions that a loop names."""
        named: dict[str, str] = {}
        for loop in self._runners:
            for session_id in loop.session_ids:
                named.setdefault(session_id, loop.id)
        for session in self._sessions:
            found = next((named[id] for id in session.session_ids if id in named), None)
            if found is not None:
                self._owners[session.id] = found

    def join_by_time(self, project: str) -> list[Finding]:
        """Join other sessions to the only loop in their folder; return uncertain cases."""
        by_folder: dict[str, list[Loop]] = defaultdict(list)
        for loop in self._runners:
            if loop.started_at is not None:
                by_folder[loop.cwd or project].append(loop)
        sessions: dict[str, list[Loop]] = defaultdict(list)
        for session in self._sessions:
            is_free = session.id not in self._owners and INTERACTIVE not in session.tags and not session.parent
            if not is_free or session.started_at is None:
                continue
            folder = session.cwd or project
            if folder in by_folder or (folder := _folder_of_worktree(folder)) in by_folder:
                sessions[folder].append(session)
        unclear: dict[tuple[str, str], int] = defaultdict(int)
        for folder, found in sessions.items():
            running = _Running(by_folder[folder])
            for session in sorted(found, key=start_order):
                match running.candidates(session):
                    case [loop_id]:
                        self._owners[session.id] = loop_id
                        running.extend(loop_id, session)
                    case [first, second]:
                        unclear[first, second] += 1
                        ran = f"not joined: {first} and {second} ran in its folder when it began"
                        badges = tuple(sorted({*session.badges, NOT_JOINED}))
                        reason = f"{session.liveness_reason}; {ran}"
                        self._loops[session.id] = replace(session, badges=badges, liveness_reason=reason)
                    case _:
                        pass
        return [self._describe(pair, count) for pair, count in sorted(unclear.items())]

    def join_children(self) -> None:
        """Join subagents of joined sessions; a person's fork is a session of its own."""
        for session in self._sessions:
            if INTERACTIVE in session.tags:
                continue
            ancestor, children = session, list[str]()
            while ancestor.id not in self._owners and ancestor.parent in self._loops and len(children) < _MAX_PARENTS:
                children.append(ancestor.id)
                ancestor = self._loops[ancestor.parent]
            if is_session(ancestor) and ancestor.id in self._owners:
                self._owners |= dict.fromkeys(children, self._owners[ancestor.id])

    def merged(self) -> Iterator[Loop]:
        """Yield the loops that are not joined to another one, sorted by ID."""
        groups: dict[str, list[Loop]] = defaultdict(list)
        for part_id, loop_id in self._owners.items():
            groups[loop_id].append(self._loops[part_id])
        for loop_id, loop in self._loops.items():
            if loop_id not in self._owners:
                yield merge_parts(loop, groups[loop_id]) if loop_id in groups else loop

    def _describe(self, pair: tuple[str, str], count: int) -> Finding:
        sessions = "1 session is" if count == 1 else f"{count:,} sessions are"
        message = f"{sessions} not joined: the loops {pair[0]} and {pair[1]} ran at the same time in the same folder"
        file = next(iter(self._loops[pair[0]].files), "")
        return Finding(file, "", Severity.WARNING, "ambiguous-sessions", message)


class _Running:
    """Loops of a folder that ran when a session began; sessions come in time order."""

    def __init__(self, loops: Iterable[Loop]) -> None:
        self._waiting = sorted(loops, key=start_order, reverse=True)
        self._loops = {loop.id: loop for loop in self._waiting}
        self._ends: list[tuple[datetime, str]] = []
        self._last_signs: dict[str, datetime] = {}
        self._windows: dict[str, _Windows] = {}
        self._active: dict[str, dict[str, None]] = defaultdict(dict)  # IDs by agent; "" if it is unknown

    def candidates(self, session: Loop) -> list[str]:
        """Return at most two loops that may have started the session."""
        start = session.started_at or _LONG_AGO
        while self._waiting and (self._waiting[-1].started_at or _FAR) - _BEFORE <= start:
            loop = self._waiting.pop()
            self._active[loop.agent][loop.id] = None
            self._set_end(loop.id, _last_sign(loop))
        while self._ends and self._ends[0][0] + _AFTER < start:
            end, loop_id = heappop(self._ends)
            if self._last_signs[loop_id] == end:
                self._active[self._loops[loop_id].agent].pop(loop_id, None)
        found = list(islice(chain(self._active[""], self._active[session.agent]), 2))
        return sorted(found) if len(found) != 1 or self._fits(self._loops[found[0]], session) else []

    def _fits(self, loop: Loop, session: Loop) -> bool:
        """Return whether a session in a loop's time fits its agent, end and iterations."""
        if not loop.agent and HEADLESS not in session.tags:
            return False
        if loop.status.ended and _last_sign(session) > _last_sign(loop) + _AFTER:
            return False
        if loop.id not in self._windows:
            self._windows[loop.id] = _Windows(loop.iterations)
        return not self._windows[loop.id].exclude(session)

    def extend(self, loop_id: str, session: Loop) -> None:
        """Use a joined session as a sign of its loop, unless the loop's end is known."""
        last = _last_sign(session)
        if self._last_signs[loop_id] < last and not self._loops[loop_id].status.ended:
            self._set_end(loop_id, last)

    def _set_end(self, loop_id: str, end: datetime) -> None:
        self._last_signs[loop_id] = end
        heappush(self._ends, (end, loop_id))


def merge_parts(loop: Loop, parts: Sequence[Loop]) -> Loop:
    """Return a loop with its sessions' usage, model, agent, failures and last signs."""
    ordered = sorted(parts, key=start_order)
    everyone = (loop, *ordered)
    sessions = [part for part in ordered if is_session(part)]
    main = [session for session in sessions if not session.parent]
    merged = replace(
        loop,
        aliases=tuple(sorted({*loop.aliases, *(name for part in ordered for name in (part.id, *part.aliases))})),
        task=next((one.task for one in everyone if one.task), ""),
        owner=loop.agent or next((session.owner for session in reversed(main)), loop.owner),
        model=next((session.model for session in reversed(main) if session.model), loop.model),
        usage=_join_usage(loop.usage, [part.usage for part in ordered]),
        session_ids=tuple(dict.fromkeys(id for one in (*ordered, loop) for id in one.session_ids)),
        iterations=_join_failures(loop.iterations, main) if loop.iterations else tuple(_to_iterations(main)),
        iteration=len(main) or None if loop.iteration is None else loop.iteration,
        started_at=min((one.started_at for one in everyone if one.started_at), default=None),
        last_activity=newest(*(one.last_activity for one in everyone)),
        progress=_join_progress(loop, ordered),
    )
    return _join_status(merged, main)


def join_details(details: LoopDetails, sessions: Iterable[tuple[Loop, LoopDetails]]) -> LoopDetails:
    """Add sessions' failures to a loop's details, as its iterations if it has none."""
    read = [replace(session, iterations=found.iterations) for session, found in sessions]
    read = sorted((session for session in read if is_session(session) and not session.parent), key=start_order)
    own = details.iterations
    return replace(details, iterations=_join_failures(own, read) if own else tuple(_to_iterations(read)))


def _join_usage(own: Usage, others: Iterable[Usage]) -> Usage:
    """Return the sessions' sum; the runner's own count if transcripts are missing."""
    found = sum(others, Usage())
    cost = found.cost_usd if own.cost_usd is None else own.cost_usd
    return replace(own if (own.total or 0) > (found.total or 0) else found, cost_usd=cost)


def _join_progress(loop: Loop, parts: Sequence[Loop]) -> Progress:
    newest_first = [loop.progress, *(part.progress for part in reversed(parts))]
    latest = newest_first[:2]
    plan = next((one for one in newest_first if one.stories is not None), Progress())
    return Progress(
        stories=plan.stories,
        stories_done=plan.stories_done,
        test_passed=next((one.test_passed for one in newest_first if one.test_passed is not None), None),
        files_changed=_join_counts(loop.progress.files_changed, [part.progress.files_changed for part in parts]),
        goal_met=next((one.goal_met for one in latest if one.goal_met is not None), None),
        is_claimed=any(one.is_claimed for one in latest),
        changed_at=newest(*(one.changed_at for one in newest_first)),
    )


def _join_counts(own: int | None, others: Sequence[int | None]) -> int | None:
    """Return the own count, else the sum; None if it is 0 and not all are known."""
    if own is not None:
        return own
    return sum(count or 0 for count in others) or (None if None in others else 0)


def _join_failures(iterations: Sequence[Iteration], sessions: Iterable[Loop]) -> tuple[Iteration, ...]:
    """Add each session's failures to the iteration it began in, if that has none."""
    windows = _Windows(iterations)
    found: dict[int, list[Iteration]] = defaultdict(list)
    for session in sessions:
        if (row := windows.find(session)) is not None:
            found[row].extend(session.iterations)
    return tuple(
        replace(one, failures=_failures(found[number])) if number in found and not one.failures else one
        for number, one in enumerate(iterations)
    )


class _Windows:
    """Times of iterations: end is `at`, start by duration, else the end before it."""

    def __init__(self, iterations: Sequence[Iteration]) -> None:
        timed = sorted(((one.at, row) for row, one in enumerate(iterations) if one.at is not None))
        self._ends = [at for at, _ in timed]
        self._rows = [row for _, row in timed]
        before = (_LONG_AGO, *self._ends)
        self._starts = [_start(at, iterations[row].duration_ms, before[n]) for n, (at, row) in enumerate(timed)]
        self._are_known = bool(timed) and len(timed) == len(iterations)

    def find(self, session: Loop) -> int | None:
        """Return the index of the iteration that a session began in."""
        at = session.started_at or _FAR
        place = bisect_left(self._ends, at)
        return self._rows[place] if place < len(self._ends) and self._starts[place] <= at else None

    def exclude(self, session: Loop) -> bool:
        """Return whether a session began between two iterations."""
        is_later = not self._are_known or (session.started_at or _FAR) > self._ends[-1]
        return not is_later and self.find(session) is None


def _start(at: datetime, duration_ms: float | None, before: datetime) -> datetime:
    """Return when an iteration began, at the earliest."""
    if duration_ms is None:
        return before
    duration = timedelta(milliseconds=max(0.0, min(duration_ms, _MAX_DURATION_MS)))
    return at - duration - _BEFORE if at - _LONG_AGO > duration + _BEFORE else _LONG_AGO


def _to_iterations(sessions: Iterable[Loop]) -> Iterator[Iteration]:
    """Yield each session as an iteration, for runners that record none."""
    for number, session in enumerate(sessions, start=1):
        end = _last_sign(session) if session.status.ended else session.last_activity
        start = session.started_at
        yield Iteration(
            number=number,
            at=end,
            result=session.last_result,
            outcome=Outcome.FAILURE if session.status is LoopStatus.FAILED else Outcome.UNKNOWN,
            duration_ms=(end - start).total_seconds() * 1000 if end and start and end >= start else None,
            failures=_failures(session.iterations),
        )


def _failures(iterations: Iterable[Iteration]) -> tuple[Failure, ...]:
    return tuple(islice((failure for one in iterations for failure in one.failures), _MAX_FAILURES))


def _join_status(loop: Loop, sessions: Sequence[Loop]) -> Loop:
    """Return the loop with the state of an active session, if its files show less."""
    current = next((one for one in reversed(sessions) if one.liveness in (Liveness.ALIVE, Liveness.FRESH)), None)
    if current is None or loop.status.ended or loop.status is LoopStatus.PAUSED:
        return loop
    reason = f"its session {current.id}: {current.liveness_reason}"
    if loop.status is LoopStatus.UNKNOWN or current.status is LoopStatus.WAITING:
        return replace(
            loop,
            status=current.status,
            state_source=StateSource.INFERRED,
            liveness=current.liveness,
            liveness_reason=reason,
            question=loop.question or current.question,
        )
    if loop.liveness in (Liveness.STALE, Liveness.UNKNOWN):
        return replace(loop, liveness=current.liveness, liveness_reason=reason)
    return loop


def _last_sign(loop: Loop) -> datetime:
    """Return when a loop or session ended, or its last sign; a far time if running."""
    if not loop.status.ended and loop.liveness in (Liveness.ALIVE, Liveness.FRESH):
        return _FAR
    if loop.ended_at is not None and not loop.ended_approximate:
        return min(loop.ended_at, _FAR)
    signs = [loop.ended_at, loop.last_activity, loop.updated_at]
    if not is_session(loop):  # the lines of sessions have exact times, but logs of runners may have only dates
        signs.append(loop.modified_at)
    return min(newest(*signs) or loop.modified_at or loop.started_at or _LONG_AGO, _FAR)


def _folder_of_worktree(folder: str) -> str:
    """Return the runner's folder of a path in its `worktrees` folder; "" if none."""
    parts = folder.split("/")
    place = next((n for n, part in enumerate(parts) if part in ("worktrees", ".worktrees")), 0)
    return "/".join(parts[: place - 1 if parts[place - 1].startswith(".") else place])


def start_order(loop: Loop) -> tuple[datetime, str]:
    """Return the sort key of loops by their start."""
    return loop.started_at or _LONG_AGO, loop.id


def check_claim(loop: Loop) -> Loop:
    """Return the loop with a badge and reasons if its progress contradicts its claim.

    A session without a goal claims nothing at the end of its turn; if its last test run failed, it has failed.
    """
    if loop.runner and loop.runner == loop.owner and not (loop.criteria or loop.progress.is_claimed):
        if loop.status is not LoopStatus.COMPLETED or loop.progress.test_passed is not False:
            return loop
        return replace(loop, status=LoopStatus.FAILED, state_source=StateSource.REPORTED, end_reason=TESTS_FAILED)
    claims = loop.status is LoopStatus.COMPLETED or loop.progress.is_claimed
    objections = loop.progress.objections if claims else ()
    if not objections:
        return loop
    badges = tuple(sorted({*loop.badges, CONTRADICTED}))
    return replace(loop, badges=badges, liveness_reason=f"success is claimed, but {', '.join(objections)}")
