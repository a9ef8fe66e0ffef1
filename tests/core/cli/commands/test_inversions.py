from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.cli.conftest import Call

DUE = "pat-success-split-by-type-002"


def proposals(call: Call) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("pattern", "invert", "--json").document["proposals"]
    return found


def anti_patterns(call: Call) -> dict[str, str]:
    document = call("pattern", "list", "--type", "anti", "--json").document
    return {pattern["id"]: pattern["title"] for pattern in document["patterns"]}


def test_without_a_verdict_it_lists_the_proposals(sample: Path, call: Call) -> None:
    found = {proposal["id"]: proposal for proposal in proposals(call)}
    assert len(found) == 2
    assert found[DUE]["text"] == "AVOID: Split work by file type. Failed 5/7 times (71% failure rate)"
    assert (found[DUE]["failures"], found[DUE]["total"], len(found[DUE]["source_loops"])) == (5, 7, 5)
    out = call("pattern", "invert").out
    assert all(proposal["text"] in out for proposal in found.values())
    assert call("pattern", "invert", DUE, "--json").document["proposals"] == [found[DUE]]


def test_accept_makes_an_anti_pattern_and_undo_takes_it_back(sample: Path, call: Call) -> None:
    before = anti_patterns(call)
    assert call("pattern", "invert", DUE, "--accept").code == 0
    assert set(anti_patterns(call)) - set(before) == {"pat-anti-split-by-type-001"}
    assert DUE not in {proposal["id"] for proposal in proposals(call)}
    call("undo")
    assert anti_patterns(call) == before
    assert DUE in {proposal["id"] for proposal in proposals(call)}


def test_wrong_verdicts_are_refused(sample: Path, call: Call) -> None:
    for verdict in ([], ["--accept"], ["--reject"]):
        result = call("pattern", "invert", "pat-error-null-check-015", *verdict)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1), "it is not due"
    for words in (["--accept"], [DUE, "--auto"], [DUE, "--accept", "--reject"], [DUE, "--snooze", "0"]):
        assert call("pattern", "invert", *words).code == 2


def test_reject_and_snooze_remove_it_from_the_list(sample: Path, call: Call) -> None:
    for verdict, verb in ((["--reject"], "reject_inversion"), (["--snooze", "7"], "snooze")):
        decision = call("pattern", "invert", DUE, *verdict, "--reason", "later", "--json").document["decision"]
        assert (decision["verb"], decision["reason"]) == (verb, "later")
        assert DUE not in {proposal["id"] for proposal in proposals(call)}
        call("undo")


def test_auto_accepts_all(sample: Path, call: Call) -> None:
    result = call("pattern", "invert", "--auto", "--json")
    assert [d["decision"]["verb"] for d in result.document["decisions"]] == ["accept_inversion"] * 2
    assert proposals(call) == []
    assert call("pattern", "invert", "--auto").err == "no pattern is due for inversion\n"
