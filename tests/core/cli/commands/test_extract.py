from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.cli.conftest import Call

MAILER = "ralph-fix-null-customer-crash-in-the-644aee36"
SESSION = "f9b78063-aed0-4736-9e65-33eecba3295e"


def proposals(call: Call, project: Path, *words: str) -> list[dict[str, Any]]:
    document = call("loop", "extract", *words, "--json", "--project", project).document
    return [proposal for extraction in document["extractions"] for proposal in extraction["proposals"]]


def ids(call: Call, project: Path) -> set[str]:
    document = call("pattern", "list", "--json", "--project", project).document
    return {pattern["id"] for pattern in document["patterns"]}


def test_a_dry_run_shows_and_writes_nothing(sample: Path, call: Call) -> None:
    before = {file: file.read_bytes() for file in sorted(sample.rglob("*")) if file.is_file()}
    result = call("loop", "extract", "current-loop", "--dry-run")
    assert result.code == 0
    assert "+ success refactoring: Clean up the lint warnings of the workers" in result.out
    assert "from 2 steps of iterations 1, 2" in result.out
    assert {file: file.read_bytes() for file in sorted(sample.rglob("*")) if file.is_file()} == before


def test_extraction_of_a_loop_is_one_decision_that_can_be_undone(sample: Path, call: Call) -> None:
    before = ids(call, sample)
    document = call("loop", "extract", "current-loop", "--reason", "done", "--json").document
    (extraction,) = document["extractions"]
    decision = extraction["decided"]["decision"]
    assert (decision["verb"], decision["subject"], decision["by"]) == ("extract", "current-loop", "ada")
    assert ids(call, sample) - before == {"pat-success-clean-up-lint-warnings-001"}
    shown = call("pattern", "show", "pat-success-clean-up-lint-warnings-001", "--json").document
    assert shown["pattern"]["state"] == "candidate"
    assert [source["loop_id"] for source in shown["pattern"]["source_loops"]] == ["current-loop"]
    again = call("loop", "extract", "current-loop")
    known = "already known from this loop as pat-success-clean-up-lint-warnings-001"
    assert (again.code, again.err) == (0, f"nothing to extract from current-loop: {known}\n") and known in again.out
    call("undo")
    assert ids(call, sample) == before


def test_only_some_types_and_debug_sessions(sample: Path, call: Call) -> None:
    found = proposals(call, sample, "--all", "--dry-run", "--types", "error,anti")
    assert {proposal["type"] for proposal in found} == {"error", "anti"}
    for proposal in proposals(call, sample, SESSION, "--dry-run"):
        assert (proposal["type"], proposal["trace"]) == ("error", [f"debug session {SESSION}, attempt 1"])
        assert MAILER in json.dumps(proposal["record"]["source_loops"])


def test_extract_all_reports_that_nothing_has_ended(tmp_path: Path, call: Call) -> None:
    (tmp_path / ".aiwg" / "ralph").mkdir(parents=True)
    done = call("loop", "extract", "--all", "--project", tmp_path)
    assert (done.code, done.out, done.err) == (
        0,
        "",
        "nothing to extract; for the reason: ralphdeck loop extract LOOP\n",
    )


def test_hostile_text_of_a_loop_stays_text(sample: Path, call: Call) -> None:
    folder = sample / ".aiwg/ralph/loops/ralph-evil-00000001"
    folder.mkdir()
    task = "Fix \x1b]52;c;QUFB\x07 the (a|a)* login\u202e form"
    failed = {"number": 1, "result": f"1 failing: {task} broke", "verified": False}
    passed = {"number": 2, "action": f"Mended {task}", "verified": True}
    state = {"task": task, "status": "completed", "iterations": [failed, passed]}
    (folder / "state.json").write_text(json.dumps(state))
    result = call("loop", "extract", "ralph-evil-00000001")
    assert result.code == 0
    assert "\x1b" not in result.out and "\u202e" not in result.out
    assert all(identifier.isascii() and identifier.isprintable() for identifier in ids(call, sample))


def test_wrong_usage(sample: Path, call: Call) -> None:
    for words in ([], ["x", "--all"], ["x", "--types", "other"]):
        assert call("loop", "extract", *words).code == 2
    unknown = call("loop", "extract", "../../etc/passwd")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (1, "", 1)


def write_loop(project: Path, status: str, iterations: list[dict[str, Any]]) -> None:
    folder = project / ".aiwg/ralph/loops/ralph-deadlocks"
    folder.mkdir(parents=True)
    state = {"task": "Stop the deadlocks of the order service", "status": status, "iterations": iterations}
    (folder / "state.json").write_text(json.dumps(state))


def test_nothing_to_extract_prints_the_reason(tmp_path: Path, call: Call) -> None:
    write_loop(tmp_path, "aborted", [{"number": 1, "action": "Looked around", "error": "row locked by another"}])
    plain = call("loop", "extract", "ralph-deadlocks", "--project", tmp_path)
    why = (
        "no error was fixed; the goal was not reached (the loop is aborted); "
        "no error occurred 3 times, and no approach was recorded as wrong"
    )
    assert (plain.code, plain.err) == (0, f"nothing to extract from ralph-deadlocks: {why}\n")
    (found,) = call("loop", "extract", "ralph-deadlocks", "--json", "--project", tmp_path).document["extractions"]
    assert (found["nothing"], found["missing"]) == (why, why.split("; "))
