"""The agent protocol: logging actions, qualities, results and milestones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from core.base.errors import BadInput, Conflict
from core.base.paths import ProjectPaths
from core.records.loops import Outcome
from core.sources.episodes import Actions
from core.tasks.protocol import Episodes
from tests.factories import (
    TASKS,
    bash_action,
    edit_action,
    leave_draft,
    load_snapshot,
    read_project_json,
    read_tree,
    start_first_attempt,
)


def test_milestones_leave_room_for_later_attempts(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tasks.action_log._MAX_MILESTONE_BYTES", 9_000)
    monkeypatch.setattr("core.tasks.action_log._MAX_PLAN_BYTES", 8_000)
    task_id = start_first_attempt(memory, approach="types first")
    reached = [{"event": "x" * 4000}]
    memory.log_actions(task_id, [], milestones=[*reached, {"event": "y" * 4000}])
    before = read_tree(tmp_path)
    for call in (
        lambda: memory.log_actions(task_id, [edit_action("a.ts")], milestones=reached),
        lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, milestones=reached),
    ):
        with pytest.raises(BadInput, match="bytes; at most 9,000 are allowed"):
            call()
        assert read_tree(tmp_path) == before
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    [entry] = read_project_json(tmp_path, "trajectory.json")["attempts"]
    assert ("plan" in entry, len(entry["milestones"]), entry["outcome"]) == (False, 2, "failure")
    assert memory.start_attempt(task_id).number == 2


def test_attempt_with_many_foreign_milestones_can_end(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    many = [{"event": "x" * 4096}] * 300
    file = tmp_path / TASKS / task_id / "trajectory.json"
    file.write_text(json.dumps({"attempts": [{"attempt_id": 1, "milestones": many}]}))
    memory.start_attempt(task_id, abandon=True)
    assert read_project_json(tmp_path, "trajectory.json")["attempts"][0]["milestones"] == many
    assert "milestones" not in read_project_json(tmp_path, "attempts/001/outcome.json")


def test_deeply_nested_parameter_is_stored_as_json_text(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    deep: Any = "end"
    for _ in range(70):
        deep = {"a": [deep]}
    memory.log_action(task_id, {"type": "bash", "params": {"command": "ls", "deep": deep}})
    [action] = Actions(ProjectPaths(tmp_path), f"{TASKS}/{task_id}/attempts/001/actions.jsonl")
    assert action.command == "ls"
    assert json.loads(dict(action.params)["deep"]) == deep


def test_repeated_log_call_adds_nothing(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    actions = [
        {**edit_action("a.ts"), "timestamp": "2026-02-01T09:00:00Z"},
        {**bash_action("ls", True), "timestamp": 1769937000000},
    ]
    assert memory.log_actions(task_id, actions).added == 2
    again = memory.log_actions(task_id, actions)
    assert (again.added, again.actions) == (0, 2)
    assert memory.log_actions(task_id, actions[:1]).actions == 3
    mixed = [{**edit_action("b.ts"), "timestamp": "2026-02-01T09:10:00Z", "iteration": 12}, bash_action("ls", True)]
    for added in (2, 0):
        assert memory.log_actions(task_id, mixed).added == added
    assert memory.log_actions(task_id, mixed[1:]).actions == 6


@pytest.mark.parametrize("at", [{}, {"timestamp": "2026-02-01T10:00:00Z"}])
@pytest.mark.parametrize("written", [0, 60, 110, 250])
def test_actions_cut_off_by_a_kill_are_logged_once_on_repetition(
    memory: Episodes, tmp_path: Path, at: dict[str, str], written: int
) -> None:
    task_id = start_first_attempt(memory)
    memory.log_action(task_id, bash_action("ls", True))
    log = tmp_path / TASKS / task_id / "attempts/001/actions.jsonl"
    before = log.read_bytes()
    actions = [bash_action(f"make {number}", True, **at) for number in range(3)]

    def killed(handle: int, data: bytes) -> int:
        if b"make 2" in bytes(data):
            write(handle, data[:written])
            raise KeyboardInterrupt
        return write(handle, data)

    write = os.write
    with mock.patch("os.write", killed), pytest.raises(KeyboardInterrupt):
        memory.log_actions(task_id, actions)
    assert log.read_bytes().startswith(before)
    assert memory.log_actions(task_id, actions).actions == 4
    assert [json.loads(line)["params"]["command"] for line in log.read_text().splitlines()] == [
        "ls", "make 0", "make 1", "make 2"
    ]  # fmt: skip


def test_cut_off_batch_is_dropped_at_the_end_of_the_attempt(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    log = tmp_path / TASKS / task_id / "attempts/001/actions.jsonl"
    memory.log_action(task_id, bash_action("npm test", False))
    size = log.stat().st_size
    with log.open("a") as file:
        file.write('{"type":"bash","params":{"command":"npm test"},"success":true}\n')
    log.with_name(".actions.jsonl.batch").write_text(f"{size} 900\n")
    completed = memory.complete_attempt(task_id)
    assert (completed.outcome, completed.log.actions) == (Outcome.FAILURE, 1)


@pytest.mark.parametrize("execution", [[], None, {"quality_history": {}}])
def test_actions_that_cannot_be_counted_are_not_logged(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: Any
) -> None:
    monkeypatch.setattr("core.tasks.json_files.RETRY_SECONDS", ())
    task_id = start_first_attempt(memory)
    place = tmp_path / TASKS / task_id / "attempts/001"
    (place / "attempt.json").write_text(json.dumps({"id": 1, "execution": execution}))
    with pytest.raises(Conflict, match="was not changed"):
        memory.log_actions(task_id, [bash_action("ls", True)], quality=0.5, results={"a.txt": b"a"})
    assert sorted(file.name for file in place.iterdir()) == ["attempt.json", "plan.md"]


def test_quality_history_grows_and_keeps_its_entries(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    file = tmp_path / TASKS / task_id / "attempts/001/attempt.json"
    file.write_text('{"id": 1, "execution": {"quality_history": [7, {"iteration":2,"quality":"50%","by":"me"}]}}')
    actions = [
        bash_action("ls", True, iteration=at, quality=value) for at, value in ((3, 0.7), (2, 0.4), (4, 0.9), (3, 0.8))
    ]
    memory.log_actions(task_id, actions, iteration=5, quality=1)
    history = read_project_json(tmp_path, "attempts/001/attempt.json")["execution"]["quality_history"]
    assert [(one["iteration"], one["quality"], one["delta"]) for one in history[1:]] == [
        (2, 0.4, 0), (3, 0.8, 0.4), (4, 0.9, 0.1), (5, 1, 0.1)
    ]  # fmt: skip
    assert history[0] == 7 and history[1]["by"] == "me"
    with mock.patch("core.tasks.action_log.MAX_QUALITIES", 5), pytest.raises(BadInput, match="of 6 iterations"):
        memory.log_actions(task_id, [], iteration=5, quality=1)
        memory.log_actions(task_id, [], iteration=6, quality=1)


def test_both_ends_of_a_long_output_are_kept(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    printed = "first" + "x" * 70_000 + "3 failed"
    for _ in range(2):
        memory.log_action(task_id, bash_action("npm test", False, output=printed, timestamp="2026-02-01T09:00:00Z"))
    [line] = (tmp_path / TASKS / task_id / "attempts/001/actions.jsonl").read_text().splitlines()
    output = json.loads(line)["output"]
    left_out = int(output.partition("[… ")[2].partition(" ")[0].replace(",", ""))
    assert output.startswith("firstx") and output.endswith("x3 failed") and len(output) <= 65_536
    assert output.count("x") + left_out == 70_000


@pytest.mark.parametrize(
    "params",
    [
        {"content": '"first' + '\n"ü' * 70_000 + "last", "file_path": "a.md"},
        {"edits": [{"old_string": "first" + "x" * 70_000, "new_string": "y" * 9_000 + "last"}] * 3},
        {"items": ["first", *range(20_000), "last"], "file_path": "a.md"},
        {"first": "x" * 600_000, "rest": "y" * 2_000, "last": ""},
    ],
)
def test_both_ends_of_a_long_parameter_are_kept(params: dict[str, Any], memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    memory.log_action(task_id, {"type": "write", "params": params})
    [line] = (tmp_path / TASKS / task_id / "attempts/001/actions.jsonl").read_text().splitlines()
    kept = json.loads(line)["params"]
    spelled = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    assert 60_000 < len(spelled.encode()) <= 65_536
    assert "characters left out …]" in spelled and "first" in spelled[:30] and "last" in spelled[-40:]
    assert kept.get("file_path") == params.get("file_path")


@pytest.mark.parametrize("left", [False, True])
def test_milestones_are_recorded_at_once_and_stay(left: bool, memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    reached = [{"event": "interface", "timestamp": "2026-02-01T09:30:00.000Z"}]
    for _ in range(2):
        memory.log_actions(task_id, [], milestones=reached)
    [entry] = read_project_json(tmp_path, "trajectory.json")["attempts"]
    assert entry == {"attempt_id": 1, "started": "2026-02-01T09:02:00.000Z", "milestones": reached}
    found = load_snapshot(tmp_path)
    assert found.findings == () and found.attempts["task-001.1"].is_open
    if left:
        memory.start_attempt(task_id, abandon=True)
    else:
        memory.complete_attempt(task_id, outcome=Outcome.SUCCESS, milestones=[{"event": "green"}])
    recorded = [one["event"] for one in read_project_json(tmp_path, "attempts/001/outcome.json")["milestones"]]
    assert recorded == ["interface", *([] if left else ["green"])]
    [entry] = read_project_json(tmp_path, "trajectory.json")["attempts"]
    assert (entry["milestones"][0], entry["outcome"]) == (reached[0], "timeout" if left else "success")


def test_logging_after_a_lost_record_creates_another_one(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    (tmp_path / TASKS / task_id / "attempts/001/attempt.json").unlink()
    memory.log_actions(task_id, [bash_action("ls", True)], quality=0.5)
    history = [{"iteration": 1, "quality": 0.5, "delta": 0}]
    execution = {"iterations": 1, "actions_performed": 1, "quality_history": history}
    recorded = {"id": 1, "task_id": task_id, "execution": execution}
    assert read_project_json(tmp_path, "attempts/001/attempt.json") == recorded


def test_results_have_safe_names_and_are_not_replaced(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    for _ in range(2):
        memory.log_actions(task_id, [], iteration=2, results={"out.txt": b"1"})
    with pytest.raises(BadInput, match="exists with other content"):
        memory.log_actions(task_id, [], iteration=2, results={"out.txt": b"2"})
    with pytest.raises(BadInput, match="cannot be part of a path"):
        memory.log_actions(task_id, [], results={"../x": b"1"})
    assert (tmp_path / TASKS / task_id / "attempts/001/results/iter-002/out.txt").read_bytes() == b"1"


def test_next_write_removes_leftovers_of_killed_writers(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    results = tmp_path / TASKS / task_id / "attempts/001/results/iter-001"
    memory.log_actions(task_id, [], results={"a.txt": b"a"})
    left = [leave_draft(results.parents[1] / name) for name in ("b.txt", "attempt.json")]
    memory.log_actions(task_id, [], quality=0.5, results={"b.txt": b"b"})
    assert not any(draft.exists() for draft in left)


def test_half_written_result_is_not_listed(memory: Episodes, tmp_path: Path) -> None:
    task_id = start_first_attempt(memory)
    results = tmp_path / TASKS / task_id / "attempts/001/results/iter-001"
    link, seen = os.link, []

    def linked(source: Path, target: Path, **options: Any) -> None:
        if target.parent == results:
            seen.append(list(results.iterdir()))
        link(source, target, **options)

    with mock.patch("os.link", linked):
        memory.log_actions(task_id, [], results={"a.txt": b"a"})
    assert seen == [[]]


def test_only_what_the_next_call_would_not_repeat_waits_for_a_slower_writer(memory: Episodes) -> None:
    task_id = start_first_attempt(memory)
    memory.log_actions(task_id, [edit_action("a.ts")])
    with mock.patch("time.sleep") as sleep:
        memory.log_actions(task_id, [edit_action("b.ts")])
        assert not sleep.called
        memory.log_actions(task_id, [edit_action("c.ts")], iteration=2)
        assert sleep.call_count == 1
        memory.log_actions(task_id, [edit_action("d.ts")], quality=0.5)
        assert sleep.call_count == 2
