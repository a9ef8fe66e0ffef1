"""Extraction from the example loop and the example debug session."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.base.paths import ProjectPaths
from core.base.settings import ExtractionSettings, Settings
from core.index.findings import all_findings
from core.index.refresh import Index
from core.index.texts import Texts
from core.project.project import Project
from core.questions.extraction.engine import KnownPatterns, extract
from core.questions.extraction.material import Materials
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot
from tests.factories import DEBUG_NOW, EXAMPLE_SESSION_FILE

LOOP = "ralph-fix-auth-a1b2c3d4"
OWNER = "software-implementer"
DIFF = """\
+ if (user == null) {
+   throw new ValidationError("User is required");
+ }
"""
TEMPLATE = """\
if ({{variable}} == null) {
  throw new ValidationError("{{message}}");
}
"""
ERROR_PATTERN = {
    "type": "error_pattern",
    "error_signature": {
        "error_type": "TypeError",
        "error_pattern": "Cannot read property '.*' of null",
        "error_location_hints": ["*.ts:validate*"],
    },
    "fix_approach": {
        "description": "Add null check before property access",
        "fix_category": "add_null_check",
        "code_template": TEMPLATE,
        "code_template_language": "typescript",
    },
    "source_loops": [{"loop_id": LOOP, "timestamp": "2026-02-02T15:00:00Z", "contributed_by": OWNER}],
    "success_rate": 1.0,
    "usage_count": 1,
    "first_discovered": "2026-02-02T15:00:00Z",
    "last_used": "2026-02-02T15:00:00Z",
    "tags": ["typescript", "null-safety", "validation"],
}
ITERATION_2 = {
    "error": {
        "type": "TypeError",
        "message": "Cannot read property 'email' of null",
        "location": "src/auth/validate.ts:42",
    }
}
ITERATION_3 = {
    "timestamp": "2026-02-02T15:00:00Z",
    "fix_applied": {"description": "Added null check for user object", "diff": DIFF},
    "test_results": {"passed": 12, "failed": 0},
}


def test_the_example_loop_gives_its_patterns(tmp_path: Path) -> None:
    write(tmp_path, "state.json", {"loopId": LOOP, "task": "Fix auth", "status": "completed", "owner": OWNER})
    write(tmp_path, "iterations/iteration-1.json", {"action": "Ran the tests", "result": "no network"})
    write(tmp_path, "iterations/iteration-2.json", ITERATION_2)
    write(tmp_path, "iterations/iteration-3.json", ITERATION_3)
    paths = ProjectPaths(tmp_path)
    snapshot = Index(paths, Settings(), clock=lambda: datetime(2026, 2, 3, tzinfo=UTC), is_kept=False).load()
    known = KnownPatterns.of(snapshot, Texts(Snapshot(patterns={})).similarity)
    extraction = extract(Materials(paths, snapshot).read(LOOP), known, ExtractionSettings())
    errors = [proposal for proposal in extraction.proposals if proposal.type is PatternType.ERROR]
    assert [(proposal.slug, proposal.record) for proposal in errors] == [("null-check", ERROR_PATTERN)]
    assert list(errors[0].record) == list(ERROR_PATTERN)
    assert errors[0].trace == ("iteration 2 → 3",)
    assert [proposal.type for proposal in extraction.new] == [PatternType.ERROR], "the template is a field of it"
    (template,) = extract(
        Materials(paths, snapshot).read(LOOP), known, ExtractionSettings(), {PatternType.TEMPLATE}
    ).new
    assert template.record["template_code"] == TEMPLATE
    assert set(template.record["placeholders"]) == {"variable", "message"}
    assert template.record["source_loops"] == [LOOP]


def write(project: Path, name: str, content: Any) -> None:
    file = project / ".aiwg/ralph/loops" / LOOP / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


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
        "error_pattern": r"Cannot read property 'length' of null\b",
        "error_message": "TypeError: Cannot read property 'length' of null",
        "error_location_hints": ["*.ts:validateInput"],
    }
    assert record["fix_approach"]["fix_category"] == "add_null_check"
    assert record["fix_approach"]["description"] == (
        "validateInput() accesses input.length without null check. Added early return for null/undefined input."
    )
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
