"""When patterns were used: every use and exposure with a time of its own, in flat arrays for the whole registry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.learning.aggregate_evidence import AGGREGATE
from core.records.events import Observation

GOOD, BAD, OPEN, SHOWN = KINDS = range(4)
"""What an entry is: a use that worked, that failed, without a result; an exposure without use (semantics 1)."""
GONE: Final = -1
"""Where `moved` puts a row whose entries are to go."""


@dataclass(frozen=True, slots=True)
class Dated:
    """Arrays of equal length, one entry per observation, in no order.

    What only a sum tells of (source 5) is dated by a pattern's last use for want of better: it is left out.

    Attributes:
        rows: The board's row of the pattern.
        at: Epoch seconds; may lie ahead.
        kinds: Of `KINDS`.
        counts: How many uses the entry stands for.
    """

    rows: NDArray[np.int32]
    at: NDArray[np.float64]
    kinds: NDArray[np.int8]
    counts: NDArray[np.int64]

    @classmethod
    def none(cls) -> Dated:
        """No entry."""
        return DatedTally().made()

    def moved(self, places: NDArray[np.int64]) -> Dated:
        """The same for another numbering of rows.

        Args:
            places: The new row of each old one, or `GONE`.
        """
        rows = places[self.rows]
        kept = rows != GONE
        return Dated(rows[kept].astype(np.int32), self.at[kept], self.kinds[kept], self.counts[kept])

    def __add__(self, other: Dated) -> Dated:
        """Both, of one numbering."""
        return Dated(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.at, other.at]),
            np.concatenate([self.kinds, other.kinds]),
            np.concatenate([self.counts, other.counts]),
        )


class DatedTally:
    """Collects entries in flat lists, to make arrays of them at once."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._at: list[float] = []
        self._kinds: list[int] = []
        self._counts: list[int] = []

    def add(self, row: int, observations: Iterable[Observation]) -> None:
        """The dated ones of a pattern's observations."""
        for seen in observations:
            if seen.at is None or seen.source == AGGREGATE:
                continue
            self._rows.append(row)
            self._at.append(seen.at.timestamp())
            if seen.kind == "injected":
                self._kinds.append(SHOWN)
            else:
                self._kinds.append(OPEN if seen.success is None else GOOD if seen.success else BAD)
            self._counts.append(seen.count)

    def made(self) -> Dated:
        """What was collected."""
        return Dated(
            np.array(self._rows, np.int32),
            np.array(self._at, np.float64),
            np.array(self._kinds, np.int8),
            np.array(self._counts, np.int64),
        )
