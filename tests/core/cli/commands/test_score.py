from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"
ABORTED = "ralph-rewrite-the-session-store-on-r-152dfe93"


def test_finished_work_is_listed_newest_first(sample: Path, call: Call) -> None:
    outcomes = call("loop", "score", "--json").document["outcomes"]
    times = [one["signals"]["timestamp"] for one in outcomes]
    assert times == sorted(times, reverse=True)
    assert {one["kind"] for one in outcomes} == {"loop", "attempt", "reported"}
    finished = [one["id"] for one in outcomes]
    assert RUNNING not in finished and ABORTED not in finished
    assert [line.split()[0] for line in call("loop", "score").out.splitlines()[1:]] == finished
    named = call("loop", "score", "task-001.2", "bd-41.2", "task-001.2", "--json").document["outcomes"]
    assert [one["id"] for one in named] == ["bd-41.2", "task-001.2"]


def test_criteria_in_text_and_inversions_in_json(sample: Path, call: Call) -> None:
    document = call("loop", "score", "--json").document
    due = call("pattern", "invert", "--json").document["proposals"]
    assert sorted(document["inversions"]) == sorted(proposal["id"] for proposal in due)
    by_name = {weight["criterion"]: weight for weight in document["criteria"]}
    assert by_name["no_file_conflicts"]["deprecated"] and by_name["no_file_conflicts"]["effective_weight"] == 0
    assert by_name["type_safe"]["weight"] == by_name["type_safe"]["effective_weight"]
    out = call("loop", "score", "--criteria").out
    assert [line.split()[0] for line in out.splitlines()[1:]] == sorted(by_name)
    assert "deprecated" in out


def test_unfinished_work_is_one_line(sample: Path, call: Call) -> None:
    for work, word in ((RUNNING, "is running"), (ABORTED, "is aborted"), ("bd-0", "bd-0")):
        result = call("loop", "score", work, "--json")
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1) and word in result.err
    assert call("loop", "score", "bd-41.2", "--criteria").code == 2


def test_scores_are_weighed_by_the_criteria(sample: Path, call: Call) -> None:
    for result in ("--success", "--failure"):
        call("loop", "record", "bd-1", "--criterion", "own_check", result)
    words = ("loop", "score", "--criteria", "own_check=0.8", "unheard_of=40%")
    weighted = call(*words, "--json").document["weighted"]
    assert [(one["criterion"], round(one["weight"], 3)) for one in weighted["scores"]] == [
        ("own_check", 0.5),
        ("unheard_of", 1.0),
    ]
    assert weighted["total"] == pytest.approx((0.8 * 0.5 + 0.4) / 1.5, abs=1e-3)
    assert call(*words).out.splitlines()[-1] == "total: 0.53"


def test_an_empty_project_has_no_finished_work(tmp_path: Path, call: Call) -> None:
    result = call("loop", "score", "--project", tmp_path)
    assert (result.code, result.out, result.err) == (0, "", "no loop or attempt has ended yet\n")
    document = call("loop", "score", "--json", "--project", tmp_path).document
    assert document == {"outcomes": [], "criteria": [], "weighted": None, "inversions": [], "findings": []}
    assert call("loop", "score", "--criteria", "--project", tmp_path).err == "no feedback on any criterion\n"


def write_loop(project: Path, name: str, **state: Any) -> Path:
    """A loop of 45 minutes that completed, and where its state is."""
    folder = project / ".aiwg/ralph/loops" / name
    folder.mkdir(parents=True, exist_ok=True)
    times = {"startTime": "2026-02-02T15:00:00Z", "endTime": "2026-02-02T15:45:00Z"}
    (folder / "state.json").write_text(json.dumps({"loopId": name, "status": "completed", **times, **state}))
    return folder


def null_error(name: str, line: int) -> dict[str, str]:
    message = f"Cannot read property '{name}' of null"
    return {"type": "TypeError", "message": message, "location": f"src/auth/validate.ts:{line}"}


FIXED = {
    "fix_applied": {"description": "Added null check for user object"},
    "test_results": {"passed": 12, "failed": 0},
}


def test_the_errors_that_iterations_record_count(tmp_path: Path, call: Call) -> None:
    """Success 1 x 0.4, over 30 minutes 0.2 x 0.2, three errors 0.2 x 0.2, two retries 0.3 x 0.2."""
    iterations = [
        {"number": 1, "errors": [null_error("email", 42), null_error("name", 43)]},
        {"number": 2, "status": "completed", "error": null_error("id", 44)},
        {"number": 3, **FIXED},
    ]
    write_loop(tmp_path, "ralph-errs", iterations=iterations)
    (scored,) = call("loop", "score", "ralph-errs", "--json", "--project", tmp_path).document["outcomes"]
    assert (scored["raw"], scored["verdict"]) == (0.54, "neutral")
    assert (scored["signals"]["error_count"], scored["signals"]["retry_count"]) == (3, 2)
    assert scored["parts"] == {"success": 1, "duration": 0.2, "errors": 0.2, "retries": 0.3}
    (listed,) = call("loop", "list", "--json", "--project", tmp_path).document["loops"]
    assert [listed["outcome"][key] for key in ("raw", "error_count", "retry_count")] == [0.54, 3, 2]
    assert "unclear" in call("loop", "score", "ralph-errs", "--project", tmp_path).out
    dry = call("loop", "record", "ralph-errs", "--outcome", "--dry-run", "--json", "--project", tmp_path).document
    assert dry["outcome"]["raw"] == 0.54
    for name, line in (("email", 42), ("name", 43), ("id", 44)):
        error = null_error(name, line)
        logged = f"{error['type']}: {error['message']}"
        assert call("loop", "record", "ralph-errs", "--error", logged, "--project", tmp_path).code == 0
    (again,) = call("loop", "score", "ralph-errs", "--json", "--project", tmp_path).document["outcomes"]
    assert again["signals"]["error_count"] == 3


def test_a_partial_loop_has_an_outcome_and_can_be_extracted(tmp_path: Path, call: Call) -> None:
    iterations = [{"number": 1, "error": null_error("id", 44)}, {"number": 2, **FIXED}]
    write_loop(tmp_path, "ralph-part", status="partial", task="Fix the null user crash", iterations=iterations)
    (loop,) = call("loop", "list", "--status", "partial", "--json", "--project", tmp_path).document["loops"]
    assert (loop["status"], loop["liveness"], loop["outcome"]["verdict"]) == ("partial", "ended", "neutral")
    (scored,) = call("loop", "score", "--json", "--project", tmp_path).document["outcomes"]
    assert (scored["signals"]["success"], scored["signals"]["partial"]) == (False, True)
    assert scored["raw"] == 0.5 * 0.4 + 0.2 * 0.2 + 0.6 * 0.2 + 0.7 * 0.2
    assert "partial success 0.5" in call("loop", "score", "--project", tmp_path).out
    call("loop", "inject", "ralph-part", "--project", tmp_path)
    extracted = call("loop", "extract", "ralph-part", "--json", "--project", tmp_path).document["extractions"]
    assert [one["type"] for one in extracted[0]["proposals"]] == ["error"]
    call("loop", "record", "ralph-part", "pat-error-null-check-001", "--project", tmp_path)
    metrics = call("metrics", "--json", "--project", tmp_path).document
    assert metrics["effectiveness_metrics"]["cross_loop_benefit"]["loops_with_pattern_injection"] == 1
