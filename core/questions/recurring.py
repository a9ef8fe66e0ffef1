"""Question whether to make a pattern of a learning that several loops reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.index import review_items as kinds
from core.index.verdicts import StoredVerdicts, read_verdicts, write_verdicts
from core.questions.offer import chars_offered
from core.records.extractions import Extraction

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.extraction.clustering import Cluster
    from core.questions.offer import LoadOffers
    from core.questions.priority import ImpactEstimator
    from core.records.snapshot import Snapshot

MOST_RECURRING: Final = 20  # Maximum number of recurring learnings that are checked, those of most loops first.
_MAX_TEXT: Final = 80  # Characters of a learning that a question shows.
_READ_AT_ONCE: Final = 64  # Records whose digest is computed in one step.
_KIND: Final = "recurring"
_KEY: Final = "all"
_Digests = tuple[bytes, bytes]


class RecurringLearning(Struct, frozen=True, array_like=True):
    """What a question shows of a recurring learning, without secrets.

    `text` is one line of at most 80 characters, `chars` the length of the whole learning. `times` has one for each
    report, None where it is unknown.
    """

    id: str
    text: str
    chars: int
    sources: int
    times: tuple[datetime | None, ...]

    @classmethod
    def of(cls, cluster: Cluster) -> RecurringLearning:
        times = tuple(member.reflection.at for member in cluster.members)
        text = visible_line(cluster.text, _MAX_TEXT)  # masks secrets
        return cls(cluster.id, text, len(cluster.text), len(cluster.sources), times)


class RecurringVerdict(Struct, frozen=True, array_like=True):
    """The learnings to ask about, and the sources of all that were checked.

    `learnings` and `registry` are digests of the records that they were found in, and of the patterns that they were
    compared with.
    """

    learnings: bytes
    registry: bytes
    sources: tuple[str, ...]
    found: tuple[tuple[RecurringLearning, Extraction], ...]


class RecurringLearnings(Struct, frozen=True):
    """The learnings to ask about, each with its candidate pattern, and the records that they depend on.

    `tasks` has those of the loops that reported the learnings that were checked.
    """

    found: tuple[tuple[RecurringLearning, Extraction], ...] = ()
    tasks: Mapping[str, str] = {}
    records: tuple[object, ...] = ()
    loop_ids: Set[str] = frozenset()

    def are_those_of(self, snapshot: Snapshot) -> bool:
        """Return whether the same learnings recur and the same patterns cover them, whatever loops are doing."""
        records, loops = _records_of(snapshot), snapshot.loops
        if len(self.records) != len(records) or not all(map(is_, self.records, records)):
            return False
        return self.loop_ids == set(loops) and all(loops[id].task == task for id, task in self.tasks.items())


def find_recurring(
    view: ProjectState, before: RecurringLearnings, stored: StoredVerdicts, load: LoadOffers
) -> Steps[RecurringLearnings]:
    """Find learnings that several loops reported and no pattern covers."""
    snapshot = view.snapshot
    if not view.settings.extraction.enabled or before.are_those_of(snapshot):
        return before
    digests = yield from _read_in_steps(snapshot)
    verdict = read_verdicts(stored, _KIND, [_KEY], RecurringVerdict).get(_KEY)
    if verdict is None or (verdict.learnings, verdict.registry) != digests:
        offers = yield from load()
        clusters = (yield from offers.find_recurring_in_steps(snapshot))[:MOST_RECURRING]
        if clusters:
            yield from offers.prepare_in_steps(view)
        drafted = []
        for cluster in clusters:
            with suppress(RalphdeckError):
                offer = offers.extract_cluster(cluster, view)
                if offer.new:
                    drafted.append((RecurringLearning.of(cluster), offer))
            yield
        sources = sorted({source for cluster in clusters for source in cluster.sources})
        verdict = RecurringVerdict(*digests, tuple(sources), tuple(drafted))
        write_verdicts(stored, _KIND, {_KEY: verdict})
    loops = snapshot.loops
    tasks = {id: loop.task for id in verdict.sources if (loop := loops.get(id)) is not None}
    return RecurringLearnings(verdict.found, tasks, _records_of(snapshot), frozenset(loops))


def _records_of(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.reflections, snapshot.patterns, snapshot.tasks, snapshot.memory_tasks


def _read_in_steps(snapshot: Snapshot) -> Steps[_Digests]:
    """Return digests of the learnings with what links them to loops, and of the registry.

    Error messages, with which triggers are compared, are left out: each run may record one.
    """
    learnings: Sequence[Iterable[object]] = (
        snapshot.reflections.values(),
        ((one.id, one.aliases, one.task) for one in snapshot.loops.values()),
        ((one.id, one.loop_id, one.tags, one.description) for one in snapshot.tasks.values()),
        ((one.id, one.tags, one.description) for one in snapshot.memory_tasks.values()),
    )
    patterns = ((one.id, one.content_hash, len(one.source_loops)) for one in snapshot.patterns.values())
    return (yield from _digest_in_steps(learnings)), (yield from _digest_in_steps([patterns]))


def _digest_in_steps(parts: Iterable[Iterable[object]]) -> Steps[bytes]:
    digest, encode = blake2b(digest_size=16), msgspec.msgpack.encode
    for records in parts:
        left = iter(records)
        while batch := tuple(islice(left, _READ_AT_ONCE)):
            digest.update(encode(batch))
            yield
        digest.update(b"\0")
    return digest.digest()


def recurring(scales: ImpactEstimator, learned: Sequence[tuple[RecurringLearning, Extraction]]) -> Iterator[ReviewItem]:
    """Ask about learnings that several loops reported and no pattern covers."""
    now, half_life = scales.board.now, scales.settings.maturity.half_life_days
    for learning, offer in learned:
        known = [at for at in learning.times if at is not None]
        ages = [max((now - at).days, 0) for at in known]
        sources = plural(learning.sources, "session")
        last = f", last on {format_day(max(known))}" if known else ""
        yield scales.item(
            kinds.RECURRING,
            learning.id,
            question=f"{sources} reported {{}}. Make it a lesson?",
            name=f"“{learning.text}”",
            this="the same",
            reason="no lesson contains it",
            place=f"reported {plural(len(learning.times), 'time')}{last}",
            impact=scales.new(float(np.exp2(-np.array(ages, np.float64) / half_life).sum())),
            chars=learning.chars + chars_offered(offer),
            offer=offer,
            evidence=len(learning.times),
        )
