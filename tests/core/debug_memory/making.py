"""Small makers of debug sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix, Lesson, Results
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.reading import decode

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EXAMPLE = Path(__file__).parents[2] / "trees/spec-examples/.aiwg/ralph/debug-memory/sessions/dm-001-example.json"
"""The session of the document (4)."""
FILE = ".aiwg/ralph/debug-memory/sessions/{}.json"


def document_session() -> DebugSession:
    """The document's example, as it is read."""
    sessions, _ = read_sessions(FILE.format("dm-001-example"), decode("x.json", EXAMPLE.read_bytes()).value)
    return join_sessions(sessions)["dm-001-example"]


def run(
    error: str = "TypeError", file: str = "src/a.ts", *, fixed: bool | None = None, category: str = "", **more: Any
) -> Execution:
    """A run in which one test failed, analysed if there is a category, fixed unless `fixed` is None."""
    failure = Failure(error_type=error, message=more.pop("message", f"{error} here"), file=file, test_name="t")
    values: dict[str, Any] = {
        "results": Results(total=2, passed=1, failed=1),
        "failures": (failure,),
        "analysis": Analysis(root_cause="the cause of it", category=category) if category else None,
        "fix": Fix(description="Guard the access", verified=fixed) if fixed is not None else None,
    }
    return Execution(**(values | more))


def session(id: str, *runs: Execution, days: float = 0.0, status: str = "failed", **changes: Any) -> DebugSession:
    """A session that was updated so many days before `NOW`."""
    values: dict[str, Any] = {
        "file_path": "src/a.ts",
        "status": status,
        "updated_at": NOW - timedelta(days=days),
        "executions": runs or (run(),),
        "file": FILE.format(id),
    }
    return DebugSession(id=id, **(values | changes))


def lesson(pattern: str = "p", category: str = "null_undefined_access", effectiveness: float | None = 1.0) -> Lesson:
    """What a session says it learned."""
    return Lesson(pattern=pattern, category=category, frequency=1, fix_template="Guard it", effectiveness=effectiveness)


def by_id(*sessions: DebugSession) -> dict[str, DebugSession]:
    """As a snapshot has them."""
    return {session.id: session for session in sessions}
