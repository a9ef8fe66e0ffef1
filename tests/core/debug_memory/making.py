"""Factories of debug sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix, Lesson, Results
from core.sources.debug_sessions import join_sessions, read_sessions
from core.storage.file_reader import decode

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EXAMPLE = Path(__file__).parents[2] / "trees/spec-examples/.aiwg/ralph/debug-memory/sessions/dm-001-example.json"
"""The example session."""
FILE = ".aiwg/ralph/debug-memory/sessions/{}.json"


def document_session() -> DebugSession:
    """The example session, parsed."""
    sessions, _ = read_sessions(FILE.format("dm-001-example"), decode("x.json", EXAMPLE.read_bytes()).value)
    return join_sessions(sessions)["dm-001-example"]


def run(
    error: str = "TypeError", file: str = "src/a.ts", *, fixed: bool | None = None, category: str = "", **more: Any
) -> Execution:
    """A run with one failed test; analysed if it has a category, with a fix unless `fixed` is None."""
    failure = Failure(error_type=error, message=more.pop("message", f"{error} here"), file=file, test_name="t")
    values: dict[str, Any] = {
        "results": Results(total=2, passed=1, failed=1),
        "failures": (failure,),
        "analysis": Analysis(root_cause="the cause of it", category=category) if category else None,
        "fix": Fix(description="Guard the access", verified=fixed) if fixed is not None else None,
    }
    return Execution(**(values | more))


def session(id: str, *runs: Execution, days: float = 0.0, status: str = "failed", **changes: Any) -> DebugSession:
    """A session that was updated `days` days before `NOW`."""
    values: dict[str, Any] = {
        "file_path": "src/a.ts",
        "status": status,
        "updated_at": NOW - timedelta(days=days),
        "executions": runs or (run(),),
        "file": FILE.format(id),
    }
    return DebugSession(id=id, **(values | changes))


def lesson(pattern: str = "p", category: str = "null_undefined_access", effectiveness: float | None = 1.0) -> Lesson:
    """A recorded lesson."""
    return Lesson(pattern=pattern, category=category, frequency=1, fix_template="Guard it", effectiveness=effectiveness)


def by_id(*sessions: DebugSession) -> dict[str, DebugSession]:
    """Sessions by ID, as in a snapshot."""
    return {session.id: session for session in sessions}


def full_session() -> dict[str, Any]:
    """A session as in a file, with every field; each text starts with a recognizable prefix."""
    failure = {
        "test_name": "told-test",
        "test_file": "told-test-file",
        "test_line": 41,
        "error_type": "told-error-type",
        "error_message": "told-message",
        "stack_trace": "told-trace-1\n  told-trace-2",
        "expected": "told-expected",
        "actual": {"is": "told-actual"},
        "source_location": {"file": "told-source", "line": 42, "function": "told-function"},
    }
    analysis = {
        "root_cause": "told-root-cause",
        "root_cause_category": "race_condition",
        "fix_strategy": "told-strategy",
        "confidence": 0.89,
        "related_failures": ["told-related"],
        "similar_past_issues": [{"session_id": "told-past", "file": "told-past-file", "resolution": "told-resolution"}],
    }
    fix = {
        "description": "told-fix",
        "diff_summary": "told-summary",
        "files_changed": ["told-changed-1", "told-changed-2"],
        "diff": "@@ told-hunk\n+told-added\n-told-removed",
        "verification": "passed",
    }
    results = {"total": 19, "passed": 11, "failed": 3, "errors": 4, "skipped": 1, "duration_ms": 1300}
    environment = {
        "runtime": "told-runtime",
        "runtime_version": "told-version",
        "test_framework": "told-framework",
        "os": "told-os",
        "additional": {"told-name": ["told-value"]},
    }
    execution = {
        "attempt": 7,
        "timestamp": "2026-11-21T10:00:00Z",
        "code_hash": "told-hash",
        "code_snapshot": "told-code-1\ntold-code-2",
        "environment": environment,
        "test_results": {**results, "coverage_percent": 62},
        "failures": [failure],
        "analysis": analysis,
        "fix_applied": fix,
    }
    learnings = {
        "patterns_identified": [
            {
                "pattern": "told-pattern",
                "category": "told_category",
                "frequency": 5,
                "fix_template": "told-template",
                "effectiveness": 0.81,
            }
        ],
        "recurring_failures": [
            {"test": "told-again", "occurrences": 6, "resolution": "wont_fix", "notes": "told-notes"}
        ],
        "code_quality_issues": [
            {"issue": "told-issue", "location": "told-location", "severity": "major", "addressed": False}
        ],
        "recommendations": ["told-recommendation"],
    }
    return {
        "session_id": "told-id",
        "file_path": "told-file",
        "created_at": "2026-11-21T09:00:00Z",
        "updated_at": "2026-11-21T11:00:00Z",
        "status": "failed",
        "executions": [execution],
        "learnings": learnings,
        "metadata": {"agent": "told-agent", "task_id": "told-task", "ralph_iteration": 9},
    }
