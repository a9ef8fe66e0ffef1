from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.cli.conftest import Call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three tasks, two of them about the same."""
    monkeypatch.setenv("RALPHDECK_PROJECT", str(tmp_path))
    for number, text in enumerate(("Fix the null crash of the login", "Null crash when login ends", "Bake bread"), 1):
        folder = tmp_path / f".aiwg/ralph/tasks/task-00{number}"
        folder.mkdir(parents=True)
        metadata = {"id": folder.name, "description": text, "status": "completed"}
        (folder / "metadata.json").write_text(json.dumps(metadata))
        learning = {"attempt_id": 1, "learning": f"learned\x1b[31m in {number}"}
        (folder / "reflections.jsonl").write_text(json.dumps(learning) + "\n")
    return tmp_path


def test_a_task_or_a_text_finds_similar_tasks_and_learnings(project: Path, call: Call) -> None:
    of_task = call("task", "list", "--similar", "task-001", "--json").document
    (found,) = of_task["similar"]
    assert (found["id"], found["outcome"], found["matched_by"]) == ("task-002", "success", "words")
    assert found["learnings"] == [{"attempt": 1, "text": "learned\x1b[31m in 2"}]
    of_text = call("task", "list", "--similar", "login null crash", "--json").document
    assert {one["id"] for one in of_text["similar"]} == {"task-001", "task-002"}
    for name in ("task-001.7", "task-001"):
        assert call("task", "list", "--similar", name, "--json").document == of_task
    several = call("task", "list", "--similar", "task-0")
    assert (several.code, several.out) == (1, "")
    assert "'task-0' is ambiguous (task-001, task-002, task-003); use a longer id" in several.err
    assert "no task has this id" in call("task", "list", "--similar", "task-9").err
    limited = call("task", "list", "--similar", "login null crash", "--limit", "1", "--json").document
    assert limited["similar"] == of_text["similar"][:1]


def test_it_reads_well_and_harmlessly(project: Path, call: Call) -> None:
    result = call("task", "list", "--similar", "task-001")
    assert "task-002  " in result.out and "by words  success  Null crash when login ends" in result.out
    assert "  - attempt 1: learned" in result.out and "\x1b" not in result.out
    nothing = call("task", "list", "--similar", "Sail to Norway")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no similar task\n")


def test_with_vectors_semantic_similarity_decides(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    assert "to compute vectors: ralphdeck doctor --embed" in call("task", "list", "--similar", "task-001").err
    made = call("doctor", "--embed", "--json").document
    assert (made["tasks_made"], made["tasks"]) == (3, 3)
    assert "vectors are up to date: 3 tasks" in call("doctor", "--embed").out
    document = call("task", "list", "--similar", "sign-in dies on a missing value", "--json").document
    assert document["similar"] and {one["matched_by"] for one in document["similar"]} == {"meaning"}
    assert "task-003" not in {one["id"] for one in document["similar"]}
