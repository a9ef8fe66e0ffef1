"""Pattern files of every layout: reading, editing, merging; archived patterns."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.files.json_editor import BadJson, JsonText
from core.records.patterns import Pattern, RecordedCounts
from core.sources.pattern_text import empty_file, find, insert, merge_records, records
from core.sources.patterns import ArchivedPattern, PatternFile, read_archives, read_patterns

SHARED = Path(__file__).parents[2] / "trees/spec-examples/.aiwg/ralph/shared/patterns"
FILE = ".aiwg/ralph/shared/patterns/error-patterns.json"
ERROR = {"pattern_id": "pat-error-null-check-001", "error_signature": {"error_pattern": "of null"}}
ANTI = {"pattern_id": "pat-anti-hurry-001", "approach_description": "Hurry", "failure_rate": 0.5}
SUCCESS = {"pattern_id": "pat-success-tests-first-001", "approach": {"description": "Tests first"}}
TEMPLATE = {"template_id": "tmpl-guard-001", "template_code": "if (!x) return", "language": "typescript"}
ALL: list[dict[str, Any]] = [ERROR, SUCCESS, ANTI, TEMPLATE]


def read(document: Any, file: str = FILE, copy_folder: str = "") -> PatternFile:
    return read_patterns(file, json.dumps(document).encode(), copy_folder)


def one(**fields: Any) -> Pattern:
    found = read([{**ERROR, **fields}])
    assert not found.findings
    return found.patterns[0]


def codes(found: PatternFile) -> list[tuple[str, str]]:
    return [(finding.code, finding.pointer) for finding in found.findings]


class TestShapes:
    @pytest.mark.parametrize(
        ("document", "pointer"),
        [
            ({"version": "1.0.0", "pattern_registry": {"error_patterns": ALL}}, "/pattern_registry/error_patterns/0"),
            ({"pattern_registry": ALL}, "/pattern_registry/0"),
            ({"error_patterns": ALL, "pruning_policy": {}}, "/error_patterns/0"),
            ({"patterns": ALL}, "/patterns/0"),
            ({"patterns": {"a/b": ERROR, "c": SUCCESS, "d": ANTI, "e": TEMPLATE}}, "/patterns/a~1b"),
            (ALL, "/0"),
            ({"x": ERROR, "y": SUCCESS, "z": ANTI, "t": TEMPLATE}, "/x"),
        ],
    )
    def test_every_top_level_layout_is_read(self, document: Any, pointer: str) -> None:
        found = read(document)
        assert [pattern.type.value for pattern in found.patterns] == ["error", "success", "anti", "template"]
        assert found.patterns[0].pointer == pointer
        assert found.findings == ()

    def test_a_single_pattern_and_one_named_by_its_key_are_read(self) -> None:
        (pattern,) = read(ERROR).patterns
        assert (pattern.id, pattern.pointer) == ("pat-error-null-check-001", "")
        record = {"error_signature": {"error_pattern": "x"}}
        (pattern,) = read({"version": "1", "pat-error-by-key-001": record}).patterns
        assert pattern.id == "pat-error-by-key-001"

    @pytest.mark.parametrize("file", ["x/anti-patterns.jsonl", "x/anti-patterns.json"])
    def test_json_lines_are_read(self, file: str) -> None:
        data = b"\n".join(json.dumps(record).encode() for record in ALL) + b"\n"
        assert [pattern.id for pattern in read_patterns(file, data).patterns] == [
            record.get("pattern_id", record.get("template_id")) for record in ALL
        ]

    def test_yaml_is_read(self) -> None:
        data = b"patterns:\n- {pattern_id: p, error_type: TypeError, occurrences: 3, success_rate: 1/2}"
        (pattern,) = read_patterns("x/error-patterns.yaml", data).patterns
        assert pattern.error_type == "TypeError"
        assert pattern.recorded_counts == RecordedCounts(rate=0.5, uses=3)

    def test_unchanged_records_are_not_read_again(self) -> None:
        before = read_patterns(FILE, json.dumps([ERROR, ANTI]).encode())
        data = json.dumps([{"note": 1}, ANTI, {**ERROR, "usage_count": 2}]).encode()
        after = read_patterns(FILE, data, known=before.records)
        assert after == read_patterns(FILE, data)
        assert after.patterns[1] is before.patterns[1]
        moved = read_patterns(FILE, json.dumps([ANTI]).encode(), known=after.records)
        assert moved.patterns == (replace(before.patterns[1], pointer="/0"),)

    @pytest.mark.parametrize("data", [b"", b'{"patterns": [{"pattern_id"', b"[" * 5000])
    def test_an_unreadable_file_is_a_problem(self, data: bytes) -> None:
        assert read_patterns(FILE, data).problem is not None

    @pytest.mark.parametrize(
        ("record", "file", "kind"),
        [
            ({"pattern_id": "p", "template_id": "t"}, FILE, "template"),
            ({"pattern_id": "pat-anti-x-001", "approach": {}}, FILE, "anti"),
            ({"pattern_id": "p", "failure_rate": 1}, FILE, "anti"),
            ({"pattern_id": "p", "is_negative": True, "error_signature": {}}, FILE, "anti"),
            ({"pattern_id": "p", "task_category": "testing"}, FILE, "success"),
            ({"pattern_id": "p", "error_signature": {}}, "x/success-patterns.json", "error"),
            ({"pattern_id": "p", "type": "success_pattern"}, FILE, "success"),
            ({"pattern_id": "p"}, "x/code-templates.json", "template"),
            ({"pattern_id": "p"}, "x/error-patterns.json", "error"),
        ],
    )
    def test_the_record_decides_its_type_before_the_file(self, record: Any, file: str, kind: str) -> None:
        (pattern,) = read([record], file).patterns
        assert pattern.type.value == kind


class TestRecords:
    def test_rates_and_counts_are_read_in_each_spelling_and_invalid_ones_are_findings(self) -> None:
        rates: dict[Any, float] = {0.75: 0.75, 75: 0.75, "75%": 0.75, "3/4": 0.75, 1: 1.0, 0: 0.0, 100: 1.0, "0.5": 0.5}
        assert {rate: one(success_rate=rate).recorded_counts.rate for rate in rates} == rates
        invalid: dict[str, tuple[Any, ...]] = {
            "success_rate": (-0.5, 101, 1.4, 9.5, "5/4", "1/0", "many", [], True),
            "usage_count": (-1, 1.5, 10**30, 10**12, "many", {}),
        }
        for field, values in invalid.items():
            for value in values:
                found = read([{**ERROR, field: value}])
                counts = found.patterns[0].recorded_counts
                assert (counts.rate if field == "success_rate" else counts.uses) is None, value
                assert [place for _, place in codes(found)] == [f"/0/{field}"], value

    def test_nan_affects_only_its_number(self) -> None:
        data = json.dumps([{**ERROR, "success_rate": float("nan"), "usage_count": 3}, ANTI]).encode()
        found = read_patterns(FILE, data)
        assert [pattern.recorded_counts.rate for pattern in found.patterns] == [None, 0.5]
        assert found.patterns[0].recorded_counts.uses == 3
        assert [finding.code for finding in found.findings] == ["bad-number"]

    @pytest.mark.parametrize("bad", [None, 7, "x", []])
    def test_bad_records_do_not_affect_others(self, bad: Any) -> None:
        found = read({"pattern_registry": {"error_patterns": [ERROR, bad, ANTI]}})
        assert [pattern.id for pattern in found.patterns] == [ERROR["pattern_id"], ANTI["pattern_id"]]
        ((_, place),) = codes(found)
        assert place == "/pattern_registry/error_patterns/1"

    @pytest.mark.parametrize("bad", [{}, {"pattern_id": ""}, {"pattern_id": ["x"]}, {"tags": "x"}])
    def test_a_record_without_an_id_is_shown_with_one_finding(self, bad: Any) -> None:
        document = {"pattern_registry": {"error_patterns": [ERROR, bad, ANTI]}}
        found = read_patterns(FILE, json.dumps(document).encode(), with_schema=True)
        assert [pattern.is_unnamed for pattern in found.patterns] == [False, True, False]
        assert [one for one in codes(found) if one[1] == "/pattern_registry/error_patterns/1"] == [
            ("no-id", "/pattern_registry/error_patterns/1")
        ]

    def test_equal_records_without_an_id_get_different_ids(self) -> None:
        record = {key: value for key, value in ERROR.items() if key != "pattern_id"}
        ids = [pattern.id for pattern in read([record, record, record]).patterns]
        assert len(set(ids)) == 3
        assert ids == [pattern.id for pattern in read([record, record, record, ERROR]).patterns[:3]]

    def test_a_record_that_is_too_deep_affects_only_itself(self) -> None:
        deep = b'{"pattern_id": "pat-error-deep-001", "x": ' + b"[" * 100 + b"]" * 100 + b"}"
        found = read_patterns(FILE, b"[" + deep + b"," + json.dumps(ERROR).encode() + b"]")
        assert [pattern.id for pattern in found.patterns] == [ERROR["pattern_id"]]
        assert codes(found) == [("too-deep", "/0")]

    def test_an_id_with_invalid_characters_is_a_finding(self) -> None:
        found = read([{**ERROR, "pattern_id": "../../etc/passwd"}])
        assert codes(found) == [("unsafe-id", "/0")]

    def test_control_characters_never_reach_a_message(self) -> None:
        found = read([{**ERROR, "pattern_id": "\x1b]52;c;x\x07", "tags": {"\x1b": 1}, "success_rate": "\x1b[2J"}])
        assert found.findings
        assert all(finding.message.isprintable() for finding in found.findings)

    def test_objects_without_id_are_skipped_in_copies(self) -> None:
        found = read({"patterns": [{"pattern": "null_access"}, ERROR]}, copy_folder="memory/patterns")
        assert [pattern.copy_folder for pattern in found.patterns] == ["memory/patterns"]
        assert found.findings == ()

    @pytest.mark.parametrize(
        ("fields", "title"),
        [
            ({}, "null check"),
            ({"error_signature": {"error_type": "TypeError"}}, "TypeError: null check"),
            ({"name": "Missing guard"}, "Missing guard"),
            ({"pattern_id": "7f3a", "error_signature": {"error_pattern": "of null\nmore"}}, "of null"),
            ({"pattern_id": "7f3a", "error_signature": {}}, "7f3a"),
        ],
    )
    def test_titles_come_from_name_id_or_text(self, fields: Any, title: str) -> None:
        assert one(**fields).title == title

    def test_the_hash_covers_what_is_injected_and_nothing_else(self) -> None:
        plain = one()
        counted = one(usage_count=9, last_used="2026-01-01T00:00:00Z", tags=["x"], override={"state": "proven"})
        assert counted.content_hash == plain.content_hash
        assert counted.override == "proven"
        assert one(fix_approach={"description": "Another fix"}).content_hash != plain.content_hash

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        sorted({*ERROR, *ANTI, *SUCCESS, *TEMPLATE, "source_loops", "loop_id", "tags", "patterns"})
                    )
                    | st.text(max_size=4),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=25,
        )
    )
    def test_any_document_is_read_without_an_exception(self, document: Any) -> None:
        found = read(document)
        assert read(document) == found

    def test_mutated_documents_are_read_without_an_exception(self) -> None:
        chance = random.Random(7)
        for file in sorted(SHARED.iterdir()):
            for _ in range(100):
                data = bytearray(file.read_bytes())
                for _ in range(3):
                    place = chance.randrange(len(data))
                    data[place : place + 1] = chance.choice([b"{", b"]", b"7", b"\\", b"\xff", b"null", b'"'])
                found = read_patterns(f"x/{file.name}", bytes(data))
                assert found.problem is None or not found.patterns


def archive(project: Path, name: str, *records: dict[str, Any]) -> Path:
    folder = ProjectPaths(project).archive
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"version": "1.0.0", "pattern_registry": {"error_patterns": records}}))
    return path


def read_archive(project: Path) -> tuple[ArchivedPattern, ...]:
    return read_archives(ProjectPaths(project))[0]


def test_archives_contain_time_reason_and_user(tmp_path: Path) -> None:
    note = {"at": "2026-01-02T00:00:00Z", "reason": "unused", "by": "ada", "decision": "d1", "from": "errors.json"}
    archive(tmp_path, "2026-01-patterns.json", {"pattern_id": "pat-error-a-001", "archived": note})
    older = {"pattern_id": "pat-error-b-001", "archived_at": "2025-12-01", "archived_reason": "old"}
    archive(tmp_path, "2025-12-patterns.json", older)
    one, two = read_archive(tmp_path)
    assert (one.pattern.id, one.reason, one.by, one.source) == ("pat-error-a-001", "unused", "ada", "errors.json")
    assert one.at == datetime(2026, 1, 2, tzinfo=UTC)
    assert one.file == ".aiwg/ralph/shared/archive/2026-01-patterns.json"
    assert (two.pattern.id, two.reason, two.by) == ("pat-error-b-001", "old", "")


def test_hostile_archives_are_read_safely(tmp_path: Path) -> None:
    assert read_archives(ProjectPaths(tmp_path)) == ((), ())
    record = {"pattern_id": "pat-error-a-001", "archived": ["soon", float("nan")]}
    path = archive(tmp_path, "2026-01-patterns.json", record, {"archived": {}})
    path.with_name("2026-02-patterns.json").write_text("{" * 100_000)
    path.with_name("2026-03-patterns.json").symlink_to("/etc/passwd")
    path.with_name("2026-04-patterns.json").write_text("")
    found, findings = read_archives(ProjectPaths(tmp_path))
    assert [(item.pattern.id, item.at, item.reason) for item in found] == [("pat-error-a-001", None, "")]
    assert {finding.file.rpartition("/")[2] for finding in findings} == {
        f"2026-{month}-patterns.json" for month in ("01", "02", "03", "04")
    }


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


def test_a_pattern_is_inserted_into_a_file_without_a_list() -> None:
    single = JsonText(json.dumps(A).encode() + b"\n")
    insert(single, "error", NEW)
    assert json.loads(single.encode()) == single.value == [A, NEW]
    lines = JsonText(b'{"pattern_id":"a"}\n{"template_id":"b"}\n')
    assert [record.id for record in records(lines)] == ["a", "b"]
    insert(lines, "error", NEW)
    assert lines.encode().endswith(b'{"template_id":"b"}\n{"pattern_id":"pat-error-new-001"}\n')
    for document in (empty_file("anti"), JsonText(b'{"version": "1.0.0"}')):
        insert(document, "anti", NEW)
        assert json.loads(document.encode()) == {"version": "1.0.0", "pattern_registry": {"anti_patterns": [NEW]}}
    for content in ("7", '{"pattern_registry": 7}', '{"patterns": {"pattern_id": "a"}}'):
        with pytest.raises(BadJson):
            insert(JsonText(content.encode()), "error", NEW)


def merge(base: list[Any], theirs: list[Any], present: list[Any]) -> Any:
    return json.loads(merge_records(*(json.dumps(version).encode() for version in (base, theirs, present))))


def test_merging_applies_additions_changes_and_removals_and_keeps_what_both_changed() -> None:
    changed, own = {**A, "usage_count": 2, "last_used": "today"}, {"pattern_id": "ours"}
    assert merge([A, B], [changed, NEW], [A, B, own]) == [changed, own, NEW]
    ours = {**A, "usage_count": 5}
    assert merge([A], [{**A, "usage_count": 2}], [ours]) == merge([A], [], [ours]) == [ours]
    once = merge([A], [A, NEW], [A, B])
    assert merge([A], [A, NEW], once) == once, "a second merge changes nothing more"
    theirs = b'[{"pattern_id": "a", "n": 1e400, "m": 1.0}]'
    assert merge_records(b"[]", theirs, b"[]") == theirs, "numbers stay as they are written"
    assert merge_records(b"[]", b"[1]", None) == b"[1]", "the file was deleted"
