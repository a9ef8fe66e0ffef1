"""What a space contains besides the sums of uses, and what its server answers."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

from msgspec import Struct

MAX_RECORD_BYTES: Final = 256 << 10
"""Size of a pattern; the server refuses larger ones, and a client does not read those of older spaces."""
MAX_DECISION_BYTES: Final = 1 << 20
"""Size of a decision; the server refuses larger ones, and a client does not take those of older spaces."""


class Level(StrEnum):
    """What a member may do in a space, in increasing order."""

    READER = "reader"
    CONTRIBUTOR = "contributor"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return tuple(Level).index(self)

    def allows(self, needed: Level) -> bool:
        """Whether a member of this level may do what needs the other one."""
        return self.rank >= needed.rank


class SpaceInfo(Struct, frozen=True, kw_only=True):
    """A space, and the membership of this role in it; decayed sums are for `epoch`."""

    id: UUID
    name: str
    epoch: datetime
    half_life_days: float
    member: str
    level: Level


class TeamUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One use of a pattern, as it is sent; `at` is None if its time is unknown.

    With `withdraws`, it removes the use with that ID from the sums; `pattern_id` and `at` are those of the use.
    """

    id: UUID
    pattern_id: str
    kind: str
    at: datetime | None = None
    success: bool | None = None
    weight: float = 1.0
    count: int = 1
    withdraws: UUID | None = None


class AddedUses(Struct, frozen=True, kw_only=True):
    """Answer to uses: those that were new, and when uses with a later time of their own arrived.

    Such a use, from a machine whose clock is ahead, counts as of its arrival. `later` are uses that were not added,
    because the member has sent as many as the space takes in a day.
    """

    new: frozenset[UUID]
    arrived: dict[UUID, datetime] = {}
    later: frozenset[UUID] = frozenset()


class TeamTrial(Struct, frozen=True, kw_only=True, gc=False):
    """One trial of an experiment, as it is sent (docs/team.md#experiments).

    `rate` is the mean outcome of the earlier trials of the pattern in this project, in steps of 0.05. It has neither
    the task nor the time, and nothing from which the side of another coin could be computed.
    """

    id: UUID
    pattern_id: str
    kind: Literal["returned", "succeeded"]
    share: float
    rate: int
    is_held_out: bool
    outcome: bool


class AddedTrials(Struct, frozen=True, kw_only=True):
    """Answer to trials: the number of new ones, and those that the limits of the day leave for tomorrow."""

    new: int
    later: frozenset[UUID] = frozenset()


class PatternText(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Text of a pattern in a space: JSON of its record, or None if it was removed from the registry.

    `expected` is the content hash of the text that a change replaces; "" if the pattern is new.
    """

    pattern_id: str
    type: str
    record: str | None = None
    content_hash: str = ""
    expected: str = ""


class SpacePattern(Struct, frozen=True, kw_only=True):
    """A pattern in a space, with who changed it last."""

    pattern_id: str
    type: str
    record: str | None
    content_hash: str
    changed_by: str
    changed_at: datetime


class SpaceConflict(Struct, frozen=True, kw_only=True):
    """What someone changed since this project has read the space: a decision or the text of a pattern."""

    kind: Literal["decision", "text"]
    subject: str
    by: str
    at: datetime
    seq: int = 0
    payload: str = ""
    content_hash: str = ""
    record: str | None = None


class DecisionReceipt(Struct, frozen=True, kw_only=True):
    """Answer to a decision: its number in the space, or what it conflicts with."""

    seq: int | None
    is_new: bool
    recorded_at: datetime | None
    conflicts: tuple[SpaceConflict, ...] = ()


class SpaceDecision(Struct, frozen=True, kw_only=True):
    """A decision of the space; `hash` covers all decisions up to this one, and `payload` is what was sent."""

    seq: int
    id: str
    payload: str
    member: str
    project: str
    recorded_at: datetime
    hash: bytes


class ChainHead(Struct, frozen=True, kw_only=True):
    """The last decision of a space: its number, 0 if there is none, and the hash of all decisions."""

    seq: int
    hash: bytes


class Member(Struct, frozen=True, kw_only=True):
    """Database role with a level in a space; None if it was removed."""

    role: str
    name: str
    level: Level | None
    changed_by: str
    changed_at: datetime


class TeamProject(Struct, frozen=True, kw_only=True):
    """Project that has joined a space, with the sums of its uses."""

    id: UUID
    name: str
    joined_by: str
    joined_at: datetime
    successes: int = 0
    failures: int = 0
    uses: int = 0
