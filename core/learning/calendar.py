"""Changes of the state of a pattern by decay alone; docs/scoring.md#states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Final

from core.base.grouping import group_pairs
from core.config.settings import MaturitySettings
from core.learning.decay import SECONDS_PER_DAY, parse_moment
from core.learning.states import Result, decayed_counts, find_flips, state_of
from core.records.patterns import Maturity

Sums = tuple[float, float]  # (helpful, harmful)
Change = tuple[datetime, Maturity]  # start of a state, and the state
_DEFAULTS: Final = MaturitySettings()
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


def state_calendar(
    events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> tuple[Change, ...]:
    """Return all future changes of state if nothing more happens, in order.

    Times are whole seconds after `now`: the first second with the new state. Raises BadInput if a time can't be parsed.
    """
    return tuple(_changes(events, now, settings))


def next_change(events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS) -> Change | None:
    """Return the first change of `state_calendar`, or None."""
    return next(_changes(events, now, settings), None)


def change_within(
    state: Maturity, moving: Sums, fixed: Sums, now: datetime, settings: MaturitySettings = _DEFAULTS
) -> Change | None:
    """`next_change` from the state at `now` and two sums; `fixed` does not decay."""
    return next(_walk(state, [(0.0, moving, fixed)], now, settings), None)


def _changes(events: Iterable[Result], now: str | datetime, settings: MaturitySettings) -> Iterator[Change]:
    now = parse_moment(now, "now")
    known = [event for event in events if event.success is not None]
    state = state_of(*decayed_counts(known, now, settings), settings)
    return _walk(state, _periods(known, now, settings), now, settings)


def _periods(events: list[Result], now: datetime, settings: MaturitySettings) -> list[tuple[float, Sums, Sums]]:
    """Return start (seconds after `now`), moving and fixed sums of each period.

    A future event does not decay until its time, which begins a period; an undated one never does.
    """
    undated = [event for event in events if event.at is None]
    past = [event for event in events if event.at is not None and event.at <= now]
    ahead = group_pairs((event.at, event) for event in events if event.at is not None and event.at > now)
    starts = sorted(ahead)
    new = [decayed_counts(ahead[start], start, settings) for start in starts]
    # Summed from the end: subtracting from a sum would leave a rounding error that never decays.
    still = [*accumulate(reversed(new), add_sums, initial=decayed_counts(undated, now, settings))][::-1]
    moving = decayed_counts(past, now, settings)
    periods = [(0.0, moving, still[0])]
    for (earlier, start), added, fixed in zip(pairwise([now, *starts]), new, still[1:], strict=True):
        moving = add_sums(decay_sums(moving, (start - earlier).total_seconds(), settings), added)
        periods.append(((start - now).total_seconds(), moving, fixed))
    return periods


def _walk(
    state: Maturity, periods: list[tuple[float, Sums, Sums]], now: datetime, settings: MaturitySettings
) -> Iterator[Change]:
    """Yield the changes of state, near the times at which a condition changes."""
    horizon = (_END_OF_TIME - now).total_seconds()
    ends = [start for start, _, _ in periods[1:]]
    for (start, moving, fixed), end in zip(periods, [*ends, horizon], strict=True):
        # The first two seconds cover changes at the start of the period.
        seconds = {math.ceil(start), math.ceil(start) + 1}
        for factor in find_flips(fixed, moving, settings):
            if 0.0 < factor <= 1.0:
                after = start - math.log2(factor) * settings.half_life_days * SECONDS_PER_DAY
                if after < end:
                    seconds.update(range(math.floor(after) - 1, math.floor(after) + 3))
        for second in sorted(second for second in seconds if max(start, 1.0) <= second < end):
            left = decay_sums(moving, second - start, settings)
            new = state_of(*add_sums(left, fixed), settings)
            if new is not state:
                state = new
                yield now + timedelta(seconds=second), state


def add_sums(one: Sums, other: Sums) -> Sums:
    return one[0] + other[0], one[1] + other[1]


def decay_sums(sums: Sums, seconds: float, settings: MaturitySettings) -> Sums:
    """Return the sums after some seconds of decay."""
    left = 0.5 ** (seconds / SECONDS_PER_DAY / settings.half_life_days)
    return sums[0] * left, sums[1] * left
