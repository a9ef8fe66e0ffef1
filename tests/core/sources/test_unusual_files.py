"""Pattern files of unusual layout, key style and encoding are read and preserved."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.episodes import Quality
from core.records.findings import Severity
from core.sources.keys import RecordText, camel_keys, respell, snake_keys
from core.sources.pattern_text import find, insert, merge_records, records
from core.sources.patterns import read_patterns
from tests.core.sources.test_broken_records import RECORDS

FILE = ".aiwg/ralph/shared/patterns/error-patterns.json"
ERROR = RECORDS["error pattern"][2]
SUCCESS = RECORDS["success pattern"][2]
NEW = {**ERROR, "pattern_id": "pat-error-new-001"}
UMLAUT = {**ERROR, "tags": ["größe", "naïve", "café"]}


def read(data: bytes) -> Any:
    return read_patterns(FILE, data, with_schema=True)


def text(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode()


class TestKeyStyle:
    def test_camel_case_files_are_read_like_snake_case_files(self) -> None:
        plain = {"version": "1.0.0", "pattern_registry": {"error_patterns": [ERROR], "success_patterns": [SUCCESS]}}
        data = text(camel_keys(plain))
        assert b"errorSignature" in data and b"error_signature" not in data
        found, expected = read(data), read(text(plain))
        assert [one.content_hash for one in found.patterns] == [one.content_hash for one in expected.patterns]
        assert [one.source_loops for one in found.patterns] == [one.source_loops for one in expected.patterns]
        assert found.findings == ()

    def test_findings_have_pointers_in_the_style_of_the_file(self) -> None:
        wrong = {**ERROR, "fix_approach": {"description": "short", "fix_category": "other"}, "success_rate": 1.4}
        found = read(text(camel_keys({"version": "1.0.0", "pattern_registry": {"error_patterns": [wrong]}})))
        assert {one.pointer for one in found.findings} == {
            "/patternRegistry/errorPatterns/0/fixApproach/description",
            "/patternRegistry/errorPatterns/0/successRate",
        }

    def test_keys_that_are_data_are_not_renamed(self) -> None:
        record = {"template_id": "tmpl-x-001", "placeholders": {"error_type": "a", "taskCategory": "b"}}
        assert camel_keys(record)["placeholders"] == record["placeholders"]
        assert snake_keys(camel_keys(record)) == record

    def test_the_snake_case_spelling_of_a_key_wins(self) -> None:
        assert snake_keys({"usage_count": 1, "usageCount": 2}) == {"usage_count": 1, "usageCount": 2}

    def test_both_spellings_survive_writing_in_camel_case(self) -> None:
        both = {"fix_approach": {"description": "counts"}, "fixApproach": {"description": "does not"}}
        assert snake_keys(camel_keys(both))["fix_approach"] == both["fix_approach"]
        assert snake_keys(camel_keys(dict(reversed(both.items()))))["fix_approach"] == both["fix_approach"]

    def test_pointers_change_only_where_the_file_differs(self) -> None:
        record = {"errorSignature": {"error_pattern": "x"}, "tags": ["a"]}
        assert respell("/0/error_signature/error_pattern", record, "/0") == "/0/errorSignature/error_pattern"
        assert respell("/0/tags/0", record, "/0") == "/0/tags/0"

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
        found = {one.id: one for one in read(after).patterns}
        assert len(found) == 3
        assert found[ERROR["pattern_id"]].recorded_counts.uses == 9
        assert [loop.loop_id for loop in found[ERROR["pattern_id"]].source_loops] == ["ralph-a", "ralph-b"]
        assert found[NEW["pattern_id"]].error_pattern == "of null"
        assert [one.id for one in records(RecordText(after))] == [one.id for one in read(after).patterns]

    def test_parts_of_a_list_are_edited_in_the_style_of_the_file(self) -> None:
        document = RecordText(text({"errorPatterns": camel_keys([ERROR, NEW])}))
        parts = document.items(("error_patterns",), [1])
        parts[1].set((), "usage_count", 7)
        document.put_back(("error_patterns",), parts)
        assert [one.recorded_counts.uses for one in read(document.encode()).patterns] == [4, 7]
        assert b"usage_count" not in document.encode()

    def test_versions_of_a_file_are_merged_in_its_style(self) -> None:
        base = text({"errorPatterns": camel_keys([ERROR])})
        theirs = text({"errorPatterns": camel_keys([{**ERROR, "usage_count": 5}])})
        present = text({"errorPatterns": camel_keys([ERROR, NEW])})
        found = {one.id: one.recorded_counts.uses for one in read(merge_records(base, theirs, present)).patterns}
        assert found == {ERROR["pattern_id"]: 5, NEW["pattern_id"]: 4}


class TestShapes:
    @pytest.mark.parametrize("key", ["lessons", "data", "myPatterns", "errors"])
    @pytest.mark.parametrize("keyed", [False, True])
    def test_patterns_under_an_unknown_key_are_read_and_edited(self, key: str, keyed: bool) -> None:
        held = {ERROR["pattern_id"]: ERROR} if keyed else [ERROR]
        data = text({"version": "1.0.0", key: held})
        found = read(data)
        assert [(one.severity, one.code, one.pointer) for one in found.findings] == [
            (Severity.INFO, "no-patterns", f"/{key}")
        ]
        document = RecordText(data)
        insert(document, "error", NEW)
        after = document.encode()
        assert [one.id for one in read(after).patterns] == [ERROR["pattern_id"], NEW["pattern_id"]]
        assert list(json.loads(after)) == ["version", key]
        assert [one.id for one in records(RecordText(after))] == [ERROR["pattern_id"], NEW["pattern_id"]]

    @pytest.mark.parametrize("key", [ERROR["pattern_id"], "first"])
    def test_a_record_under_a_key_has_its_own_id_or_the_key(self, key: str) -> None:
        without = {name: value for name, value in NEW.items() if name != "pattern_id"}
        found = read(text({"patterns": {key: ERROR, NEW["pattern_id"]: without}}))
        assert [one.id for one in found.patterns] == [ERROR["pattern_id"], NEW["pattern_id"]]
        assert found.findings == ()

    def test_an_unknown_list_beside_a_known_one_is_read(self) -> None:
        data = text({"error_patterns": [ERROR], "more": [NEW], "notes": ["x"]})
        assert [one.id for one in read(data).patterns] == [ERROR["pattern_id"], NEW["pattern_id"]]
        assert [one.id for one in records(RecordText(data))] == [ERROR["pattern_id"], NEW["pattern_id"]]

    @pytest.mark.parametrize(
        ("document", "pointer"),
        [
            ({}, ""),
            ({"hello": 1}, ""),
            ({"version": "1.0.0"}, ""),
            ({"pattern_registry": {"foo": [1, 2]}}, "/pattern_registry"),
            ({"pattern_registry": None}, "/pattern_registry"),
            ({"patterns": 7}, "/patterns"),
            ({"error_patterns": "none yet"}, "/error_patterns"),
            (5, ""),
            ("text", ""),
            (None, ""),
        ],
    )
    def test_a_file_without_patterns_is_a_finding_with_its_place(self, document: Any, pointer: str) -> None:
        found = read(text(document))
        assert found.patterns == ()
        assert [(one.file, one.pointer, one.code) for one in found.findings] == [(FILE, pointer, "no-patterns")]

    @pytest.mark.parametrize("document", [[], {"patterns": []}, {"pattern_registry": {}}, {"error_patterns": []}])
    def test_an_empty_registry_has_no_finding(self, document: Any) -> None:
        assert read(text(document)).findings == ()

    def test_a_registry_without_a_version_is_a_finding(self) -> None:
        found = read(text({"pattern_registry": {"error_patterns": [ERROR]}})).findings
        assert [(one.pointer, one.severity, one.code) for one in found] == [("", Severity.INFO, "missing-field")]


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
        found = read(data)
        assert found.patterns[0].tags == ("größe", "naïve", "café")
        assert [(one.code, one.pointer) for one in found.findings] == [("bad-encoding", "")]
        document = RecordText(data)
        document.set((0,), "usage_count", 9)
        insert(document, "error", {**NEW, "tags": ["naïve", "日本"]})
        after = document.encode()
        assert after.decode(codec).startswith(mark)
        assert [one.tags for one in read(after).patterns] == [("größe", "naïve", "café"), ("naïve", "日本")]
        assert read(after).patterns[0].recorded_counts.uses == 9

    def test_a_byte_order_mark_alone_is_not_reported(self) -> None:
        assert read(b"\xef\xbb\xbf" + text([UMLAUT])).findings == ()

    @pytest.mark.parametrize("wrong", [b"\xff", b"\xc3", b"gr\xc3\xb6\xdfe"])
    def test_damaged_utf_8_is_not_another_encoding(self, wrong: bytes) -> None:
        data = text([{**ERROR, "tags": ["MARK"]}]).replace(b"MARK", wrong)
        found = read(data)
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
