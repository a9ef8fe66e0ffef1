from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

DUE = "pat-success-split-by-type-002"


def proposals(call: Call, project: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("pattern", "invert", "--json", "--project", project).document["proposals"]
    return found


def anti_patterns(call: Call, project: Path) -> dict[str, str]:
    document = call("pattern", "list", "--type", "anti", "--json", "--project", project).document
    return {pattern["id"]: pattern["title"] for pattern in document["patterns"]}


def test_without_a_verdict_it_lists_the_proposals(sample: Path, call: Call) -> None:
    found = {proposal["id"]: proposal for proposal in proposals(call, sample)}
    assert len(found) == 2
    assert found[DUE]["text"] == "AVOID: Split work by file type. Failed 5/7 times (71% failure rate)"
    assert (found[DUE]["failures"], found[DUE]["total"], len(found[DUE]["source_loops"])) == (5, 7, 5)
    out = call("pattern", "invert", "--project", sample).out
    assert all(proposal["text"] in out for proposal in found.values())
    assert call("pattern", "invert", DUE, "--json", "--project", sample).document["proposals"] == [found[DUE]]


def test_accept_makes_an_anti_pattern_and_undo_takes_it_back(sample: Path, call: Call) -> None:
    before = anti_patterns(call, sample)
    assert call("pattern", "invert", DUE, "--accept", "--project", sample).code == 0
    assert set(anti_patterns(call, sample)) - set(before) == {"pat-anti-split-by-type-001"}
    assert DUE not in {proposal["id"] for proposal in proposals(call, sample)}
    call("undo", "--project", sample)
    assert anti_patterns(call, sample) == before
    assert DUE in {proposal["id"] for proposal in proposals(call, sample)}


def test_a_rewrite_is_accepted_with_its_own_words(sample: Path, call: Call) -> None:
    text = "AVOID: splitting by type before the shared types compile"
    result = call("pattern", "invert", DUE, "--text", text, "--json", "--project", sample)
    assert result.document["decision"]["after"]["text"] == text
    shown = call("pattern", "show", "pat-anti-split-by-type-001", "--project", sample).out
    assert "splitting by type before the shared types compile" in shown


@pytest.mark.parametrize(("verdict", "verb"), [(["--reject"], "reject_inversion"), (["--snooze", "7"], "snooze")])
def test_reject_and_snooze_remove_it_from_the_list(verdict: list[str], verb: str, sample: Path, call: Call) -> None:
    result = call("pattern", "invert", DUE, *verdict, "--reason", "later", "--json", "--project", sample)
    assert (result.document["decision"]["verb"], result.document["decision"]["reason"]) == (verb, "later")
    assert DUE not in {proposal["id"] for proposal in proposals(call, sample)}


def test_auto_accepts_all(sample: Path, call: Call) -> None:
    result = call("pattern", "invert", "--auto", "--json", "--project", sample)
    assert [d["decision"]["verb"] for d in result.document["decisions"]] == ["accept_inversion"] * 2
    assert proposals(call, sample) == []
    assert call("pattern", "invert", "--auto", "--project", sample).err == "no pattern is due for inversion\n"


def test_a_pattern_that_is_not_due_is_refused(sample: Path, call: Call) -> None:
    for verdict in ([], ["--accept"], ["--reject"]):
        result = call("pattern", "invert", "pat-error-null-check-015", *verdict, "--project", sample)
        assert (result.code, result.out) == (1, "")
        assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--accept"],
        [DUE, "--auto"],
        [DUE, "--accept", "--reject"],
        [DUE, "--text", "x", "--snooze", "1"],
        [DUE, "--snooze", "0"],
        [DUE, "--reason", "x"],
    ],
)
def test_verdicts_exclude_each_other(words: list[str], sample: Path, call: Call) -> None:
    assert call("pattern", "invert", *words, "--project", sample).code == 2
