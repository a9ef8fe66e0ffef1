"""Times of all uses and injections in flat arrays, for counts by week."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

HELPFUL, HARMFUL, NO_RESULT, INJECTED_ONLY = KINDS = range(4)
"""Kinds of an entry: a use by its result, and an injection that was not applied."""
REMOVED: Final = -1
"""New row, in `UseTimes.renumbered`, of a row that no longer exists."""


@dataclass(frozen=True, slots=True)
class UseTimes:
    """One entry per dated observation, unsorted.

    Uses that only the counts of a record show are left out: their time is a guess.

    Attributes:
        rows: Row of the pattern in the scoreboard.
        at: Epoch seconds; may be in the future.
        kinds: One of `KINDS`.
        counts: Number of uses.
    """

    rows: NDArray[np.int32]
    at: NDArray[np.float64]
    kinds: NDArray[np.int8]
    counts: NDArray[np.int64]

    def renumbered(self, new_rows: NDArray[np.int64]) -> UseTimes:
        """Replace each row by `new_rows[row]`; drop the entries of rows that map to `REMOVED`."""
        rows = new_rows[self.rows]
        remaining = rows != REMOVED
        return UseTimes(
            rows[remaining].astype(np.int32), self.at[remaining], self.kinds[remaining], self.counts[remaining]
        )

    def __add__(self, other: UseTimes) -> UseTimes:
        """Join the entries of two disjoint sets of patterns."""
        return UseTimes(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.at, other.at]),
            np.concatenate([self.kinds, other.kinds]),
            np.concatenate([self.counts, other.counts]),
        )
