"""A record with invalid fields stays visible; each defect is one finding, in every key style and encoding."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.file_reader import RawFile, Stamp
from core.index.refresh import Index
from core.records.episodes import Quality
from core.records.findings import Finding, Severity
from core.sources.keys import RecordText, camel_keys, respell, snake_keys
from core.sources.parsed_file import MAX_FINDINGS, MAX_UNGROUPED, ParsedFile, condense, condense_files, parse_file
from core.sources.pattern_text import find, insert, merge_records, records
from core.sources.patterns import read_patterns
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


def test_a_valid_record_has_no_findings() -> None:
    for kind in RECORDS:
        found = read(kind, RECORDS[kind][2])
        assert visible(kind, found), kind
        assert found.findings == (), kind


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


def test_a_schema_violation_is_one_finding() -> None:
    for kind, pointer, value in WRONG:
        file, _, record = RECORDS[kind]
        found = read(kind, put(record, pointer, value))
        assert visible(kind, found), kind
        ((one),) = found.findings
        assert (one.file, one.pointer, one.severity) == (file, f"{base(kind)}{pointer}", Severity.WARNING), kind


def test_a_missing_field_is_one_finding_at_its_object() -> None:
    for kind, keys in REQUIRED.items():
        file, _, record = RECORDS[kind]
        id_key = next(key for key in record if key.endswith("_id"))
        for key in (id_key, *keys):
            found = read(kind, {name: value for name, value in record.items() if name != key})
            assert visible(kind, found), kind
            (one,) = found.findings
            assert (one.file, one.pointer) == (file, base(kind))
            assert one.severity is (Severity.ERROR if key == id_key else Severity.WARNING)
            assert key == id_key or (one.code, one.message) == ("missing-field", f"{key} is missing")


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


FILES = tuple(f".aiwg/ralph/tasks/task-{number}/metadata.json" for number in range(9))


def make_finding(file: str, pointer: str = "/0/name") -> Finding:
    return Finding(file, pointer, Severity.WARNING, "wrong-type", "'a' is not a number")


def test_many_similar_findings_are_condensed() -> None:
    (found,) = condense_files(map(make_finding, FILES))
    assert (found.count, found.file) == (len(FILES), FILES[0])
    assert len(condense_files(map(make_finding, FILES[:MAX_UNGROUPED]))) == MAX_UNGROUPED
    assert len(condense_files(make_finding(file, "") for file in FILES)) == len(FILES) > MAX_UNGROUPED, "whole files"
    *listed, more = condense(make_finding(FILES[0], f"/{'x' * n}") for n in range(MAX_FINDINGS + 3))
    assert len(listed) == MAX_FINDINGS
    assert (more.file, more.code, more.message.split()[0]) == (FILES[0], "more-findings", "3")


FILE = ".aiwg/ralph/shared/patterns/error-patterns.json"
ERROR = RECORDS["error pattern"][2]
SUCCESS = RECORDS["success pattern"][2]
NEW = {**ERROR, "pattern_id": "pat-error-new-001"}
UMLAUT = {**ERROR, "tags": ["größe", "naïve", "café"]}


def read_file(data: bytes) -> Any:
    return read_patterns(FILE, data, with_schema=True)


def text(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode()


class TestKeyStyle:
    def test_camel_case_files_are_read_like_snake_case_files(self) -> None:
        plain = {"version": "1.0.0", "pattern_registry": {"error_patterns": [ERROR], "success_patterns": [SUCCESS]}}
        data = text(camel_keys(plain))
        assert b"errorSignature" in data and b"error_signature" not in data
        found, expected = read_file(data), read_file(text(plain))
        assert [one.content_hash for one in found.patterns] == [one.content_hash for one in expected.patterns]
        assert [one.source_loops for one in found.patterns] == [one.source_loops for one in expected.patterns]
        assert found.findings == ()

    def test_findings_have_pointers_in_the_style_of_the_file(self) -> None:
        wrong = {**ERROR, "fix_approach": {"description": "short", "fix_category": "other"}, "success_rate": 1.4}
        found = read_file(text(camel_keys({"version": "1.0.0", "pattern_registry": {"error_patterns": [wrong]}})))
        assert {one.pointer for one in found.findings} == {
            "/patternRegistry/errorPatterns/0/fixApproach/description",
            "/patternRegistry/errorPatterns/0/successRate",
        }

    def test_only_known_keys_are_respelled_and_the_snake_case_spelling_wins(self) -> None:
        record = {"template_id": "tmpl-x-001", "placeholders": {"error_type": "a", "taskCategory": "b"}}
        assert camel_keys(record)["placeholders"] == record["placeholders"], "these keys are data"
        assert snake_keys(camel_keys(record)) == record
        assert snake_keys({"usage_count": 1, "usageCount": 2}) == {"usage_count": 1, "usageCount": 2}
        both = {"fix_approach": {"description": "counts"}, "fixApproach": {"description": "does not"}}
        for order in (both, dict(reversed(both.items()))):
            assert snake_keys(camel_keys(order))["fix_approach"] == both["fix_approach"]
        mixed = {"errorSignature": {"error_pattern": "x"}, "tags": ["a"]}
        assert respell("/0/error_signature/error_pattern", mixed, "/0") == "/0/errorSignature/error_pattern"
        assert respell("/0/tags/0", mixed, "/0") == "/0/tags/0"

    @pytest.mark.parametrize("lines", [False, True])
    def test_writes_keep_the_style_and_all_other_bytes(self, lines: bool) -> None:
        own = camel_keys([ERROR, SUCCESS])
        data = b"".join(json.dumps(one).encode() + b"\n" for one in own) if lines else text({"errorPatterns": own})
        document = RecordText(data)
        record = find(document, ERROR["pattern_id"])
        assert record is not None
        document.set(record.path, "usage_count", 9)
        document.set(record.path, "first_seen_here", 1)
        document.set((*record.path, "fix_approach"), "diff_pattern", "+1")
        document.append((*record.path, "source_loops"), {"loop_id": "ralph-b", "contributed_by": "x"})
        document.remove((*record.path, "related_patterns"))
        insert(document, "error", NEW)
        after = document.encode()
        assert b"usage_count" not in after and b"relatedPatterns" not in after.split(b"pat-success")[0]
        assert b'"diffPattern"' in after and b'"contributedBy": "x"' in after and b'"first_seen_here"' in after
        found = {one.id: one for one in read_file(after).patterns}
        assert len(found) == 3
        assert found[ERROR["pattern_id"]].recorded_counts.uses == 9
        assert [loop.loop_id for loop in found[ERROR["pattern_id"]].source_loops] == ["ralph-a", "ralph-b"]
        assert found[NEW["pattern_id"]].error_pattern == "of null"
        assert [one.id for one in records(RecordText(after))] == [one.id for one in read_file(after).patterns]

    def test_parts_of_a_list_are_edited_in_the_style_of_the_file(self) -> None:
        document = RecordText(text({"errorPatterns": camel_keys([ERROR, NEW])}))
        parts = document.items(("error_patterns",), [1])
        parts[1].set((), "usage_count", 7)
        document.put_back(("error_patterns",), parts)
        assert [one.recorded_counts.uses for one in read_file(document.encode()).patterns] == [4, 7]
        assert b"usage_count" not in document.encode()

    def test_versions_of_a_file_are_merged_in_its_style(self) -> None:
        base = text({"errorPatterns": camel_keys([ERROR])})
        theirs = text({"errorPatterns": camel_keys([{**ERROR, "usage_count": 5}])})
        present = text({"errorPatterns": camel_keys([ERROR, NEW])})
        found = {one.id: one.recorded_counts.uses for one in read_file(merge_records(base, theirs, present)).patterns}
        assert found == {ERROR["pattern_id"]: 5, NEW["pattern_id"]: 4}


class TestShapes:
    @pytest.mark.parametrize("key", ["lessons", "data", "myPatterns", "errors"])
    @pytest.mark.parametrize("keyed", [False, True])
    def test_patterns_under_an_unknown_key_are_read_and_edited(self, key: str, keyed: bool) -> None:
        held = {ERROR["pattern_id"]: ERROR} if keyed else [ERROR]
        data = text({"version": "1.0.0", key: held})
        found = read_file(data)
        assert [(one.severity, one.code, one.pointer) for one in found.findings] == [
            (Severity.INFO, "no-patterns", f"/{key}")
        ]
        document = RecordText(data)
        insert(document, "error", NEW)
        after = document.encode()
        assert [one.id for one in read_file(after).patterns] == [ERROR["pattern_id"], NEW["pattern_id"]]
        assert list(json.loads(after)) == ["version", key]
        assert [one.id for one in records(RecordText(after))] == [ERROR["pattern_id"], NEW["pattern_id"]]

    @pytest.mark.parametrize("key", [ERROR["pattern_id"], "first"])
    def test_a_record_under_a_key_has_its_own_id_or_the_key(self, key: str) -> None:
        without = {name: value for name, value in NEW.items() if name != "pattern_id"}
        found = read_file(text({"patterns": {key: ERROR, NEW["pattern_id"]: without}}))
        assert [one.id for one in found.patterns] == [ERROR["pattern_id"], NEW["pattern_id"]]
        assert found.findings == ()

    def test_an_unknown_list_beside_a_known_one_is_read(self) -> None:
        data = text({"error_patterns": [ERROR], "more": [NEW], "notes": ["x"]})
        assert [one.id for one in read_file(data).patterns] == [ERROR["pattern_id"], NEW["pattern_id"]]
        assert [one.id for one in records(RecordText(data))] == [ERROR["pattern_id"], NEW["pattern_id"]]

    def test_a_file_without_patterns_is_a_finding_with_its_place(self) -> None:
        rows: list[tuple[Any, str]] = [
            *((value, "") for value in ({}, {"hello": 1}, {"version": "1.0.0"}, 5, "text", None)),
            ({"pattern_registry": {"foo": [1, 2]}}, "/pattern_registry"),
            ({"pattern_registry": None}, "/pattern_registry"),
            ({"patterns": 7}, "/patterns"),
            ({"error_patterns": "none yet"}, "/error_patterns"),
        ]
        for document, pointer in rows:
            found = read_file(text(document))
            assert found.patterns == ()
            assert [(one.file, one.pointer, one.code) for one in found.findings] == [(FILE, pointer, "no-patterns")]
        empty: tuple[Any, ...] = ([], {"patterns": []}, {"pattern_registry": {}}, {"error_patterns": []})
        assert [read_file(text(document)).findings for document in empty] == [()] * 4
        unversioned = read_file(text({"pattern_registry": {"error_patterns": [ERROR]}})).findings
        assert [(one.pointer, one.severity, one.code) for one in unversioned] == [("", Severity.INFO, "missing-field")]


class TestEncodings:
    @pytest.mark.parametrize(
        ("codec", "mark"),
        [
            ("utf-16-le", "\ufeff"),
            ("utf-16-be", "\ufeff"),
            ("utf-16-le", ""),
            ("utf-16-be", ""),
            ("utf-32-le", "\ufeff"),
            ("cp1252", ""),
            ("latin-1", ""),
        ],
    )
    def test_another_encoding_is_reported_and_preserved(self, codec: str, mark: str) -> None:
        data = (mark + text([UMLAUT]).decode()).encode(codec)
        found = read_file(data)
        assert found.patterns[0].tags == ("größe", "naïve", "café")
        assert [(one.code, one.pointer) for one in found.findings] == [("bad-encoding", "")]
        document = RecordText(data)
        document.set((0,), "usage_count", 9)
        insert(document, "error", {**NEW, "tags": ["naïve", "日本"]})
        after = document.encode()
        assert after.decode(codec).startswith(mark)
        assert [one.tags for one in read_file(after).patterns] == [("größe", "naïve", "café"), ("naïve", "日本")]
        assert read_file(after).patterns[0].recorded_counts.uses == 9

    def test_damaged_utf_8_is_not_another_encoding(self) -> None:
        assert read_file(b"\xef\xbb\xbf" + text([UMLAUT])).findings == (), "a byte order mark alone is not reported"
        for wrong in (b"\xff", b"\xc3", b"gr\xc3\xb6\xdfe"):
            found = read_file(text([{**ERROR, "tags": ["MARK"]}]).replace(b"MARK", wrong))
            assert "\N{REPLACEMENT CHARACTER}" in found.patterns[0].tags[0]
            assert [one.code for one in found.findings] == ["bad-encoding"]


def test_other_records_in_camel_case_are_read(tmp_path: Path) -> None:
    for kind in ("debug session", "task", "attempt"):
        file, _, record = RECORDS[kind]
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(text(camel_keys(record)))
    index = Index(ProjectPaths(tmp_path), Settings(), clock=lambda: datetime.now(UTC), is_kept=False)
    snapshot = index.load()
    (session,) = snapshot.debug_sessions.values()
    assert session.executions[0].failures[0].error_type == "TypeError"
    assert snapshot.tasks["task-001"].total_attempts == 2
    assert snapshot.attempts["task-001.1"].actions is None
    assert snapshot.attempts["task-001.1"].quality == (Quality(1, 0.5),)
    assert snapshot.findings == ()
