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
    assert call("pattern", "export").out.encode() == data
    plan = call("pattern", "import", "--input", file, "--dry-run", "--json", "--project", empty).document
    assert {row["action"] for row in plan["rows"]} == {"new"}
    assert call("pattern", "import", "--input", file, "--project", empty).code == 0
    assert exported(call, empty, tmp_path / "again.json") == data
    part = json.loads(exported(call, sample, tmp_path / "part.json", "--type", "anti"))["pattern_registry"]
    assert part["anti_patterns"] and not part["error_patterns"]
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
    exported = call("pattern", "export").out
    assert "Decimal\\u009b31m\\u202e is not JSON" in exported
    assert not {"\x9b", "\u202e"} & set(exported)


def test_a_shared_export_lists_masked_texts(sample: Path, tmp_path: Path, call: Call) -> None:
    path = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    path.write_text(
        path.read_text().replace('"description": "', '"description": "With password=hunter2 in /home/alice/x: ')
    )
    file = tmp_path / "team.json"
    words = ("pattern", "export", "--team-shared", "--output", file)
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
    words = ("pattern", "import", "--input", file)
    dry = call(*words, "--dry-run")
    assert "conflict" in dry.out
    assert "refused" in dry.out
    assert "\x1b" not in dry.out
    document = call(*words, "--json").document
    assert set(document) == {"rows", "findings", "decision", "summary", "warnings", "written"}
    made = document["rows"][0]["target"]
    assert made.startswith("pat-error-null-check-")
    shown = call("pattern", "show", made, "--json").document["pattern"]
    assert (shown["injectable"], PATTERN in shown["related"]) == (False, True)


def test_invalid_import_files_are_refused(sample: Path, tmp_path: Path, call: Call) -> None:
    def fails(file: Path) -> str:
        result = call("pattern", "import", "--input", file)
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
