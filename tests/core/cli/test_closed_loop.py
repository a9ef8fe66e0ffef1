"""From a running loop to changed states, through the command line alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

LOOP = "ralph-fix-the-importer-0a1b2c3d"
GOOD, BAD = "pat-error-good-001", "pat-error-bad-002"
OTHERS = tuple(f"pat-error-other-{number:03}" for number in range(6))


def pattern(pattern_id: str, successes: int, failures: int) -> dict[str, Any]:
    return {
        "pattern_id": pattern_id,
        "name": pattern_id,
        "error_signature": {"type": "TypeError", "pattern": pattern_id},
        "fix_approach": {"category": "guard", "description": f"what {pattern_id} does"},
        "usage_count": successes + failures,
        "success_rate": successes / (successes + failures),
        "successful_applications": successes,
        "failed_applications": failures,
        "last_used": datetime.now(UTC).isoformat(),
    }


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A loop at work; one pattern is a success short of established, one a failure short of inversion."""
    monkeypatch.setenv("RALPHDECK_PROJECT", str(tmp_path))
    patterns = tmp_path / ".aiwg/ralph/shared/patterns"
    patterns.mkdir(parents=True)
    records = [pattern(GOOD, 2, 0), pattern(BAD, 1, 1), *(pattern(other, 4, 0) for other in OTHERS)]
    (patterns / "error-patterns.json").write_text(json.dumps({"error_patterns": records}))
    write_loop(tmp_path, "running")
    return tmp_path


def write_loop(project: Path, status: str, minutes: float = 40, failed: int = 0) -> None:
    start = datetime.now(UTC) - timedelta(minutes=minutes)
    state: dict[str, Any] = {
        "loopId": LOOP,
        "task": "Fix the importer",
        "status": status,
        "startTime": start.isoformat(),
        "iterations": [
            {"number": number + 1, "outcome": "failure" if number < failed else "success"}
            for number in range(failed + 1)
        ],
    }
    if status != "running":
        state["endTime"] = datetime.now(UTC).isoformat()
    folder = project / ".aiwg/ralph/loops" / LOOP
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_text(json.dumps(state))


def states(call: Call) -> dict[str, str]:
    listed = call("pattern", "list", "--json").document["patterns"]
    return {found["id"]: found["state"] for found in listed}


def test_a_successful_loop_establishes_its_applied_patterns(project: Path, call: Call) -> None:
    assert states(call)[GOOD] == "candidate"
    assert call("loop", "record", LOOP, GOOD, "--iteration", "1").code == 0
    assert states(call)[GOOD] == "candidate"
    assert call("loop", "score", LOOP).err == (
        f"Error: {LOOP} is running; record its outcome with: ralphdeck loop record {LOOP} --outcome\n"
    )
    write_loop(project, "completed", minutes=4)
    (scored,) = call("loop", "score", LOOP, "--json").document["outcomes"]
    assert scored["verdict"] == "helpful"
    assert scored["patterns"] == [{"id": GOOD, "success": True, "inferred": True}]
    assert states(call)[GOOD] == "established"


def test_a_failing_loop_deprecates_its_applied_patterns_and_proposes_inversions(project: Path, call: Call) -> None:
    for pattern_id in (GOOD, BAD):
        call("loop", "record", LOOP, pattern_id, "--iteration", "1")
    for number in range(2):
        call("loop", "record", f"bd-{number}", BAD)
        call("loop", "record", f"bd-{number}", "--outcome", "--failure", "--errors", "4")
    before = states(call)
    write_loop(project, "failed", failed=3)
    document = call("loop", "score", LOOP, "--json").document
    (scored,) = document["outcomes"]
    assert scored["verdict"] == "harmful"
    assert scored["patterns"] == [
        {"id": pattern_id, "success": False, "inferred": True} for pattern_id in sorted((GOOD, BAD))
    ]
    after = states(call)
    assert (after[BAD], document["inversions"]) == ("deprecated", [BAD])
    assert before[GOOD] != after[GOOD]
    out = call("pattern", "show", BAD, "--why").out
    assert LOOP in out
    (listed,) = call("loop", "list", "--json").document["loops"]
    assert listed["outcome"]["reasoning"] == scored["reasoning"]


def test_suspicious_reports_are_held_discarded_and_restored(project: Path, call: Call) -> None:
    before = states(call)
    *counted, held = (call("loop", "record", LOOP, other, "--failure").out for other in OTHERS)
    assert not [out for out in counted if "held: " in out]
    assert held.splitlines()[-1] == (
        f"held: {LOOP} reports 6 patterns as harmful; it was given none of them; its reports are held until you "
        "decide; see: ralphdeck review --suspicious"
    )
    assert states(call) == before
    (burst,) = call("review", "--suspicious", "--json").document["bursts"]
    assert (burst["source"], burst["patterns"]) == (LOOP, sorted(OTHERS))

    assert call("review", LOOP, "--suspicious", "--revoke", "--reason", "guesses").code == 0
    assert call("review", "--suspicious", "--json").document["bursts"] == []
    assert states(call) == before
    again = call("loop", "record", LOOP, GOOD, "--failure")
    assert "were discarded; this one does not count" in again.err

    assert call("undo").code == 0
    (burst,) = call("review", "--suspicious", "--json").document["bursts"]
    assert set(burst["patterns"]) == {*OTHERS, GOOD}
    call("review", LOOP, "--suspicious", "--confirm")
    failures = call("pattern", "show", OTHERS[0], "--json").document["pattern"]["failures"]
    assert failures == 1
