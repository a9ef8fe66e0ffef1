"""The adapter of ralph-orchestrator: events, history, registry, tasks and memories."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import LoopStatus, StateSource, waits_for
from core.sources.adapters.join import join_loops
from core.sources.adapters.orchestrator import OrchestratorAdapter
from tests.core.sources.adapters.fixtures import NOW, Case, open_case

FOLDER = ".ralph"
EVENTS = f"{FOLDER}/events-20261120-110000.jsonl"


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(OrchestratorAdapter(), f"orchestrator/{case}", tmp_path / "case")


def run(case: Case, *pids: int) -> None:
    case.processes.starts |= dict.fromkeys(pids, NOW - timedelta(hours=2))


def append(case: Case, topic: str, payload: Any, name: str = EVENTS) -> None:
    with (case.project / name).open("a") as file:
        file.write(
            json.dumps({"ts": "2026-11-20T11:50:00Z", "iteration": 8, "topic": topic, "payload": payload}) + "\n"
        )


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("completed", LoopStatus.COMPLETED),
        ("max_iterations", LoopStatus.LIMIT),
        ("max_runtime", LoopStatus.LIMIT),
        ("max_cost", LoopStatus.LIMIT),
        ("consecutive_failures", LoopStatus.FAILED),
        ("loop_thrashing", LoopStatus.FAILED),
        ("loop_stale", LoopStatus.FAILED),
        ("validation_failure", LoopStatus.FAILED),
        ("stopped", LoopStatus.ABORTED),
        ("cancelled", LoopStatus.ABORTED),
        ("interrupted", LoopStatus.ABORTED),
        ("restart_requested", LoopStatus.RECOVERING),
        ("workspace_gone", LoopStatus.CRASHED),
        ("something_new", LoopStatus.UNKNOWN),
    ],
)
def test_each_reason_for_the_end_has_its_status(tmp_path: Path, reason: str, status: LoopStatus) -> None:
    case = open_("one", tmp_path)
    run(case, 4821)
    append(case, "loop.terminate", f"## Reason\n{reason}\n\n- Iterations: 8\n- Exit code: 0")
    loop = case.loop()
    assert (loop.status, loop.state_source, loop.end_reason) == (status, StateSource.REPORTED, reason)


def test_the_lock_has_the_process_if_the_registry_has_not(tmp_path: Path) -> None:
    case = open_("one", tmp_path)
    (case.project / FOLDER / "loops.json").unlink()
    run(case, 4821)
    assert case.loop().pid == 4821


def test_without_a_process_the_age_decides_and_nothing_is_guessed_later(tmp_path: Path) -> None:
    case = open_("one", tmp_path)
    for name in ("loops.json", "loop.lock"):
        (case.project / FOLDER / name).unlink()
    case.now = datetime(2026, 11, 20, 11, 31, tzinfo=UTC)
    assert (case.loop().status, case.loop().state_source) == (LoopStatus.RUNNING, StateSource.INFERRED)
    case.now = NOW
    loop = case.loop()
    assert (loop.status, loop.state_source, loop.end_reason) == (
        LoopStatus.UNKNOWN,
        StateSource.INFERRED,
        "no reason was written",
    )


def test_a_run_that_asks_a_person_waits(tmp_path: Path) -> None:
    case = open_("one", tmp_path)
    run(case, 4821)
    append(case, "human.interact", "Which tax rate?")
    loop = case.loop()
    assert (loop.status, waits_for(loop)) == (LoopStatus.WAITING, "question")
    append(case, "human.response", "The lower one")
    assert case.loop().status is LoopStatus.RUNNING


def test_a_completed_run_with_open_tasks_is_contradicted(tmp_path: Path) -> None:
    case = open_("one", tmp_path)
    append(case, "loop.terminate", "## Reason\ncompleted\n")
    (loop,) = join_loops([case.loop()], case.project).loops
    assert (loop.badges, loop.success) == (("success-contradicted",), None)


def test_linked_memories_of_working_trees_are_the_same_lessons(tmp_path: Path) -> None:
    case = open_("three-worktrees", tmp_path)
    before = case.lessons()
    for tree in sorted((case.project / ".worktrees").iterdir()):
        (tree / FOLDER / "agent").mkdir()
        (tree / FOLDER / "agent" / "memories.md").symlink_to(case.project / FOLDER / "agent" / "memories.md")
    assert case.lessons() == before
    assert len(before) == 4


def test_new_events_are_read_and_a_torn_one_waits_for_its_end(tmp_path: Path) -> None:
    case = open_("one", tmp_path)
    case.loops()
    line = json.dumps({"ts": "2026-11-20T11:40:00Z", "iteration": 9, "topic": "build.done", "hat": "builder"})
    with (case.project / EVENTS).open("a") as file:
        file.write(line[:30])
    assert case.loop().iteration == 7
    with (case.project / EVENTS).open("a") as file:
        file.write(line[30:] + "\n")
    assert case.loop().iteration == 9
