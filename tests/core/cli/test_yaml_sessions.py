"""Debug sessions in YAML: escalated with the types that the file has, and updated like those in JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests.core.cli.conftest import Call

SESSION = """\
session_id: 0b3f1c5e-8f2d-4a5e-9c7b-2f1d3e4a5b6c  # one of two
file_path: src/a.ts
status: {status}
executions:
  - attempt: 1
    timestamp: 2026-11-20T10:00:00Z
    code_hash: "001"
    environment: {{runtime: node, additional: {{shard: 2, cached: true, ratio: 0.5, label: "2"}}}}
    test_results: {{total: 2, passed: 1, failed: 1}}
    failures:
      - {{test_name: t, error_type: TypeError, error_message: of null, test_line: 42}}
    analysis:
      root_cause: The user is null before the session is restored
      root_cause_category: null_undefined_access
      fix_strategy: Check the user before its properties are read
      confidence: 0.9
    fix_applied: {{description: Added a check for null, verification: passed}}
  - attempt: 2
    timestamp: 2026-11-20T10:05:00Z
    code_hash: abc
    test_results: {{total: 2, passed: 2, failed: 0}}
learnings:
  recommendations:
    - Use strict checks
"""
ID = "0b3f1c5e-8f2d-4a5e-9c7b-2f1d3e4a5b6c"


def put(project: Path, status: str) -> Path:
    file = project / ".aiwg/ralph/debug-memory/sessions/session-1.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(SESSION.format(status=status))
    return file


def test_an_escalated_session_keeps_its_types(tmp_path: Path, call: Call) -> None:
    put(tmp_path, "in_progress")
    assert call("debug", "record", ID, "--escalate", "--project", tmp_path).code == 0
    (kept,) = (tmp_path / ".aiwg/ralph/shared/curation/escalations").glob("*.json")
    run = json.loads(kept.read_text())["session"]["executions"][0]
    assert run["attempt"] == 1
    assert run["test_results"] == {"total": 2, "passed": 1, "failed": 1}
    assert run["analysis"]["confidence"] == 0.9
    assert run["code_hash"] == "001"
    assert run["environment"]["additional"] == {"shard": 2, "cached": True, "ratio": 0.5, "label": "2"}
    assert run["failures"][0]["test_line"] == 42


def test_success_updates_the_learnings_of_a_yaml_session(tmp_path: Path, call: Call) -> None:
    file = put(tmp_path, "passed")
    before = file.read_text()
    assert call("debug", "record", ID, "--success", "--project", tmp_path).code == 0
    after = file.read_text()
    assert after.startswith(before)
    assert "patterns_identified:" in after.removeprefix(before)
    shown = call("debug", "show", ID, "--json", "--project", tmp_path).document
    assert "null_undefined_access" in json.dumps(shown)
    assert call("debug", "record", ID, "--success", "--project", tmp_path).code == 0
    assert file.read_text() == after


def test_a_valid_yaml_session_has_no_findings(tmp_path: Path, call: Call) -> None:
    put(tmp_path, "passed")
    assert call("doctor", "--json", "--project", tmp_path).document["findings"] == []
