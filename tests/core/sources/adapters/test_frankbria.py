"""The adapter of ralph-claude-code, in `.ralph` and in the flat layout."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from core.records.loops import Liveness, LoopStatus, StateSource
from core.sources.adapters.frankbria import FrankbriaAdapter
from tests.core.sources.adapters.fixtures import NOW, Case, open_case

INFERRED, REPORTED = StateSource.INFERRED, StateSource.REPORTED
NEWEST = "frankbria:20261120-113001"
CONTEXT = "### Success Patterns\n\n1. **Small steps** (90% success, 3 uses)\n   - Steps: commit\n"
RUNNING, CRASHED, FAILED = LoopStatus.RUNNING, LoopStatus.CRASHED, LoopStatus.FAILED
COMPLETED, LIMIT, ABORTED = LoopStatus.COMPLETED, LoopStatus.LIMIT, LoopStatus.ABORTED


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(FrankbriaAdapter(), f"frankbria/{case}", tmp_path / "case")


def ralph(case: Case, name: str) -> Path:
    return case.project / ".ralph" / name


def set_status(case: Case, status: str, action: str = "", reason: str = "") -> None:
    """Write status.json as the runner does, at the time of the case."""
    path = ralph(case, "status.json")
    document = json.loads(path.read_text()) | {"status": status, "last_action": action, "exit_reason": reason}
    path.write_text(json.dumps(document))
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))


@pytest.mark.parametrize(
    ("status", "action", "reason", "expected"),
    [
        ("completed", "graceful_exit", "project_complete", (COMPLETED, "project_complete")),
        ("completed", "graceful_exit", "plan_complete", (COMPLETED, "plan_complete")),
        ("completed", "graceful_exit", "completion_signals", (COMPLETED, "completion_signals")),
        ("completed", "graceful_exit", "test_saturation", (COMPLETED, "test_saturation")),
        ("stopped", "api_limit_exit", "api_5hour_limit", (LIMIT, "api_5hour_limit")),
        ("stopped", "cost_limit", "e2b_cost_limit", (LIMIT, "e2b_cost_limit")),
        ("completed", "max_loops", "max_loops_reached", (LIMIT, "max_loops_reached")),
        ("halted", "circuit_breaker_open", "stagnation_detected", (FAILED, "stagnation_detected")),
        ("halted", "permission_denied", "permission_denied", (FAILED, "permission_denied")),
        ("halted", "integrity_failure", "files_deleted", (FAILED, "files_deleted")),
        ("stopped", "interrupted", "", (ABORTED, "interrupted")),
        ("paused", "user", "", (LoopStatus.PAUSED, "user")),
        ("paused", "api_limit", "", (LoopStatus.WAITING, "api_limit")),
        ("running", "executing", "", (RUNNING, "")),
        ("success", "completed", "", (RUNNING, "")),
        ("error", "failed", "", (RUNNING, "")),
        ("new_word", "", "", (LoopStatus.UNKNOWN, "new_word")),
    ],
)
def test_the_state_is_that_of_status_json(
    tmp_path: Path, status: str, action: str, reason: str, expected: tuple[LoopStatus, str]
) -> None:
    case = open_("running", tmp_path)
    set_status(case, status, action, reason)
    loop = case.loops()[NEWEST]
    assert (loop.status, loop.end_reason) == expected
    assert loop.state_source is (INFERRED if status == "new_word" else REPORTED)
    assert loop.raw_status == status
    assert (loop.ended_at is not None) is loop.status.ended


@pytest.mark.parametrize(
    ("status", "age", "pid", "expected"),
    [
        ("running", 59, None, (RUNNING, REPORTED, Liveness.FRESH)),
        ("running", 300, None, (RUNNING, INFERRED, Liveness.FRESH)),
        ("running", 601, None, (CRASHED, INFERRED, Liveness.DEAD)),
        ("running", 9999, 42, (RUNNING, REPORTED, Liveness.ALIVE)),
        ("success", 601, None, (CRASHED, INFERRED, Liveness.DEAD)),
        ("error", 601, None, (FAILED, REPORTED, Liveness.ENDED)),
    ],
)
def test_a_running_loop_needs_a_process_or_a_sign(
    tmp_path: Path, status: str, age: int, pid: int | None, expected: tuple[LoopStatus, StateSource, Liveness]
) -> None:
    case = open_("running", tmp_path)
    set_status(case, status, "executing")
    case.now = NOW + timedelta(seconds=age)
    if pid is not None:
        case.processes.programs["ralph_loop.sh", case.project] = pid
    loop = case.loops()[NEWEST]
    assert (loop.status, loop.state_source, loop.liveness) == expected
    assert (loop.badges == ("crashed",)) is (expected[0] is CRASHED)


def test_a_question_after_which_no_loop_begins_waits(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    analysis = ralph(case, ".response_analysis")
    analysis.write_text(analysis.read_text().replace('"asking_questions": false', '"asking_questions": true'))
    set_status(case, "success", "completed")
    os.utime(analysis, (NOW.timestamp(), NOW.timestamp()))
    assert case.loops()[NEWEST].status is RUNNING
    case.now = NOW + timedelta(minutes=2)
    loop = case.loops()[NEWEST]
    assert (loop.status, loop.end_reason) == (LoopStatus.WAITING, "asking_questions")


@pytest.mark.parametrize(
    ("prompt", "plan", "expected"),
    [
        ("# Ralph Development Instructions\n## Context\nYou are Ralph.\n", "- [ ] Show cents\n", "Show cents"),
        ("", "# Fix plan\n\n## High priority\n- [x] Round once\n", "Round once"),
        ("", "", "shop"),
    ],
)
def test_the_task_is_the_first_own_line_of_the_prompt_or_plan(
    tmp_path: Path, prompt: str, plan: str, expected: str
) -> None:
    case = open_("running", tmp_path)
    ralph(case, "PROMPT.md").write_text(prompt)
    ralph(case, "fix_plan.md").write_text(plan)
    assert case.loops()[NEWEST].task == expected


def test_an_older_run_ends_as_the_history_of_sessions_reports(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    log = ralph(case, "logs/ralph.log")
    log.write_text(log.read_text().replace("🏁 Graceful exit triggered: project_complete", "bye"))
    assert case.loops()["frankbria:20261119-090001"].status is LoopStatus.UNKNOWN
    row = {"timestamp": "2026-11-19T09:10:00+00:00", "to_state": "reset", "reason": "manual_interrupt"}
    ralph(case, ".ralph_session_history").write_text(json.dumps([row]))
    assert case.loops()["frankbria:20261119-090001"].status is ABORTED


def test_a_status_of_the_project_itself_is_not_reported(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    (case.project / "status.json").write_text("{torn")
    assert (len(case.loops()), case.findings()) == (2, [])


def test_a_project_that_has_not_run_yet_is_recognized_by_its_settings(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    ralph(case, "status.json").unlink()
    (case.project / ".ralphrc").write_text("RALPH_VERBOSE=true\n")
    assert case.adapter.fingerprint(case.folders) == (".ralphrc",)


@pytest.mark.parametrize(("case", "file"), [("running", ".ralph/AGENT.md"), ("flat-0.9", "@AGENT.md")])
def test_a_context_is_delivered_as_a_change_of_agent_md(tmp_path: Path, case: str, file: str) -> None:
    opened = open_(case, tmp_path)
    loop = list(opened.loops().values())[-1]
    delivery = opened.adapter.deliver(loop, CONTEXT, opened.files)
    assert delivery is not None
    subprocess.run(["git", "apply", "-"], input=delivery.diff, text=True, cwd=opened.project, check=True)
    assert "- **Small steps** (90% success, 3 uses)\n   - Steps: commit\n" in (opened.project / file).read_text()
    assert opened.adapter.deliver(loop, CONTEXT, opened.files) is None, "it is there already"


@pytest.mark.parametrize(
    ("data", "cost"),
    [
        (b'{"type":"result","total_cost_usd":0.5}', 0.5),
        (b'noise\n{"type": "result", "total_cost_usd": 0.25}\nmore\n', 0.25),
        (b'{\n  "type": "result",\n  "total_cost_usd": 2\n}', 2.0),
        (b'[{"type":"system"},{"type":"result","total_cost_usd":3}]', 3.0),
        (b'{"type":"result","total_cost_usd":-1}', None),
        (b'{"type":"result","total_cost_usd":"x","usage":[],"session_id":7}', None),
        (b"", None),
        (b"[]", None),
        (b'"type":"result"\n', None),
    ],
)
def test_the_result_of_a_call_is_found_in_each_format(tmp_path: Path, data: bytes, cost: float | None) -> None:
    case = open_("running", tmp_path)
    for path in ralph(case, "logs").glob("claude_output_2026-11-20_*"):
        path.unlink()
    ralph(case, "logs/claude_output_2026-11-20_11-40-00.log").write_bytes(data)
    assert case.loops()[NEWEST].usage.cost_usd == cost


def test_only_the_newest_calls_may_be_written_over_several_lines(tmp_path: Path) -> None:
    case = open_("torn-status", tmp_path)
    ralph(case, "logs").mkdir()
    for minute in range(30):
        ralph(case, f"logs/claude_output_2026-11-20_11-{minute:02}-00.log").write_text(
            '{\n"type": "result",\n"total_cost_usd": 1}'
        )
    assert case.loop().usage.cost_usd == 20
