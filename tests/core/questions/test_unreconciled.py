from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from core.base.settings import Settings
from core.base.steps import run_all
from core.learning.scoreboard import Scoreboard
from core.questions.doubts import find_wrong_counts
from core.records.findings import Finding
from core.records.patterns import Pattern, RecordedCounts
from core.records.snapshot import Snapshot
from tests.core.questions.test_queue import used
from tests.factories import CURATION_NOW, make_error_pattern


def snapshot_of(*patterns: Pattern, **more: Any) -> Snapshot:
    return Snapshot(patterns={pattern.id: pattern for pattern in patterns}, **more)


def find(snapshot: Snapshot) -> dict[str, Finding]:
    board = Scoreboard.build(snapshot, CURATION_NOW + timedelta(days=9), Settings())
    view: Any = SimpleNamespace(snapshot=snapshot, board=board)
    return run_all(find_wrong_counts(view))


def test_record_with_fewer_counts_than_evidence_is_unreconciled() -> None:
    events = tuple(used("p", "+++--", start=CURATION_NOW - timedelta(days=3)))
    wrong = make_error_pattern("p", recorded_counts=RecordedCounts(uses=2, rate=1.0), last_used=CURATION_NOW)
    other = make_error_pattern("q", recorded_counts=RecordedCounts(uses=7, rate=0.5))
    found = find(snapshot_of(wrong, other, events=events))
    assert set(found) == {"p"}
    assert "registry records 2 uses" in found["p"].message
    right = make_error_pattern("p", recorded_counts=RecordedCounts(uses=5, rate=0.6), last_used=CURATION_NOW)
    assert find(snapshot_of(right, events=events)) == {}
