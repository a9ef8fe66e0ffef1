"""Learnings that recur: reflections of different loops that say nearly the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct

from core.extraction.wording import told
from core.records.reflections import Reflection
from core.similarity import TextBlock, words_in_order

ALIKE: Final = 0.7
"""Two learnings more alike than this, as `core.similarity` compares texts, say the same."""
LEAST_LOOPS: Final = 2
"""A learning recurs once so many loops, or tasks of no known loop, have told it."""
_LEAST_WORDS: Final = 3
"""Shorter learnings, such as "tests failed", are alike by chance."""
_UNDATED: Final = datetime.max.replace(tzinfo=UTC)


class Cluster(Struct, frozen=True, kw_only=True):
    """Reflections of at least two loops that say nearly the same as one of them, the most central one.

    Attributes:
        id: That of its oldest reflection: it stays while others join.
        central: The one that all others are alike.
        reflections: All of them, oldest first, undated ones last.
        sources: Whom they are from, in the order in which each said it first: loops, and tasks of no known loop.
        kinds: Kinds of reflections, the most frequent first.
        first_at, last_at: Of the oldest and the newest reflection, as far as times are known.
    """

    id: str
    central: Reflection
    reflections: tuple[Reflection, ...]
    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None

    @property
    def text(self) -> str:
        """The learning of the central one; untrusted."""
        return self.central.learning


def recurring(reflections: Iterable[Reflection], loop_of_task: Mapping[str, str]) -> tuple[Cluster, ...]:
    """The learnings that came more than once, those of most loops first. In whatever order the reflections come.

    10,000 reflections take half a second.

    A learning joins only what is more than `ALIKE` to the central one of a cluster, so that no chain of small
    differences leads from one learning to another. Those that most others are like become central first. Reflections
    that name neither loop nor task, or that were only drafted, take no part.

    Args:
        reflections: From all loops and tasks.
        loop_of_task: The loop that a task records, where that is known: both are one source.
    """
    same: dict[str, list[Reflection]] = defaultdict(list)
    for reflection in reflections:
        if not reflection.draft and source_of(reflection, loop_of_task):
            words = words_in_order(told(reflection.learning))
            if words.count(" ") + 1 >= _LEAST_WORDS:
                same[words].append(reflection)
    near: dict[str, set[str]] = {words: {words} for words in same}
    for one, other, _ratio in TextBlock.build({words: words for words in sorted(same)}).pairs(ALIKE):
        near[one].add(other)
        near[other].add(one)
    weights = {words: sum(len(same[other]) for other in near[words]) for words in same}
    clusters = []
    taken: set[str] = set()
    for words in sorted(same, key=lambda words: (-weights[words], words)):
        if words not in taken:
            members = near[words] - taken
            taken |= members
            alike = [reflection for member in members for reflection in same[member]]
            if len({source_of(reflection, loop_of_task) for reflection in alike}) >= LEAST_LOOPS:
                clusters.append(_cluster(alike, min(same[words], key=_age), loop_of_task))
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster.sources), -len(cluster.reflections), cluster.id)))


def source_of(reflection: Reflection, loop_of_task: Mapping[str, str]) -> str:
    """The loop that a reflection comes from, else the task; "" if it names neither."""
    return reflection.loop_id or loop_of_task.get(reflection.task_id, reflection.task_id)


def _cluster(alike: Iterable[Reflection], central: Reflection, loop_of_task: Mapping[str, str]) -> Cluster:
    ordered = tuple(sorted(alike, key=_age))
    times = [reflection.at for reflection in ordered if reflection.at is not None]
    kinds = Counter(reflection.kind for reflection in ordered if reflection.kind)
    return Cluster(
        id=f"recurring-{sha256(ordered[0].id.encode('utf-8', 'replace')).hexdigest()[:10]}",
        central=central,
        reflections=ordered,
        sources=tuple(dict.fromkeys(source_of(reflection, loop_of_task) for reflection in ordered)),
        kinds=tuple(sorted(kinds, key=lambda kind: (-kinds[kind], kind))),
        first_at=min(times, default=None),
        last_at=max(times, default=None),
    )


def _age(reflection: Reflection) -> tuple[datetime, str]:
    return reflection.at or _UNDATED, reflection.id
