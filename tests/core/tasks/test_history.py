"""Read and replay one task or attempt from its files, and the states of attempts."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec.structs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput, RalphdeckError, UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import Settings, WatchSettings
from core.index.refresh import Index
from core.records.episodes import Action, Attempt, Task, TaskStatus
from core.records.loops import Outcome
from core.tasks.attempts import (
    MAX_PAUSE,
    AttemptState,
    ReplayStep,
    ReplaySteps,
    Verdict,
    assess_attempt,
    assess_attempts,
    find_next_error,
    pause_after,
)
from core.tasks.changes import MAX_LINES, build_diff
from core.tasks.history import (
    MAX_COUNTED,
    AttemptDetail,
    filter_history,
    read_attempt,
    read_history,
    read_whole_history,
)
from core.tasks.task_files import find_attempt, find_task, task_ids
from tests.copying import copy_folder
from tests.core.cli.conftest import TREES


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """A copy of the documented examples."""
    return ProjectPaths(copy_folder(TREES / "spec-examples", tmp_path / "project"))


def write(paths: ProjectPaths, file: str, value: Any) -> None:
    path = paths.tasks / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def test_example_of_the_documentation(paths: ProjectPaths) -> None:
    history = read_history(paths, "task-001")
    assert history.task.description == "Add OAuth properties to AuthConfig"
    assert [(one.number, one.outcome) for one in history.attempts] == [
        (1, Outcome.TIMEOUT),
        (2, Outcome.FAILURE),
        (3, Outcome.SUCCESS),
    ]
    assert [one.attempt for one in history.reflections] == [1, 2, 3]
    assert [(one.event, one.attempt) for one in history.milestones] == [("types_green", None)]
    assert (history.final_quality, history.completion) == (0.92, 1.0)
    assert history.summary == (("task_id", "task-001"), ("status", "completed"))
    differs, _ = history.findings
    assert (differs.code, differs.file) == ("count-differs", ".aiwg/ralph/tasks/task-001/trajectory.json")
    assert differs.message == "has 8 actions for attempt 2; its log, which is used, has 4"
    assert [one.actions for one in history.attempts] == [4, 4, 4]


def test_whole_history_contains_details_from_attempt_files(paths: ProjectPaths) -> None:
    whole = read_whole_history(paths, "task-001")
    for number, detail in enumerate(whole.attempts, 1):
        alone = read_attempt(paths, "task-001", number)
        assert alone.actions[:] == detail.actions[:]
        assert msgspec.structs.replace(alone, actions=detail.actions, findings=()) == detail
    assert [one.reason for one in whole.task.attempts] == [detail.attempt.reason for detail in whole.attempts]
    assert whole.attempts[1].steps == ("update interface", "tsc")
    assert {one.code for one in whole.findings} == {"count-differs"}


def test_actions_of_many_attempts_are_not_counted(paths: ProjectPaths) -> None:
    entries = [{"attempt_id": number, "outcome": "failure", "actions": 8} for number in range(1, MAX_COUNTED + 2)]
    write(paths, "task-003/trajectory.json", {"attempts": entries})
    for number in range(1, MAX_COUNTED + 2):
        (paths.tasks / f"task-003/attempts/{number:03}").mkdir(parents=True)
    write(paths, "task-003/attempts/001/actions.jsonl", "{}\n")
    assert read_history(paths, "task-003").attempts[0].actions == 8
    assert read_whole_history(paths, "task-003").attempts[0].attempt.actions == 1


def test_filtered_history_contains_matching_attempts_with_their_reflections(paths: ProjectPaths) -> None:
    history = read_history(paths, "task-001")
    failed = filter_history(history, lambda one: one.outcome in (Outcome.FAILURE, Outcome.TIMEOUT))
    assert [one.number for one in failed.attempts] == [one.attempt for one in failed.reflections] == [1, 2]
    assert failed.milestones == history.milestones
    assert filter_history(history, lambda one: one.outcome is Outcome.TIMEOUT).milestones == ()
    assert filter_history(history, lambda one: one.outcome is Outcome.PARTIAL).attempts == ()


def test_attempt_detail(paths: ProjectPaths) -> None:
    write(paths, "task-001/attempts/002/results/iter-002/tests.log", "1 failing")
    detail = read_attempt(paths, "task-001", 2)
    assert detail.plan_text.startswith("# Plan for attempt 2")
    assert detail.steps == ("update interface", "tsc")
    assert detail.results == ("iter-002/tests.log",)
    assert [round(one.quality, 2) for one in detail.attempt.quality] == [0.3, 0.6, 0.9]
    assert (detail.attempt.actions, detail.attempt.errors, detail.attempt.worked) == (4, 1, ("types first",))
    assert [one.event for one in detail.milestones] == ["types_green"]
    assert [one.learning[:20] for one in detail.reflections] == ["Update the interface"]
    assert [action.type for action in detail.actions] == ["read", "edit", "bash", "grep"]


def test_attempt_detail_equals_the_indexed_attempt(paths: ProjectPaths) -> None:
    index = Index(paths, Settings(), clock=lambda: datetime(2026, 5, 1, tzinfo=UTC))
    index.load()
    known = index.snapshot
    assert {id for id in known.attempts if id.startswith("task-")} == {"task-001.1", "task-001.2", "task-001.3"}
    for attempt in known.attempts.values():
        assert read_attempt(paths, attempt.task_id, attempt.number).attempt == attempt
    assert read_history(paths, "task-001").task == known.tasks["task-001"]


def test_attempt_missing_in_the_trajectory_is_read_from_its_files(paths: ProjectPaths) -> None:
    write(paths, "task-001/attempts/004/attempt.json", {"id": 4, "started": "2026-02-01T12:00:00Z", "plan": "again"})
    log = '{"timestamp": "2026-02-01T12:05:00Z", "type": "bash", "success": true}\n{"ty'
    write(paths, "task-001/attempts/004/actions.jsonl", log)
    last = read_history(paths, "task-001").attempts[-1]
    assert (last.number, last.plan, last.actions, last.is_open) == (4, "again", 1, True)
    assert last.last_action_at == datetime(2026, 2, 1, 12, 5, tzinfo=UTC)


def test_task_without_readable_files_is_listed(paths: ProjectPaths) -> None:
    write(paths, "task-009/trajectory.json", '{"attempts": [')
    write(paths, "task-009/metadata.json", "[]")
    write(paths, "task-009/reflections.jsonl", "nonsense\n")
    history = read_history(paths, "task-009")
    assert (history.task.id, history.attempts, history.reflections) == ("task-009", (), ())
    assert {finding.file.rpartition("/")[2] for finding in history.findings} == {
        "trajectory.json",
        "metadata.json",
        "reflections.jsonl",
    }


def test_further_folders_with_the_same_number_are_findings(paths: ProjectPaths) -> None:
    top = paths.tasks / "task-001/attempts"
    for name in ("1", "999999999"):
        (top / name).mkdir()
    (top / "1/outcome.json").write_bytes(b'{"status": "success", "reason": "theirs"}')
    found = read_history(paths, "task-001")
    assert {Path(one.file).name for one in found.findings if one.code == "no-attempt"} == {"1", "999999999"}
    assert 999999999 not in {one.number for one in found.attempts}
    assert read_attempt(paths, "task-001", 1).attempt.reason != "theirs"


def test_hostile_files_are_findings_and_links_are_not_followed(paths: ProjectPaths, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "attempts/001").mkdir(parents=True)
    (outside / "metadata.json").write_text('{"description": "secret"}')
    (paths.tasks / "task-out").symlink_to(outside)
    with pytest.raises(BadInput):
        read_history(paths, "task-out")
    assert "task-out" not in task_ids(paths)
    (paths.tasks / "task-002/attempts").symlink_to(outside / "attempts")
    (paths.tasks / "task-002/trajectory.json").symlink_to(outside / "metadata.json")
    os.mkfifo(paths.tasks / "task-002/reflections.jsonl")
    history = read_history(paths, "task-002")
    assert (history.attempts, history.reflections) == ((), ())
    assert {finding.code for finding in history.findings} == {"link-outside", "not-a-file"}


def test_task_is_found_by_id_or_unambiguous_prefix(paths: ProjectPaths) -> None:
    write(paths, "task-001.5/metadata.json", {})
    write(paths, "other/metadata.json", {})
    assert find_task(paths, "task-001") == "task-001"
    assert find_task(paths, "oth") == "other"
    assert find_attempt(paths, "task-001.2") == ("task-001", 2)
    assert find_attempt(paths, "task-001.5") == ("task-001.5", None)
    assert find_attempt(paths, "oth.3") == ("other", 3)
    for wrong in ("task", "nothing", "", "../tasks/task-001", "/etc", "\x1b[31m"):
        with pytest.raises(UnknownRecord):
            find_task(paths, wrong)
    with pytest.raises(UnknownRecord, match="no attempt 9 at task-001; the newest ones are: 1, 2, 3"):
        read_attempt(paths, "task-001", 9)


def test_error_for_a_project_without_tasks() -> None:
    with pytest.raises(RalphdeckError, match="there are no tasks"):
        read_history(ProjectPaths(TREES / "upstream"), "task-001")


def replayed(project: Path, *actions: dict[str, Any], **attempt: Any) -> ReplaySteps:
    """Replay the only attempt of a project."""
    folder = project / ".aiwg/ralph/tasks/t/attempts/001"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "attempt.json").write_text(json.dumps(attempt))
    (folder / "actions.jsonl").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return ReplaySteps(read_attempt(ProjectPaths(project), "t", 1))


def at(clock: str, iteration: int = 1, **fields: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-02-01T{clock}Z", "iteration": iteration, **fields}


def test_replay_of_the_example() -> None:
    detail: AttemptDetail = read_attempt(ProjectPaths(TREES / "spec-examples"), "task-001", 2)
    played = ReplaySteps(detail)
    assert [step.elapsed for step in played] == [0.0, 60.0, 120.0, 180.0]
    assert [step.pause for step in played] == [60.0, 60.0, 60.0, None]
    assert [step.begins_iteration for step in played] == [True, False, False, False]
    assert [step.verdict for step in played][1:3] == [Verdict.SUCCEEDED, Verdict.FAILED]
    assert (played[2].action.expected, played[2].real) == ("green", "exit 1")
    assert played[-1].quality == 0.3
    assert [find_next_error(played, place) for place in (-1, 1, 2)] == [2, 2, None]
    assert played[1:3] == (played[1], played[2])
    assert played[::-2] == (played[3], played[1])


def test_missing_and_decreasing_times(tmp_path: Path) -> None:
    played = replayed(
        tmp_path,
        at("10:00:05"),
        {"type": "x"},
        at("10:00:20"),
        at("09:00:00"),
        at("10:01:00"),
        started="2026-02-01T10:00:00Z",
    )
    assert [step.elapsed for step in played] == [5.0, None, 20.0, 0.0, 60.0]
    assert [step.pause for step in played] == [None, None, None, 3660.0, None]
    assert replayed(tmp_path, at("10:00:05"), at("10:00:09"))[1].elapsed == 4.0
    assert [step.elapsed for step in replayed(tmp_path, {"type": "x"})] == [None]


def test_quality_is_the_last_measured_one(tmp_path: Path) -> None:
    history = [{"iteration": 1, "quality": 0.3}, {"iteration": 3, "quality": 0.9}]
    played = replayed(
        tmp_path,
        *(at("10:00:00", iteration) for iteration in (1, 1, 2, 3, 3)),
        execution={"quality_history": history},
    )
    assert [step.quality for step in played] == [None, 0.3, 0.3, 0.3, 0.9]
    assert [step.begins_iteration for step in played] == [True, False, True, True, False]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (
            {"file_path": "a.ts", "old_string": "x\ny", "new_string": "x\nz"},
            ("--- a.ts", "+++ a.ts", "@@ -1,2 +1,2 @@", " x", "-y", "+z"),
        ),
        ({"path": "a.ts", "old_text": "y", "new_text": "z"}, ("--- a.ts", "+++ a.ts", "@@ -1 +1 @@", "-y", "+z")),
        ({"file": "a.ts", "content": "new"}, ("--- a.ts", "+++ a.ts", "@@ -0,0 +1 @@", "+new")),
        ({"patch": "-a\n+b"}, ("-a", "+b")),
        (
            {"path": "a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_str": "3", "new_str": "4"}, 5]},
            ("--- a", "+++ a", "@@ -1 +1 @@", "-1", "+2", "@@ -1 +1 @@", "-3", "+4"),
        ),
        ({"edits": "nonsense"}, ()),
        ({"file_path": "a.ts"}, ()),
    ],
)
def test_diff_of_an_edit(tmp_path: Path, params: dict[str, Any], expected: tuple[str, ...]) -> None:
    [step] = replayed(tmp_path, {"type": "edit", "params": params})
    assert step.diff == expected
    [read] = replayed(tmp_path, {"type": "grep", "params": {"content": "true"}})
    assert read.diff == (), "the content of a read is not a change"


def test_a_diff_that_was_printed_is_the_change_and_not_the_result() -> None:
    printed = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y"
    step = ReplayStep(Action(number=1, tool="Edit", output=printed, success=True))
    assert (step.diff, step.real, step.result) == (tuple(printed.splitlines()), "", "")
    failed = ReplayStep(Action(number=1, tool="Edit", output=printed, error="file is read-only", success=False))
    assert failed.real == "file is read-only" and failed.diff


def test_long_diffs_are_cut() -> None:
    old, new = "\n".join(["a", "b"] * 20_000), "\n".join(["b", "a", "a"] * 20_000)
    diff = build_diff(Action(number=1, type="edit", params=(("old_string", old), ("new_string", new))))
    assert len(diff) <= MAX_LINES + 1
    written = build_diff(Action(number=1, type="write", params=(("content", "x\n" * 5000),)))
    assert written[2] == "@@ -0,0 +1,5000 @@"
    assert written[-1] == f"… {5003 - MAX_LINES:,} more lines"
    lines = "".join(f"{number}\n" for number in range(900))
    longer = (("old_string", lines), ("new_string", f"b{lines}"))
    assert build_diff(Action(number=1, type="edit", params=(("new_source", "x"),)))[2:] == ("@@ -0,0 +1 @@", "+x")
    assert build_diff(Action(number=1, params=longer))[-1] == "… 500 more lines not compared"
    diff = build_diff(Action(number=1, params=(("diff", "+x\n" * 5000),)))
    assert diff[MAX_LINES:] == (f"… {5000 - MAX_LINES:,} more lines",)


def test_step_shows_output_beside_an_error_and_further_parameters() -> None:
    assert ReplayStep(Action(number=1, output="9 errors\n", error="TS2339")).output == "9 errors"
    assert (
        ReplayStep(Action(number=1, output="same", error="same\n")).output
        == ReplayStep(Action(number=1, output="a")).output
        == ""
    )
    edit = (("file_path", "a.ts"), ("old_string", "a"), ("new_string", "b"), ("replace_all", "true"))
    assert ReplayStep(Action(number=1, type="edit", params=edit)).params == (("replace_all", "true"),)
    script = (("command", "cd x\nmake"), ("cwd", "src"))
    assert ReplayStep(Action(number=1, params=script)).params == script  # unreadable on one line
    assert ReplayStep(Action(number=1, params=(("command", "make"), ("cwd", "src")))).params == (("cwd", "src"),)


def test_long_output_is_shortened_to_its_beginning_and_end() -> None:
    assert ReplayStep(Action(number=1, output="fine", error="")).real == "fine"
    assert ReplayStep(Action(number=1, output="fine", error="worse")).real == "worse"
    long = ReplayStep(Action(number=1, output="\n".join("abcdefghijk"))).real
    assert long.splitlines() == ["a", "b", "c", "d", "… 3 more lines …", "h", "i", "j", "k"]
    for text in ("x" * 60_000, f"{'x' * 60_000}\n" * 3, f"{'x' * 6_000}\n" * 30):
        assert len(ReplayStep(Action(number=1, error=text)).real) < 5000
    assert ReplayStep(Action(number=1)).verdict is Verdict.UNKNOWN


@given(pause=st.one_of(st.none(), st.floats(0, 1e12)), speed=st.floats(-1, 1e9))
def test_pause_is_limited_and_shorter_at_a_higher_speed(pause: float | None, speed: float) -> None:
    waited = pause_after(ReplayStep(Action(number=1), pause=pause), speed)
    assert 0 <= waited <= MAX_PAUSE
    if pause and speed > 0:
        assert waited == min(min(pause, MAX_PAUSE) / speed, MAX_PAUSE)
    else:
        assert waited == 0


NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
WATCH = WatchSettings(stale_after_minutes=30)
EXAMPLES = ProjectPaths(Path(__file__).parents[2] / "trees/spec-examples")


def minutes_ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def test_states_of_attempts() -> None:
    def task(status: TaskStatus, **fields: Any) -> Task:
        return Task(id="t", status=status, **fields)

    running, paused = task(TaskStatus.RUNNING), task(TaskStatus.PAUSED)
    silent = task(TaskStatus.RUNNING, updated_at=minutes_ago(300))
    ended, left, on, waiting = AttemptState.ENDED, AttemptState.LEFT, AttemptState.RUNNING, AttemptState.PAUSED
    rows: tuple[tuple[dict[str, Any], Task | None, int, AttemptState, str], ...] = (
        ({"outcome": Outcome.TIMEOUT, "last_action_at": NOW}, running, 3, ended, "timeout"),
        ({"ended_at": NOW}, None, 1, ended, "ended without an outcome"),
        ({"last_action_at": NOW}, task(TaskStatus.FAILED), 1, left, "the task is failed, and this attempt has no"),
        ({"last_action_at": NOW}, task(TaskStatus.COMPLETED), 1, left, "the task is completed, and this attempt"),
        ({"last_action_at": NOW}, paused, 2, left, "attempt 2 was started later"),
        ({}, paused, 1, waiting, "the task is paused"),
        ({"last_action_at": minutes_ago(30)}, silent, 1, on, ""),
        ({"last_action_at": minutes_ago(31)}, silent, 1, left, "no activity for 31 m"),
        ({"started_at": minutes_ago(60 * 24 * 3)}, None, 1, left, "no activity for 3 d"),
        ({"last_action_at": minutes_ago(-600)}, None, 1, on, "last activity 0 s ago"),
        ({}, running, 1, on, ""),  # without any time, the status of the task decides
        ({}, Task(id="t"), 1, left, ""),
        ({}, None, 1, left, ""),
    )
    for fields, of, latest, state, reason in rows:
        found = assess_attempt(Attempt(task_id="t", number=1, **fields), of, latest, NOW, WATCH)
        assert found[0] is state and found[1].startswith(reason), (fields, of, latest)


def test_attempts_of_the_example_have_ended() -> None:
    snapshot = Index(EXAMPLES, Settings(), clock=lambda: NOW, is_kept=False).load()
    found = assess_attempts(snapshot.tasks, snapshot.attempts, NOW, WATCH)
    assert {id: (result.state.value, result.reason) for id, result in found.items()} == {
        "task-001.1": ("ended", "timeout"),
        "task-001.2": ("ended", "failure"),
        "task-001.3": ("ended", "success"),
    }
