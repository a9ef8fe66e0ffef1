"""A joined project on this machine: what the thread that follows its space needs (see `core.team.follow`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from core.base.errors import Unwritable
from core.base.text import plural
from core.files import cache_database
from core.records.team import Level, PooledTrials, ProjectUses, TeamStatus
from core.team.connection import translate_errors
from core.team.decisions import Decisions
from core.team.errors import TeamError
from core.team.follow import Online, Report
from core.team.local_state import LocalState, state_file
from core.team.server import Space, list_spaces
from core.team.sync import Cycle, Prefer, Preview, Synchronizer

if TYPE_CHECKING:
    from pathlib import Path

    from core.team.consent import Joined
    from core.team.sync import OpenProject
    from core.team.texts import Progress

WEEKS: Final = (4, 12, 52)
"""Lengths of the time ranges for which the activity of projects is read."""
MOST_POOLED: Final = 100
"""Patterns of which the trials of all projects are read, those with most trials first."""
_STATUS: Final = "status"
CHANNEL: Final = "channel"
"""A hint that the channel of the space is another one."""


class JoinedCopy:
    """The working copy of a joined project. Use it in one thread. `file` is that of its state, for a preview."""

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
            lambda sharing: Decisions(project, state, joined.id, sharing),
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
        return self._synchronizer.count_unsent()

    def load_status(self, status: TeamStatus) -> TeamStatus:
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
    """One connection to the space of a joined project."""

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
        return self._space.connection.fileno()

    def hints(self) -> Sequence[str]:
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
        cycle, info = self._synchronizer.run(self._space), self._space.info
        return Report(member=info.member, level=info.level, differing=len(cycle.conflicts))

    def beat(self, place: str, question: str, seconds: int) -> Online:
        is_reviewer = self._space.info.level.allows(Level.REVIEWER)
        return self._space.heartbeat(self._client, self._project, place, question if is_reviewer else "", seconds)

    def uses(self) -> tuple[ProjectUses, ...]:
        """Return the activity of all projects; also learns whether the level of the member has changed."""
        own = next((info for info in list_spaces(self._space.connection) if info.id == self._space.info.id), None)
        if own is not None:
            self._space.info = own
            self._listen()  # the hint of a new channel may have come too early
        return self._space.project_uses(WEEKS)

    def trials(self) -> tuple[PooledTrials, ...]:
        return self._space.pooled_trials(MOST_POOLED)

    def leave(self) -> None:
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
    """Return the state of the team of a project when it was last followed, without the network."""
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
