"""Sums of a team's other projects as arrays; docs/scoring.md#evidence-of-a-team."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from core.learning.decay import SECONDS_PER_DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from core.records.team import TeamEvidence, TeamSums

_COUNTS: Final = ("successes", "failures", "uses", "injected_only")
_FIXED: Final = ("undecayed", "fixed_helpful", "fixed_harmful", "fixed_injections")
_DECAYED: Final = ("helpful", "harmful", "injections")


@dataclass(frozen=True, slots=True)
class TeamColumns:
    """Sums of some patterns; `sums` are arrays by the names in `core.learning.scores.Columns`."""

    index: NDArray[np.int64]  # places of the patterns in the arrays of `add_to`
    sums: dict[str, NDArray[Any]]
    last_used: NDArray[np.float64]  # epoch seconds; NaN if unknown
    has_future: NDArray[np.bool_]

    @classmethod
    def of(
        cls, found: Sequence[tuple[int, TeamSums]], team: TeamEvidence, epoch: float, now: float, half_life: float
    ) -> TeamColumns:
        """Convert sums to the reference time `epoch`; the times and the half-life of the project are in seconds."""

        def column(name: str, dtype: Any) -> NDArray[Any]:
            return np.fromiter(map(attrgetter(name), records), dtype, len(records))

        records = [sums for _, sums in found]
        sums: dict[str, NDArray[Any]] = {name: column(name, np.int64) for name in _COUNTS}
        sums |= {name: column(name, np.float64) for name in _FIXED}
        times = (one.last_used for one in records)
        last_used = np.fromiter((at.timestamp() if at else math.nan for at in times), np.float64, len(records))
        last_use = np.where(np.isnan(last_used), team.epoch.timestamp(), last_used)
        factor = (team.epoch.timestamp() - last_use) / (team.half_life_days * SECONDS_PER_DAY)
        factor += (np.minimum(last_use, now) - epoch) / half_life
        all_uses = sums["uses"] + sums["injected_only"]
        limits = {"helpful": sums["undecayed"], "harmful": sums["undecayed"], "injections": all_uses}
        for name in _DECAYED:
            with np.errstate(divide="ignore"):  # the logarithm of 0 becomes 0 again
                power = np.log2(column(name, np.float64)) + factor
                most = np.log2(limits[name]) + (now - epoch) / half_life  # the value now of uses that are all new
            sums[name] = np.exp2(np.minimum(power, most))
        has_future = (last_used > now) & (sums["helpful"] + sums["harmful"] > 0)
        index = np.fromiter((row for row, _ in found), np.int64, len(found))
        sums |= {"team_uses": sums["uses"], "given": sums["injected_only"]}
        return cls(index, sums, last_used, has_future)

    def add_to(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add these sums to arrays with a row per pattern."""
        for name, values in self.sums.items():
            columns[name][self.index] += values
        columns["last_used"][self.index] = np.fmax(columns["last_used"][self.index], self.last_used)
        columns["has_future"][self.index] |= self.has_future
