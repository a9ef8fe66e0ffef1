"""Evidence of a team's other projects; docs/file-formats.md#team-evidence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

MAX_SUM: Final = 10**15  # a float represents every whole number up to this
Count = Annotated[int, Meta(ge=0, le=MAX_SUM)]
Sum = Annotated[float, Meta(ge=0)]
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTS: Final = ("successes", "failures", "uses", "injected_only")
_SUMS: Final = (
    *("helpful", "harmful", "injections", "undecayed"),
    *("fixed_helpful", "fixed_harmful", "fixed_injections"),
)


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
        counts = {name: min(getattr(self, name) + getattr(other, name), MAX_SUM) for name in _COUNTS}
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        newest = max((at for at in (self.last_used, other.last_used) if at is not None), default=None)
        return replace(self, **counts, **sums, last_used=newest)

    def __sub__(self, other: TeamSums) -> TeamSums:
        """Return the sums of the other uses; `last_used`, which cannot be subtracted, stays the same."""
        counts = {name: max(getattr(self, name) - getattr(other, name), 0) for name in _COUNTS}
        sums = {name: max(getattr(self, name) - getattr(other, name), 0.0) for name in _SUMS}
        # Without uses, what is left of a sum is only the rounding of many additions.
        if not counts["successes"]:
            sums |= {"helpful": 0.0, "fixed_helpful": 0.0}
        if not counts["failures"]:
            sums |= {"harmful": 0.0, "fixed_harmful": 0.0}
        if not counts["uses"] + counts["injected_only"]:
            sums = dict.fromkeys(sums, 0.0)
        return replace(self, **counts, **sums)


class HeldUses(Struct, frozen=True, kw_only=True):
    """Results that a contributor sent and that do not count until a reviewer decides; `member` is untrusted.

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
    """Sums of the other projects of a space by pattern ID; without a space if the project has not joined one.

    `held` has the results that are not in the sums, by member.
    """

    space: str = ""
    epoch: datetime = _NO_TIME  # reference time of the decayed sums
    half_life_days: float = 0.0  # of the decayed sums
    sums: Mapping[str, TeamSums] = _NO_SUMS
    held: tuple[HeldUses, ...] = ()

    def changed_patterns(self, other: TeamEvidence) -> frozenset[str]:
        """Return the IDs whose sums or held results differ, or all if the space or its reference time does."""
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
        """Return whether the sums of both are of one space, and for one time and half-life."""
        one, two = ((each.space, each.epoch, each.half_life_days) for each in (self, other))
        return one == two


NO_TEAM: Final = TeamEvidence()
