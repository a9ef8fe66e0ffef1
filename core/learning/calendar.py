"""When decay alone changes the state of a pattern: every date of it can be told today (semantics 3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Final

from core.config.settings import MaturitySettings
from core.learning.decay import SECONDS_PER_DAY, moment
from core.learning.states import Result, decayed_counts, flips, state_of
from core.records.patterns import Maturity

Sums = tuple[float, float]
"""(helpful, harmful)."""
Change = tuple[datetime, Maturity]
"""From when on, and what the state is then."""
_DEFAULTS: Final = MaturitySettings()
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


def state_calendar(
    events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS
) -> tuple[Change, ...]:
    """Every change of state to come if nothing more happens, in order.

    Dates lie whole seconds after `now`: at each of them the state is the new one, a second earlier the old one.

    Raises:
        BadInput: A time that can't be parsed.
    """
    return tuple(_changes(events, now, settings))


def next_change(events: Iterable[Result], now: str | datetime, settings: MaturitySettings = _DEFAULTS) -> Change | None:
    """The first of `state_calendar`; None if decay alone never changes the state."""
    return next(_changes(events, now, settings), None)


def change_within(
    state: Maturity, moving: Sums, fixed: Sums, now: datetime, settings: MaturitySettings = _DEFAULTS
) -> Change | None:
    """`next_change` for evidence of which only the sums are known.

    Args:
        state: The state at `now`.
        moving: Sums, at `now`, of what decays from now on.
        fixed: Sums of what does not decay.
    """
    return next(_walk(state, [(0.0, moving, fixed)], now, settings), None)


def _changes(events: Iterable[Result], now: str | datetime, settings: MaturitySettings) -> Iterator[Change]:
    now = moment(now, "now")
    known = [event for event in events if event.success is not None]
    state = state_of(*decayed_counts(known, now, settings), settings)
    return _walk(state, _stretches(known, now, settings), now, settings)


def _stretches(events: list[Result], now: datetime, settings: MaturitySettings) -> list[tuple[float, Sums, Sums]]:
    """(seconds after `now`, moving sums then, fixed sums) of each stretch of time with the same events decaying.

    Events of a future time stand still until then, each of which begins a stretch; undated ones for ever.
    """
    undated = [event for event in events if event.at is None]
    ahead: dict[datetime, list[Result]] = {}
    past = []
    for event in events:
        if event.at is not None and event.at > now:
            ahead.setdefault(event.at, []).append(event)
        elif event.at is not None:
            past.append(event)
    starts = sorted(ahead)
    new = [decayed_counts(ahead[start], start, settings) for start in starts]
    # Summed from the end, since taking away from a sum would leave a rest of rounding that never decays.
    still = [*accumulate(reversed(new), _plus, initial=decayed_counts(undated, now, settings))][::-1]
    moving = decayed_counts(past, now, settings)
    stretches = [(0.0, moving, still[0])]
    for (earlier, start), added, fixed in zip(pairwise([now, *starts]), new, still[1:], strict=True):
        moving = _plus(_decayed(moving, (start - earlier).total_seconds(), settings), added)
        stretches.append(((start - now).total_seconds(), moving, fixed))
    return stretches


def _walk(
    state: Maturity, stretches: list[tuple[float, Sums, Sums]], now: datetime, settings: MaturitySettings
) -> Iterator[Change]:
    """The changes of state, stretch by stretch, looked for on both sides of where a test flips."""
    horizon = (_END_OF_TIME - now).total_seconds()
    ends = [start for start, _, _ in stretches[1:]]
    for (start, moving, fixed), end in zip(stretches, [*ends, horizon], strict=True):
        # The first two for what flipped since the last whole second, or flips at the very start.
        seconds = {math.ceil(start), math.ceil(start) + 1}
        for factor in flips(fixed, moving, settings):
            if 0.0 < factor <= 1.0:
                after = start - math.log2(factor) * settings.half_life_days * SECONDS_PER_DAY
                if after < end:
                    seconds.update(range(math.floor(after) - 1, math.floor(after) + 3))
        for second in sorted(second for second in seconds if max(start, 1.0) <= second < end):
            left = _decayed(moving, second - start, settings)
            new = state_of(*_plus(left, fixed), settings)
            if new is not state:
                state = new
                yield now + timedelta(seconds=second), state


def _plus(one: Sums, other: Sums) -> Sums:
    return one[0] + other[0], one[1] + other[1]


def _decayed(sums: Sums, seconds: float, settings: MaturitySettings) -> Sums:
    left = 0.5 ** (seconds / SECONDS_PER_DAY / settings.half_life_days)
    return sums[0] * left, sums[1] * left
