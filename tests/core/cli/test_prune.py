"""Pruning, the archive and merging, from the command line."""

from __future__ import annotations

from pathlib import Path

from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"
OTHER = "pat-error-type-mismatch-003"


def ids(call: Call, project: Path) -> set[str]:
    return {found["id"] for found in call("patterns", "list", "--json", "--project", project).document["patterns"]}


def test_what_a_dry_run_names_is_archived_and_undo_brings_it_back(sample: Path, call: Call) -> None:
    before = ids(call, sample)
    words = ("patterns", "prune", "--max-age-days", "20", "--project", sample)
    named = call(*words, "--dry-run", "--json").document["prune"]
    assert named
    table = call(*words, "--dry-run").out
    assert all(item["id"] in table and item["rules"] for item in named)
    assert ids(call, sample) == before
    gone = {item["id"] for item in named}
    decided = call(*words, "--json").document
    assert (decided["decision"]["subject"], set(decided["decision"]["after"]["patterns"])) == ("prune", gone)
    assert ids(call, sample) == before - gone
    assert call(*words).err == "nothing to prune\n"
    assert call("undo", "--project", sample).code == 0
    assert ids(call, sample) == before


def test_thresholds_must_be_some(sample: Path, call: Call) -> None:
    assert call("patterns", "prune", "--min-success-rate", "2", "--project", sample).code == 2
    assert call("patterns", "prune", "--max-age-days", "-1", "--project", sample).code == 2


def test_archive_and_restore(sample: Path, call: Call) -> None:
    result = call("patterns", "archive", PATTERN, OTHER, "--reason", "gone", "--project", sample)
    assert (result.code, result.out.count("\n")) == (0, 2)
    found = call("patterns", "archived", "--json", "--project", sample).document["archived"]
    (entry,) = [item for item in found if item["id"] == PATTERN]
    assert (entry["by"], entry["reason"]) == ("ada", "gone")
    assert PATTERN in call("patterns", "archived", "--project", sample).out
    assert call("patterns", "restore", PATTERN, "--project", sample).code == 0
    assert PATTERN in ids(call, sample)
    assert call("patterns", "restore", PATTERN, "--project", sample).code == 1
    assert call("patterns", "archive", PATTERN, "--project", sample).code == 2


def test_nothing_is_archived_if_one_id_is_unknown(sample: Path, call: Call) -> None:
    result = call("patterns", "archive", PATTERN, "nobody", "--reason", "x", "--project", sample)
    assert (result.code, result.out) == (1, "")
    assert PATTERN in ids(call, sample)


def test_duplicates_are_merged(sample: Path, call: Call) -> None:
    pairs = call("patterns", "duplicates", "--threshold", "0.1", "--json", "--project", sample).document["duplicates"]
    assert pairs == sorted(pairs, key=lambda pair: -pair["similarity"])
    kept, other = pairs[0]["kept"], pairs[0]["other"]
    assert kept in call("patterns", "duplicates", "--threshold", "0.1", "--project", sample).out
    assert call("patterns", "duplicates", "--threshold", "1", "--project", sample).err.startswith("no duplicates")
    decided = call("patterns", "merge", kept, other, "--json", "--project", sample).document
    assert decided["decision"]["verb"] == "merge"
    shown = call("patterns", "show", other, "--json", "--project", sample).document["pattern"]
    assert shown["id"] == kept
    assert other in shown["aliases"]
