"""A space in memory, with the clients that a follower uses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from core.records.team import Lease, Online, PooledTrials, Presence, ProjectUses, TeamStatus
from core.team.connection import Offline
from core.team.follow import LEASES, Follower, JoinedCopy, Report, SpaceConnection

NOW = datetime(2026, 11, 23, 12, 3, tzinfo=UTC)
WAIT = 30.0  # a test that waits longer than this has failed


class FakeSpace:
    """The server: who is online, and which questions are open. `error` stops all calls."""

    def __init__(self, name: str = "shop") -> None:
        self.name = name
        self.error: Exception | None = None
        self.lock = threading.RLock()
        self.present: dict[str, Presence] = {}
        self.leases: dict[str, Lease] = {}
        self.uses: tuple[ProjectUses, ...] = ()
        self.connections: list[FakeConnection] = []
        self.attempts = 0

    def add(self, member: str, *, question: str = "", since: datetime = NOW, project: str = "acme-web") -> None:
        """Let a member open a dashboard; `question` is a hidden one."""
        with self.lock:
            self.present[member] = Presence(member, member, project)
            if question:
                self.leases[question] = Lease(question, member, member, since)
        self.hint(LEASES)

    def remove(self, member: str) -> None:
        with self.lock:
            self.present.pop(member, None)
            self.leases = {key: lease for key, lease in self.leases.items() if lease.client_id != member}
        self.hint(LEASES)

    def hint(self, text: str) -> None:
        for connection in list(self.connections):
            connection.hint(text)

    def cut(self, error: Exception) -> None:
        """End all connections, and refuse new ones."""
        self.error = error
        self.hint("cut")


class FakeConnection(SpaceConnection):
    def __init__(self, space: FakeSpace, project: FakeJoined, client_id: str) -> None:
        self.space, self.project, self.client_id = space, project, client_id
        self._readable, self._writable = os.pipe()
        self._hints: list[str] = []
        space.connections.append(self)

    def hint(self, text: str) -> None:
        with self.space.lock:
            self._hints.append(text)
            os.write(self._writable, b"x")

    def fileno(self) -> int:
        return self._readable

    def hints(self) -> Sequence[str]:
        self._check()
        with self.space.lock:
            found, self._hints = self._hints, []
            if found:
                os.read(self._readable, len(found))
            return found

    def sync(self) -> Report:
        self._check()
        self.project.wait()
        self.project.sent += self.project.pending
        self.project.pending = 0
        self.project.syncs += 1
        return Report(member=self.project.member, level="reviewer")

    def beat(self, place: str, question: str, seconds: int) -> Online:
        self._check()
        space = self.space
        with space.lock:
            space.present[self.client_id] = Presence(self.client_id, self.project.member, self.project.name, place)
            held = {
                key: lease
                for key, lease in space.leases.items()
                if lease.client_id != self.client_id or key == question
            }
            if question:
                held.setdefault(question, Lease(question, self.client_id, self.project.member, NOW))
            if is_news := held != space.leases:
                space.leases = held
            found = Online(NOW, tuple(space.present.values()), tuple(held.values()))
            if is_news:
                for other in space.connections:
                    if other is not self:
                        other.hint(LEASES)
        return found

    def uses(self) -> tuple[ProjectUses, ...]:
        self._check()
        return self.space.uses

    def trials(self) -> tuple[PooledTrials, ...]:
        self._check()
        return ()

    def leave(self) -> None:
        self._check()
        with self.space.lock:
            self.space.present.pop(self.client_id, None)
            self.space.leases = {k: one for k, one in self.space.leases.items() if one.client_id != self.client_id}

    def close(self) -> None:
        with self.space.lock:
            self.space.connections.remove(self)
            os.close(self._readable)
            os.close(self._writable)

    def _check(self) -> None:
        if self.space.error is not None:
            raise self.space.error


class FakeJoined(JoinedCopy):
    """A project that has joined a `FakeSpace` as `member`."""

    def __init__(self, server: FakeSpace, member: str = "ana", *, name: str = "acme-api") -> None:
        self.server, self.member, self.name = server, member, name
        self.space = server.name
        self.pending = self.sent = self.syncs = 0
        self.kept: TeamStatus | None = None
        self.is_closed = False
        self.wait: Callable[[], object] = lambda: None  # called within each sync

    def connect(self, client_id: str) -> FakeConnection:
        self.server.attempts += 1
        if self.server.error is not None:
            raise self.server.error
        return FakeConnection(self.server, self, client_id)

    def collect(self) -> int:
        return self.pending

    def load_status(self, status: TeamStatus) -> TeamStatus:
        known = self.kept
        if known is None:
            return replace(status, space=self.space)
        return replace(
            known, client_id=status.client_id, is_online=False, since=known.offline_since, present=(), leases=()
        )

    def save_status(self, status: TeamStatus) -> None:
        self.kept = status

    def close(self) -> None:
        self.is_closed = True


class Watched:
    """What a follower reported; lets a test wait for a status."""

    def __init__(self) -> None:
        self.statuses: list[TeamStatus] = []
        self._condition = threading.Condition()

    def changed(self, status: TeamStatus) -> None:
        with self._condition:
            self.statuses.append(status)
            self._condition.notify_all()

    def wait_for(self, is_reached: Callable[[TeamStatus], object]) -> TeamStatus:
        """Return the newest status as soon as it fits."""
        with self._condition:
            assert self._condition.wait_for(lambda: self.statuses and is_reached(self.statuses[-1]), WAIT)
            return self.statuses[-1]

    def follow(self, joined: FakeJoined) -> Follower:
        return Follower(lambda: joined, self.changed, now=lambda: NOW, jitter=lambda: 0.0)


def offline() -> Offline:
    return Offline("the server db.example does not answer")
