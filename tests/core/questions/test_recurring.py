from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from core.base.errors import Refused
from core.base.settings import Settings
from core.base.steps import Steps, run_all
from core.index.verdicts import VerdictsInMemory
from core.questions.extraction.learnings import Cluster, Member
from core.questions.offer import RecurringLearnings, find_recurring
from core.records.extractions import Extraction
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from tests.core.questions.test_queue import offer
from tests.factories import make_error_pattern


def cluster(number: int) -> Cluster:
    reflection = Reflection(id=f"r{number}", learning="lock the rows first", shape="episodic", file="r.json")
    members = (Member("a", reflection), Member("b", reflection))
    return Cluster(
        id=f"recurring-{number}",
        central=reflection,
        members=members,
        sources=("a", "b"),
        kinds=(),
        first_at=None,
        last_at=None,
    )


def snapshot_of(*patterns: Pattern, **more: Any) -> Snapshot:
    return Snapshot(patterns={pattern.id: pattern for pattern in patterns}, **more)


class Desk:
    """Searches, each after what was found before, with the clusters that were drafted."""

    def __init__(self, stored: VerdictsInMemory | None = None, **offers: Extraction) -> None:
        self.stored = VerdictsInMemory() if stored is None else stored
        self.offers = offers or {"recurring_1": offer("recurring-1", new=1)}
        self.found = RecurringLearnings()
        self.clusters: Sequence[Cluster] = [cluster(1)]
        self.drafted: list[str] = []
        self.is_clustered = False

    def find(self, snapshot: Snapshot) -> list[str]:
        """Return the recurring learnings that are asked about."""
        view: Any = SimpleNamespace(snapshot=snapshot, settings=Settings())
        self.drafted.clear()
        self.is_clustered = False
        self.found = run_all(find_recurring(view, self.found, self.stored, self._load))
        return [one.id for one, _ in self.found.found]

    def find_recurring_in_steps(self, snapshot: Snapshot) -> Steps[tuple[Cluster, ...]]:
        self.is_clustered = True
        yield
        return tuple(self.clusters)

    def prepare_in_steps(self, view: object) -> Steps[bool]:
        yield
        return True

    def extract_cluster(self, cluster: Cluster, view: object) -> Extraction:
        self.drafted.append(cluster.id)
        if (name := cluster.id.replace("-", "_")) not in self.offers:
            raise Refused("gone")
        return self.offers[name]

    def _load(self) -> Steps[Any]:
        yield
        return self


def test_recurring_learnings_without_a_pattern_are_offered() -> None:
    desk = Desk(recurring_1=offer("recurring-1", new=1), recurring_2=offer("recurring-2", merges=1))
    desk.clusters = [cluster(1), cluster(2), cluster(3)]
    assert desk.find(snapshot_of(make_error_pattern("p"))) == ["recurring-1"]
    assert desk.drafted == ["recurring-1", "recurring-2", "recurring-3"]


def test_learning_is_checked_again_if_the_task_of_its_loop_changes() -> None:
    desk = Desk()
    snapshot = Snapshot(loops={id: Loop(id=id, task="x") for id in ("a", "b", "c")})
    for changed, again in (({}, True), ({"c": "y"}, False), ({"a": "y"}, True), ({"a": "y"}, False)):
        loops = {id: structs.replace(loop, task=changed.get(id, loop.task)) for id, loop in snapshot.loops.items()}
        snapshot = replace(snapshot, loops=loops)
        assert desk.find(snapshot) == ["recurring-1"]
        assert bool(desk.drafted) is again, changed


def reflection(id: str, learning: str) -> Reflection:
    return Reflection(id=id, learning=learning, shape="episodic", file="r.json", loop_id="a")


def test_a_stored_verdict_is_used_until_learnings_or_patterns_change() -> None:
    stored = VerdictsInMemory()
    reflections = {"r": reflection("r", "lock the rows first")}
    snapshot = snapshot_of(make_error_pattern("p"), reflections=reflections)
    first = Desk(stored)
    first.find(snapshot)

    def find_again(after: Snapshot) -> tuple[list[str], bool]:
        desk = Desk(stored)
        desk.clusters = []
        return desk.find(after), desk.is_clustered

    same = snapshot_of(make_error_pattern("p"), reflections={"r": reflection("r", "lock the rows first")})
    assert find_again(same) == (["recurring-1"], False)
    learned = snapshot_of(make_error_pattern("p"), reflections=reflections | {"s": reflection("s", "do it twice")})
    assert find_again(learned) == ([], True)
    known = snapshot_of(make_error_pattern("p"), make_error_pattern("q"), reflections=reflections)
    assert find_again(known) == ([], True)
