"""Updates of derived files, which keep other content."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.learning.scoreboard import Scoreboard
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot
from core.show.metrics.derived_files import (
    compare_metrics,
    index_path,
    metrics_path,
    read_recorded_metrics,
    write_derived,
    write_metrics,
)
from core.show.metrics.effectiveness import compute_effectiveness
from tests.core.show.metrics.test_effectiveness import DOCUMENT
from tests.factories import NOW, SETTINGS, make_pattern, make_recorded_counts

PATTERNS = {
    one.id: one
    for one in (
        make_pattern(
            "pat-error-b-002",
            recorded_counts=make_recorded_counts(3, 1),
            tags=("sql",),
            file="x.json",
            title="half \ud800 \u202e",
        ),
        make_pattern("pat-error-a-001", category="other"),
        make_pattern("pat-error-mirrored-001", copy_folder="memory/patterns"),
    )
}
SNAPSHOT = Snapshot(patterns=PATTERNS, complete=True)
BOARD = Scoreboard.build(SNAPSHOT, NOW, SETTINGS)


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    found = ProjectPaths(tmp_path)
    found.patterns.mkdir(parents=True)
    return found


def write(paths: ProjectPaths, days: int = 0, snapshot: Snapshot = SNAPSHOT) -> tuple[str, ...]:
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    return write_derived(paths, SETTINGS, snapshot, board, NOW + timedelta(days=days))


def test_derived_files_are_created_and_stable(paths: ProjectPaths) -> None:
    assert write(paths) == ()
    metrics = json.loads(metrics_path(paths).read_text())
    assert list(metrics) == list(DOCUMENT)
    assert set(metrics["cross_loop_benefit"].values()) == {0}
    index = json.loads(index_path(paths).read_text())
    assert list(index) == ["version", "updated_at", "patterns"]
    assert [entry["pattern_id"] for entry in index["patterns"]] == ["pat-error-a-001", "pat-error-b-002"]
    assert index["patterns"][1] == {
        "pattern_id": "pat-error-b-002",
        "type": "error",
        "title": "half \ud800 \u202e",
        "category": "",
        "tags": ["sql"],
        "content_hash": "seen",
        "file": "x.json",
    }
    assert index_path(paths).read_text().count("\n    {") == 2, "a line each"
    before = [path.read_bytes() for path in (metrics_path(paths), index_path(paths))]
    assert write(paths, days=3) == ()
    assert [path.read_bytes() for path in (metrics_path(paths), index_path(paths))] == before


@pytest.mark.parametrize("wrapped", [False, True])
def test_only_changed_keys_are_written(paths: ProjectPaths, wrapped: bool) -> None:
    mine = {**DOCUMENT, "mine": [1, 2], "pattern_usage_stats": {"kept": 1.50, "total_applications": 4}}
    text = json.dumps({"effectiveness_metrics": mine, "other": {}} if wrapped else mine, indent=3)
    metrics_path(paths).write_text(text.replace("1.5", "1.50"))
    loops = {"a": Loop(id="a", status=LoopStatus.COMPLETED, iteration=5)}
    write(paths, snapshot=Snapshot(patterns=PATTERNS, loops=loops, complete=True))
    text = metrics_path(paths).read_text()
    assert "1.50" in text
    written = json.loads(text)
    written = written["effectiveness_metrics"] if wrapped else written
    assert list(written) == list(mine)
    assert written["mine"] == [1, 2]
    assert written["last_updated"] == "2026-02-03T00:00:00.000Z"
    assert written["pattern_usage_stats"] == {
        "kept": 1.5,
        "total_applications": 4,
        "successful_applications": 3,
        "failed_applications": 1,
        "overall_success_rate": 0.75,
    }
    assert written["cross_loop_benefit"] == {
        "loops_with_pattern_injection": 0,
        "loops_without_pattern_injection": 1,
        "average_iterations_without": 5.0,
        "completed_loops_with": 0,
        "completed_loops_without": 1,
        "failed_loops_with": 0,
        "failed_loops_without": 0,
    }


@pytest.mark.parametrize("content", [b"[1]", b"7", b"", b'{"a": ', b"\xff\xfe", b"[" * 100_000])
def test_a_file_with_other_content_is_not_changed(paths: ProjectPaths, content: bytes) -> None:
    metrics_path(paths).write_bytes(content)
    (warning,) = write(paths)
    assert str(metrics_path(paths)) in warning and warning.endswith("it was not changed")
    assert metrics_path(paths).read_bytes() == content
    assert read_recorded_metrics(paths) == {}


def test_a_link_out_of_the_project_is_not_followed(
    paths: ProjectPaths, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (paths.ralph / "memory").symlink_to(outside)
    (warning,) = write(paths)
    assert "is outside of" in warning
    assert list(outside.iterdir()) == []


def test_recorded_metrics_are_compared_with_the_evidence(paths: ProjectPaths) -> None:
    found = compute_effectiveness(SNAPSHOT, BOARD, NOW)
    write_metrics(paths, SETTINGS, SNAPSHOT, BOARD, NOW)
    assert compare_metrics(read_recorded_metrics(paths), found) == ()
    changed = {"total_patterns": True, "pattern_usage_stats": {"failed_applications": "few"}, "patterns_by_type": 3}
    metrics_path(paths).write_text(json.dumps({"effectiveness_metrics": changed}))
    assert [one[1:] for one in compare_metrics(read_recorded_metrics(paths), found)] == [
        ("total_patterns", True, 2),
        ("pattern_usage_stats.failed_applications", "few", 1),
    ]
