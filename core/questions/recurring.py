"""Question whether to make a pattern of a learning that several loops reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.formatting import format_day
from core.base.steps import Steps, Work
from core.base.text import plural, visible_line
from core.index.verdicts import StoredVerdicts, read_verdicts, write_verdicts
from core.questions.offer import chars_offered
from core.records.extractions import Extraction
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.config.settings import ExtractionSettings
    from core.extraction.clustering import Cluster
    from core.questions.priority import ImpactEstimator
    from core.records.snapshot import Snapshot
    from core.state.review_items import ReviewItem

MOST_RECURRING: Final = 20  # Maximum number of recurring learnings that are checked, those of most loops first.
_STEP_SECONDS: Final = 0.01  # Time in which the records are compared with those of the stored verdict at once.
_MAX_TEXT: Final = 80  # Characters of a learning that a question shows.
_READ_AT_ONCE: Final = 64  # Records whose digest is computed in one step.
_KIND: Final = "recurring"
_KEY: Final = "all"
_Digests = tuple[bytes, bytes]
FindClusters = Callable[[], "Sequence[Cluster] | None"]
DraftPattern = Callable[["Cluster"], Extraction]


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


class RecurringSearch:
    """Finds learnings that several loops reported and no pattern covers, in small steps; not thread-safe.

    `found` has each with its candidate pattern.
    """

    def __init__(self, settings: ExtractionSettings, stored: StoredVerdicts) -> None:
        self.found: tuple[tuple[RecurringLearning, Extraction], ...] = ()
        self._settings = settings
        self._stored = stored
        self._removed: dict[str, tuple[RecurringLearning, Extraction]] = {}
        self._checked: Snapshot | None = None  # that whose learnings were checked last
        self._searching: Snapshot | None = None  # that whose learnings are being searched
        self._reading: Work[_Digests] | None = None
        self._digests: _Digests = b"", b""  # of what is searched; empty while they are computed
        self._sources: Set[str] = frozenset()  # source loops and tasks of the checked learnings
        self._pending: list[Cluster] = []
        self._drafted: list[tuple[RecurringLearning, Extraction]] = []

    def remove(self, cluster_id: str) -> None:
        """Remove a learning that was extracted."""
        self._removed |= {one[0].id: one for one in self.found if one[0].id == cluster_id}
        self.found = tuple(one for one in self.found if one[0].id != cluster_id)

    def restore(self, cluster_id: str) -> None:
        """Ask again about what `remove` removed."""
        removed = self._removed.pop(cluster_id, None)
        if removed is not None and all(one[0].id != cluster_id for one in self.found):
            self.found = (removed, *self.found)

    def look(self, snapshot: Snapshot, clusters: FindClusters, draft: DraftPattern) -> bool | None:
        """Do one step; whether `found` changed, None if nothing is left to check.

        `clusters` finds recurring learnings; it returns None while it needs further steps. `draft` extracts the
        candidate.
        """
        if not self._settings.enabled:
            return None
        if self._pending:
            return self._draft(self._pending.pop(0), snapshot, draft)
        if self._checked is not None and self._has_same_learnings(self._checked, snapshot):
            return None
        if self._searching is None:
            self._searching, self._reading = snapshot, Work(_read_in_steps(snapshot))
        if self._reading is not None:
            digests = self._reading.run_for(_STEP_SECONDS)
            if digests is None:
                return False
            self._reading, self._digests = None, digests
            verdict = read_verdicts(self._stored, _KIND, [_KEY], RecurringVerdict).get(_KEY)
            if verdict is not None and (verdict.learnings, verdict.registry) == digests:
                self._drafted, self._sources = list(verdict.found), set(verdict.sources)
                return self._finish()
        if (found := clusters()) is None:
            return False
        self._drafted, self._pending = [], list(found[:MOST_RECURRING])
        self._sources = {source for cluster in self._pending for source in cluster.sources}
        if self._pending:
            self._checked, self._searching = self._searching, None
            return False
        return self._finish()

    def _draft(self, cluster: Cluster, snapshot: Snapshot, draft: DraftPattern) -> bool:
        try:
            offer = draft(cluster)
        except RalphdeckError:
            offer = Extraction(source_id=cluster.id)
        if offer.new:
            self._drafted.append((RecurringLearning.of(cluster), offer))
        if self._pending:
            return False
        checked = self._checked
        if checked is not None and self._has_same_learnings(checked, snapshot):  # else other patterns were compared
            sources, found = tuple(sorted(self._sources)), tuple(self._drafted)
            verdict = RecurringVerdict(*self._digests, sources, found)
            write_verdicts(self._stored, _KIND, {_KEY: verdict})
        return self._finish()

    def _finish(self) -> bool:
        if self._searching is not None:
            self._checked, self._searching = self._searching, None
        before, self.found = self.found, tuple(self._drafted)
        return before != self.found

    def _has_same_learnings(self, before: Snapshot, after: Snapshot) -> bool:
        """Whether the same learnings recur and the same patterns cover them."""
        one, other = before.loops, after.loops
        unchanged = ("reflections", "patterns", "tasks", "memory_tasks")
        if any(getattr(before, name) is not getattr(after, name) for name in unchanged):
            return False
        if one is other:
            return True
        sources = (id for id in self._sources if id in one)
        return one.keys() == other.keys() and all(one[id].task == other[id].task for id in sources)


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
