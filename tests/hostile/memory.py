"""Hostile records of the task memory and the debug memory: every text field contains a payload."""

from __future__ import annotations

from typing import Any, Final

from tests.hostile.sowing import Sower, loop_id, when

ACTION_TYPES: Final = ("read", "write", "bash", "grep", "glob", "task", "edit")
OVERLONG: Final = "A" * 66_000
"""Longer than what is stored of the result of an action, the longest text that is stored."""


def task_metadata(n: int) -> dict[str, Any]:
    """Contents of `metadata.json`."""
    s = Sower(n)
    return {
        "id": s("task "),
        "description": s("describes "),
        "completion_criteria": s("criteria "),
        "created": when(9),
        "updated": when(1),
        "status": ("running", "paused", "completed", "failed", s("status"))[n % 5],
        "current_attempt": 2,
        "total_attempts": 2,
        "tags": s.many("tag "),
        "related_tasks": s.many("related "),
        "agent": s("agent "),
        "loop_id": loop_id(n),
        s("unknown-key"): s("unknown value"),
    }


def trajectory(n: int) -> dict[str, Any]:
    """Contents of `trajectory.json`."""
    s = Sower(n)
    milestone = {"timestamp": when(2), "event": s("event "), "details": s("details ")}
    return {
        "task_id": s("task "),
        "attempts": [
            {
                "attempt_id": 1,
                "started": when(3),
                "ended": when(2),
                "outcome": "failure",
                "plan": s("plan "),
                "actions": 7,
                "iterations": 2,
                "milestones": [milestone],
            },
            {"attempt_id": 2, "started": when(1), "plan": s("second plan "), "outcome": s("outcome")},
        ],
        "milestones": [milestone, {**milestone, "event": s("late event ")}],
        "final_quality": 0.5,
        "completion_percent": 50,
    }


def attempt(n: int) -> dict[str, Any]:
    """Contents of `attempt.json`."""
    s = Sower(n)
    return {
        "id": 1,
        "task_id": s("task "),
        "started": when(3),
        "ended": when(2),
        "plan": {"approach": s("approach "), "steps": s.many("step "), "estimated_iterations": 3},
        "execution": {
            "agent": s("agent "),
            "iterations": 2,
            "actions_performed": 7,
            "quality_history": [
                {"iteration": 1, "quality": 0.25, "delta": 0},
                {"iteration": 2, "quality": 0.5, "delta": 0.25},
            ],
        },
        "outcome": outcome(n),
        "what_worked": s.many("worked "),
        "what_didnt_work": s.many("failed "),
        "suggestions_for_next_time": s.many("next "),
    }


def outcome(n: int) -> dict[str, Any]:
    """Contents of `outcome.json`."""
    s = Sower(n)
    return {
        "status": ("success", "failure", "timeout", s("outcome"))[n % 4],
        "reason": s("reason "),
        "final_quality": 0.5,
        "completion_percent": 50,
        "what_worked": s.many("worked "),
        "what_didnt_work": s.many("failed "),
        "suggestions_for_next_time": s.many("next "),
    }


def actions(n: int) -> list[dict[str, Any]]:
    """Lines of `actions.jsonl`: two actions; the records together use all types and an unknown one."""
    s = Sower(n)
    kinds = (*ACTION_TYPES, s("type "))
    return [
        {
            "timestamp": when(3 - 0.1 * at),
            "iteration": 1 + at,
            "type": kind,
            "tool": s("tool "),
            "params": {
                "file_path": s("src/"),
                "command": s("run "),
                "pattern": s("find "),
                "old_string": s("old "),
                "new_string": s("new "),
                "content": s("all "),
                s("param "): {"inner": s.many("deep ")},
            },
            "success": (n + at) % 3 != 0,
            "output": s("output ") + OVERLONG * (n == 0),
            "error": s("error "),
            "reasoning": s("because "),
            "expected_outcome": s("expected "),
        }
        for at, kind in enumerate((kinds[n % len(kinds)], kinds[(n + 3) % len(kinds)]))
    ]


def debug_session(n: int) -> dict[str, Any]:
    """A debug session with all fields."""
    s = Sower(n)
    return {
        "session_id": f"dm-{n}-{s()}",
        "file_path": s("src/"),
        "created_at": when(3),
        "updated_at": when(0.5),
        "status": ("escalated", "failed", "in_progress", "passed", s("status"))[n % 5],
        "executions": [_execution(s)],
        "learnings": {
            "patterns_identified": [
                {
                    "pattern": s("pattern "),
                    "category": s("category "),
                    "frequency": 3,
                    "fix_template": s("template "),
                    "effectiveness": 0.9,
                }
            ],
            "recurring_failures": [
                {"test": s("test "), "occurrences": 3, "resolution": s("resolution "), "notes": s("notes ")}
            ],
            "code_quality_issues": [
                {"issue": s("issue "), "location": s("location "), "severity": s("severity "), "addressed": False}
            ],
            "recommendations": s.many("recommends "),
        },
        "metadata": {"agent": s("agent "), "task_id": s("task "), "ralph_iteration": 2},
        s("unknown-key"): s("unknown value"),
    }


def _execution(s: Sower) -> dict[str, Any]:
    return {
        "attempt": 1,
        "timestamp": when(2),
        "code_hash": s("hash "),
        "code_snapshot": s("code "),
        "environment": {"runtime": s("runtime "), "os": s("os "), "additional": {s("name "): s("value ")}},
        "test_results": {
            "total": 10,
            "passed": 8,
            "failed": 2,
            "errors": 1,
            "skipped": 1,
            "duration_ms": 1500,
            "coverage_percent": 75,
        },
        "failures": [
            {
                "test_name": s("test "),
                "test_file": s("test/"),
                "test_line": 42,
                "error_type": s("Type"),
                "error_message": s("message "),
                "stack_trace": s("stack "),
                "expected": s("expected "),
                "actual": s("actual "),
                "source_location": {"file": s("src/"), "line": 15, "function": s("function ")},
            }
        ],
        "analysis": {
            "root_cause": s("a root cause that is told in twenty characters "),
            "root_cause_category": s("category "),
            "fix_strategy": s("a strategy that is told in twenty characters "),
            "confidence": 0.9,
            "related_failures": s.many("related "),
            "similar_past_issues": [{"session_id": s("dm-"), "file": s("src/"), "resolution": s("resolved ")}],
        },
        "fix_applied": {
            "description": s("fix "),
            "diff_summary": s("+1/-1 "),
            "files_changed": s.many("src/"),
            "diff": s("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new "),
            "verification": "passed",
        },
    }
