"""Reflections of the cross-task memory in JSON, JSON lines and YAML."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.reflections import Reflection

EPISODIC = {
    "timestamp": "2026-11-20T10:00:00Z",
    "attempt_id": 2,
    "observation": "Three type errors",
    "analysis": "The interface was not updated",
    "learning": "Update the interface first",
    "action_items": ["update AuthConfig"],
    "triggered_by": "failure",
    "reflection_type": "error-analysis",
}
MANAGED = {"iteration": 4, "content": "Mock the clock", "type": "strategy_change", "timestamp": "2026-11-20T11:00:00Z"}
YAML = b"""
- content: Pin the seed
  iteration: 3
  timestamp: "2026-11-20T12:00:00Z"
- content: Use a fixed clock
"""


def read(folder: Path, name: str, data: bytes) -> list[Reflection]:
    file = folder / ".aiwg/ralph/memory/reflections" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    index = Index(ProjectPaths(folder), Settings(), clock=lambda: datetime.now(UTC), is_kept=False)
    snapshot = index.load()
    assert snapshot.findings == ()
    return sorted(snapshot.reflections.values(), key=lambda one: one.learning)


@pytest.mark.parametrize("folder", ["", "ralph-a/", "2026/ralph-a/"])
def test_json_lines_in_any_folder(tmp_path: Path, folder: str) -> None:
    data = b"".join(json.dumps(one).encode() + b"\n" for one in (EPISODIC, MANAGED))
    managed, episodic = read(tmp_path, f"{folder}learned-7.jsonl", data)
    assert (managed.learning, managed.iteration, managed.pointer) == ("Mock the clock", 4, "line 2")
    assert (episodic.learning, episodic.attempt, episodic.trigger) == ("Update the interface first", 2, "failure")
    assert managed.loop_id == folder.rstrip("/").rpartition("/")[2]


@pytest.mark.parametrize("name", ["learned.yaml", "learned.yml", "deep/er/learned.yaml"])
def test_yaml_is_read(tmp_path: Path, name: str) -> None:
    pinned, fixed = read(tmp_path, name, YAML)
    assert (pinned.learning, pinned.iteration) == ("Pin the seed", 3)
    assert fixed.at_approximate


def test_a_list_an_object_with_reflections_and_a_single_one(tmp_path: Path) -> None:
    assert len(read(tmp_path / "a", "x.json", json.dumps([EPISODIC, MANAGED]).encode())) == 2
    assert len(read(tmp_path / "b", "x.json", json.dumps({"reflections": [EPISODIC, "Ask first"]}).encode())) == 2
    (one,) = read(tmp_path / "c", "sub/reflection-5.json", json.dumps({"content": "Ask first"}).encode())
    assert (one.learning, one.iteration, one.loop_id) == ("Ask first", 5, "sub")


def test_an_invalid_reflection_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / ".aiwg/ralph/memory/reflections/x.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps([7, MANAGED]))
    index = Index(ProjectPaths(tmp_path), Settings(), clock=lambda: datetime.now(UTC), is_kept=False)
    snapshot = index.load()
    assert len(snapshot.reflections) == 1
    assert [(one.code, one.pointer) for one in snapshot.findings] == [("wrong-type", "/0")]
