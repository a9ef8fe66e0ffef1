"""`changes`: between two moments, and with other thresholds."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.settings import THRESHOLDS
from core.files.user_files import state_file
from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"


def test_changes_list_changed_states_and_authors(sample: Path, call: Call) -> None:
    call("pattern", "deprecate", PATTERN, "--reason", "hides the cause")
    result = call("changes", "--since", "7d")
    row = next(line for line in result.out.splitlines() if PATTERN in line)
    assert "candidate → deprecated" in row and row.endswith("deprecate by ada: hides the cause")
    assert "1 decided by ada" in result.out.splitlines()[1]
    assert "without a date" in result.err
    document = call("changes", "--since", "7d", "--json").document
    change = next(one for one in document["patterns"] if one["id"] == PATTERN)
    assert (change["by"], change["after"]["injectable"]) == ("ada", False)
    weights = [one["weight"] for one in document["patterns"]]
    assert weights == sorted(weights, reverse=True)


def test_since_the_last_visit(sample: Path, call: Call) -> None:
    refused = call("changes", "--since", "last-visit")
    assert (refused.code, "was not open on this project before" in refused.err) == (2, True)
    visited = datetime.now(UTC) - timedelta(hours=2)
    state_file().parent.mkdir(parents=True, exist_ok=True)
    at, now = visited.isoformat(), datetime.now(UTC).isoformat()
    killed, open_again = {"last_seen": at}, {"last_visit": at, "last_seen": now, "since": at}
    for words, kept in ((["--since", "last-visit"], killed), ([], open_again)):
        state_file().write_text(json.dumps({"visits": {"1": {"project": str(sample), **kept}}}))
        document = call("changes", *words, "--json").document
        assert document["since"][:16] == visited.isoformat()[:16]
    state_file().write_text('{"visits": [1]}')
    assert call("changes").code == 0


def test_moments_that_are_none(sample: Path, call: Call) -> None:
    for words in (["--since", "soon"], ["--since", "2999-01-01"], ["--until", "99999999999d"], ["--since", "0d"]):
        result = call("changes", *words)
        assert (result.code, result.out) == (2, "")


def test_patterns_as_of_a_day(sample: Path, call: Call) -> None:
    def states(*words: str) -> dict[str, str]:
        found = call("pattern", "list", *words, "--json").document["patterns"]
        return {pattern["id"]: pattern["state"] for pattern in found}

    now, then = states(), states("--as-of", "20d")
    assert then.keys() < now.keys()
    assert any(now[id] != state for id, state in then.items())
    shown = call("pattern", "show", PATTERN, "--as-of", "20d", "--json").document
    assert shown["pattern"]["state"] == then[PATTERN]
    assert all(seen["at"] is None or seen["at"] < datetime.now(UTC).isoformat() for seen in shown["evidence"])


def test_thresholds_without_effect_are_reported(sample: Path, call: Call) -> None:
    unchanged = call("changes", "min_helpful=5", "max_harmful=15%")
    assert (unchanged.code, unchanged.err) == (0, "") and "Nothing changes" in unchanged.out
    assert "Warning: maturity.multiplier_proven changes no state" in call("changes", "multiplier_proven=3").err


def test_other_thresholds_change_states(sample: Path, call: Call) -> None:
    words = ["changes", "maturity.half_life_days=20", "--json"]
    document = call(*words).document
    assert [(t["name"], t["value"]) for t in document["tried"]] == [("maturity.half_life_days", 20.0)]
    states = Counter(pattern["computed_state"] for pattern in call("pattern", "list", "--json").document["patterns"])
    assert {count["state"]: count["before"] for count in document["counts"]} == states
    moved = Counter[str]()
    for turn in document["turns"]:
        moved[turn["before"]] -= 1
        moved[turn["after"]] += 1
    assert document["turns"]
    for count in document["counts"]:
        assert count["after"] - count["before"] == moved[count["state"]]
    plain = call("changes", "maturity.half_life_days=20").out
    assert plain.startswith("maturity.half_life_days: 90 → 20\n")
    assert all(turn["id"] in plain for turn in document["turns"])


def test_without_arguments_it_lists_the_thresholds(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [known.name for known in THRESHOLDS]
    assert [line.split()[0] for line in call("changes", "--thresholds").out.splitlines()[1:]] == names
    assert [known["name"] for known in call("changes", "--thresholds", "--json").document["thresholds"]] == names


def test_an_invalid_threshold_or_value_is_wrong_usage(sample: Path, call: Call) -> None:
    for words, reported in (
        ("half_life_days=3", "is ambiguous; use maturity.half_life_days"),
        ("maturity.half_life_days=0", "above 0"),
        ("maturity.half_life_days=nan", "above 0"),
        ("min_helpfull=1", "did you mean maturity.min_helpful"),
        ("zzz=1", "no threshold 'zzz'\nTo list them: ralphdeck changes --thresholds"),
        ("max_harmful=2", "0 to 1"),
        ("max_marks=1.5", "whole number"),
        ("max_marks", "NAME=VALUE"),
        ("min_helpful=3 maturity.min_helpful=4", "maturity.min_helpful is given twice"),
        ("success_weight=0 duration_weight=0 errors_weight=0 retries_weight=0", "retries_weight cannot all be 0"),
    ):
        result = call("changes", *words.split(), "--json")
        assert (result.code, result.out) == (2, "") and reported in result.err, words


def test_criteria_weigh_something_else_under_other_thresholds(sample: Path, call: Call) -> None:
    for result in ("--success", "--failure", "--failure"):
        call("loop", "record", "bd-1", "--criterion", "own_check", result)
    answer = call("changes", "max_harmful_ratio=90%", "--json")
    (found,) = [one for one in answer.document["criteria"] if one["criterion"] == "own_check"]
    assert (found["deprecated_before"], found["effective_weight_before"]) == (True, 0.0)
    assert (found["deprecated"], round(found["effective_weight"], 2)) == (False, 0.33)
    assert "own_check" in call("changes", "max_harmful_ratio=90%").out
