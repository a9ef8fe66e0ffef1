"""What a joined project knows about its team: connection, members online, open questions and activity."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

DASHBOARD: Final = "dashboard"  # place of a client with a person at it; others run unattended


class Presence(Struct, frozen=True):
    """A client that was online a moment ago; `member` and `project` are untrusted."""

    client_id: str
    member: str
    project: str = ""
    place: str = DASHBOARD  # what kind of client it is


class Lease(Struct, frozen=True):
    """A question that is open on the screen of a client; `member` is untrusted.

    `question` is what `hide_question` makes of the question.
    """

    question: str
    client_id: str
    member: str
    since: datetime


class ProjectUses(Struct, frozen=True):
    """Uses of patterns in one project of the team; `project` is untrusted.

    `weeks` has (successes, failures, uses) by the length of the time range in weeks.
    """

    project: str
    weeks: Mapping[int, tuple[int, int, int]]


class PooledTrials(Struct, frozen=True):
    """The trials of one pattern in all projects of the team; `pattern_id` is untrusted.

    `kind` is `returned` or `succeeded`. `cells` has (share, running rate in steps of 0.05, whether the pattern was held
    out, outcome, number of trials).
    """

    pattern_id: str
    kind: str
    projects: int
    members: int
    cells: tuple[tuple[float, int, bool, bool, int], ...] = ()


class TeamStatus(Struct, frozen=True, kw_only=True):
    """State of the connection of a joined project; all texts are untrusted.

    `is_online` is whether the last call of the server succeeded, and `since` the time of the last change of that; both
    are unknown (False, None) before the first attempt. `problem` is why the project is offline, and `needs_person`
    whether it stays so until a person changes something, such as a password. `to_send` is the number of decisions, uses
    and texts that the server does not have. `uses_at` is the time of `uses` and `trials`.
    """

    space: str
    client_id: str = ""
    member: str = ""
    level: str = ""
    is_online: bool = False
    since: datetime | None = None
    problem: str = ""
    needs_person: bool = False
    last_sync: datetime | None = None
    to_send: int = 0
    differing: int = 0  # patterns whose text is another one in the space
    present: tuple[Presence, ...] = ()
    leases: tuple[Lease, ...] = ()
    uses: tuple[ProjectUses, ...] = ()
    trials: tuple[PooledTrials, ...] = ()
    uses_at: datetime | None = None

    @property
    def offline_since(self) -> datetime | None:
        return None if self.is_online else self.since

    @property
    def members_here(self) -> tuple[str, ...]:
        """Members with an open dashboard, each once, without this client."""
        here = (one for one in self.present if one.place == DASHBOARD and one.client_id != self.client_id)
        return tuple(sorted({one.member for one in here if one.member != self.member}))

    def lease_of(self, question: str) -> Lease | None:
        """Return the lease of another client on a question, or None."""
        return next((one for one in self.leases if one.question == question and one.client_id != self.client_id), None)
