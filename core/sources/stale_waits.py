"""Waiting loops of other runners without a sign for a long time (docs/adapters.md#states)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from core.records.loops import Liveness, Loop, LoopStatus

_STALE: Final = "stale"  # badge


class StaleWaits:
    """Marks them as stale; all loops are examined only if they changed."""

    def __init__(self) -> None:
        self._loops: Mapping[str, Loop] = {}
        self._waiting: tuple[Loop, ...] = ()
        self._marked: Mapping[str, Loop] = {}
        self._changes: dict[str, Loop] = {}

    def mark(self, loops: Mapping[str, Loop], now: datetime, stale_after: timedelta) -> Mapping[str, Loop]:
        """Return the loops; a waiting one is stale if no process is known and its last sign is older than that.

        The same mapping is returned until a loop changes or becomes stale.
        """
        is_same = loops is self._loops
        if not is_same:
            self._loops = loops
            self._waiting = tuple(one for one in loops.values() if one.status is LoopStatus.WAITING)
        changes = {
            one.id: marked for one in self._waiting if (marked := mark_stale_wait(one, now, stale_after)) is not one
        }
        if not is_same or changes != self._changes:
            self._changes = changes
            self._marked = {**loops, **changes} if changes else loops
        return self._marked


def mark_stale_wait(loop: Loop, now: datetime, stale_after: timedelta) -> Loop:
    """Return a waiting loop as stale, or not any more."""
    last = loop.last_activity or loop.modified_at
    is_stale = loop.liveness is not Liveness.ALIVE and last is not None and now - last > stale_after
    if is_stale == (loop.liveness is Liveness.STALE):
        return loop
    badges = {*loop.badges, _STALE} if is_stale else {*loop.badges} - {_STALE}
    liveness = Liveness.STALE if is_stale else Liveness.FRESH
    return replace(loop, liveness=liveness, badges=tuple(sorted(badges)))
