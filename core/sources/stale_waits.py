"""Waiting loops of other runners without a sign for a long time (docs/adapters.md#states)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from core.records.loops import Liveness, Loop

_STALE: Final = "stale"  # badge


def mark_stale_wait(loop: Loop, now: datetime, stale_after: timedelta) -> Loop:
    """Return a waiting loop as stale, or not any more."""
    last = loop.last_activity or loop.modified_at
    is_stale = loop.liveness is not Liveness.ALIVE and last is not None and now - last > stale_after
    if is_stale == (loop.liveness is Liveness.STALE):
        return loop
    badges = {*loop.badges, _STALE} if is_stale else {*loop.badges} - {_STALE}
    liveness = Liveness.STALE if is_stale else Liveness.FRESH
    return replace(loop, liveness=liveness, badges=tuple(sorted(badges)))
