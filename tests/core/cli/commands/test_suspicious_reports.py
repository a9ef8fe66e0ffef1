from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

SOURCE = "ralph-rewrite-the-session-store-on-r-152dfe93"


def held(call: Call, project: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("review", "--suspicious", "--json", "--project", project).document["bursts"]
    return found


def test_it_lists_held_texts(sample: Path, call: Call) -> None:
    (burst,) = held(call, sample)
    assert (burst["source"], len(burst["patterns"]), burst["never_applied"]) == (SOURCE, 8, 8)
    assert burst["first"] < burst["last"]
    lines = call("review", "--suspicious", "--project", sample).out.splitlines()
    assert lines[1].split()[:3] == [SOURCE, "8", "8"]
    assert call("review", SOURCE, "--suspicious", "--project", sample).out.splitlines()[2:] == [
        f"  {id}" for id in burst["patterns"]
    ]


@pytest.mark.parametrize(
    ("verdict", "verb", "word"), [("--revoke", "revoke", "discard reports"), ("--confirm", "confirm", "count reports")]
)
def test_a_verdict_is_a_decision_that_can_be_undone(
    verdict: str, verb: str, word: str, sample: Path, call: Call
) -> None:
    before = held(call, sample)
    words = [
        "review",
        SOURCE,
        "--suspicious",
        verdict,
        "--reason",
        "never read",
        "--by",
        "grace",
        "--json",
        "--project",
        str(sample),
    ]
    decision = call(*words).document["decision"]
    assert (decision["verb"], decision["subject"], decision["by"]) == (verb, SOURCE, "grace")
    assert decision["reason"] == "never read"
    assert held(call, sample) == []
    assert call("review", "--suspicious", "--project", sample).err == "no suspicious reports\n"
    assert word in call("log", "--limit", "1", "--project", sample).out
    call("undo", "--any-author", "--project", sample)
    assert held(call, sample) == before


def test_a_source_that_is_not_held_is_one_line(sample: Path, call: Call) -> None:
    for words in ([], ["--revoke"]):
        result = call("review", "by nobody", "--suspicious", *words, "--project", sample)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("words", [["--revoke"], ["--confirm"], [SOURCE, "--revoke", "--confirm"]])
def test_wrong_usage(words: list[str], sample: Path, call: Call) -> None:
    assert call("review", *words, "--suspicious", "--project", sample).code == 2
