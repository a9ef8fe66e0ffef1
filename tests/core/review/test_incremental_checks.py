from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.base.errors import Refused
from core.config.settings import Settings
from core.extraction.clustering import Cluster, Member
from core.learning.scoreboard import Scoreboard
from core.records.extractions import Extraction
from core.records.loops import Loop
from core.records.patterns import Pattern, RecordedCounts
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.review.incremental_checks import IncrementalChecks, trigger_match_share
from tests.core.review.test_queue import offer, used
from tests.factories import CURATION_NOW, make_error_pattern

SETTINGS = Settings()


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


def looked(
    probes: IncrementalChecks,
    snapshot: Snapshot,
    clusters: Sequence[Cluster] = (),
    offers: dict[str, Extraction] | None = None,
) -> list[bool]:
    """Do all steps; returns the result of each."""
    board = Scoreboard.build(snapshot, CURATION_NOW + timedelta(days=9), SETTINGS)

    def draft(cluster: Cluster) -> Extraction:
        if offers is None or cluster.id not in offers:
            raise Refused("gone")
        return offers[cluster.id]

    results = []
    while (changed := probes.look(snapshot, board, lambda: clusters, draft)) is not None:
        results.append(changed)
        assert len(results) < 100
    return results


@pytest.mark.parametrize(
    ("trigger", "share"),
    [(".*", 1.0), (r"[Ee]rror|the|a", 1.0), (r"TypeError: Cannot read", 1 / 20), (r"(a+)+$", 0.0), ("(", 3 / 20)],
)
def test_trigger_is_matched_against_common_messages(trigger: str, share: float) -> None:
    assert trigger_match_share(make_error_pattern("p", error_pattern=trigger)) == pytest.approx(share, abs=0.06)


def snapshot_of(*patterns: Pattern, **more: Any) -> Snapshot:
    return Snapshot(patterns={pattern.id: pattern for pattern in patterns}, **more)


def test_trigger_is_checked_again_only_if_it_changes() -> None:
    probes = IncrementalChecks(SETTINGS)
    broad = make_error_pattern("p", error_pattern="e|o", content_hash="v1")
    assert any(looked(probes, snapshot_of(broad)))
    assert set(probes.broad) == {"p"}
    narrow = make_error_pattern("p", error_pattern="ENOSPC", content_hash="v2")
    looked(probes, snapshot_of(narrow))
    assert probes.broad == {}
    looked(probes, snapshot_of(broad))
    looked(probes, snapshot_of())
    assert probes.broad == {}


def test_record_with_fewer_counts_than_evidence_is_unreconciled() -> None:
    probes = IncrementalChecks(SETTINGS)
    events = tuple(used("p", "+++--", start=CURATION_NOW - timedelta(days=3)))
    wrong = make_error_pattern("p", recorded_counts=RecordedCounts(uses=2, rate=1.0), last_used=CURATION_NOW)
    looked(
        probes,
        snapshot_of(wrong, make_error_pattern("q", recorded_counts=RecordedCounts(uses=7, rate=0.5)), events=events),
    )
    assert set(probes.unreconciled) == {"p"}
    assert "registry records 2 uses" in probes.unreconciled["p"].message
    right = make_error_pattern("p", recorded_counts=RecordedCounts(uses=5, rate=0.6), last_used=CURATION_NOW)
    looked(probes, snapshot_of(right, events=events))
    assert probes.unreconciled == {}


def test_recurring_learnings_without_a_pattern_are_offered() -> None:
    probes = IncrementalChecks(SETTINGS)
    found = {"recurring-1": offer("recurring-1", new=1), "recurring-2": offer("recurring-2", merges=1)}
    snapshot = snapshot_of(make_error_pattern("p"))
    assert looked(probes, snapshot, [cluster(1), cluster(2), cluster(3)], found)[-1]
    assert [one.id for one, _ in probes.recurring] == ["recurring-1"]
    assert not any(looked(probes, snapshot, [cluster(1)], found))
    probes.remove_recurring("recurring-1")
    assert probes.recurring == ()


def test_recurring_learnings_are_searched_in_steps() -> None:
    probes, board = IncrementalChecks(SETTINGS), Scoreboard.build(Snapshot(), CURATION_NOW, SETTINGS)
    answers: list[list[Cluster] | None] = [None, None, [cluster(1), cluster(2)], [cluster(2)]]
    asked: list[str] = []

    def draft(cluster: Cluster) -> Extraction:
        asked.append(cluster.id)
        return offer(cluster.id, new=1)

    def look(snapshot: Snapshot) -> bool | None:
        return probes.look(snapshot, board, lambda: answers.pop(0), draft)

    begun, later = snapshot_of(), snapshot_of()
    assert [look(begun), look(later)] == [False, False]
    assert [look(later), look(later), look(later)] == [False, False, True], "found, the first, the second"
    assert [one.id for one, _ in probes.recurring] == ["recurring-1", "recurring-2"]
    assert [look(later), look(later)] == [False, True], "what has changed meanwhile is looked at, too"
    assert [one.id for one, _ in probes.recurring] == ["recurring-2"]
    assert look(later) is None
    assert asked == ["recurring-1", "recurring-2", "recurring-2"] and not answers


def test_learning_is_checked_again_if_the_task_of_its_loop_changes() -> None:
    probes, asked = IncrementalChecks(SETTINGS), []
    board = Scoreboard.build(Snapshot(), CURATION_NOW, SETTINGS)

    def draft(cluster: Cluster) -> Extraction:
        asked.append(cluster.id)
        return offer(cluster.id, new=1)

    snapshot = Snapshot(loops={id: Loop(id=id, task="x") for id in ("a", "b", "c")})
    for changed, again in (({}, True), ({"c": "y"}, False), ({"a": "y"}, True), ({"a": "y"}, False)):
        loops = {id: structs.replace(loop, task=changed.get(id, loop.task)) for id, loop in snapshot.loops.items()}
        snapshot = replace(snapshot, loops=loops)
        asked.clear()
        while probes.look(snapshot, board, lambda: [cluster(1)], draft) is not None:
            pass
        assert bool(asked) is again, changed
