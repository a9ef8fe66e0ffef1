"""Recurring learnings: similar learnings in reflections of several loops."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.steps import Steps, run_all, sort_in_steps
from core.records.reflections import Reflection
from core.retrieval.contradiction import MIN_SIMILARITY, Statement
from core.tasks.task_links import LoopNames, collect_past_tasks

if TYPE_CHECKING:
    from core.index.verdicts import StoredVerdicts
    from core.records.snapshot import Snapshot
    from core.retrieval.similarity import TextPool

CLUSTER_ID: Final = "recurring-"  # prefix of cluster IDs
MIN_LOOPS: Final = 2
"""Minimum number of loops, or tasks without a known loop, that recorded a learning for it to be recurring."""
MIN_WORDS: Final = 3  # shorter learnings, such as "tests failed", are similar by chance
_KIND, _KEY = "learnings", "groups"  # of the stored groups
_UNDATED: Final = datetime.max.replace(tzinfo=UTC)


class Member(NamedTuple):
    """A reflection, and the ID of its loop, or of its task if the loop is unknown."""

    source: str
    reflection: Reflection


class Cluster(Struct, frozen=True, kw_only=True, gc=False):
    """Similar reflections of at least two loops.

    `sources` are the IDs of their loops, or of tasks whose loop is unknown, in the order of their first reflection.
    """

    id: str  # derived from the oldest reflection, so that it is stable when others join
    central: Reflection  # the reflection that all others are similar to
    members: tuple[Member, ...]  # oldest first, those without a time last
    sources: tuple[str, ...]
    kinds: tuple[str, ...]  # kinds of reflections, the most frequent first
    first_at: datetime | None  # times of the oldest and the newest reflection; None if unknown
    last_at: datetime | None

    @property
    def text(self) -> str:
        """Learning of the central reflection; untrusted."""
        return self.central.learning


def cluster_reflections(reflections: Iterable[Reflection], loop_of_task: Mapping[str, str]) -> tuple[Cluster, ...]:
    """Find the recurring learnings, those of the most loops first.

    A learning joins a cluster if it is similar to the central one and asks for the same (see
    `core.retrieval.contradiction`). So no chain of small differences joins different learnings. Learnings that are
    similar to many others become central. The order of the reflections does not matter. Drafts, and reflections without
    loop and task, are ignored. Each reflection is compared with a bounded number of others: 10,000 reflections take a
    few seconds. `loop_of_task` maps a task to its loop, if known, so that both count as one source.
    """
    from core.index.verdicts import VerdictsInMemory  # imports sqlite3, which the help of commands does without

    return run_all(_cluster_steps(reflections, loop_of_task, VerdictsInMemory()))


def cluster_snapshot_in_steps(snapshot: Snapshot, stored: StoredVerdicts) -> Steps[tuple[Cluster, ...]]:
    """Find the recurring learnings of a project step by step; learnings that were grouped before are not compared."""
    names = LoopNames(snapshot.loops.values())
    loop_of_task = {}
    for id, task in collect_past_tasks(snapshot).items():
        if (link := names.link(task)) is not None:
            loop_of_task[id] = link.loop_id
        yield
    return (yield from _cluster_steps(snapshot.reflections.values(), loop_of_task, stored))


def _cluster_steps(
    reflections: Iterable[Reflection], loop_of_task: Mapping[str, str], stored: StoredVerdicts
) -> Steps[tuple[Cluster, ...]]:
    same: dict[Statement, list[Member]] = defaultdict(list)
    for reflection in reflections:
        source = reflection.loop_id or loop_of_task.get(reflection.task_id, reflection.task_id)
        if source and not reflection.draft:
            statement = Statement.of(reflection.learning)
            if statement.words.count(" ") + 1 >= MIN_WORDS:
                same[statement].append(Member(source, reflection))
        yield
    counts = {}
    for statement, members in same.items():
        counts[statement] = len(members)
        yield
    clusters = []
    for group in (yield from _known_groups_in_steps(counts, stored)):
        members = sorted((member for statement in group for member in same[statement]), key=_age_order)
        if len({member.source for member in members}) >= MIN_LOOPS:
            clusters.append(_make_cluster(members, min(same[group[0]], key=_age_order).reflection))
        yield
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster.sources), -len(cluster.members), cluster.id)))


class _Groups(Struct, frozen=True, array_like=True):
    """Groups of statements, each as its place in the order of the keys; `digest` is of the statements and counts."""

    digest: bytes
    groups: list[list[int]]


def _known_groups_in_steps(counts: Mapping[Statement, int], stored: StoredVerdicts) -> Steps[list[list[Statement]]]:
    """Return what `group_statements_in_steps` does, from what is stored for the same statements."""
    from core.index.verdicts import read_verdicts, write_verdicts

    ordered = yield from sort_in_steps(counts, lambda statement: statement.key)
    hasher = blake2b(digest_size=16)
    for statement in ordered:
        hasher.update(repr((statement.key, counts[statement])).encode("utf-8", "surrogatepass"))
        yield
    digest = hasher.digest()
    known = read_verdicts(stored, _KIND, [_KEY], _Groups).get(_KEY)
    if known is not None and known.digest == digest:
        return [[ordered[place] for place in group] for group in known.groups]
    groups = yield from group_statements_in_steps(counts)
    places = {statement: place for place, statement in enumerate(ordered)}
    rows = [[places[statement] for statement in group] for group in groups]
    write_verdicts(stored, _KIND, {_KEY: _Groups(digest, rows)})
    return groups


def group_statements_in_steps(counts: Mapping[Statement, int]) -> Steps[list[list[Statement]]]:
    """Group similar statements; the first statement of each group is its central one."""
    from core.retrieval.similarity import TextPool

    ordered = yield from sort_in_steps(counts, lambda statement: (-counts[statement], statement.key))
    everything = TextPool()
    for statement in ordered:
        everything.add(statement.words)
        yield
    weights = []
    for statement in ordered:
        similar = _similar(statement, everything, ordered)
        weights.append(math.fsum(ratio * counts[ordered[row]] for row, ratio in similar))
        yield
    centres: list[Statement] = []
    texts = TextPool()
    groups: list[list[Statement]] = []
    for index in (yield from sort_in_steps(range(len(ordered)), lambda index: (-weights[index], ordered[index].key))):
        statement = ordered[index]
        row = next((row for row, _ in _similar(statement, texts, centres)), len(centres))
        if row == len(centres):
            texts.add(statement.words)
            centres.append(statement)
            groups.append([])
        groups[row].append(statement)
        yield
    return groups


def _similar(statement: Statement, texts: TextPool, statements: Sequence[Statement]) -> Iterator[tuple[int, float]]:
    """Yield row and similarity of the statements in `texts` that are nearly equal."""
    for row, ratio in texts.find_similar(statement.words, MIN_SIMILARITY):
        if not statement.demand.differs(statements[row].demand):
            yield row, ratio


def _make_cluster(members: Sequence[Member], central: Reflection) -> Cluster:
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


def _age_order(member: Member) -> tuple[datetime, str]:
    return member.reflection.at or _UNDATED, member.reflection.id
