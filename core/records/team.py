"""Team evidence (docs/file-formats.md#team-evidence), and contents of its space."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal
from uuid import UUID

from msgspec import Meta, Struct
from msgspec.structs import replace

MAX_SUM: Final = 10**15  # a float represents every whole number up to this
Count = Annotated[int, Meta(ge=0, le=MAX_SUM)]
Sum = Annotated[float, Meta(ge=0)]
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
COUNTS: Final = ("successes", "failures", "uses", "injected_only")
_WEIGHTS: Final = (
    *("helpful", "harmful", "injections", "undecayed"),
    *("fixed_helpful", "fixed_harmful", "fixed_injections"),
)
SUMS: Final = (*COUNTS, *_WEIGHTS)
"""Additive parts of `TeamSums`."""
_ROUNDING: Final = 1e-9


class TeamSums(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Sums of the uses of one pattern.

    `helpful`, `harmful` and `injections` are sums at the epoch of the space: a use of weight `w` at time `t` adds
    `w * 2 ** ((t - epoch) / half-life)`; `injections` counts each use or injection with weight 1. `fixed_*` are those
    of uses without a time, which do not decay. `undecayed` is the sum of the weights of all results. `uses` does not
    include `injected_only`, and `last_used` is the time of the newest use.
    """

    pattern_id: str
    successes: Count = 0
    failures: Count = 0
    uses: Count = 0
    injected_only: Count = 0
    helpful: Sum = 0.0
    harmful: Sum = 0.0
    injections: Sum = 0.0
    fixed_helpful: Sum = 0.0
    fixed_harmful: Sum = 0.0
    fixed_injections: Sum = 0.0
    undecayed: Sum = 0.0
    last_used: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return not self.uses and not self.injected_only

    def __add__(self, other: TeamSums) -> TeamSums:
        """Return the sums of both, with the ID of the first."""
        counts = {name: min(getattr(self, name) + getattr(other, name), MAX_SUM) for name in COUNTS}
        sums = {name: getattr(self, name) + getattr(other, name) for name in _WEIGHTS}
        newest = max((at for at in (self.last_used, other.last_used) if at is not None), default=None)
        return replace(self, **counts, **sums, last_used=newest)

    def __sub__(self, other: TeamSums) -> TeamSums:
        """Return the sums of the other uses; `last_used` cannot be subtracted, so stays."""
        counts = {name: max(getattr(self, name) - getattr(other, name), 0) for name in COUNTS}
        sums = {name: getattr(self, name) - getattr(other, name) for name in _WEIGHTS}
        sums = {name: value if value > _ROUNDING else 0.0 for name, value in sums.items()}
        # Without uses, what is left of a sum is only the rounding of many additions.
        if not counts["successes"]:
            sums |= {"helpful": 0.0, "fixed_helpful": 0.0}
        if not counts["failures"]:
            sums |= {"harmful": 0.0, "fixed_harmful": 0.0}
        if not counts["uses"] + counts["injected_only"]:
            sums = dict.fromkeys(sums, 0.0)
        return replace(self, **counts, **sums)


class HeldUses(Struct, frozen=True, kw_only=True):
    """A contributor's results, not counted before review; `member` is untrusted.

    `patterns` are the IDs in order. `first` and `last` are when the server got the results.
    """

    member: str
    patterns: tuple[str, ...]
    successes: Count
    failures: Count
    first: datetime
    last: datetime


_NO_SUMS: Final[Mapping[str, TeamSums]] = MappingProxyType({})


class TeamEvidence(Struct, frozen=True):
    """Sums of a space's other projects by pattern ID; no space if none was joined.

    `held` has the results that are not in the sums, by member.
    """

    space: str = ""
    epoch: datetime = _NO_TIME  # reference time of the decayed sums
    half_life_days: float = 0.0  # of the decayed sums
    sums: Mapping[str, TeamSums] = _NO_SUMS
    held: tuple[HeldUses, ...] = ()

    def changed_patterns(self, other: TeamEvidence) -> frozenset[str]:
        """Return IDs with changed sums or held results, all if the reference differs."""
        before, after = self.sums, other.sums
        changed = set[str]()
        if self.held != other.held:
            changed |= {id for one in {*self.held} ^ {*other.held} for id in one.patterns}
        if not self.has_same_reference(other):
            return frozenset(changed | before.keys() | after.keys())
        if before is not after:
            changed |= {id for id, sums in after.items() if (old := before.get(id)) is not sums and old != sums}
            changed |= before.keys() - after.keys()
        return frozenset(changed)

    def has_same_reference(self, other: TeamEvidence) -> bool:
        """Return whether the sums of both are of one space, one time and one half-life."""
        one, two = ((each.space, each.epoch, each.half_life_days) for each in (self, other))
        return one == two


NO_TEAM: Final = TeamEvidence()


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
    """Answer to uses: the new ones, and the arrival of those with a later time.

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
    """Answer to trials: number of new ones, and those that daily limits postpone."""

    new: int
    later: frozenset[UUID] = frozenset()


class PatternText(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Text of a pattern in a space: JSON record; None if removed from the registry.

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
    """A decision or pattern text that changed since the project read the space."""

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
    """A decision of the space; `hash` covers all up to it, `payload` is as sent."""

    seq: int
    id: str
    payload: str
    member: str
    project: str
    recorded_at: datetime
    hash: bytes


class ChainHead(Struct, frozen=True, kw_only=True):
    """The last decision of a space: its number, or 0, and the hash of all decisions."""

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


class Online(Struct, frozen=True):
    """Who is online, and which questions are open; `at` is the time of the server."""

    at: datetime
    present: tuple[Presence, ...] = ()
    leases: tuple[Lease, ...] = ()


class ProjectUses(Struct, frozen=True):
    """Uses of patterns in one project of the team; `project` is untrusted.

    `weeks` has (successes, failures, uses) by the length of the time range in weeks.
    """

    project: str
    weeks: Mapping[int, tuple[int, int, int]]


class PooledTrials(Struct, frozen=True):
    """Trials of one pattern in all projects of the team; `pattern_id` is untrusted.

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
