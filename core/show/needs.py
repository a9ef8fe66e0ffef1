"""Sessions that need a person, and why (docs/screens.md#needs); reports of them.

The command of a report comes from the user's own settings (docs/settings.md#notify), never from a file of a project. It
gets JSON on standard input.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, RalphdeckError
from core.base.formatting import format_span
from core.base.masking import mask_secrets
from core.base.text import plural, visible_line
from core.base.user_settings import read_user_settings, user_settings_file
from core.files.user_command import CommandFailed, run_user_command
from core.files.user_files import UserStore, project_key, state_file
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
    """Return why a loop with failing tests at its end needs no person; "" for others."""
    return _why_over(state, loop) if loop.status.ended and _failed_tests(loop) is not None else ""


def find_needs(state: ProjectState) -> tuple[Need, ...]:
    """Return what needs a person, most urgent first, and of equal ones the newest.

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
    """Return one sentence, as "asked 59 m ago: which side may change?"; untrusted."""
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
    """Return the time passed: `59 m`, `2 h` or `3 d`; "" if it is unknown."""
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
    """Return why an ended loop needs no action of a person; "" if it may need one."""
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
    """Return whether another known session later attempted a session's last task."""
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
    """Yield escalated debug sessions of no loop whose work has not ended."""
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
    """Return the need of a loop whose last iterations or test runs share an error."""
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
    """Return how many last entries share an error, the error, and their first time."""
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
    """Return the need of a running loop silent for `stale_after_minutes`."""
    at = loop.last_activity
    if at is None:
        return Need(kind=NeedKind.SILENT, loop_id=loop.id) if loop.liveness is Liveness.STALE else None
    silent = state.now - at
    if timedelta(minutes=state.settings.watch.stale_after_minutes) < silent <= RECENT:
        return Need(kind=NeedKind.SILENT, loop_id=loop.id, since=at)
    return None


SECONDS: Final = 30.0  # time limit of one call
PAUSE_SECONDS: Final = 30.0  # between two calls of one process
MAX_NEEDS: Final = 50  # of one call, the most urgent first; the others follow in the next ones
_MAX_TEXT: Final = 400  # characters of a text
_MAX_PATH: Final = 4096  # characters of the path of the project
_MAX_PROJECTS: Final = 200  # projects whose needs are stored, those reported last
_MAX_KEPT: Final = 1_000  # needs of a project that are reported and stored, the most urgent ones
_TABLE: Final = "notified"

log = logging.getLogger(__name__)


class ReportedNeed(Struct, frozen=True):
    """A need; `loop_id` or `session_id` may be "", `text` is a sentence. Untrusted."""

    kind: str
    title: str
    text: str
    since: datetime | None
    loop_id: str
    session_id: str


class NeedReport(Struct, frozen=True):
    """The request: what newly needs a person in a project."""

    version: int
    project: str
    needs: tuple[ReportedNeed, ...]


class Notifier:
    """Runs the command once per need, also if several processes watch the project.

    A need that has ended may be reported again later. One thread calls `check`; another one runs the command, and kills
    it when the program ends. `clock` returns monotonic seconds.
    """

    def __init__(
        self, project: Path, command: Sequence[str] | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self.command = tuple(read_user_settings().notify.command if command is None else command)
        self._project = project
        self._clock = clock
        self._next = float("-inf")  # when the command may run again
        self._known: frozenset[str] | None = None  # the needs at the last check, if all were reported
        self._running: threading.Thread | None = None

    def check(self, state: ProjectState) -> None:
        """Report the new needs of a state; a failure is logged and not repeated."""
        is_whole = state.snapshot.complete and state.snapshot.as_of is None
        is_busy = self._clock() < self._next or (self._running is not None and self._running.is_alive())
        if not self.command or not is_whole or is_busy:
            return
        needs = {need_key(need): need for need in find_needs(state)[:_MAX_KEPT]}
        if needs.keys() == self._known:
            return
        new, is_rest = self._remember(list(needs))
        self._known = None if is_rest else frozenset(needs)
        if new:
            self._next = self._clock() + PAUSE_SECONDS
            report = make_report(self._project, state, [needs[key] for key in new])
            # Not a daemon: the program waits for it, and it ends when the main thread has ended.
            self._running = threading.Thread(target=self._send, args=(report,), name="ralphdeck-notify")
            self._running.start()

    @classmethod
    def for_loop(cls, project: Path) -> Callable[[ProjectState], object] | None:
        """Return `check` of a notifier; None if the user has set no command."""
        notifier = cls(project)
        return notifier.check if notifier.command else None

    def wait(self) -> None:
        """Wait until the command has ended."""
        if self._running is not None:
            self._running.join()

    def _remember(self, keys: Sequence[str]) -> tuple[Sequence[str], bool]:
        """Store reported needs; return those to report now, and whether some are left."""
        from tinydb import where

        project = project_key(self._project)
        try:
            with UserStore(state_file()).transaction() as tables:
                table = tables.table(_TABLE)
                reported = {
                    key for row in table.search(where("project") == project) for key in _texts(row.get("needs"))
                }
                new = [key for key in keys if key not in reported]
                sent = new[:MAX_NEEDS]
                kept = [key for key in keys if key in reported or key in sent]
                if reported != set(kept):
                    table.remove(where("project") == project)
                    table.remove(doc_ids=[row.doc_id for row in table][: -_MAX_PROJECTS + 1])
                    table.insert({"project": project, "needs": kept})
        except RalphdeckError as error:  # without a memory the same need would be reported again and again
            log.warning("cannot notify: %s", error)
            return (), False
        return sent, len(new) > len(sent)

    def _send(self, report: NeedReport) -> None:
        try:
            send_report(self.command, report)
        except RalphdeckError as error:
            log.warning("the notify command %s", error)


def report_all_needs(project: Path, state: ProjectState) -> None:
    """Run the command for all present needs, also if reported before.

    Raises BadInput if the user has set none, and CommandFailed if it fails.
    """
    command = read_user_settings().notify.command
    if not command:
        raise BadInput(f"No notify command is set. Set command in the group notify of {user_settings_file()}.")
    try:
        send_report(command, make_report(project, state, find_needs(state)))
    except CommandFailed as error:
        raise CommandFailed(f"The notify command {error}") from None


def need_key(need: Need) -> str:
    """Return a need's key; another question of the same session is another need."""
    texts = (need.kind.value, need.loop_id, need.session_id, need.text if need.kind is NeedKind.ASKS else "")
    return blake2b("\0".join(texts).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def make_report(project: Path, state: ProjectState, needs: Sequence[Need]) -> NeedReport:
    """Return the request about needs; secrets masked, no control characters."""
    return NeedReport(
        1, visible_line(str(project), _MAX_PATH), tuple(_report(state, need) for need in needs[:MAX_NEEDS])
    )


def send_report(command: Sequence[str], report: NeedReport, seconds: float = SECONDS) -> None:
    """Run the command, drop its output; raises CommandFailed, see `run_user_command`."""
    main = threading.main_thread()
    run_user_command(command, msgspec.json.encode(report) + b"\n", seconds, lambda: not main.is_alive(), reads=False)


def _report(state: ProjectState, need: Need) -> ReportedNeed:
    loop, session = state.snapshot.loops.get(need.loop_id), state.snapshot.debug_sessions.get(need.session_id)
    title = loop.task if loop is not None else session.file_path if session is not None else ""
    return ReportedNeed(
        kind=need.kind.value,
        title=_text(title),
        text=_text(describe_need(need, state.now)),
        since=need.since,
        loop_id=_text(need.loop_id),
        session_id=_text(need.session_id),
    )


def _text(text: str) -> str:
    return visible_line(mask_secrets(text), _MAX_TEXT)


def _texts(value: object) -> list[str]:
    """Return the texts of a list that was read from a file."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
