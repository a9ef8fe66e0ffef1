"""Decomposition strategies from the command line: reported, counted, inverted, injected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.records.patterns import DECOMPOSITION_TAG
from tests.core.cli.conftest import Call

BY_TYPE = "pat-success-strategy-split-by-file-type-001"
BY_FEATURE = "pat-success-strategy-split-by-feature-001"


def strategies(call: Call) -> dict[str, dict[str, Any]]:
    listed = call("pattern", "list", "--tag", DECOMPOSITION_TAG, "--json").document
    return {pattern["id"]: pattern for pattern in listed["patterns"]}


def report(call: Call, work: str, result: str, strategy: str) -> dict[str, Any]:
    document: dict[str, Any] = call(
        "loop", "record", work, "--outcome", result, "--strategy", strategy, "--json"
    ).document
    return document


def test_a_reported_strategy_becomes_a_pattern_with_counts(examples: Path, call: Call) -> None:
    text = "We'll split by file type, one file per subtask"
    assert report(call, "bd-1", "--failure", text)["strategies"] == ["Split by file type", "One file per subtask"]
    report(call, "bd-1", "--failure", text)  # the same use again
    report(call, "bd-2", "--success", "splitting by file type")
    found = strategies(call)[BY_TYPE]
    assert (found["successes"], found["failures"], found["usage_count"]) == (1, 1, 2)
    assert found["title"] == "Split by file type"
    record = json.loads((examples / ".aiwg/ralph/shared/patterns/success-patterns.json").read_text())
    stored = next(one for one in record["pattern_registry"]["success_patterns"] if one["pattern_id"] == BY_TYPE)
    assert (stored["usage_count"], stored["successful_applications"]) == (2, 1)
    assert [loop["loop_id"] for loop in stored["source_loops"]] == ["bd-1", "bd-2"]


def test_a_failing_strategy_is_inverted_and_warns_a_decomposition(examples: Path, call: Call) -> None:
    for number in range(3):
        report(call, f"bd-{number}", "--failure", "Split by file type")
        report(call, f"bd-1{number}", "--success", "Split by feature")
    (proposal,) = call("pattern", "invert", "--json").document["proposals"]
    assert proposal["text"] == "AVOID: Split by file type. Failed 3/3 times (100% failure rate)"
    questions = call("review", "--json").document["questions"]
    assert BY_TYPE in {question["subject"] for question in questions if question["kind"] == "inversion"}
    assert call("pattern", "invert", BY_TYPE, "--accept").code == 0
    shown = call("loop", "inject", "--task", "Plan the subtasks of the release").out
    assert "\n- AVOID: Split by file type. Failed 3/3 times (100% failure rate)\n" in shown
    assert "\n- Split by feature (3 of 3 times, 100%)\n" in shown
    asked = ("loop", "inject", "--task", "Fix the null user")
    assert "AVOID" not in call(*asked).out
    assert "AVOID: Split by file type" in call(*asked, "--decomposition").out


def test_strategies_in_plans_are_learned_once(examples: Path, call: Call) -> None:
    first = call("loop", "extract", "task-001", "--json").document["extractions"][0]
    assert first["strategies"] == {
        "task-001.2": ["Handle shared types first"],
        "task-001.3": ["Handle shared types first"],
    }
    counted = strategies(call)["pat-success-strategy-handle-shared-types-first-001"]
    assert counted["applied"] == 1, "a task has one vote, however many attempts"
    call("loop", "extract", "--all")
    assert strategies(call)["pat-success-strategy-handle-shared-types-first-001"] == counted


def test_a_reworded_strategy_needs_approval(examples: Path, call: Call) -> None:
    report(call, "bd-1", "--success", "Two agents take turns")
    assert "pat-success-strategy-two-agents-take-turns-001" in strategies(call)
    questions = call("review", "--json").document["questions"]
    assert ("extracted", "pat-success-strategy-two-agents-take-turns-001") in {
        (question["kind"], question["subject"]) for question in questions
    }
    report(call, "bd-2", "--success", "x" * 500)
    assert len(strategies(call)) == 1
