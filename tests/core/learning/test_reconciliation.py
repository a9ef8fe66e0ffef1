"""Findings where the counts of a record disagree with the evidence."""

from __future__ import annotations

from datetime import timedelta

from core.learning.reconciliation import reconcile_record
from core.records.loops import Loop
from core.records.patterns import TrendPoint
from tests.factories import (
    NOW,
    collect_observations,
    days_ago,
    make_pattern,
    make_recorded_counts,
    make_source,
    make_use,
)

ID = "pat-error-sample-001"


def test_reconcile_reports_unrecorded_uses() -> None:
    uses = [(Loop(id=id), make_use(ID, True)) for id in "abc"]
    pattern = make_pattern(
        recorded_counts=make_recorded_counts(12, 0), source_loops=(make_source("d", days_ago(4)),), file="f.json"
    )
    findings = reconcile_record(pattern, collect_observations(pattern, uses), NOW, {"a", "b", "c", "d"})
    assert [finding.message for finding in findings] == ["registry records 12 uses, loops show 4, 8 unrecorded"]
    assert findings[0].file == "f.json" and findings[0].pointer == "/usage_count"


def test_reconcile_reports_invalid_data() -> None:
    future = NOW + timedelta(days=3)
    pattern = make_pattern(
        recorded_counts=make_recorded_counts(1, 0),
        source_loops=(make_source("a", future), make_source("gone\x1b[2J"), make_source("a")),
        trend=(TrendPoint(at=days_ago(1)),),
    )
    uses = [(Loop(id="b"), make_use(ID, False, at=days_ago(1)))]
    findings = reconcile_record(pattern, collect_observations(pattern, uses), NOW, {"a", "b"})
    assert [finding.code for finding in findings] == [
        "claim-below-evidence",
        "future-time",
        "bad-trend",
        "orphan-loop",
        "duplicate-loop",
    ]
    assert not any("\x1b" in finding.message for finding in findings)


def test_reconcile_reports_a_failure_missing_in_the_record() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(4, 0))
    uses = [(Loop(id="b", ended_at=days_ago(1)), make_use(ID, False))]
    codes = [finding.code for finding in reconcile_record(pattern, collect_observations(pattern, uses), NOW)]
    assert codes == ["unrecorded-uses", "claim-disagrees"]


def test_matching_counts_give_no_finding() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(1, 0), source_loops=(make_source("a", days_ago(2)),))
    assert reconcile_record(pattern, collect_observations(pattern), NOW, {"a"}) == ()


def test_a_pattern_record_with_fewer_uses_gives_no_warning() -> None:
    uses = [(Loop(id=id, ended_at=NOW), make_use(ID, True)) for id in "abc"]
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 0), last_used=days_ago(3))
    findings = reconcile_record(pattern, collect_observations(pattern, uses), NOW, {"a", "b", "c"})
    assert [(finding.code, finding.message) for finding in findings] == [
        ("later-uses", "3 uses since the last one that the registry counts"),
        ("unrecorded-uses", "registry records 2 uses, loops show 0, 2 unrecorded"),
    ]


def test_lessons_and_loops_of_other_runners_are_not_orphans() -> None:
    pattern = make_pattern("p", source_loops=(make_source("lesson:0c1d"), make_source("codex:0199")))
    assert not [one for one in reconcile_record(pattern, (), NOW, {"a"}) if one.code == "orphan-loop"]


def test_a_source_with_any_known_record_is_not_an_orphan() -> None:
    pattern = make_pattern("p", source_loops=(make_source("task-001"), make_source("gone")))
    findings = reconcile_record(pattern, (), NOW, {"a"}, {"task-001"})
    assert [finding.message for finding in findings if finding.code == "orphan-loop"] == [
        "loop gone is not in this project"
    ]
