"""Join copies of a reflection from several files (docs/file-formats.md#reflections)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from core.records.reflections import Reflection
from core.sources.loop_facts import ANALYTICS, BEST_OUTPUT
from core.sources.record_kinds import CROSS_TASK, EPISODIC, HOOK, MEMORY_MANAGER, REFLEXION, STATE

_RICHNESS: Final = {
    shape: rank
    for rank, shape in enumerate((EPISODIC, REFLEXION, HOOK, MEMORY_MANAGER, CROSS_TASK, ANALYTICS, BEST_OUTPUT, STATE))
}
"""Of several copies, the one in the format with the most detail counts."""
_SAME_TIME: Final = timedelta(seconds=60)
"""Maximum distance in time from a reflection without a loop to the same sentence of a loop."""
_Place = tuple[str, str, int | None, int | None]
"""Loop, task (only without a loop), attempt and iteration."""


def reflection_key(reflection: Reflection) -> str:
    """Key of the group that a reflection is joined in: its normalized text."""
    return " ".join(reflection.text.split()).casefold().rstrip(".")


def join_reflections(reflections: Iterable[Reflection], aliases: Mapping[str, str]) -> dict[str, Reflection]:
    """Join reflections: the same sentence of one loop and iteration is one reflection.

    `reflections` are whole groups (see `reflection_key`) from any number of files. `aliases` are other IDs of loops,
    each with the ID of the loop (`LoopCollection.aliases`).
    """
    groups: dict[str, list[Reflection]] = {}
    for reflection in reflections:
        groups.setdefault(reflection_key(reflection), []).append(reflection)
    return {joined.id: joined for key, group in groups.items() for joined in join_group(key, group, aliases)}


def join_group(key: str, group: Iterable[Reflection], aliases: Mapping[str, str]) -> tuple[Reflection, ...]:
    """Join one group with the given `reflection_key`; `aliases` as in `join_reflections`."""
    found = [
        replace(reflection, loop_id=aliases[reflection.loop_id]) if reflection.loop_id in aliases else reflection
        for reflection in group
    ]
    return (_with_id(found[0], key),) if len(found) == 1 else tuple(_join_copies(found, key))


def _with_id(reflection: Reflection, text: str) -> Reflection:
    """Set the ID, which depends on the loop or task, the place in it and the text."""
    owner = reflection.loop_id or reflection.task_id
    parts = f"{owner}\0{reflection.attempt}\0{reflection.iteration}\0{text}"
    digest = blake2b(parts.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return replace(reflection, id=f"refl-{digest}")


def _join_copies(group: Sequence[Reflection], text: str) -> Iterator[Reflection]:
    """Merge the copies of each place; a copy with an incomplete place joins the matching complete one."""
    copies: dict[_Place, list[Reflection]] = {}
    for reflection in sorted(group, key=_rank):
        owner = (reflection.loop_id, "" if reflection.loop_id else reflection.task_id)
        copies.setdefault((*owner, reflection.attempt, reflection.iteration), []).append(reflection)
    incomplete = [place for place in copies if place[2] is None and (not place[0] or place[3] is None)]
    if incomplete:
        matches = _PlaceMatcher(copies)
        for place in sorted(incomplete, key=lambda place: (place[0] != "", place[3] is not None)):
            match = matches.find(place, copies[place][0].at)
            if match is not None:
                copies[match] += copies.pop(place)
    for (loop_id, _, _, iteration), same in copies.items():
        merged = _merge(sorted(same, key=_rank))
        yield _with_id(replace(merged, loop_id=loop_id, iteration=iteration), text)


def _rank(reflection: Reflection) -> tuple[int, str, str]:
    return _RICHNESS[reflection.shape], reflection.file, reflection.pointer


class _PlaceMatcher:
    """Finds a more complete place for a reflection without a loop or an iteration."""

    def __init__(self, copies: Mapping[_Place, Sequence[Reflection]]) -> None:
        self._by_loop: dict[str, list[_Place]] = {}
        self._by_iteration: dict[int | None, list[_Place]] = {}
        for place in copies:
            if place[0]:
                self._by_loop.setdefault(place[0], []).append(place)
                self._by_iteration.setdefault(place[3], []).append(place)
        self._copies = copies
        self._times: dict[int | None, list[tuple[datetime, int]]] = {}

    def find(self, place: _Place, at: datetime | None) -> _Place | None:
        """The place in the same loop with the highest iteration; without a loop, the nearest in time."""
        loop_id, _, _, iteration = place
        if loop_id:
            others = (other for other in self._by_loop[loop_id] if other != place)
            return max(others, key=lambda other: other[3] or 0, default=None)
        same_iteration = self._by_iteration.get(iteration, [])
        if len(same_iteration) < 2:
            return same_iteration[0] if same_iteration else None
        return self._nearest(iteration, at) if at is not None else None

    def _nearest(self, iteration: int | None, at: datetime) -> _Place | None:
        places = self._by_iteration[iteration]
        times = self._times.get(iteration)
        if times is None:
            starts = [(self._copies[place][0].at, index) for index, place in enumerate(places)]
            times = self._times[iteration] = sorted((start, index) for start, index in starts if start is not None)
        after = bisect_left(times, (at, 0))
        near = [(abs(time - at), index) for time, index in times[max(after - 1, 0) : after + 1]]
        distance, index = min(near, default=(_SAME_TIME, 0))
        return places[index] if distance < _SAME_TIME else None


def _merge(copies: Sequence[Reflection]) -> Reflection:
    """The first copy, completed with details of the others."""
    first, *others = copies
    if not others:
        return first
    files = dict.fromkeys(other.file for other in others if other.file != first.file)
    dated = next((copy for copy in copies if copy.at and not copy.at_approximate), first)
    return replace(
        first,
        also_in=tuple(files),
        at=dated.at,
        at_approximate=dated.at_approximate,
        task_id=next((copy.task_id for copy in copies if copy.task_id), ""),
        kind=next((copy.kind for copy in copies if copy.kind), ""),
        effectiveness=next((copy.effectiveness for copy in copies if copy.effectiveness), ""),
    )
