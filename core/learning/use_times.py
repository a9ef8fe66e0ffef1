"""When patterns were used and injected, as arrays with one entry per use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HELPFUL, HARMFUL, NO_RESULT, INJECTED_ONLY = KINDS = range(4)
"""Kinds of entries: uses by their result, and injections that were not applied."""
_MAX_STEPS: Final = 500  # changes of use times that are kept apart
_MAX_STEP_ENTRIES: Final = 100_000
REMOVED: Final = -1  # in `UseTimes.renumbered`: the row no longer exists


@dataclass(frozen=True, slots=True)
class UseTimes:
    """Dated uses and injections, unsorted; each array has one entry per observation.

    Uses that only the counts of a record contain are left out, since their time is estimated.
    """

    rows: NDArray[np.int32]  # row of the pattern in the scoreboard
    at: NDArray[np.float64]  # epoch seconds; may be in the future
    kinds: NDArray[np.int8]  # one of `KINDS`
    counts: NDArray[np.int64]  # number of uses

    def encoded(self) -> dict[str, bytes]:
        """Return the bytes of each array by name; see `decoded`."""
        return {one.name: getattr(self, one.name).tobytes() for one in fields(self)}

    @classmethod
    def decoded(cls, encoded: Mapping[str, bytes], size: int) -> UseTimes:
        """Return read-only use times of `size` patterns; raises ValueError, KeyError if these are not any."""
        types = (np.int32, np.float64, np.int8, np.int64)
        times = cls(*(np.frombuffer(encoded[f.name], dtype) for f, dtype in zip(fields(cls), types, strict=True)))
        if len({len(getattr(times, f.name)) for f in fields(cls)}) > 1:
            raise ValueError("the arrays of use times differ in length")
        if len(times.rows) and not (times.rows.min() >= 0 and times.rows.max() < size):
            raise ValueError("a use time refers to an unknown row")
        return times

    def renumbered(self, new_rows: NDArray[np.int64]) -> UseTimes:
        """Replace each row by `new_rows[row]`; drop entries whose new row is `REMOVED`."""
        rows = new_rows[self.rows]
        left = rows != REMOVED
        return UseTimes(rows[left].astype(np.int32), self.at[left], self.kinds[left], self.counts[left])


class StoredTimes(Protocol):
    """Use times that are read when they are needed."""

    def load(self) -> UseTimes: ...


@dataclass(frozen=True, slots=True)
class ReplacedTimes:
    """Use times of all rows, of which later steps replaced some; merged only when they are needed.

    Each step has the replaced rows and their new entries.
    """

    base: UseTimes | StoredTimes
    steps: tuple[tuple[NDArray[np.int64], UseTimes], ...] = ()

    def replace(self, rows: NDArray[np.int64], times: UseTimes) -> ReplacedTimes:
        """Return these times with those of `rows` replaced by `times`."""
        steps = (*self.steps, (rows, times))
        made = ReplacedTimes(self.base, steps)
        is_long = len(steps) > _MAX_STEPS or len(times.rows) > _MAX_STEP_ENTRIES
        return ReplacedTimes(made.merged()) if is_long else made

    def merged(self) -> UseTimes:
        base = self.base if isinstance(self.base, UseTimes) else self.base.load()
        if not self.steps:
            return base
        replaced: list[NDArray[Any]] = [base.rows, *(rows for rows, _ in self.steps)]
        last_row = max(int(rows.max(initial=-1)) for rows in replaced)
        newest = np.full(last_row + 1, -1)
        for number, (rows, _) in enumerate(self.steps):
            newest[rows] = number
        parts = [base, *(times for _, times in self.steps)]
        kept = [newest[part.rows] == number for number, part in enumerate(parts, -1)]
        return UseTimes(
            *(
                np.concatenate([getattr(part, one.name)[rows] for part, rows in zip(parts, kept, strict=True)])
                for one in fields(UseTimes)
            )
        )
