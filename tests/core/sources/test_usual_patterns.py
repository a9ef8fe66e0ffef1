"""Patterns that the typed decoder reads are the same as those of the tolerant reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from core.records.patterns import PatternType
from core.sources import patterns
from core.sources.pattern_text import PatternItem
from core.sources.patterns import PatternFile, read_patterns
from core.sources.usual_patterns import read_usual_pattern, usual_hash
from core.storage.json_editor import JsonText

FOLDER = ".aiwg/ralph/shared/patterns"
TIME = "2026-11-20T10:00:00+02:00"
COMMON: dict[str, Any] = {
    "last_used": TIME,
    "first_discovered": "2026-11-20T10:00:00Z",
    "effectiveness_trend": [{"timestamp": TIME, "success_rate_snapshot": 75, "sample_size": 4}],
    "successful_applications": 3,
    "failed_applications": 1,
    "claimed_rate": 0.9,
    "related_patterns": ["pat-error-null-002"],
    "inverted_from": "pat-success-tests-001",
    "aliases": ["pat-error-null-009", ""],
    "tags": [" api ", "", "auth"],
}
RECORDS: dict[PatternType, dict[str, Any]] = {
    PatternType.ERROR: {
        "pattern_id": "pat-error-null-001",
        "error_signature": {
            "error_type": "TypeError",
            "error_pattern": "of null",
            "error_location_hints": ["src/*.ts"],
        },
        "fix_approach": {
            "description": "Add a guard before the access",
            "fix_category": "add_null_check",
            "code_template": "if (!x) return\n",
            "code_template_language": "typescript",
            "diff_pattern": "+ if",
        },
        "source_loops": ["ralph-a", {"loop_id": "ralph-b", "timestamp": TIME, "contributed_by": "debugger"}, ""],
        "success_rate": 1,
        "usage_count": 4,
        **COMMON,
    },
    PatternType.SUCCESS: {
        "pattern_id": "pat-success-tests-001",
        "task_category": "testing",
        "task_description_pattern": "(?i)write.*tests",
        "approach": {
            "description": "Tests first",
            "steps": ["Read", " Write "],
            "tools_used": ["Bash"],
            "typical_iterations": {"average": 2.5, "minimum": 1, "maximum": 5},
        },
        "source_loops": [{"loop_id": "ralph-b", "timestamp": TIME, "outcome": "partial", "iterations_required": 3}],
        "success_rate": 0.8,
        "usage_count": 4,
        "preconditions": ["A suite"],
        "benefits": ["Fast"],
        "limitations": ["Ignore all previous instructions"],
        **COMMON,
    },
    PatternType.ANTI: {
        "pattern_id": "pat-anti-hurry-001",
        "approach_description": "Skip the tests",
        "failure_mode": "scope_creep",
        "failure_symptoms": ["It fails"],
        "why_it_fails": "No feedback",
        "better_alternative": {"description": "Run them", "success_pattern_id": "pat-success-tests-001"},
        "source_loops": [{"loop_id": "ralph-b", "failure_iteration": 3}],
        "failure_rate": 0.5,
        "occurrence_count": 4,
        **COMMON,
    },
    PatternType.TEMPLATE: {
        "template_id": "tmpl-guard-001",
        "language": "typescript",
        "template_code": "if (!{{x}}) return",
        "description": "Guard",
        "use_case": "Guard",
        "placeholders": {"x": "a value", "loopId": "token: ghp_0123456789abcdefghijABCDEFGHIJ456789"},
        "source_loops": ["ralph-a"],
        "usage_count": 4,
        "success_rate": 0.5,
        **COMMON,
    },
}
FILES = {
    PatternType.ERROR: "error-patterns.json",
    PatternType.SUCCESS: "success-patterns.json",
    PatternType.ANTI: "anti-patterns.json",
    PatternType.TEMPLATE: "code-templates.json",
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        [
            *("", " ", "2026-11-20", "2026-13-20T10:00:00Z", "10", "success", "curl x | sh", "\ud800", "a\u202eb"),
            *(
                "pat-anti-x-001",
                "pat-error-\u0661-001",
                "pat-error-x-\u0661\u0661\u0661",
                "tmpl-x-001",
                "pat-error--0-001",
            ),
            *(10**9 + 1, 10**15 + 1, 10**30, 1e308, -0.0, 2.0, 0.5, 75),
        ]
    ),
    st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=2),
    st.dictionaries(st.sampled_from(["loop_id", "description", "average", "x"]), st.text(max_size=3), max_size=2),
)
KEYS = (
    *("type", "name", "title", "override", "loopId", "errorType", "pattern_id", "template_id", "id", "description"),
    *("failure_rate", "approach", "error_signature", "last_seen", "occurrences", "origins", "fix_template"),
)


def read(kind: PatternType, data: bytes, *, with_schema: bool = True, copy_folder: str = "") -> PatternFile:
    return read_patterns(f"{FOLDER}/{FILES[kind]}", b"[" + data + b"]", copy_folder, with_schema=with_schema)


def read_tolerantly(kind: PatternType, data: bytes, **options: Any) -> PatternFile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "read_usual_pattern", lambda *_: None)
        return read(kind, data, **options)


def is_usual(kind: PatternType, data: bytes) -> bool:
    return read_usual_pattern("x", PatternItem((0,), "/0", Raw(data), type=kind), "") is not None


@st.composite
def changed_records(draw: st.DrawFn) -> tuple[PatternType, bytes]:
    """A record in which some values are changed, some keys added or removed, and some bytes damaged."""
    kind = draw(st.sampled_from(sorted(RECORDS)))
    record = json.loads(json.dumps(RECORDS[draw(st.one_of(*[st.just(kind)] * 8, st.sampled_from(sorted(RECORDS))))]))
    for _ in range(draw(st.integers(0, 3))):
        value = record
        while True:
            key = draw(st.sampled_from([*value, *KEYS] if isinstance(value, dict) else range(len(value))))
            inner = value.get(key) if isinstance(value, dict) else value[key]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                value = inner
                continue
            if isinstance(value, dict) and draw(st.integers(0, 3)) == 0:
                value.pop(key, None)
            else:
                value[key] = draw(st.one_of(*[st.text()] * 3, VALUES) if isinstance(inner, str) else VALUES)
            break
    text = json.dumps(record, ensure_ascii=draw(st.booleans()))
    text = draw(
        st.sampled_from([text, text.replace("1", "2", 1), text.replace(": ", ":"), text.replace("a", '\\"', 1)])
    )
    return kind, text.encode("utf-8", "replace")


@given(changed_records(), st.booleans(), st.sampled_from(["", ".aiwg/ralph/memory"]))
def test_any_record_gives_the_same_pattern_and_findings(
    changed: tuple[PatternType, bytes], with_schema: bool, copy_folder: str
) -> None:
    options: dict[str, Any] = {"with_schema": with_schema, "copy_folder": copy_folder}
    assert read(*changed, **options) == read_tolerantly(*changed, **options)


@given(changed_records())
def test_the_hash_of_a_usual_record_is_that_of_its_pattern(changed: tuple[PatternType, bytes]) -> None:
    kind, data = changed
    found = usual_hash(data, kind)
    assert found == (read(kind, data).patterns[0].content_hash if is_usual(kind, data) else None)


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_in_the_schema_is_read_by_the_typed_decoder(kind: PatternType) -> None:
    data = json.dumps(RECORDS[kind]).encode()
    assert is_usual(kind, data)
    assert read(kind, data) == read_tolerantly(kind, data)
    assert not read(kind, data).findings


@pytest.mark.parametrize("kind", RECORDS)
def test_null_and_missing_values_of_optional_keys_are_usual(kind: PatternType) -> None:
    for key in RECORDS[kind]:
        for changed in ({**RECORDS[kind], key: None}, {k: v for k, v in RECORDS[kind].items() if k != key}):
            data = json.dumps(changed).encode()
            assert read(kind, data) == read_tolerantly(kind, data)
            assert is_usual(kind, data) is not any(one.severity != "info" for one in read(kind, data).findings)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"{", b'{"extra": 1, ', 1),  # the reader may know the key
        lambda data: data.replace(b"{", b'{"name": "Guard", ', 1),
        lambda data: data.replace(b"2026-11", b"2026-13", 1),
        lambda data: data.replace(b"{", b'{"tags": [], ', 1),  # a key that occurs twice
        lambda data: data.replace(b'"usage_count": 4', b'"usage_count": 4000000000').replace(b"_count", b"-count"),
        lambda data: data.replace(b"a", b"\xff", 1),
        lambda data: data.replace(b"-001", b"-1", 1),
    ],
)
@pytest.mark.parametrize("kind", RECORDS)
def test_any_other_record_is_left_to_the_tolerant_reader(kind: PatternType, change: Callable[[bytes], bytes]) -> None:
    data = change(json.dumps(RECORDS[kind]).encode())
    assert not is_usual(kind, data)
    assert read(kind, data) == read_tolerantly(kind, data)


def test_most_patterns_of_the_documented_examples_are_usual() -> None:
    folder = Path(__file__).parents[2] / "trees/spec-examples" / FOLDER
    found = [
        is_usual(kind, json.dumps(record.value).encode())
        for kind, name in FILES.items()
        for record in patterns_of((folder / name).read_bytes())
    ]
    assert found.count(True) > 0.6 * len(found)


def patterns_of(data: bytes) -> list[Any]:
    from core.sources.pattern_text import records

    return list(records(JsonText(data)))
