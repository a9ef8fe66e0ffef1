"""Archived patterns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.base.paths import ProjectPaths
from core.sources.patterns import ArchivedPattern, read_archives


def archive(project: Path, name: str, *records: dict[str, Any]) -> Path:
    folder = ProjectPaths(project).archive
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"version": "1.0.0", "pattern_registry": {"error_patterns": records}}))
    return path


def read(project: Path) -> tuple[ArchivedPattern, ...]:
    return read_archives(ProjectPaths(project))[0]


def test_archives_contain_time_reason_and_user(tmp_path: Path) -> None:
    note = {"at": "2026-01-02T00:00:00Z", "reason": "unused", "by": "ada", "decision": "d1", "from": "errors.json"}
    archive(tmp_path, "2026-01-patterns.json", {"pattern_id": "pat-error-a-001", "archived": note})
    older = {"pattern_id": "pat-error-b-001", "archived_at": "2025-12-01", "archived_reason": "old"}
    archive(tmp_path, "2025-12-patterns.json", older)
    one, two = read(tmp_path)
    assert (one.pattern.id, one.reason, one.by, one.source) == ("pat-error-a-001", "unused", "ada", "errors.json")
    assert one.at == datetime(2026, 1, 2, tzinfo=UTC)
    assert one.file == ".aiwg/ralph/shared/archive/2026-01-patterns.json"
    assert (two.pattern.id, two.reason, two.by) == ("pat-error-b-001", "old", "")


def test_hostile_archives_are_read_safely(tmp_path: Path) -> None:
    assert read_archives(ProjectPaths(tmp_path)) == ((), ())
    record = {"pattern_id": "pat-error-a-001", "archived": ["soon", float("nan")]}
    path = archive(tmp_path, "2026-01-patterns.json", record, {"archived": {}})
    path.with_name("2026-02-patterns.json").write_text("{" * 100_000)
    path.with_name("2026-03-patterns.json").symlink_to("/etc/passwd")
    path.with_name("2026-04-patterns.json").write_text("")
    found, findings = read_archives(ProjectPaths(tmp_path))
    assert [(item.pattern.id, item.at, item.reason) for item in found] == [("pat-error-a-001", None, "")]
    assert {finding.file.rpartition("/")[2] for finding in findings} == {
        f"2026-{month}-patterns.json" for month in ("01", "02", "03", "04")
    }
