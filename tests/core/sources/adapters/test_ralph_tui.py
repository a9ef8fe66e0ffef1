"""The adapter of ralph-tui: sessions, logs of iterations, progress log and registry."""

from __future__ import annotations

import json
import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import Liveness, Loop, LoopStatus, StateSource
from core.sources.adapters.claude import ClaudeAdapter
from core.sources.adapters.join import join_loops
from core.sources.adapters.ralph_tui import RalphTuiAdapter
from tests.core.sources.adapters.fixtures import NOW, Case, open_case
from tests.e2e.play_ralph_tui import LEARNINGS, RalphTui

ID = "ralph-tui:9c0f4a7e-1111-4222-8333-000000000001"
FOLDER = ".ralph-tui"


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(RalphTuiAdapter(), f"ralph-tui/{case}", tmp_path / "case")


def change(case: Case, name: str = "session.json", **fields: Any) -> None:
    path = case.project / FOLDER / name
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def run(case: Case, pid: int = 4821) -> None:
    case.processes.starts[pid] = NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("fields", "runs", "expected"),
    [
        ({}, True, (LoopStatus.RUNNING, StateSource.REPORTED, "")),
        ({"isPaused": True}, True, (LoopStatus.PAUSED, StateSource.REPORTED, "")),
        ({"status": "paused"}, True, (LoopStatus.PAUSED, StateSource.REPORTED, "")),
        ({"status": "completed"}, False, (LoopStatus.COMPLETED, StateSource.REPORTED, "completed")),
        ({"status": "failed"}, False, (LoopStatus.FAILED, StateSource.REPORTED, "failed")),
        ({"status": "interrupted"}, False, (LoopStatus.ABORTED, StateSource.REPORTED, "interrupted")),
        ({}, False, (LoopStatus.CRASHED, StateSource.REPORTED, "its process is gone")),
        (
            {"status": "completed", "maxIterations": 2},
            False,
            (LoopStatus.LIMIT, StateSource.INFERRED, "max iterations"),
        ),
        ({"status": "paused", "maxIterations": 2}, True, (LoopStatus.PAUSED, StateSource.REPORTED, "")),
        ({"status": "dreaming"}, True, (LoopStatus.UNKNOWN, StateSource.REPORTED, "")),
    ],
)
def test_the_state_is_that_of_the_session_and_its_process(
    tmp_path: Path, fields: dict[str, Any], runs: bool, expected: tuple[LoopStatus, StateSource, str]
) -> None:
    case = open_("running", tmp_path)
    change(case, **fields)
    if runs:
        run(case)
    loop = case.loop()
    assert (loop.status, loop.state_source, loop.end_reason) == expected


@pytest.mark.parametrize("lock", [None, {"hostname": "another"}, {"sessionId": "another"}, {"hostname": "here"}])
def test_without_a_lock_of_this_machine_the_age_decides(tmp_path: Path, lock: dict[str, str] | None) -> None:
    case = open_("crashed-lock", tmp_path)
    if lock is None:
        (case.project / FOLDER / "ralph.lock").unlink()
    else:
        change(case, "ralph.lock", **{key: one.replace("here", socket.gethostname()) for key, one in lock.items()})
    if lock == {"hostname": "here"}:
        assert case.loop().status is LoopStatus.CRASHED
        return
    assert (case.loop().status, case.loop().liveness) == (LoopStatus.RUNNING, Liveness.FRESH)
    case.now = NOW + timedelta(minutes=20)
    assert (case.loop().liveness, case.loop().badges) == (Liveness.STALE, ("stale",))


def test_a_completed_session_with_open_tasks_is_contradicted(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    change(case, status="completed")
    (loop,) = join_loops([case.loop()], case.project).loops
    assert (loop.badges, loop.success) == (("success-contradicted",), None)
    assert loop.liveness_reason == "success is claimed, but 1 of 2 stories are open"


def test_sessions_of_workers_in_working_trees_are_joined(tmp_path: Path) -> None:
    case = open_("parallel", tmp_path)
    run(case)
    start = datetime(2026, 11, 20, 11, 40, tzinfo=UTC)
    workers = [
        Loop(
            id=f"claude:{name}",
            runner="claude",
            owner="claude",
            tags=("headless",),
            status=LoopStatus.COMPLETED,
            started_at=start,
            ended_at=start + timedelta(minutes=5),
            cwd=f"{case.project}/{FOLDER}/worktrees/{name}",
        )
        for name in ("worker-0", "worker-1")
    ]
    (loop,) = join_loops([case.loop(), *workers], case.project).loops
    assert loop.aliases == ("claude:worker-0", "claude:worker-1")


def test_without_the_home_folder_the_registry_is_not_read(tmp_path: Path) -> None:
    case = open_("registry", tmp_path)
    case.set_folders(home=None)
    assert set(case.loops()) == {"ralph-tui:dddd0000"}


def test_a_new_session_overwrites_the_log_but_its_lessons_and_the_old_session_stay(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    before = {lesson.id for lesson in case.lessons()}
    case.loops()
    (case.project / FOLDER / "progress.md").write_text("# Ralph Progress Log\n\n## Codebase Patterns\n- New one\n---\n")
    change(case, sessionId="eeee0000-0000-4000-8000-000000000001", iterations=[], startedAt="2026-11-20T11:58:00Z")
    after = {lesson.id: lesson for lesson in case.lessons()}
    assert before < after.keys()
    assert {after[id].loop_id for id in before} == {ID}
    found = case.loops()
    assert set(found) == {ID, "ralph-tui:eeee0000-0000-4000-8000-000000000001"}
    assert (found[ID].status, found[ID].state_source) == (LoopStatus.UNKNOWN, StateSource.WATCHED)
    assert found[ID].end_reason == "its session file is gone"


def test_a_lesson_that_the_agent_removes_from_the_log_of_its_session_is_not_remembered(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    case.lessons()
    path = case.project / FOLDER / "progress.md"
    path.write_text(path.read_text().replace("quantize once, in money.py", "round once"))
    assert "Money is Decimal; quantize once, in money.py" not in {lesson.text for lesson in case.lessons()}
    path.write_text("# Ralph Progress Log\n")  # a new session begins
    assert "Money is Decimal; round once" in {lesson.text for lesson in case.lessons()}


def test_a_session_whose_file_is_deleted_with_all_tasks_done_is_completed(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    state = json.loads((case.project / FOLDER / "session.json").read_text())["trackerState"]
    change(case, trackerState=state | {"tasks": [task | {"status": "completed"} for task in state["tasks"]]})
    case.loops()
    (case.project / FOLDER / "session.json").unlink()
    loop = case.loop()
    assert (loop.status, loop.state_source) == (LoopStatus.COMPLETED, StateSource.WATCHED)
    assert loop.success is True


def test_a_session_in_a_folder_of_the_project_is_recognized_by_the_registry(tmp_path: Path) -> None:
    case = open_("registry", tmp_path)
    shutil.rmtree(case.project / FOLDER)
    assert case.adapter.fingerprint(case.folders) == ("~/.config/ralph-tui/sessions.json",)
    (case.home / ".config/ralph-tui/sessions.json").unlink()
    assert case.adapter.fingerprint(case.folders) == ()


def test_a_plan_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    (case.root / "secret.json").write_text('{"description": "secret"}')
    for path in ("../secret.json", str(case.root / "secret.json")):
        change(case, trackerState={"plugin": "json", "prdPath": path, "tasks": []})
        assert case.loop().task == ""


def test_a_live_session_with_its_agents_is_one_loop_at_every_moment(tmp_path: Path) -> None:
    now = NOW

    def tick() -> datetime:
        nonlocal now
        now += timedelta(seconds=20)
        return now

    (tmp_path / "project").mkdir()
    tui, claude = Case(RalphTuiAdapter(), tmp_path), Case(ClaudeAdapter(), tmp_path)
    seen = []
    for step in RalphTui(tui.project, tui.home, 4821, tick).steps():
        for case in (tui, claude):
            case.now = now
            case.processes.starts[4821] = NOW
        joined = join_loops([*tui.loops().values(), *claude.loops().values()], tui.project)
        lessons = tui.lessons()
        if not joined.loops:
            assert step == "locked"
            continue
        (loop,) = joined.loops
        seen.append((step, loop.status, loop.iteration, len(loop.session_ids)))
    assert [one for one in seen if not one[0].startswith("torn")] == [
        ("agent 1 started", LoopStatus.RUNNING, 0, 1),
        ("iteration 1", LoopStatus.RUNNING, 1, 1),
        ("agent 2 started", LoopStatus.RUNNING, 1, 2),
        ("iteration 2", LoopStatus.RUNNING, 2, 2),
        ("completed", LoopStatus.COMPLETED, 2, 2),
    ]
    assert loop.success is True
    assert loop.usage.cache_read is not None
    assert {lesson.text for lesson in lessons} == {"Money is Decimal", *LEARNINGS}
