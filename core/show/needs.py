"""Which sessions need a person, and why (docs/screens.md#needs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.formatting import format_span
from core.base.text import plural
from core.index.records import RecordMap
from core.learning.outcomes import identify_failure
from core.records.loops import Liveness, Outcome, needs_person
from core.show.pages.document import Sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.debug_sessions import DebugSession, Failure
    from core.records.episodes import Attempt
    from core.records.loops import Loop
    from core.tasks.escalations import EscalatedSession

SAME_ERROR_LEAST: Final = 3  # iterations or test runs in a row with the same error
RECENT: Final = timedelta(days=3)  # a weekend: older failures and silences are history
_MOST_RECENT: Final = 300  # newest loops that are looked at for one that ended with failing tests
_LAST_ATTEMPTS: Final = 2  # attempts of a session whose test runs are compared


class NeedKind(StrEnum):
    """What a person is needed for, the most urgent first."""

    ASKS = "asks"
    SAME_ERROR = "same error"
    SILENT = "silent"
    TESTS_FAILED = "tests failed"


class Need(Struct, frozen=True, kw_only=True):
    """Why a session needs a person.

    `loop_id` is the ID of its loop; "" for a debug session of no known loop. `session_id` is the debug session that an
    agent escalated, or "". `since` is when it began, None if no file has a time. `count` is the number of iterations or
    test runs with the same error, else 0. `text` is the question, the error or the reason; untrusted.
    """

    kind: NeedKind
    loop_id: str = ""
    session_id: str = ""
    since: datetime | None = None
    count: int = 0
    text: str = ""


def find_need(state: ProjectState, loop: Loop) -> Need | None:
    """Return why a loop needs a person; None if it does not."""
    if loop.archived:
        return None
    if loop.status.ended:
        return _failed_tests(loop) if not _why_over(state, loop) else None
    if needs_person(loop):
        return Need(kind=NeedKind.ASKS, loop_id=loop.id, since=loop.last_activity, text=loop.question)
    sessions = _debug_sessions(state, loop)
    if (escalated := _escalation(state, sessions)) is not None:
        id = escalated.session.id
        return Need(kind=NeedKind.ASKS, loop_id=loop.id, session_id=id, since=escalated.at, text=escalated.reason)
    if not loop.is_running:
        return None
    return _same_error(loop, sessions) or _silence(loop, state)


def why_no_need(state: ProjectState, loop: Loop) -> str:
    """Return why a loop that ended with failing tests needs no person; "" for another loop."""
    return _why_over(state, loop) if loop.status.ended and _failed_tests(loop) is not None else ""


def find_needs(state: ProjectState) -> tuple[Need, ...]:
    """Return what needs a person, the most urgent first, and of equal ones the newest.

    Looks at the open loops, the newest ones and the escalated debug sessions of no loop.
    """
    needs = [need for loop in _candidates(state) if (need := find_need(state, loop)) is not None]
    needs += _homeless_escalations(state)
    order = list(NeedKind)
    return tuple(sorted(needs, key=lambda one: (order.index(one.kind), -one.since.timestamp() if one.since else 0.0)))


def need_sign(need: Need, now: datetime) -> Sign:
    """Return glyph, words and style of a need, such as `↻ same error x4`."""
    match need.kind:
        case NeedKind.ASKS:
            return Sign("asks", "warning strong", "escalated")
        case NeedKind.SAME_ERROR:
            return Sign(f"same error x{need.count}", "warning", "again")
        case NeedKind.SILENT:
            return Sign(f"silent {time_since(need.since, now)}".rstrip(), "warning", "waiting")
        case NeedKind.TESTS_FAILED:
            return Sign("unsolved", "bad", "failed")


def describe_need(need: Need, now: datetime) -> str:
    """Return one sentence without the glyph, such as "asked 59 m ago: which side may change?"; untrusted."""
    span = time_since(need.since, now)
    match need.kind:
        case NeedKind.ASKS:
            since = f"asked {span} ago" if span else "asks"
            return ": ".join(filter(None, (since, need.text)))
        case NeedKind.SAME_ERROR:
            since = f"same error {plural(need.count, 'time')} in a row{f', {span}' if span else ''}"
            return ": ".join(filter(None, (since, need.text)))
        case NeedKind.SILENT:
            return f"no activity{f' for {span}' if span else ''}"
        case NeedKind.TESTS_FAILED:
            return f"ended with failing tests{f', {span} ago' if span else ''}"


def time_since(at: datetime | None, now: datetime) -> str:
    """Return the time passed in one unit, such as `59 m`, `2 h` or `3 d`; "" if it is unknown."""
    return format_span((now - at).total_seconds()) if at is not None else ""


def _candidates(state: ProjectState) -> Iterator[Loop]:
    """Yield the loops that may need a person, each once."""
    loops = state.snapshot.loops
    if not isinstance(loops, RecordMap):
        yield from loops.values()
        return
    open_loops = {loop.id: loop for loop in loops.open_values()}
    yield from open_loops.values()
    yield from (loop for loop in loops.newest(_MOST_RECENT) if loop.id not in open_loops)


def _failed_tests(loop: Loop) -> Need | None:
    """Return the need of a session that ended with failing tests."""
    if loop.success:
        return None
    results = loop.iterations[-1].results if loop.iterations else None
    has_failed = loop.progress.test_passed is False or (results is not None and results.green is False)
    if not (has_failed or loop.has_failed_check):
        return None
    at = loop.ended_at or loop.last_activity
    return Need(kind=NeedKind.TESTS_FAILED, loop_id=loop.id, since=at, text=loop.last_result)


def _why_over(state: ProjectState, loop: Loop) -> str:
    """Return why a loop that ended needs no action of a person, whatever its result; "" if it may need one."""
    at = loop.ended_at or loop.last_activity
    if loop.archived:
        return "it is archived"
    if at is None or state.now - at > RECENT:
        return f"it ended more than {RECENT.days} days ago"
    later = _later_attempts(state, loop)
    if any(one.outcome is Outcome.SUCCESS for one in later):
        return "a later attempt at the task worked"
    return "a later session has attempted the task" if _is_of_known_session(state, later) else ""


def has_later_session(state: ProjectState, loop: Loop) -> bool:
    """Return whether another session, which is known, has attempted the last task of a session after it."""
    return _is_of_known_session(state, _later_attempts(state, loop))


def _is_of_known_session(state: ProjectState, attempts: Iterable[Attempt]) -> bool:
    """Return whether a known session made one of these attempts."""
    find, loops = state.inputs.names.find_loop_id, state.snapshot.loops
    return any(one.loop_id and find(one.loop_id) in loops for one in attempts)


def _later_attempts(state: ProjectState, loop: Loop) -> list[Attempt]:
    """Return the attempts at the last task of a session that were made after it."""
    if not (own := state.attempts_of(loop)):
        return []
    last = own[-1]
    return [one for one in state.inputs.names.attempts_at(last.task_id) if one.number > last.number]


def _debug_sessions(state: ProjectState, loop: Loop) -> list[DebugSession]:
    """Return the debug sessions of a loop and of its newest attempts."""
    if not state.snapshot.debug_sessions:
        return []
    names = state.inputs.names
    works = (loop.id, *(one.id for one in names.attempts_of(loop)[-_LAST_ATTEMPTS:]))
    return [session for work in works for session in names.sessions_of(work)]


def _escalation(state: ProjectState, sessions: Sequence[DebugSession]) -> EscalatedSession | None:
    if not sessions:
        return None
    from core.tasks.escalations import find_escalation  # imports much; most loops have no debug session

    found = (find_escalation(session, state.snapshot) for session in sessions)
    return next((one for one in found if one is not None and not one.has_ended), None)


def _homeless_escalations(state: ProjectState) -> Iterator[Need]:
    """Yield the escalated debug sessions that belong to no loop, and whose work has not ended."""
    if not state.snapshot.debug_sessions or state.snapshot.as_of is not None:
        return  # the first page of a start does not wait for the index of debug sessions
    from core.tasks.escalations import ASKS_FOR

    names = state.inputs.names
    for one in state.escalations():
        session = one.session
        if one.has_ended or names.loop_of_work(names.session_owner(session)):
            continue
        if one.at is not None and state.now - one.at <= ASKS_FOR:
            yield Need(kind=NeedKind.ASKS, session_id=session.id, since=one.at, text=one.reason)


def _same_error(loop: Loop, sessions: Sequence[DebugSession]) -> Need | None:
    """Return the need of a loop whose last iterations, or last test runs, have an error in common."""
    iterations = [(one.at, () if one.has_succeeded else one.failures) for one in loop.iterations]
    if iterations and not iterations[-1][1] and not loop.iterations[-1].has_succeeded:
        iterations.pop()  # the one at work has no result yet
    runs = [[(run.at, run.failures) for run in session.executions] for session in sessions if session.is_open]
    for failures in (iterations, *runs):
        count, text, since = _repetition(failures)
        if count >= SAME_ERROR_LEAST:
            return Need(kind=NeedKind.SAME_ERROR, loop_id=loop.id, since=since, count=count, text=text)
    return None


def _repetition(failures: Sequence[tuple[datetime | None, Sequence[Failure]]]) -> tuple[int, str, datetime | None]:
    """Return how many of the last entries share an error, the error, and when the first of them was."""
    common: dict[tuple[str, str, str], str] = {}
    count, since = 0, None
    for at, own in reversed(failures):
        errors = {identify_failure(one): one.summary for one in own}
        shared = {key: text for key, text in errors.items() if not count or key in common}
        if not shared:
            break
        common, since, count = shared, at or since, count + 1
    return count, next(iter(common.values()), ""), since


def _silence(loop: Loop, state: ProjectState) -> Need | None:
    """Return the need of a running loop without activity for the time of the setting `stale_after_minutes`."""
    at = loop.last_activity
    if at is None:
        return Need(kind=NeedKind.SILENT, loop_id=loop.id) if loop.liveness is Liveness.STALE else None
    silent = state.now - at
    if timedelta(minutes=state.settings.watch.stale_after_minutes) < silent <= RECENT:
        return Need(kind=NeedKind.SILENT, loop_id=loop.id, since=at)
    return None
