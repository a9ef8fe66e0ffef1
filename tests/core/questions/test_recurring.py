from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from core.base.errors import Refused
from core.config.settings import ExtractionSettings
from core.extraction.clustering import Cluster, Member
from core.index.verdicts import VerdictsInMemory
from core.questions.recurring import RecurringSearch
from core.records.extractions import Extraction
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from tests.core.questions.test_queue import offer
from tests.factories import make_error_pattern


def new_search(stored: VerdictsInMemory | None = None) -> RecurringSearch:
    return RecurringSearch(ExtractionSettings(), VerdictsInMemory() if stored is None else stored)


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


def looked(
    search: RecurringSearch,
    snapshot: Snapshot,
    clusters: Sequence[Cluster] = (),
    offers: dict[str, Extraction] | None = None,
) -> list[bool]:
    """Do all steps; returns the result of each."""

    def draft(cluster: Cluster) -> Extraction:
        if offers is None or cluster.id not in offers:
            raise Refused("gone")
        return offers[cluster.id]

    results = []
    while (changed := search.look(snapshot, lambda: clusters, draft)) is not None:
        results.append(changed)
        assert len(results) < 100
    return results


def test_recurring_learnings_without_a_pattern_are_offered() -> None:
    search = new_search()
    found = {"recurring-1": offer("recurring-1", new=1), "recurring-2": offer("recurring-2", merges=1)}
    snapshot = snapshot_of(make_error_pattern("p"))
    assert looked(search, snapshot, [cluster(1), cluster(2), cluster(3)], found)[-1]
    assert [one.id for one, _ in search.found] == ["recurring-1"]
    assert not any(looked(search, snapshot, [cluster(1)], found))
    search.remove("recurring-1")
    assert search.found == ()


def test_recurring_learnings_are_searched_in_steps() -> None:
    search = new_search()
    answers: list[list[Cluster] | None] = [None, None, [cluster(1), cluster(2)], [cluster(2)]]
    asked: list[str] = []

    def draft(cluster: Cluster) -> Extraction:
        asked.append(cluster.id)
        return offer(cluster.id, new=1)

    def look(snapshot: Snapshot) -> bool | None:
        return search.look(snapshot, lambda: answers.pop(0), draft)

    begun, later = snapshot_of(), snapshot_of()
    assert [look(begun), look(later)] == [False, False]
    assert [look(later), look(later), look(later)] == [False, False, True], "found, the first, the second"
    assert [one.id for one, _ in search.found] == ["recurring-1", "recurring-2"]
    assert [look(later), look(later)] == [False, True], "what has changed meanwhile is looked at, too"
    assert [one.id for one, _ in search.found] == ["recurring-2"]
    assert look(later) is None
    assert asked == ["recurring-1", "recurring-2", "recurring-2"] and not answers


def test_learning_is_checked_again_if_the_task_of_its_loop_changes() -> None:
    search, asked = new_search(), list[str]()

    def draft(cluster: Cluster) -> Extraction:
        asked.append(cluster.id)
        return offer(cluster.id, new=1)

    snapshot = Snapshot(loops={id: Loop(id=id, task="x") for id in ("a", "b", "c")})
    for changed, again in (({}, True), ({"c": "y"}, False), ({"a": "y"}, True), ({"a": "y"}, False)):
        loops = {id: structs.replace(loop, task=changed.get(id, loop.task)) for id, loop in snapshot.loops.items()}
        snapshot = replace(snapshot, loops=loops)
        asked.clear()
        while search.look(snapshot, lambda: [cluster(1)], draft) is not None:
            pass
        assert bool(asked) is again, changed


def reflection(id: str, learning: str) -> Reflection:
    return Reflection(id=id, learning=learning, shape="episodic", file="r.json", loop_id="a")


def test_a_stored_verdict_is_used_until_learnings_or_patterns_change() -> None:
    stored, found = VerdictsInMemory(), {"recurring-1": offer("recurring-1", new=1)}
    reflections = {"r": reflection("r", "lock the rows first")}
    snapshot = snapshot_of(make_error_pattern("p"), reflections=reflections)
    first = new_search(stored)
    looked(first, snapshot, [cluster(1)], found)
    searched: list[Snapshot] = []

    def search_again(after: Snapshot) -> RecurringSearch:
        search = new_search(stored)

        def clusters() -> Sequence[Cluster]:
            searched.append(after)
            return ()

        while search.look(after, clusters, lambda one: found[one.id]) is not None:
            pass
        return search

    same = snapshot_of(make_error_pattern("p"), reflections={"r": reflection("r", "lock the rows first")})
    assert search_again(same).found == first.found and not searched
    learned = snapshot_of(make_error_pattern("p"), reflections=reflections | {"s": reflection("s", "do it twice")})
    assert search_again(learned).found == () and searched == [learned]
    known = snapshot_of(make_error_pattern("p"), make_error_pattern("q"), reflections=reflections)
    assert search_again(known).found == () and searched == [learned, known]


def test_a_search_during_which_patterns_change_is_not_stored() -> None:
    stored = VerdictsInMemory()
    search, before, after = new_search(stored), snapshot_of(make_error_pattern("p")), snapshot_of()
    search.look(before, lambda: [cluster(1)], lambda one: offer(one.id, new=1))
    search.look(after, lambda: [cluster(1)], lambda one: offer(one.id, new=1))
    assert search.found and not stored.get("recurring", ["all"])
