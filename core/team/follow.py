"""Thread that syncs a joined project while a program runs, and what it uses.

It reads what the server hints at, and every few seconds whatever happened. If the server cannot be reached, it tries
again after growing pauses. No caller ever waits for the network.
"""

from __future__ import annotations

import os
import select
import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from hashlib import sha256
from random import random
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import RalphdeckError, Unwritable
from core.base.text import plural, visible_line
from core.files import cache_database
from core.records.team import DASHBOARD, Lease, Level, Online, PooledTrials, ProjectUses, TeamStatus
from core.team.connection import Offline, TeamError, translate_errors
from core.team.local_state import LocalState, state_file
from core.team.server import Space, list_spaces
from core.team.sync import Cycle, Prefer, Preview, Synchronizer

if TYPE_CHECKING:
    from pathlib import Path

    from core.team.connection import Joined
    from core.team.texts import OpenProject, Progress


CYCLE_SECONDS: Final = 5.0  # between two syncs without a hint
LOCAL_SECONDS: Final = 1.0  # least time between two syncs because of local changes
SHARE: Final = 20  # counting what has to be sent takes at most one in this number of parts of the time
HINT_SECONDS: Final = 0.1  # least time between two syncs because of hints
HEARTBEAT_SECONDS: Final = 15.0
LEASE_SECONDS: Final = 60  # time after which a question of a dead client is free
USES_SECONDS: Final = 120.0  # between two reads of the activity of projects
FIRST_PAUSE: Final = 1.0  # after the first failure; each further one doubles it
MAX_PAUSE: Final = 30.0
STOP_SECONDS: Final = 0.8  # that the end of the program may take
MAX_PROBLEM: Final = 300
_LONG_AGO: Final = -1e9
LEASES: Final = "leases"  # a hint that only who is online has changed


class Report(Struct, frozen=True):
    """Result of a sync."""

    member: str = ""
    level: str = ""
    differing: int = 0


def hide_question(space: str, question: str) -> str:
    """Hash a question for the server, so that no ID or name leaves the machine."""
    return sha256(f"{space}\n{question}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Follower:
    """Follows the space of a project in a thread of its own.

    `open_project` is called in that thread. `changed` is called there with each new status and must not block. `place`
    names this kind of program to the members.
    """

    def __init__(
        self,
        open_project: Callable[[], JoinedCopy],
        changed: Callable[[TeamStatus], None],
        *,
        place: str = DASHBOARD,
        space: str = "",
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = monotonic,
        jitter: Callable[[], float] = random,
    ) -> None:
        self._open, self._changed = open_project, changed
        self._place, self._now, self._clock, self._jitter = place, now, clock, jitter
        self.status = TeamStatus(space=space, client_id=str(uuid.uuid4()))
        """The newest status; may be read in any thread."""
        self._thread = threading.Thread(target=self._run, name="ralphdeck-team", daemon=True)
        self._awake, self._wake = os.pipe()
        for end in (self._awake, self._wake):
            os.set_blocking(end, False)
        self._lock = threading.Lock()
        self._is_closed = False
        self._stopped = False
        self._question = ""  # of this client
        self._has_news = True  # whether records of the project may have changed
        self._held = ""  # the question that the server knows
        self._connection: SpaceConnection | None = None
        self._failures = 0
        self._offline_before: datetime | None = None  # since when the last run was offline
        self._synced_at = self._beat_at = self._uses_at = self._collect_due = _LONG_AGO

    # Called from any thread; never block.

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End presence and thread; after `seconds`, leave it to end with the process."""
        self._stopped = True
        self._signal()
        if self._thread.ident is None:
            self._close_pipe()
        else:
            self._thread.join(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def note_change(self) -> None:
        """Send soon what has changed in the project."""
        self._has_news = True
        self._signal()

    def hold(self, question: str) -> None:
        """Show the members that this question is open here, and no other; "" for none."""
        if question != self._question:
            self._question = question
            self._signal()

    def holder(self, question: str) -> Lease | None:
        """Return the lease of another member on a question, or None."""
        status = self.status
        return status.lease_of(hide_question(status.space, question)) if status.leases else None

    def _signal(self) -> None:
        with self._lock:
            if not self._is_closed:
                with suppress(BlockingIOError):  # the pipe is full of signals
                    os.write(self._wake, b"x")

    def _close_pipe(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._awake)
                os.close(self._wake)

    # The thread.

    def _run(self) -> None:
        try:
            with closing(self._open()) as project:
                known = project.load_status(self.status)
                self._offline_before = known.since
                self._update(replace(known, since=None))
                while not self._stopped:
                    self._turn(project)
                self._leave()
                project.save_status(self.status)
        except Exception as error:
            self._fail(error)
        finally:
            self._disconnect()
            self._close_pipe()

    def _turn(self, project: JoinedCopy) -> None:
        """Do what is due, then wait for a reason to continue."""
        try:
            self._collect(project)
            self._exchange(project)
            self._failures = 0
        except Exception as error:
            self._disconnect()
            if self._stopped:
                return
            self._fail(error)
            self._failures += 1
            project.save_status(self.status)
        self._wait(project)

    def _collect(self, project: JoinedCopy) -> None:
        if self._has_news and self._clock() >= self._collect_due:
            self._has_news = False
            self._update(replace(self.status, to_send=self._count(project)))

    def _count(self, project: JoinedCopy) -> int:
        """Return how much has to be sent; the more work, the later the next count."""
        begun = thread_time()
        count = project.collect()
        self._collect_due = self._clock() + max(LOCAL_SECONDS, SHARE * (thread_time() - begun))
        return count

    def _exchange(self, project: JoinedCopy) -> None:
        connection = self._connection
        if connection is None:
            connection = self._connection = project.connect(self.status.client_id)
            self._synced_at = self._beat_at = _LONG_AGO
        hints = connection.hints()
        now = self._clock()
        if LEASES in hints or self._question != self._held or now - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat(connection)
        if self._stopped:
            return
        if self.status.to_send or set(hints) - {LEASES} or now - self._synced_at >= CYCLE_SECONDS:
            self._sync(project, connection)
        if now - self._uses_at >= USES_SECONDS and not self._stopped:
            self._uses_at = now
            uses, trials = connection.uses(), connection.trials()
            self._update(replace(self.status, uses=uses, trials=trials, uses_at=self._now()))
            project.save_status(self.status)

    def _beat(self, connection: SpaceConnection) -> None:
        question = self._question
        hidden = hide_question(self.status.space, question) if question else ""
        online = connection.beat(self._place, hidden, LEASE_SECONDS)
        self._held, self._beat_at = question, self._clock()
        skew = self._now() - online.at
        leases = tuple(replace(lease, since=lease.since + skew) for lease in online.leases)
        self._update(replace(self.status, present=online.present, leases=leases))

    def _sync(self, project: JoinedCopy, connection: SpaceConnection) -> None:
        report = connection.sync()
        self._synced_at, now, status = self._clock(), self._now(), self.status
        is_news = not status.is_online
        self._update(
            replace(
                status,
                member=report.member or status.member,
                level=report.level or status.level,
                differing=report.differing,
                is_online=True,
                since=now if is_news else status.since,
                problem="",
                needs_person=False,
                last_sync=now,
                to_send=self._count(project),
            )
        )
        if is_news:
            project.save_status(self.status)

    def _fail(self, error: Exception) -> None:
        """Show that the project is offline, and why."""
        is_known = isinstance(error, RalphdeckError)
        text = str(error) if is_known else f"internal error: {type(error).__name__}: {error}"
        is_temporary = isinstance(error, Offline) or not isinstance(error, TeamError)
        status = self.status
        before = self._now() if status.is_online else status.since or self._offline_before
        self._update(
            replace(
                status,
                is_online=False,
                since=before or self._now(),
                problem=visible_line(text, MAX_PROBLEM),
                needs_person=not is_temporary,
                present=(),
                leases=(),
            )
        )

    def _update(self, status: TeamStatus) -> None:
        if status != self.status:
            self.status = status
            self._changed(status)

    def _wait(self, project: JoinedCopy) -> None:
        """Wait until something is due; while offline, only count what has to be sent."""
        if self._failures:
            pause = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 10), MAX_PAUSE) * (0.5 + self._jitter() / 2)
            end = self._clock() + pause
            while not self._stopped and (left := end - self._clock()) > 0:
                due = self._collect_due - self._clock() if self._has_news else left
                self._select(min(left, max(due, 0.0)))
                self._collect(project)
            return
        last = max(self._synced_at, self._beat_at)
        end = min(self._synced_at + CYCLE_SECONDS, self._beat_at + HEARTBEAT_SECONDS)
        is_hinted = False
        while not self._stopped and self._question == self._held:
            until = min(end, last + HINT_SECONDS if is_hinted else end, self._collect_due if self._has_news else end)
            if (left := until - self._clock()) <= 0:
                return
            is_hinted |= self._select(left, hints=not is_hinted)

    def _select(self, seconds: float, *, hints: bool = True) -> bool:
        """Wait for hints or another thread's signal; return whether there are hints."""
        sources = [self._awake]
        if hints and self._connection is not None:
            sources.append(self._connection.fileno())
        ready, _, _ = select.select(sources, [], [], max(seconds, 0.0))
        if self._awake in ready:
            with suppress(BlockingIOError):
                while os.read(self._awake, 4096):
                    pass
        return any(source != self._awake for source in ready)

    def _leave(self) -> None:
        if self._connection is not None:
            with suppress(TeamError):  # else presence and lease expire
                self._connection.leave()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._held = ""
        if connection is not None:
            connection.close()


WEEKS: Final = (4, 12, 52)
"""Lengths of the time ranges for which the activity of projects is read."""
MOST_POOLED: Final = 100
"""Patterns of which the trials of all projects are read, those with most trials first."""
_STATUS: Final = "status"
CHANNEL: Final = "channel"
"""A hint that the channel of the space is another one."""


class JoinedCopy:
    """A joined project's copy, for one thread; `file` is its state, for a preview."""

    def __init__(
        self,
        project: OpenProject,
        joined: Joined,
        connect: Callable[[Joined], Space] | None = None,
        file: Path | None = None,
        progress: Progress = lambda what, done, total: None,
    ) -> None:
        self.space = joined.space
        self._joined = joined
        self._connect = connect or (lambda joined: Space.connect(joined.conninfo, joined.space))
        self.state = state = LocalState(project.project.project, file)
        self._synchronizer = Synchronizer(
            project,
            state,
            joined.id,
            name=joined.name,
            progress=progress,
        )

    def open_space(self) -> Space:
        return self._connect(self._joined)

    def sync(self, space: Space, prefer: Prefer | None = None) -> Cycle:
        return self._synchronizer.run(space, prefer)

    def preview(self) -> Preview:
        return self._synchronizer.preview()

    def connect(self, client_id: str) -> SpaceConnection:
        return SpaceConnection(self.open_space(), self._synchronizer, UUID(client_id), self._joined.id)

    def collect(self) -> int:
        """Find what has to be sent, without the network; return how much that is."""
        return self._synchronizer.count_unsent()

    def load_status(self, status: TeamStatus) -> TeamStatus:
        """Add the last run's status: offline since, last sync, member, level, activity."""
        known = stored_status(self.state)
        if known is None or known.space != self.space:
            return replace(status, space=self.space)
        since = None if known.is_online else known.since
        return replace(known, client_id=status.client_id, is_online=False, since=since, problem="", needs_person=False)

    def save_status(self, status: TeamStatus) -> None:
        with suppress(Unwritable):
            kept = replace(status, present=(), leases=())
            self.state.set_facts(**{_STATUS: msgspec.json.encode(kept).decode()})

    def close(self) -> None:
        self.state.close()


class SpaceConnection:
    """A connection to the space; calls take bounded time and can raise `TeamError`."""

    def __init__(self, space: Space, synchronizer: Synchronizer, client: UUID, project: UUID) -> None:
        self._space, self._synchronizer, self._client, self._project = space, synchronizer, client, project
        self._hints: list[str] = []
        self._channel = ""
        space.connection.add_notify_handler(lambda notify: self._hints.append(notify.payload))
        try:
            self._listen()
        except TeamError:
            space.close()
            raise

    def _listen(self) -> None:
        """Listen on the channel of the space, and on no earlier one."""
        channel = self._space.channel()
        if channel != self._channel:
            with translate_errors():
                self._space.connection.execute(f'unlisten *; listen "{channel}"'.encode())
            self._channel = channel

    def fileno(self) -> int:
        """Return the socket that becomes readable when hints arrive."""
        return self._space.connection.fileno()

    def hints(self) -> Sequence[str]:
        """Return what has changed on the server since the last call; does not wait."""
        with translate_errors():
            protocol = self._space.connection.pgconn
            protocol.consume_input()
            while (notify := protocol.notifies()) is not None:
                self._hints.append(notify.extra.decode(errors="replace"))
        found, self._hints = self._hints, []
        if CHANNEL in found:
            self._listen()
        return found

    def sync(self) -> Report:
        """Send what `collect` found, and receive what is new."""
        cycle, info = self._synchronizer.run(self._space), self._space.info
        return Report(member=info.member, level=info.level, differing=len(cycle.conflicts))

    def beat(self, place: str, question: str, seconds: int) -> Online:
        """Stay present, hold `question` (if any) for `seconds`, release any other one."""
        is_reviewer = self._space.info.level.allows(Level.REVIEWER)
        return self._space.heartbeat(self._client, self._project, place, question if is_reviewer else "", seconds)

    def uses(self) -> tuple[ProjectUses, ...]:
        """Return the activity of all projects; also refresh the level of the member."""
        own = next((info for info in list_spaces(self._space.connection) if info.id == self._space.info.id), None)
        if own is not None:
            self._space.info = own
            self._listen()  # the hint of a new channel may have come too early
        return self._space.project_uses(WEEKS)

    def trials(self) -> tuple[PooledTrials, ...]:
        return self._space.pooled_trials(MOST_POOLED)

    def leave(self) -> None:
        """End presence and lease."""
        self._space.go_offline(self._client)

    def close(self) -> None:
        with suppress(Exception):  # nothing can be done about a connection that cannot be closed
            self._space.close()


def stored_status(state: LocalState) -> TeamStatus | None:
    """Return the state of the team when it was last followed; None if it never was."""
    try:
        return msgspec.json.decode(state.fact(_STATUS), type=TeamStatus)
    except (msgspec.MsgspecError, ValueError):
        return None


def read_status(project: Path) -> TeamStatus | None:
    """Return the team status of a project when last followed; needs no network."""
    with suppress(Unwritable):
        state = LocalState(project)
        try:
            return stored_status(state)
        finally:
            state.close()
    return None


def forget(project: Path) -> None:
    """Forget what a project that left its space has sent and received."""
    cache_database.remove(state_file(project))


def describe_cycle(cycle: Cycle) -> str:
    """Describe what a sync did, in one line."""
    sent = _list_counts(
        (cycle.sent_texts, "pattern"),
        (cycle.sent_decisions, "decision"),
        (cycle.sent_uses, "use"),
        (cycle.withdrawn_uses, "withdrawn use"),
        (cycle.sent_trials, "trial"),
    )
    received = _list_counts((cycle.received_texts, "pattern"), (cycle.received_decisions, "decision"))
    evidence = f"evidence on {plural(cycle.changed_sums, 'pattern')}" if cycle.changed_sums else ""
    parts = [f"sent {sent}" if sent else "", f"received {received}" if received else "", evidence]
    return "; ".join(filter(None, parts)) or "nothing new"


def _list_counts(*counts: tuple[int, str]) -> str:
    return ", ".join(plural(count, noun) for count, noun in counts if count)
