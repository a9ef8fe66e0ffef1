from __future__ import annotations

import json
from typing import Any

import pytest

from core.files.json_editor import BadJson, JsonText
from core.sources.pattern_text import empty_file, find, insert, merge_records, records

A = {"pattern_id": "pat-error-a-001", "usage_count": 1}
B = {"pattern_id": "pat-error-b-001", "usage_count": 1}
NEW = {"pattern_id": "pat-error-new-001"}
SHAPES: dict[str, tuple[Any, Any]] = {
    "registry": (
        {"version": "1", "pattern_registry": {"error_patterns": [A, B], "x": 1}},
        {"version": "1", "pattern_registry": {"error_patterns": [A, B, NEW], "x": 1}},
    ),
    "registry without the list": (
        {"pattern_registry": {"anti_patterns": [A, B]}},
        {"pattern_registry": {"anti_patterns": [A, B], "error_patterns": [NEW]}},
    ),
    "flat lists": ({"error_patterns": [A, B]}, {"error_patterns": [A, B, NEW]}),
    "patterns": ({"patterns": [A, B], "v": 2}, {"patterns": [A, B, NEW], "v": 2}),
    "bare list": ([A, B], [A, B, NEW]),
    "keyed": (
        {"pat-error-a-001": A, "pat-error-b-001": {"usage_count": 1}},
        {"pat-error-a-001": A, "pat-error-b-001": {"usage_count": 1}, "pat-error-new-001": NEW},
    ),
    "patterns keyed": (
        {"patterns": {"pat-error-a-001": A, "pat-error-b-001": B}},
        {"patterns": {"pat-error-a-001": A, "pat-error-b-001": B, "pat-error-new-001": NEW}},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("indent", [None, 2])
def test_every_layout_is_read_and_preserved(shape: str, indent: int | None) -> None:
    before, after = SHAPES[shape]
    document = JsonText(json.dumps(before, indent=indent).encode())
    assert [record.id for record in records(document)] == ["pat-error-a-001", "pat-error-b-001"]
    found = find(document, "pat-error-b-001")
    assert found is not None
    assert found.value["usage_count"] == 1
    insert(document, "error", NEW)
    assert json.loads(document.encode()) == document.value == after


def test_a_single_pattern_becomes_the_first_of_two() -> None:
    document = JsonText(json.dumps(A).encode() + b"\n")
    insert(document, "error", NEW)
    assert json.loads(document.encode()) == document.value == [A, NEW]


def test_json_lines_get_one_more_line() -> None:
    document = JsonText(b'{"pattern_id":"a"}\n{"template_id":"b"}\n')
    assert [record.id for record in records(document)] == ["a", "b"]
    insert(document, "error", NEW)
    assert document.encode().endswith(b'{"template_id":"b"}\n{"pattern_id":"pat-error-new-001"}\n')


def test_a_new_file_has_the_documented_layout() -> None:
    document = empty_file("template")
    insert(document, "template", {"template_id": "tmpl-a-001"})
    assert json.loads(document.encode()) == {
        "version": "1.0.0",
        "pattern_registry": {"code_templates": [{"template_id": "tmpl-a-001"}]},
    }


def test_an_empty_object_gets_a_registry() -> None:
    document = JsonText(b'{"version": "1.0.0"}')
    insert(document, "anti", NEW)
    assert document.value == {"version": "1.0.0", "pattern_registry": {"anti_patterns": [NEW]}}


@pytest.mark.parametrize("content", ["7", '{"pattern_registry": 7}', '{"patterns": {"pattern_id": "a"}}'])
def test_another_document_is_refused(content: str) -> None:
    with pytest.raises(BadJson):
        insert(JsonText(content.encode()), "error", NEW)


def merge(base: list[Any], theirs: list[Any], present: list[Any]) -> Any:
    return json.loads(merge_records(*(json.dumps(version).encode() for version in (base, theirs, present))))


def test_merging_applies_additions_changes_and_removals() -> None:
    changed = {**A, "usage_count": 2, "last_used": "today"}
    assert merge([A, B], [changed, NEW], [A, B, {"pattern_id": "ours"}]) == [
        changed,
        {"pattern_id": "ours"},
        NEW,
    ]


def test_merging_keeps_records_that_both_changed() -> None:
    ours = {**A, "usage_count": 5}
    assert merge([A], [{**A, "usage_count": 2}], [ours]) == [ours]
    assert merge([A], [], [ours]) == [ours]


def test_merging_twice_changes_nothing_more() -> None:
    once = merge([A], [A, NEW], [A, B])
    assert merge([A], [A, NEW], once) == once


def test_merging_keeps_numbers_as_they_are_written() -> None:
    theirs = b'[{"pattern_id": "a", "n": 1e400, "m": 1.0}]'
    assert merge_records(b"[]", theirs, b"[]") == theirs


def test_merging_into_a_deleted_file_gives_the_other_version() -> None:
    assert merge_records(b"[]", b"[1]", None) == b"[1]"
