from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Call

RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"
ABORTED = "ralph-rewrite-the-session-store-on-r-152dfe93"


def test_what_has_come_out_newest_first(sample: Path, call: Call) -> None:
    document = call("score", "--json", "--project", sample).document
    outcomes = document["outcomes"]
    times = [one["signals"]["timestamp"] for one in outcomes]
    assert times == sorted(times, reverse=True)
    assert {one["kind"] for one in outcomes} == {"loop", "attempt", "reported"}
    weights = {"success": 0.4, "duration": 0.2, "errors": 0.2, "retries": 0.2}
    for one in outcomes:
        assert one["raw"] == pytest.approx(sum(weights[name] * part for name, part in one["parts"].items()))
        assert one["decayed"] == pytest.approx(one["raw"] * one["decay"])
        assert one["reasoning"].startswith(f"{one['verdict']}, ")
        for use in one["patterns"]:
            assert set(use) == {"id", "success", "inferred"}
    finished = {one["id"] for one in outcomes}
    assert RUNNING not in finished and ABORTED not in finished
    lines = call("score", "--project", sample).out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [one["id"] for one in outcomes]


def test_the_patterns_are_those_that_the_loop_applied(sample: Path, call: Call) -> None:
    for one in call("score", "--json", "--project", sample).document["outcomes"]:
        for use in one["patterns"]:
            evidence = call("patterns", "show", use["id"], "--json", "--project", sample).document["evidence"]
            same = [seen for seen in evidence if seen["loop_id"] == one["id"] and seen["kind"] == "applied"]
            assert (use["success"], use["inferred"]) in [(seen["success"], seen["inferred"]) for seen in same]


def test_criteria_in_text_and_inversions_in_json(sample: Path, call: Call) -> None:
    document = call("score", "--json", "--project", sample).document
    due = call("invert", "--json", "--project", sample).document["proposals"]
    assert sorted(document["inversions"]) == sorted(proposal["id"] for proposal in due)
    by_name = {weight["criterion"]: weight for weight in document["criteria"]}
    assert by_name["no_file_conflicts"]["deprecated"] and by_name["no_file_conflicts"]["effective_weight"] == 0
    assert by_name["type_safe"]["weight"] == by_name["type_safe"]["effective_weight"]
    out = call("score", "--criteria", "--project", sample).out
    assert [line.split()[0] for line in out.splitlines()[1:]] == sorted(by_name)
    assert "deprecated" in out


def test_only_the_named_ones(sample: Path, call: Call) -> None:
    words = ["score", "task-001.2", "bd-41.2", "task-001.2", "--json", "--project", str(sample)]
    assert [one["id"] for one in call(*words).document["outcomes"]] == ["bd-41.2", "task-001.2"]


@pytest.mark.parametrize(("bead", "word"), [(RUNNING, "is running"), (ABORTED, "is aborted"), ("bd-0", "'bd-0'|bd-0")])
def test_what_has_not_come_out_is_one_line(bead: str, word: str, sample: Path, call: Call) -> None:
    result = call("score", bead, "--json", "--project", sample)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert any(part in result.err for part in word.split("|"))


def test_beads_and_criteria_exclude_each_other(sample: Path, call: Call) -> None:
    assert call("score", "bd-41.2", "--criteria", "--project", sample).code == 2


def test_nothing_has_come_out_in_an_empty_project(tmp_path: Path, call: Call) -> None:
    result = call("score", "--project", tmp_path)
    assert (result.code, result.out, result.err) == (0, "", "nothing has come out yet\n")
    document = call("score", "--json", "--project", tmp_path).document
    assert document == {"outcomes": [], "criteria": [], "inversions": [], "findings": []}
    assert call("score", "--criteria", "--project", tmp_path).err == "no feedback on any criterion\n"
