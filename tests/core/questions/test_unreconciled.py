from __future__ import annotations

from datetime import timedelta
from typing import Any

from core.config.settings import Settings
from core.learning.scoreboard import Scoreboard
from core.questions.unreconciled import CountSearch
from core.records.patterns import Pattern, RecordedCounts
from core.records.snapshot import Snapshot
from tests.core.questions.test_queue import used
from tests.factories import CURATION_NOW, make_error_pattern


def snapshot_of(*patterns: Pattern, **more: Any) -> Snapshot:
    return Snapshot(patterns={pattern.id: pattern for pattern in patterns}, **more)


def search_all(search: CountSearch, snapshot: Snapshot) -> None:
    board = Scoreboard.build(snapshot, CURATION_NOW + timedelta(days=9), Settings())
    while search.look(snapshot.patterns, board) is not None:
        pass


def test_record_with_fewer_counts_than_evidence_is_unreconciled() -> None:
    search = CountSearch()
    events = tuple(used("p", "+++--", start=CURATION_NOW - timedelta(days=3)))
    wrong = make_error_pattern("p", recorded_counts=RecordedCounts(uses=2, rate=1.0), last_used=CURATION_NOW)
    search_all(
        search,
        snapshot_of(wrong, make_error_pattern("q", recorded_counts=RecordedCounts(uses=7, rate=0.5)), events=events),
    )
    assert set(search.found) == {"p"}
    assert "registry records 2 uses" in search.found["p"].message
    right = make_error_pattern("p", recorded_counts=RecordedCounts(uses=5, rate=0.6), last_used=CURATION_NOW)
    search_all(search, snapshot_of(right, events=events))
    assert search.found == {}
