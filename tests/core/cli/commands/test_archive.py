"""Pruning, the archive and merging, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"
OTHER = "pat-error-type-mismatch-003"


def ids(call: Call, project: Path) -> set[str]:
    return {found["id"] for found in call("pattern", "list", "--json", "--project", project).document["patterns"]}


def test_the_patterns_a_dry_run_lists_are_archived_and_undo_restores_them(sample: Path, call: Call) -> None:
    before = ids(call, sample)
    words = ("pattern", "prune", "--max-age-days", "20", "--project", sample)
    named = call(*words, "--dry-run", "--json").document["prune"]
    assert named
    table = call(*words, "--dry-run").out
    assert all(item["id"] in table and item["rules"] for item in named)
    assert ids(call, sample) == before
    removed = {item["id"] for item in named}
    decided = call(*words, "--json").document
    assert (decided["decision"]["subject"], set(decided["decision"]["after"]["patterns"])) == ("prune", removed)
    assert ids(call, sample) == before - removed
    assert call(*words).err == "nothing to prune\n"
    assert call("undo", "--project", sample).code == 0
    assert ids(call, sample) == before


def test_thresholds_must_be_some(sample: Path, call: Call) -> None:
    assert call("pattern", "prune", "--min-success-rate", "2", "--project", sample).code == 2
    assert call("pattern", "prune", "--max-age-days", "-1", "--project", sample).code == 2


def test_archive_and_restore(sample: Path, call: Call) -> None:
    result = call("pattern", "prune", PATTERN, OTHER, "--reason", "gone", "--project", sample)
    assert (result.code, result.out.count("\n")) == (0, 2)
    found = call("pattern", "list", "--archived", "--json", "--project", sample).document["archived"]
    (entry,) = [item for item in found if item["id"] == PATTERN]
    assert (entry["by"], entry["reason"]) == ("ada", "gone")
    assert PATTERN in call("pattern", "list", "--archived", "--project", sample).out
    assert call("pattern", "prune", "--restore", PATTERN, "--project", sample).code == 0
    assert PATTERN in ids(call, sample)
    assert "nothing changed" in call("pattern", "prune", "--restore", PATTERN, "--project", sample).out
    assert call("pattern", "prune", PATTERN, "--project", sample).code == 2


def test_nothing_is_archived_if_one_id_is_unknown(sample: Path, call: Call) -> None:
    result = call("pattern", "prune", PATTERN, "nobody", "--reason", "x", "--project", sample)
    assert (result.code, result.out) == (1, "")
    assert PATTERN in ids(call, sample)


def test_duplicates_are_merged(sample: Path, call: Call) -> None:
    pairs = call("pattern", "merge", "--threshold", "0.1", "--json", "--project", sample).document["duplicates"]
    assert pairs == sorted(pairs, key=lambda pair: -pair["similarity"])
    kept, other = pairs[0]["kept"], pairs[0]["other"]
    assert kept in call("pattern", "merge", "--threshold", "0.1", "--project", sample).out
    assert call("pattern", "merge", "--threshold", "1", "--project", sample).err.startswith("no duplicates")
    words = ("pattern", "merge", kept, other, "--project", sample)
    outlook = call(*words, "--dry-run", "--json").document
    assert (outlook["kept"], outlook["other"], other in outlook["aliases"]) == (kept, other, True)
    assert f"would merge {other} into {kept}\n" in call(*words, "--dry-run").out
    assert call("pattern", "merge", kept, kept, "--dry-run", "--project", sample).code == 1
    assert {kept, other} <= ids(call, sample)
    decided = call(*words, "--json").document
    assert decided["decision"]["verb"] == "merge"
    assert "not merged yet" in call(*words).err
    shown = call("pattern", "show", other, "--json", "--project", sample).document["pattern"]
    assert shown["id"] == kept
    assert other in shown["aliases"]
    assert shown["usage_count"] == outlook["after"]["usage_count"]
    text = call("pattern", "show", kept, "--project", sample).out
    assert "an unknown loop" not in text


def test_a_merge_and_its_undo_keep_later_reports(tmp_path: Path, call: Call) -> None:
    file = tmp_path / ".aiwg/ralph/shared/patterns/error-patterns.json"
    file.parent.mkdir(parents=True)

    def record(number: int) -> dict[str, Any]:
        return {
            "pattern_id": f"pat-error-a-00{number}",
            "error_signature": {"error_type": "TypeError", "error_pattern": "a is null"},
            "fix_approach": {"description": "Check a for null before it is read", "fix_category": "other"},
            "source_loops": [{"loop_id": f"ralph-a-0000000{number}", "timestamp": "2026-01-01T00:00:00Z"}],
            "success_rate": 1.0,
            "usage_count": 4,
            "last_used": "2026-01-05T00:00:00Z",
        }

    file.write_text(json.dumps({"pattern_registry": {"error_patterns": [record(1), record(2)]}}))

    def use(work: str, number: int, result: str) -> None:
        assert call("loop", "record", work, f"pat-error-a-00{number}", result, "--project", tmp_path).code == 0

    def counts() -> dict[int, tuple[int, float]]:
        records = json.loads(file.read_text())["pattern_registry"]["error_patterns"]
        return {int(r["pattern_id"][-1]): (r["usage_count"], r["success_rate"]) for r in records}

    for work, number in (("bd-1", 1), ("bd-2", 2), ("bd-3", 2)):
        use(work, number, "--success")
    assert counts() == {1: (5, 1), 2: (6, 1)}
    assert call("pattern", "merge", "pat-error-a-001", "pat-error-a-002", "--project", tmp_path).code == 0
    assert counts() == {1: (11, 1)}
    use("bd-4", 2, "--failure")
    use("bd-5", 1, "--success")
    assert counts() == {1: (13, 12 / 13)}
    assert call("undo", "--project", tmp_path).code == 0
    assert counts() == {1: (7, 6 / 7), 2: (6, 1)}
    use("bd-6", 2, "--success")
    use("bd-7", 1, "--success")
    assert counts() == {1: (8, 7 / 8), 2: (7, 1)}
