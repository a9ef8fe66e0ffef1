"""The loops of `.aiwg` and of adapters in one collection (docs/adapters.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.records.loops import Loop

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def newest_first(loops: Iterable[Loop]) -> dict[str, Loop]:
    """Return loops by ID, newest start first, then by ID."""
    ordered = sorted(loops, key=lambda loop: loop.id)
    ordered.sort(key=lambda loop: loop.started_at or _LONG_AGO, reverse=True)
    return {loop.id: loop for loop in ordered}


class LoopUnion:
    """Loops of several origins; `records` are all by ID, newest start first, a new mapping after each change.

    The IDs of adapters' loops begin with the name of the adapter, so they never equal another ID; a file in `.aiwg`
    that contains such an ID has precedence.
    """

    def __init__(self) -> None:
        self.records: Mapping[str, Loop] = {}
        self._own: Mapping[str, Loop] = {}
        self._adapted: Mapping[str, Loop] = {}

    def join(self, own: Mapping[str, Loop], changed: frozenset[str], adapted: Mapping[str, Loop]) -> frozenset[str]:
        """Update `records`; returns the IDs that were added, changed or removed.

        `own` are the loops of `.aiwg`, of which those in `changed` differ from those of the last call.
        """
        if own is self._own and adapted is self._adapted:
            return frozenset()
        if adapted is not self._adapted:
            before = self._adapted
            changed |= {id for id, loop in adapted.items() if before.get(id) is not loop and before.get(id) != loop}
            changed |= before.keys() - adapted.keys()
        self._own, self._adapted = own, adapted
        before = self.records
        if not adapted:
            self.records = own
            return changed
        news = {id: loop for id in changed if (loop := own.get(id) or adapted.get(id)) is not None}
        if all(id in news and id in before and before[id].started_at == news[id].started_at for id in changed):
            self.records = {**before, **news}
        else:
            self.records = newest_first({**adapted, **own}.values())
        return changed
