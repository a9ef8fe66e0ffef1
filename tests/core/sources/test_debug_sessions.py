"""Reading debug sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.file_reader import Line, decode_yaml
from core.index.refresh import Index
from core.records.debug_sessions import DebugSession, Escalation, Failure, Fix, Results
from core.records.findings import Finding
from core.records.patterns import UNNAMED
from core.sources.debug_sessions import (
    find_record,
    join_escalations,
    join_sessions,
    read_escalation,
    read_sessions,
    split_location,
)
from core.sources.record_kinds import DEBUG_SESSIONS, ESCALATION, kind_of, scan_path

PATH = ".aiwg/ralph/shared/curation/escalations/s.json"
AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
SAVED = {"session_id": "s", "preserved_at": "2026-11-22T12:00:00Z", "by": "ada", "reason": "why", "session": {}}
FILE = ".aiwg/ralph/debug-memory/sessions/session-1.yaml"

EXAMPLE = b"""
session_id: "dm-001-example"
file_path: "src/auth/validate.ts"
status: passed
executions:
  - attempt: 1
    timestamp: "2026-01-25T15:00:00Z"
    code_hash: "abc123"
    environment: {runtime: node, runtime_version: "20.11.0", additional: {shard: 2}}
    test_results: {total: 10, passed: 8, failed: 2, errors: 0, duration_ms: 1500, coverage_percent: 75}
    failures:
      - test_name: "should reject null input"
        test_file: "test/auth/validate.test.ts"
        test_line: 42
        error_type: TypeError
        error_message: "Cannot read property 'length' of null"
        source_location: {file: "src/auth/validate.ts", line: 15, function: "validateInput"}
    analysis:
      root_cause: "validateInput() accesses input.length without null check"
      root_cause_category: null_undefined_access
      fix_strategy: "Add null/undefined check at function entry"
      confidence: 0.95
    fix_applied:
      description: "Added early return for null/undefined input"
      diff_summary: "+3/-0 lines"
      verification: passed
  - attempt: 2
    timestamp: "2026-01-25T15:01:30Z"
    test_results: {total: 10, passed: 10, failed: 0}
learnings:
  patterns_identified:
    - {pattern: null_access_without_check, category: null_undefined_access, frequency: 1, effectiveness: 1.0}
  recommendations: ["Consider using TypeScript strict null checks"]
metadata: {agent: debugger, task_id: ralph-a, ralph_iteration: 2}
"""


def read(value: Any, file: str = FILE) -> tuple[dict[str, DebugSession], tuple[Finding, ...]]:
    sessions, findings = read_sessions(file, value)
    return join_sessions(sessions), findings


def test_the_documented_example_is_read() -> None:
    sessions, findings = read(decode_yaml(EXAMPLE).value)
    assert findings == ()
    session = sessions["dm-001-example"]
    assert (session.status, session.loop_id, session.agent, session.iteration) == ("passed", "ralph-a", "debugger", 2)
    first, second = session.executions
    assert first.results == Results(total=10, passed=8, failed=2, errors=0, duration_ms=1500, coverage=0.75)
    assert (first.results.green, second.results and second.results.green) == (False, True)
    assert first.failures == (
        Failure(
            error_type="TypeError",
            message="Cannot read property 'length' of null",
            file="src/auth/validate.ts",
            line=15,
            function="validateInput",
            test_name="should reject null input",
            test_file="test/auth/validate.test.ts",
            test_line=42,
        ),
    )
    fix = Fix(description="Added early return for null/undefined input", diff_summary="+3/-0 lines", verified=True)
    assert first.fix == fix
    assert first.environment == (("runtime", "node"), ("runtime_version", "20.11.0"), ("shard", "2"))
    assert first.analysis and first.analysis.category == "null_undefined_access"
    assert session.lessons[0].effectiveness == 1.0


def test_paths_of_debug_sessions() -> None:
    rows: list[tuple[str, bool]] = [
        (".aiwg/ralph/debug-memory/x.json", True),
        (".aiwg/ralph/loops/ralph-a/debug-memory/sessions/1.jsonl", True),
        (".aiwg/ralph-external/debug-memory/2026/1.yml", True),
        (".aiwg/ralph/archive/ralph-a/debug-memory/1.yml", True),
        (".aiwg/ralph/debug-memory/archive/2026-11/sessions/1.json", False),
        (".aiwg/ralph/debug-memory/archive/2026-11/debug-memory/1.json", False),
        (".aiwg/ralph/debug-memory/patterns/learned-patterns.yaml", False),
        (".aiwg/ralph/debug-memory/readme.md", False),
    ]
    for name, expected in rows:
        assert DEBUG_SESSIONS.matches(name) is expected, name
        assert (kind_of(name) is DEBUG_SESSIONS) is expected, name


def test_the_newest_copy_of_a_session_counts_and_of_equally_new_ones_the_longer() -> None:
    times = ("2026-11-02T10:00:00Z", "2026-11-03T10:00:00Z", None)
    value: list[Any] = [{"session_id": "s", "updated_at": at, "file_path": str(at)} for at in times]
    assert read(value)[0]["s"].file_path == times[1]
    value = [{"session_id": "s", "created_at": times[0], "executions": [{}] * runs} for runs in (1, 2, 0)]
    assert len(read(value)[0]["s"].executions) == 2
    named = {"session_id": "s", "metadata": {"task_id": "other"}}
    sessions, _ = read(named, ".aiwg/ralph/archive/ralph-b/debug-memory/s.json")
    assert (sessions["s"].loop_id, sessions["s"].task_id) == ("ralph-b", "other"), "the folder of the loop wins"


def ran(id: str) -> dict[str, Any]:
    return {"session_id": id, "executions": []}


def test_several_sessions_of_one_file() -> None:
    rows: list[tuple[Any, list[str]]] = [
        ([ran("a"), ran("b")], ["/0", "/1"]),
        ({"version": 1, "sessions": [ran("a"), ran("b")]}, ["/sessions/0", "/sessions/1"]),
        ({"a/1": ran("a"), "b": ran("b")}, ["/a~11", "/b"]),
        ([Line(1, ran("a")), Line(3, {"sessions": [ran("b")]})], ["line 1", "line 3/sessions/0"]),
        ([[ran("a")], [ran("b")]], ["/0/0", "/1/0"]),
        ({"a": ran("a"), "index": [{"session_id": "b", "status": "passed"}]}, ["/a"]),
        ({"w": {"x": {"y": {"z": ran("a")}}}}, []),
    ]
    for value, expected in rows:
        sessions, _ = read_sessions(FILE, value)
        assert [session.pointer for session in sessions] == expected, value
        assert [session.id for session in sessions] == ["a", "b"][: len(expected)], value
        found = find_record(FILE, value, "a")
        assert (found is not None and found[1] == ran("a")) is bool(expected), value


def test_expected_actual_and_environment_may_have_any_type() -> None:
    failures = [{"expected": {"a": [1]}, "actual": False}, {"test_name": "t"}, {"stack_trace": "boom"}, {}]
    environment = {"runtime": "node", "additional": {"ci": True, "shards": [1, 2], "none": None}}
    sessions, findings = read({**ran("s"), "executions": [{"failures": failures, "environment": environment}]})
    (run,) = sessions["s"].executions
    assert (run.failures[0].expected, run.failures[0].actual) == ('{"a":[1]}', "false")
    assert [failure.test_name or failure.stack_trace for failure in run.failures[1:]] == ["t", "boom"]
    assert run.environment == (("runtime", "node"), ("ci", "true"), ("shards", "[1,2]"))
    assert findings == ()


def test_an_invalid_field_does_not_affect_others() -> None:
    value = {
        "session_id": "s",
        "status": "exploded",
        "executions": [7, {"failures": [{}, {"error_type": "X"}], "fix_applied": "by hand", "test_results": []}],
        "learnings": "none",
    }
    sessions, findings = read([value, {"session_id": " "}, {"patterns_identified": []}, "text"])
    execution = sessions["s"].executions[0]
    assert (sessions["s"].status, execution.failures, execution.fix) == (
        "",
        (Failure(error_type="X"),),
        Fix(description="by hand"),
    )
    assert [finding.pointer for finding in findings] == [
        "/0/learnings",
        "/0/executions/0",
        "/0/executions/1/test_results",
        "/1",
    ]
    assert sorted(sessions) == ["s", next(id for id in sessions if id.startswith(UNNAMED))]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("src/auth/validate.ts:42", ("src/auth/validate.ts", 42)),
        ("a.ts:42:7", ("a.ts", 42)),
        ("C:\\app\\a.ts:7", ("C:\\app\\a.ts", 7)),
        ("a.ts", ("a.ts", None)),
        ("a.ts:x", ("a.ts", None)),
    ],
)
def test_locations_are_split_into_file_and_line(location: str, expected: tuple[str, int | None]) -> None:
    assert split_location(location) == expected


def test_the_index_follows_changed_sessions(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    index = Index(paths, Settings(), clock=lambda: datetime(2026, 11, 22, tzinfo=UTC), is_kept=False)
    file = tmp_path / FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(EXAMPLE)
    assert set(index.load().debug_sessions) == {"dm-001-example"}
    file.write_bytes(EXAMPLE.replace(b"status: passed", b"status: failed"))
    snapshot, delta = index.refresh([file])
    assert delta.debug_sessions == {"dm-001-example"}
    assert snapshot.debug_sessions["dm-001-example"].status == "failed"
    file.unlink()
    assert index.refresh([file])[0].debug_sessions == {}


def test_a_saved_context_is_an_escalation_and_the_newest_lists_earlier_ones() -> None:
    one = Escalation(session_id="s", at=AT, by="ada", reason="why", file=PATH)
    assert read_escalation(PATH, SAVED) == ((one,), ())
    odd: list[dict[str, Any]] = [{"session_id": " "}, {"preserved_at": "soon"}, {"session_id": []}]
    rows: list[Any] = [None, [], "x", {}, *(SAVED | fields for fields in odd)]
    for value in rows:
        calls, findings = read_escalation(PATH, value)
        assert calls == () and findings and {finding.file for finding in findings} == {PATH}, value
    ((call,), _) = read_escalation(PATH, SAVED | {"reason": "x" * 10**6, "by": {"a": 1}})
    assert (len(call.reason), call.by) == (16_384, "")
    calls = tuple(Escalation(session_id="s", at=AT.replace(hour=hour), file=f"{hour}") for hour in (3, 1, 2))
    (joined,) = join_escalations(calls).values()
    assert (joined.file, [one.file for one in joined.earlier]) == ("3", ["1", "2"])


def test_only_regular_files_in_the_folder_are_escalations(tmp_path: Path) -> None:
    assert kind_of(PATH) is ESCALATION
    assert kind_of(PATH.replace("s.json", "s.txt")) is kind_of(PATH.replace("s.json", "a/s.json")) is None
    folder = (tmp_path / PATH).parent
    folder.mkdir(parents=True)
    (tmp_path / "outside.json").write_text("{}")
    (folder / "s.json").symlink_to(tmp_path / "outside.json")
    assert scan_path(ProjectPaths(tmp_path), PATH) == {}
