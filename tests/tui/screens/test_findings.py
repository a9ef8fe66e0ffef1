"""The list of file problems."""

from __future__ import annotations

from pathlib import Path

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.project.project import Project
from tests.factories import DEBUG_NOW
from tui.screens.notices import findings_lines


def test_a_note_on_other_records_follows_only_problems(tmp_path: Path) -> None:
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False)
    assert [line.plain for line in findings_lines(project.load())] == ["No file problems."]
    (tmp_path / ".aiwg/ralph/loops/ralph-a").mkdir(parents=True)
    lines = [line.plain for line in findings_lines(project.load())]
    assert lines[0].startswith("warning .aiwg/ralph/loops/ralph-a")
    assert lines[-1] == "Other records are not affected, and ralphdeck never overwrites an invalid file."
