"""Learnings that recur: reflections of different loops that say nearly the same."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from core.base.record_text import strip_label
from core.episodes.loop_links import LoopNames
from core.episodes.similar_tasks import past_tasks
from core.extraction.contradiction import Demand, demand_of, spaced
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.retrieval.similarity import ManyTexts, sorted_words

CLUSTER_ID: Final = "recurring-"
"""What the ids of clusters begin with."""

ALIKE: Final = 0.7
"""Two learnings more alike than this, as `core.retrieval.similarity` compares texts, say the same."""
LEAST_LOOPS: Final = 2
"""A learning recurs once so many loops, or tasks of no known loop, have told it."""
_LEAST_WORDS: Final = 3
"""Shorter learnings, such as "tests failed", are alike by chance."""
_UNDATED: Final = datetime.max.replace(tzinfo=UTC)
_Result = TypeVar("_Result")
Work: TypeAlias = Generator[None, None, _Result]
"""Work that can be left off and gone on with: a piece, some 100 us, at each `next`; at the end its result."""


class Member(NamedTuple):
    """A reflection, and the loop that it comes from: the task where that loop is not known."""

    source: str
    reflection: Reflection


class Saying(NamedTuple):
    """What a learning says: alike where two say it in the same words, and ask for the same."""

    words: str
    demand: Demand

    @classmethod
    def of(cls, learning: str) -> Saying:
        """A learning by its words in order."""
        text = strip_label(learning)
        return cls(sorted_words(spaced(text)), demand_of(text))

    @property
    def letters(self) -> tuple[str, bool, str]:
        """Its place among others that no other one has."""
        denied, numbers, sides, order = self.demand
        return self.words, denied, f"{numbers} {sides} {[sorted(part) for part in order]}"


class Cluster(Struct, frozen=True, kw_only=True):
    """Reflections of at least two loops that say nearly the same as one of them, the most central one.

    Attributes:
        id: That of its oldest reflection: it stays while others join.
        central: The one that all others are alike.
        members: All of them, oldest first, undated ones last.
        sources: Whom they are from, in the order in which each said it first: loops, and tasks of no known loop.
        kinds: Kinds of reflections, the most frequent first.
        first_at, last_at: Of the oldest and the newest reflection, as far as times are known.
    """

    id: str
    central: Reflection
    members: tuple[Member, ...]
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

    10,000 reflections take a few seconds, however alike they are: each is compared with a bounded number of others.

    A learning joins only what is more than `ALIKE` to the central one of a cluster, so that no chain of small
    differences leads from one learning to another; and only what asks for the same, see
    `core.extraction.contradiction`. Those that
    most others are most like become central first.
    Reflections that name neither loop nor task, or that were only drafted, take no part.

    Args:
        reflections: From all loops and tasks.
        loop_of_task: The loop that a task records, where that is known: both are one source.
    """
    return to_the_end(_gather(reflections, loop_of_task))


def gather(snapshot: Snapshot) -> Work[tuple[Cluster, ...]]:
    """`recurring` in a project, piece by piece; what a task records of a loop counts as the loop's."""
    names = LoopNames(snapshot.loops.values())
    loop_of_task = {}
    for id, task in past_tasks(snapshot).items():
        if (link := names.link(task)) is not None:
            loop_of_task[id] = link.loop_id
        yield
    return (yield from _gather(snapshot.reflections.values(), loop_of_task))


def recurring_in(snapshot: Snapshot) -> tuple[Cluster, ...]:
    """`gather` at once."""
    return to_the_end(gather(snapshot))


def to_the_end(work: Work[_Result]) -> _Result:
    """Do all pieces of some work."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: _Result = done.value
            return result


def _gather(reflections: Iterable[Reflection], loop_of_task: Mapping[str, str]) -> Work[tuple[Cluster, ...]]:
    same: dict[Saying, list[Member]] = defaultdict(list)
    for reflection in reflections:
        source = reflection.loop_id or loop_of_task.get(reflection.task_id, reflection.task_id)
        if source and not reflection.draft:
            saying = Saying.of(reflection.learning)
            if saying.words.count(" ") + 1 >= _LEAST_WORDS:
                same[saying].append(Member(source, reflection))
        yield
    clusters = []
    for central, alike in (yield from _by_centre({saying: len(members) for saying, members in same.items()})):
        members = sorted((member for saying in alike for member in same[saying]), key=_age)
        if len({member.source for member in members}) >= LEAST_LOOPS:
            clusters.append(_cluster(members, min(same[central], key=_age).reflection))
        yield
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster.sources), -len(cluster.members), cluster.id)))


def _by_centre(told_times: Mapping[Saying, int]) -> Work[list[tuple[Saying, list[Saying]]]]:
    """Central sayings, each with all that are alike to it, itself among them; every one once.

    Args:
        told_times: How often each was told.
    """
    ordered = sorted(told_times, key=lambda saying: (-told_times[saying], saying.letters))
    times = [told_times[saying] for saying in ordered]
    everything = ManyTexts()
    for saying in ordered:
        everything.add(saying.words)
        yield
    weights = []
    for saying in ordered:
        weights.append(math.fsum(ratio * times[row] for row, ratio in _alike(saying, everything, ordered)))
        yield
    centres: list[Saying] = []
    texts = ManyTexts()
    found: list[list[Saying]] = []
    for at in sorted(range(len(ordered)), key=lambda at: (-weights[at], ordered[at].letters)):
        saying = ordered[at]
        row = next((row for row, _ in _alike(saying, texts, centres)), len(centres))
        if row == len(centres):
            texts.add(saying.words)
            centres.append(saying)
            found.append([])
        found[row].append(saying)
        yield
    return list(zip(centres, found, strict=True))


def _alike(saying: Saying, texts: ManyTexts, sayings: Sequence[Saying]) -> Iterator[tuple[int, float]]:
    """Rows of those sayings, whose words are the texts, that say nearly the same."""
    for row, ratio in texts.alike(saying.words, ALIKE):
        if not saying.demand.differs(sayings[row].demand):
            yield row, ratio


def _cluster(members: Sequence[Member], central: Reflection) -> Cluster:
    """Of members in the order of their age."""
    oldest = members[0].reflection
    times = [member.reflection.at for member in members if member.reflection.at is not None]
    kinds = Counter(member.reflection.kind for member in members if member.reflection.kind)
    return Cluster(
        id=f"{CLUSTER_ID}{sha256(oldest.id.encode('utf-8', 'replace')).hexdigest()[:10]}",
        central=central,
        members=tuple(members),
        sources=tuple(dict.fromkeys(member.source for member in members)),
        kinds=tuple(sorted(kinds, key=lambda kind: (-kinds[kind], kind))),
        first_at=min(times, default=None),
        last_at=max(times, default=None),
    )


def _age(member: Member) -> tuple[datetime, str]:
    return member.reflection.at or _UNDATED, member.reflection.id
