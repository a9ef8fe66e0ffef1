"""Export and import, from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    (folder / ".aiwg/ralph/shared/patterns").mkdir(parents=True)
    return folder


def exported(call: Call, project: Path, file: Path, *words: str) -> bytes:
    assert call("pattern", "export", "--output", file, *words, "--project", project).code == 0
    return file.read_bytes()


@pytest.mark.slow
def test_patterns_go_round_without_a_change(sample: Path, empty: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "team.json"
    data = exported(call, sample, file)
    assert call("pattern", "export", "--project", sample).out.encode() == data
    plan = call("pattern", "import", "--input", file, "--dry-run", "--json", "--project", empty).document
    assert {row["action"] for row in plan["rows"]} == {"new"}
    assert call("pattern", "import", "--input", file, "--project", empty).code == 0
    assert exported(call, empty, tmp_path / "again.json") == data
    again = call("pattern", "import", "--input", file, "--project", empty)
    assert (again.code, again.out) == (0, "nothing new\n")
    found = call("pattern", "list", "--json", "--project", empty).document["patterns"]
    assert {(item["state"], item["injectable"], item["quarantined"]) for item in found} == {("candidate", False, True)}
    assert call("pattern", "list", "--project", empty).out.count(" quarantine ") == len(found)
    assert call("undo", "--project", empty).code == 0
    assert call("pattern", "list", "--json", "--project", empty).document["patterns"] == []


def test_an_export_escapes_characters_that_a_terminal_interprets_or_hides(sample: Path, call: Call) -> None:
    file = next((sample / ".aiwg/ralph/shared/patterns").glob("error*.json"))
    file.write_text(file.read_text().replace("Decimal is not JSON", "Decimal\u009b31m\u202e is not JSON"))
    exported = call("pattern", "export", "--project", sample).out
    assert "Decimal\\u009b31m\\u202e is not JSON" in exported
    assert not {"\x9b", "\u202e"} & set(exported)


def test_an_export_can_be_a_part(sample: Path, tmp_path: Path, call: Call) -> None:
    content = json.loads(exported(call, sample, tmp_path / "part.json", "--type", "anti", "--min-success-rate", "0.5"))
    registry = content["pattern_registry"]
    assert registry["anti_patterns"]
    assert not registry["error_patterns"]


def test_a_shared_export_lists_masked_texts(sample: Path, tmp_path: Path, call: Call) -> None:
    path = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    path.write_text(
        path.read_text().replace('"description": "', '"description": "With password=hunter2 in /home/alice/x: ')
    )
    file = tmp_path / "team.json"
    words = ("pattern", "export", "--team-shared", "--output", file, "--project", sample)
    document = call(*words, "--json").document
    assert {item["kind"] for item in document["masked"]} >= {"secret", "path"}
    registry = json.loads(file.read_text())["pattern_registry"]
    assert document["exported"] == sum(map(len, registry.values()))
    assert b"hunter2" not in file.read_bytes()
    assert b"alice" not in file.read_bytes()
    result = call(*words)
    assert "masked in " in result.err
    assert "hunter2" not in result.err


def test_an_import_can_be_printed_and_undone(sample: Path, tmp_path: Path, call: Call) -> None:
    record: dict[str, Any] = {
        "pattern_id": PATTERN,
        "error_signature": {"error_type": "TypeError", "error_pattern": "quite \x1b[31m another one"},
        "fix_approach": {"description": "Do something else entirely", "fix_category": "other"},
        "success_rate": 1,
        "usage_count": 1,
    }
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps([record, {**record, "pattern_id": "../x"}]))
    words = ("pattern", "import", "--input", file, "--project", sample)
    dry = call(*words, "--dry-run")
    assert "conflict" in dry.out
    assert "refused" in dry.out
    assert "\x1b" not in dry.out
    document = call(*words, "--json").document
    assert set(document) == {"rows", "findings", "decision", "summary", "warnings", "written"}
    made = document["rows"][0]["target"]
    assert made.startswith("pat-error-null-check-")
    shown = call("pattern", "show", made, "--json", "--project", sample).document["pattern"]
    assert (shown["injectable"], PATTERN in shown["related"]) == (False, True)


def test_invalid_import_files_are_refused(sample: Path, tmp_path: Path, call: Call) -> None:
    def fails(file: Path) -> str:
        result = call("pattern", "import", "--input", file, "--project", sample)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        return result.err

    assert "does not exist" in fails(tmp_path / "no.json")
    assert "not a regular file" in fails(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in fails(tmp_path / "fifo")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert "broken.json" in fails(broken)
    broken.write_text('{"a": 1}')
    assert "contains no patterns" in fails(broken)


def test_json_and_patterns_are_never_mixed(sample: Path, call: Call) -> None:
    assert call("pattern", "export", "--json", "--project", sample).code == 2


def counts(project: Path) -> tuple[int, int]:
    """Uses and successes in the record of the first error pattern."""
    content = json.loads((project / ".aiwg/ralph/shared/patterns/error-patterns.json").read_text())
    (record,) = content["pattern_registry"]["error_patterns"]
    return record["usage_count"], round(record["success_rate"] * record["usage_count"])


def test_uses_that_are_reported_between_exchanges_count_once(empty: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    (other / ".aiwg/ralph/shared/patterns").mkdir(parents=True)
    loops = [{"loop_id": "ralph-a-00000001", "timestamp": "2026-01-01T00:00:00Z"}]
    record = {
        "pattern_id": "pat-error-a-001",
        "error_signature": {"error_type": "TypeError", "error_pattern": "a is null"},
        "fix_approach": {"description": "Check a for null before it is read", "fix_category": "other"},
        "source_loops": loops,
        "success_rate": 1.0,
        "usage_count": 4,
        "last_used": "2026-01-05T00:00:00Z",
    }
    file = tmp_path / "patterns.json"
    file.write_text(json.dumps([record]))

    def use(project: Path, work: str, result: str) -> None:
        assert call("loop", "record", work, "pat-error-a-001", result, "--project", project).code == 0

    def give(giver: Path, taker: Path) -> None:
        exported(call, giver, file)
        assert call("pattern", "import", "--input", file, "--project", taker).code == 0

    call("pattern", "import", "--input", file, "--project", empty)
    give(empty, other)
    use(other, "bd-1", "--success")
    use(empty, "bd-2", "--failure")
    give(other, empty)
    assert counts(empty) == (6, 5)
    call("undo", "--project", empty)
    assert counts(empty) == (5, 4)
    give(other, empty)
    use(empty, "bd-3", "--success")
    assert counts(empty) == (7, 6)
    give(empty, other)
    assert counts(other) == (7, 6)
    use(other, "bd-4", "--success")
    give(other, empty)
    give(empty, other)
    assert (counts(empty), counts(other)) == ((8, 7), (8, 7))
