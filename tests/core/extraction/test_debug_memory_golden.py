"""Extraction from the example debug session, and its learned patterns file."""

from __future__ import annotations

import shutil
from pathlib import Path

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.project.project import Project
from core.state.findings import all_findings
from tests.factories import DEBUG_NOW, EXAMPLE_SESSION_FILE

TREE = EXAMPLE_SESSION_FILE.parents[4]


def open_example(project: Path) -> Project:
    opened = Project(ProjectPaths(project), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False)
    opened.load()
    return opened


def test_a_session_alone_gives_its_error_pattern(tmp_path: Path) -> None:
    folder = tmp_path / ".aiwg/ralph/debug-memory/sessions"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLE_SESSION_FILE, folder)
    (proposal,) = open_example(tmp_path).extraction("dm-001-example").proposals
    assert proposal.refused == ""
    record = proposal.record
    assert record["error_signature"] == {
        "error_type": "TypeError",
        "error_pattern": "Cannot read property '.*' of null",
        "error_location_hints": ["*.ts:validateInput"],
    }
    assert record["fix_approach"]["fix_category"] == "add_null_check"
    assert record["fix_approach"]["description"] == "Added early return for null/undefined input"
    assert (record["success_rate"], record["usage_count"]) == (1.0, 1)
    assert record["source_loops"][0]["loop_id"] == "dm-001-example"


def test_a_learned_patterns_file_is_not_a_session(tmp_path: Path) -> None:
    folder = tmp_path / ".aiwg/ralph/debug-memory/patterns"
    folder.mkdir(parents=True)
    (folder / "learned-patterns.yaml").write_text(
        "patterns:\n- {pattern_id: dm-p-001, error_type: TypeError, error_pattern: of null, fix_template: guard it,"
        " occurrences: 3, success_rate: 0.9, last_seen: 2026-01-25}\n"
    )
    snapshot = open_example(tmp_path).view.snapshot
    assert snapshot.patterns["dm-p-001"].copy_folder
    assert not snapshot.debug_sessions
    shutil.copytree(TREE, tmp_path / "p", symlinks=True)
    about = [found for found in all_findings(open_example(tmp_path / "p").view) if "learned-patterns" in found.file]
    assert about == []  # a list of lessons is another shape, and nothing wrong
