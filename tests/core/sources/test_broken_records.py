"""A record with an invalid field stays visible and gives a finding with its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.file_reader import RawFile, Stamp
from core.records.findings import Finding, Severity
from core.sources.parsed_file import ParsedFile, parse_file
from core.sources.record_kinds import kind_of

AT = "2026-11-20T10:00:00Z"
PATTERNS = ".aiwg/ralph/shared/patterns/error-patterns.json"
TASK = ".aiwg/ralph/tasks/task-001"
LOOPS = [{"loop_id": "ralph-a", "timestamp": AT}]
COMMON = {"last_used": AT, "first_discovered": AT, "tags": ["a"], "related_patterns": ["x"], "aliases": ["y"]}

RECORDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "error pattern": (
        PATTERNS,
        "patterns",
        {
            "pattern_id": "pat-error-null-check-001",
            "error_signature": {
                "error_type": "TypeError",
                "error_pattern": "of null",
                "error_location_hints": ["a.ts"],
            },
            "fix_approach": {
                "description": "Check for null before the access",
                "fix_category": "add_null_check",
                "code_template": "if (!x) return",
            },
            "source_loops": [{**LOOPS[0], "contributed_by": "debugger"}],
            "success_rate": 0.5,
            "usage_count": 4,
            "effectiveness_trend": [{"timestamp": AT, "success_rate_snapshot": 0.5, "sample_size": 4}],
            **COMMON,
        },
    ),
    "success pattern": (
        PATTERNS,
        "patterns",
        {
            "pattern_id": "pat-success-tests-first-001",
            "task_category": "testing",
            "approach": {
                "description": "Tests first",
                "steps": ["write", "run"],
                "tools_used": ["Bash"],
                "typical_iterations": {"average": 2.5, "minimum": 1.5, "maximum": 4.5},
            },
            "source_loops": [{**LOOPS[0], "outcome": "success", "iterations_required": 2}],
            "success_rate": 0.5,
            "usage_count": 4,
            "average_iterations": 2.5,
            "benefits": ["b"],
            **COMMON,
        },
    ),
    "anti-pattern": (
        PATTERNS,
        "patterns",
        {
            "pattern_id": "pat-anti-hurry-001",
            "approach_description": "Hurry",
            "failure_mode": "scope_creep",
            "failure_symptoms": ["s"],
            "why_it_fails": "No one looks",
            "better_alternative": {"description": "Look", "success_pattern_id": "pat-success-tests-first-001"},
            "source_loops": [{**LOOPS[0], "failure_iteration": 3}],
            "failure_rate": 0.5,
            "occurrence_count": 4,
            **COMMON,
        },
    ),
    "template": (
        PATTERNS,
        "patterns",
        {
            "template_id": "tmpl-guard-001",
            "language": "typescript",
            "template_code": "if (!{{x}}) return",
            "description": "A guard",
            "placeholders": {"x": "The value"},
            "use_case": "At the entry",
            "source_loops": ["ralph-a"],
            "usage_count": 4,
            "success_rate": 0.5,
            **COMMON,
        },
    ),
    "debug session": (
        ".aiwg/ralph/debug-memory/sessions/session-1.json",
        "debug_sessions",
        {
            "session_id": "0b3f1c5e-8f2d-4a5e-9c7b-2f1d3e4a5b6c",
            "file_path": "src/a.ts",
            "created_at": AT,
            "status": "passed",
            "executions": [
                {
                    "attempt": 1,
                    "timestamp": AT,
                    "code_hash": "abc",
                    "test_results": {"total": 2, "passed": 1, "failed": 1, "coverage_percent": 75.5},
                    "failures": [{"test_name": "t", "error_type": "TypeError", "error_message": "of null"}],
                    "analysis": {
                        "root_cause": "The value is null at this point",
                        "fix_strategy": "Check the value before it is used",
                        "confidence": 0.5,
                    },
                    "fix_applied": {"description": "A check", "files_changed": ["a.ts"], "verification": "passed"},
                }
            ],
            "learnings": {"patterns_identified": [{"pattern": "p", "frequency": 1, "effectiveness": 0.5}]},
            "metadata": {"agent": "debugger", "ralph_iteration": 2},
        },
    ),
    "task": (
        f"{TASK}/metadata.json",
        "tasks",
        {"id": "task-001", "description": "d", "created": AT, "status": "running", "total_attempts": 2, "tags": ["a"]},
    ),
    "trajectory": (
        f"{TASK}/trajectory.json",
        "tasks",
        {
            "task_id": "task-001",
            "attempts": [{"attempt_id": 1, "started": AT, "outcome": "failure", "actions": 3, "final_quality": 0.5}],
        },
    ),
    "attempt": (
        f"{TASK}/attempts/001/attempt.json",
        "attempts",
        {
            "id": 1,
            "task_id": "task-001",
            "started": AT,
            "plan": {"approach": "a", "steps": ["s"], "estimated_iterations": 2},
            "execution": {"agent": "a", "iterations": 2, "quality_history": [{"iteration": 1, "quality": 0.5}]},
            "outcome": {"status": "failure", "reason": "r", "final_quality": 0.5},
            "what_worked": ["w"],
        },
    ),
    "outcome": (
        f"{TASK}/attempts/001/outcome.json",
        "attempts",
        {"status": "success", "reason": "r", "final_quality": 0.5, "what_worked": ["w"]},
    ),
}
REQUIRED = {
    "error pattern": ["error_signature", "fix_approach", "success_rate", "usage_count"],
    "success pattern": ["task_category", "approach", "success_rate", "usage_count"],
    "anti-pattern": ["approach_description", "failure_mode", "failure_rate", "occurrence_count"],
    "template": ["language", "template_code", "usage_count"],
    "debug session": ["file_path", "executions"],
}
WRONG = (
    ("error pattern", "/success_rate", 1.4),
    ("error pattern", "/success_rate", -0.1),
    ("error pattern", "/usage_count", -1),
    ("error pattern", "/pattern_id", "pat-error-Null-1"),
    ("error pattern", "/error_signature/error_type", "Oops"),
    ("error pattern", "/fix_approach/description", "too short"),
    ("error pattern", "/fix_approach/fix_category", "magic"),
    ("success pattern", "/task_category", "cooking"),
    ("success pattern", "/source_loops/0/outcome", "great"),
    ("anti-pattern", "/failure_mode", "bad luck"),
    ("anti-pattern", "/failure_rate", 1.4),
    ("template", "/language", "latin"),
    ("template", "/template_id", "tmpl-x"),
    ("debug session", "/status", "exploded"),
    ("debug session", "/executions/0/attempt", 0),
    ("debug session", "/executions/0/test_results/coverage_percent", 175),
    ("debug session", "/executions/0/failures/0/error_type", "Oops"),
    ("debug session", "/executions/0/analysis/root_cause", "null"),
    ("debug session", "/executions/0/analysis/confidence", 1.4),
    ("task", "/status", "asleep"),
    ("trajectory", "/attempts/0/outcome", "meh"),
    ("attempt", "/outcome/status", "meh"),
    ("outcome", "/status", "meh"),
)
OTHER = st.sampled_from([True, 7, -3, 1.4, "", "x", [], [7], {}, {"a": 1}])


def read(kind: str, record: Any) -> ParsedFile:
    """Parse a file that contains the record; a pattern is put in a list."""
    file, _, _ = RECORDS[kind]
    data = json.dumps([record] if file == PATTERNS else record).encode()
    known_kind = kind_of(file)
    assert known_kind is not None
    found = parse_file(file, known_kind, RawFile(data, Stamp(1, len(data), 1, 1)))
    assert isinstance(found, ParsedFile)
    return found


def base(kind: str) -> str:
    return "/0" if RECORDS[kind][0] == PATTERNS else ""


def visible(kind: str, found: ParsedFile) -> bool:
    return len(getattr(found, RECORDS[kind][1])) == 1


def places(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside a record, with its pointer."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield f"{pointer}/{key}", item
        yield from places(item, f"{pointer}/{key}")


def put(record: dict[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """Copy the record with another value at a pointer."""
    changed: Any = copy.deepcopy(record)
    *above, last = [int(part) if part.isdecimal() else part for part in pointer.split("/")[1:]]
    holder = changed
    for part in above:
        holder = holder[part]
    holder[last] = value
    return changed  # type: ignore[no-any-return]


def is_of_kind(value: Any, before: Any) -> bool:
    """Whether two values have the same JSON type."""
    numbers = isinstance(before, float) and isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(before) or numbers


@pytest.mark.parametrize("kind", RECORDS)
def test_a_valid_record_has_no_findings(kind: str) -> None:
    found = read(kind, RECORDS[kind][2])
    assert visible(kind, found)
    assert found.findings == ()


@given(st.sampled_from(sorted(RECORDS)), st.data(), OTHER)
def test_a_value_of_another_type_is_reported_at_its_place(kind: str, data: st.DataObject, value: Any) -> None:
    file, _, record = RECORDS[kind]
    pointer, before = data.draw(st.sampled_from(list(places(record))))
    if is_of_kind(value, before) or (pointer == "/source_loops/0" and isinstance(value, str)):
        return
    found = read(kind, put(record, pointer, value))
    assert visible(kind, found)
    above = {f"{base(kind)}{pointer}"[:end] for end in (None, len(base(kind)))}
    assert [one for one in found.findings if one.file == file and one.pointer in above], found.findings


@pytest.mark.parametrize(("kind", "pointer", "value"), WRONG)
def test_a_schema_violation_is_one_finding(kind: str, pointer: str, value: Any) -> None:
    file, _, record = RECORDS[kind]
    found = read(kind, put(record, pointer, value))
    assert visible(kind, found)
    ((one),) = found.findings
    assert (one.file, one.pointer, one.severity) == (file, f"{base(kind)}{pointer}", Severity.WARNING)


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in REQUIRED.items() for key in keys])
def test_a_missing_required_field_is_one_finding_at_its_object(kind: str, key: str) -> None:
    file, _, record = RECORDS[kind]
    found = read(kind, {name: value for name, value in record.items() if name != key})
    assert visible(kind, found)
    assert found.findings == (Finding(file, base(kind), Severity.WARNING, "missing-field", f"{key} is missing"),)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("error pattern", "pattern_id"),
        ("success pattern", "pattern_id"),
        ("anti-pattern", "pattern_id"),
        ("template", "template_id"),
        ("debug session", "session_id"),
    ],
)
def test_a_record_without_an_id_is_shown_with_one_finding(kind: str, key: str) -> None:
    file, _, record = RECORDS[kind]
    found = read(kind, {name: value for name, value in record.items() if name != key})
    assert visible(kind, found)
    ((one),) = found.findings
    assert (one.file, one.pointer, one.severity) == (file, base(kind), Severity.ERROR)


def test_the_same_violation_in_many_records_is_one_finding_with_a_count() -> None:
    record = RECORDS["error pattern"][2]
    records = [{**record, "pattern_id": f"pat-error-many-{n:03}", "success_rate": 1 + n / 1000} for n in range(1, 400)]
    data = json.dumps(records).encode()
    kind = kind_of(PATTERNS)
    assert kind is not None
    found = parse_file(PATTERNS, kind, RawFile(data, Stamp(1, len(data), 1, 1)))
    assert isinstance(found, ParsedFile)
    assert len(found.patterns) == 399
    (finding,) = found.findings
    assert (finding.pointer, finding.count) == ("/0/success_rate", 399)
    assert "398 more like it, for example /1/success_rate, /2/success_rate, /3/success_rate" in finding.message


def test_a_rate_above_one_is_neither_shown_nor_turned_into_a_percentage() -> None:
    record = RECORDS["error pattern"][2]
    assert [
        read("error pattern", {**record, "success_rate": rate}).patterns[0].recorded_counts.rate for rate in (1.4, 85)
    ] == [
        None,
        0.85,
    ]
