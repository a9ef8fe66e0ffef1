"""Pruning, the archive and merging, from the command line."""

from __future__ import annotations

from pathlib import Path

from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"
OTHER = "pat-error-type-mismatch-003"


def ids(call: Call) -> set[str]:
    return {found["id"] for found in call("pattern", "list", "--json").document["patterns"]}


def test_the_patterns_a_dry_run_lists_are_archived_and_undo_restores_them(sample: Path, call: Call) -> None:
    before = ids(call)
    words = ("pattern", "prune", "--max-age-days", "20")
    named = call(*words, "--dry-run", "--json").document["prune"]
    assert named
    table = call(*words, "--dry-run").out
    assert all(item["id"] in table and item["rules"] for item in named)
    assert ids(call) == before
    removed = {item["id"] for item in named}
    decided = call(*words, "--json").document
    assert (decided["decision"]["subject"], set(decided["decision"]["after"]["patterns"])) == ("prune", removed)
    assert ids(call) == before - removed
    assert call(*words).err == "nothing to prune\n"
    assert call("undo").code == 0
    assert ids(call) == before


def test_archive_and_restore(sample: Path, call: Call) -> None:
    unknown = call("pattern", "prune", PATTERN, "nobody", "--reason", "x")
    assert (unknown.code, unknown.out) == (1, "") and PATTERN in ids(call), "all or none"
    result = call("pattern", "prune", PATTERN, OTHER, "--reason", "gone")
    assert (result.code, result.out.count("\n")) == (0, 2)
    found = call("pattern", "list", "--archived", "--json").document["archived"]
    (entry,) = [item for item in found if item["id"] == PATTERN]
    assert (entry["by"], entry["reason"]) == ("ada", "gone")
    assert PATTERN in call("pattern", "list", "--archived").out
    assert call("pattern", "prune", "--restore", PATTERN).code == 0
    assert PATTERN in ids(call)
    assert "nothing changed" in call("pattern", "prune", "--restore", PATTERN).out
    assert call("pattern", "prune", PATTERN).code == 2


def test_duplicates_are_merged(sample: Path, call: Call) -> None:
    pairs = call("pattern", "merge", "--threshold", "0.1", "--json").document["duplicates"]
    assert pairs == sorted(pairs, key=lambda pair: -pair["similarity"])
    kept, other = pairs[0]["kept"], pairs[0]["other"]
    assert kept in call("pattern", "merge", "--threshold", "0.1").out
    assert call("pattern", "merge", "--threshold", "1").err.startswith("no duplicates")
    words = ("pattern", "merge", kept, other)
    outlook = call(*words, "--dry-run", "--json").document
    assert (outlook["kept"], outlook["other"], other in outlook["aliases"]) == (kept, other, True)
    assert f"would merge {other} into {kept}\n" in call(*words, "--dry-run").out
    assert call("pattern", "merge", kept, kept, "--dry-run").code == 1
    assert {kept, other} <= ids(call)
    decided = call(*words, "--json").document
    assert decided["decision"]["verb"] == "merge"
    assert "not merged yet" in call(*words).err
    shown = call("pattern", "show", other, "--json").document["pattern"]
    assert shown["id"] == kept
    assert other in shown["aliases"]
    assert shown["usage_count"] == outlook["after"]["usage_count"]
    text = call("pattern", "show", kept).out
    assert "an unknown loop" not in text
