"""The agent protocol: logs, qualities, results, milestones; foreign, damaged and linked files; concurrent writers."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import BadInput, Conflict, RalphdeckError, Refused, Unwritable
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.file_reader import MAX_BYTES
from core.index.refresh import Index
from core.records.loops import Outcome
from core.sources.episodes import Actions
from core.tasks import task_files
from core.tasks.protocol import Episodes
from core.tasks.task_files import TaskFolder
from tests.factories import (
    EPISODES_START,
    NO_FSYNC,
    NO_RETRIES,
    TASKS,
    bash_action,
    edit_action,
    leave_draft,
    load_snapshot,
    make_episodes,
    read_project_json,
    read_tree,
    start_first_attempt,
)


def test_foreign_files_are_continued_and_keep_their_bytes(examples: Path) -> None:
    memory = make_episodes(examples)
    file = examples / TASKS / "task-001/metadata.json"
    file.write_text(file.read_text().replace('"tags": [', '"x_ours":  1.50,\n  "tags": ['))
    trajectory = (examples / TASKS / "task-001/trajectory.json").read_text()
    reflections = (examples / TASKS / "task-001/reflections.jsonl").read_text()
    started = memory.start_attempt("task-001", reopen=True)
    assert started.number == 4
    assert (
        '- Learning: Update the interface definition BEFORE implementing the feature ("types first").' in started.plan
    )
    assert '"x_ours":  1.50,\n  "tags": [\n    "auth",' in file.read_text()
    memory.complete_attempt("task-001", outcome=Outcome.TIMEOUT)
    written = (examples / TASKS / "task-001/trajectory.json").read_text()
    assert written.startswith(trajectory[: trajectory.index("    }\n  ],")])
    assert '"milestones": [\n    {\n      "timestamp": "2026-02-01T10:30:00Z"' in written
    assert (examples / TASKS / "task-001/reflections.jsonl").read_text().startswith(reflections)
    assert json.loads((examples / ".aiwg/ralph/index/by-status.json").read_bytes()) == {
        "running": ["task-002", "task-001"],
        "paused": [],
        "completed": [],
        "failed": [],
    }


def test_missing_trajectory_is_created(examples: Path) -> None:
    memory = make_episodes(examples)
    (examples / TASKS / "task-001/trajectory.json").unlink()
    assert memory.start_attempt("task-002").number == 2
    assert memory.start_attempt("task-001", reopen=True).number == 4
    entries = read_project_json(examples, "trajectory.json")["attempts"]
    recorded = [(one["attempt_id"], one["outcome"], one["actions"], one["errors"]) for one in entries]
    assert recorded == [(1, "timeout", 4, 1), (2, "failure", 4, 1), (3, "success", 4, 1)]
    assert not any(one.draft for one in load_snapshot(examples).reflections.values())


@pytest.mark.parametrize("name", ["metadata.json", "trajectory.json", "attempts/001/attempt.json"])
@pytest.mark.parametrize("content", [b'{"id": "task-0', b"[]", b""])
def test_unparsable_file_is_named_and_not_changed(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr("core.tasks.task_files.RETRY_SECONDS", ())
    task_id = start_first_attempt(memory)
    file = tmp_path / TASKS / task_id / name
    file.write_bytes(content)
    before = read_tree(tmp_path)
    with pytest.raises(Conflict, match=name):
        memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    assert read_tree(tmp_path) == before


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (f"{TASKS}/task-001/trajectory.json", b'{"attempts": {"1": {}}}'),
        (f"{TASKS}/task-001/attempts/001/attempt.json", b"\xff{}"),
        (f"{TASKS}/task-001/reflections.jsonl", None),
        (f"{TASKS}/task-001/summary.json", None),
        (f"{TASKS}/task-001/trajectory.json", b'{"attempts": [], "pad": "%s"}' % (b"x" * (MAX_BYTES - 1000))),
    ],
)
def test_all_files_are_checked_before_the_first_write_of_an_end(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: bytes | None
) -> None:
    monkeypatch.setattr("core.tasks.task_files.RETRY_SECONDS", ())
    task_id = start_first_attempt(memory)
    (tmp_path / file).unlink(missing_ok=True)
    if content is None:
        (tmp_path / file).mkdir()
    else:
        (tmp_path / file).write_bytes(content)
    before = read_tree(tmp_path)
    for call in (
        lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=False),
        lambda: memory.start_attempt(task_id, abandon=True),
    ):
        with pytest.raises(Conflict, match=f"{Path(file).name}.*nothing was changed"):
            call()
        assert read_tree(tmp_path) == before


@pytest.mark.parametrize("shape", [{"execution": []}, {"execution": "long"}, {"outcome": ""}, {"outcome": []}])
def test_attempt_record_of_an_unknown_shape_keeps_it_at_its_end(memory: Episodes, tmp_path: Path, shape: Any) -> None:
    task_id = start_first_attempt(memory)
    file = tmp_path / TASKS / task_id / "attempts/001/attempt.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | shape))
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE, reason="red")
    assert json.loads(file.read_bytes()).items() >= shape.items()
    assert read_project_json(tmp_path, "trajectory.json")["attempts"][0]["outcome"] == "failure"
    assert memory.start_attempt(task_id).number == 2


def test_full_reflections_file_does_not_stop_drafts(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tasks.task_files._LAST_BYTES", 4096)
    task_id = start_first_attempt(memory)
    file = tmp_path / TASKS / task_id / "reflections.jsonl"
    old = json.dumps({"attempt_id": 77, "learning": "old" * 50}).encode() + b"\n"
    file.write_bytes(old * 100)
    done = memory.complete_attempt(task_id, outcome=Outcome.FAILURE, reason="red")
    assert [one.attempt for one in done.reflections] == [1]
    assert file.read_bytes().startswith(old * 100)
    monkeypatch.setattr("core.tasks.reflections._MAX_FILE_BYTES", 4096)
    with pytest.raises(BadInput, match="the reflections on task-001 have"):
        memory.reflect(task_id, learning="x")


@pytest.mark.parametrize("name", ["", "attempts", "attempts/001", "metadata.json", "attempts/001/actions.jsonl"])
def test_links_out_of_the_project_are_not_followed(memory: Episodes, tmp_path: Path, name: str) -> None:
    task_id = start_first_attempt(memory)
    memory.log_action(task_id, edit_action("a.ts"))
    outside = tmp_path / "outside"
    place = tmp_path / TASKS / task_id / name
    place.rename(outside)
    place.symlink_to(outside)
    before = {file: file.read_bytes() for file in outside.rglob("*") if file.is_file()} or outside.read_bytes()
    for call in (
        lambda: memory.log_action(task_id, edit_action("b.ts")),
        lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=False),
        lambda: memory.start_attempt(task_id, abandon=True),
    ):
        with suppress(RalphdeckError):
            call()
    after = {file: file.read_bytes() for file in outside.rglob("*") if file.is_file()} or outside.read_bytes()
    assert after == before


@pytest.mark.parametrize("name", ["", "attempts", "attempts/001/results", "attempts/001/results/iter-001"])
def test_links_inside_the_project_are_not_followed(memory: Episodes, tmp_path: Path, name: str) -> None:
    task_id = start_first_attempt(memory)
    memory.log_action(task_id, edit_action("a.ts"), attempt=1)
    loop = tmp_path / ".aiwg/ralph/loops/ralph-x"
    place = tmp_path / TASKS / task_id / name
    loop.parent.mkdir()
    place.mkdir(parents=True, exist_ok=True)
    place.rename(loop)
    place.symlink_to(loop)
    before = {file: file.read_bytes() for file in loop.rglob("*") if file.is_file()}
    with pytest.raises(BadInput, match="is a link; nothing is written through it"):
        memory.log_actions(task_id, [edit_action("b.ts")], results={"error-patterns.json": b"{}"})
    assert {file: file.read_bytes() for file in loop.rglob("*") if file.is_file()} == before


def test_folders_that_are_not_attempts_are_ignored(memory: Episodes, tmp_path: Path) -> None:
    task_id = memory.init_task("a")
    attempts = tmp_path / TASKS / task_id / "attempts"
    (attempts / "999999999").mkdir(parents=True)
    assert memory.start_attempt(task_id).number == 1
    (attempts / "1").mkdir()
    assert memory.log_action(task_id, edit_action("a.ts")).number == 1
    assert memory.complete_attempt(task_id, outcome=Outcome.SUCCESS, task_done=True).number == 1
    assert [list((attempts / name).iterdir()) for name in ("999999999", "1")] == [[], []]
    (attempts / "999999").mkdir()
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    with pytest.raises(Refused, match="the highest allowed number"):
        memory.start_attempt(task_id, reopen=True)


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 10**400, 1e300, "x", "9" * 40, [], [[]], {}, {"a": []}, [None, 7, {"b": {}}]]
)
IMPATIENT = mock.patch("core.tasks.task_files.RETRY_SECONDS", ())


PLACES = st.sampled_from(
    [
        ("metadata.json", "status"),
        ("metadata.json", "total_attempts"),
        ("metadata.json", "updated"),
        ("metadata.json", "tags"),
        ("trajectory.json", "attempts"),
        ("attempts/001/attempt.json", "execution"),
        ("attempts/001/attempt.json", "outcome"),
        ("attempts/001/attempt.json", "started"),
        ("attempts/001/attempt.json", "plan"),
        ("attempts/001/outcome.json", "status"),
        ("attempts/001/outcome.json", "milestones"),
        ("summary.json", "learnings"),
    ]
)


@pytest.mark.slow
@settings(max_examples=20)
@given(PLACES, JUNK, st.sampled_from(["", "iterations", "quality_history", "quality"]))
def test_wrong_types_raise_only_ralphdeck_errors(place: tuple[str, str], junk: Any, inner: str) -> None:
    with tempfile.TemporaryDirectory() as folder, NO_RETRIES, NO_FSYNC, IMPATIENT:
        memory = make_episodes(Path(folder))
        task_id = start_first_attempt(memory)
        memory.log_actions(task_id, [edit_action("a.ts")], quality=0.5)
        memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
        memory.start_attempt(task_id)
        name, key = place
        file = Path(folder) / TASKS / task_id / name
        value = json.loads(file.read_bytes())
        if key == "execution" and inner:
            junk = {**value[key], inner: junk, "quality_history": [{"iteration": 1, inner: junk}]}
        file.write_text(json.dumps({**value, key: junk}))
        (file.parent / "reflections.jsonl").write_text(json.dumps({"attempt_id": 1, "trigger": junk}) + "\n")
        for call in (
            lambda: memory.log_actions(task_id, [edit_action("b.ts")], quality=0.6),
            lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, attempt=1),
            lambda: memory.start_attempt(task_id, abandon=True, reopen=True),
            lambda: memory.reflect(task_id, learning="x"),
            lambda: memory.pause_task(task_id),
        ):
            with suppress(RalphdeckError):
                call()


def _work(project: Path, ready: Any, count: int) -> None:
    ready.wait(30)
    memory = make_episodes(project)
    for number in range(count):
        memory.init_task(f"{os.getpid()} {number}")
        memory.log_action("shared", bash_action(f"{os.getpid()} {number}", True))
    ready.wait(30)
    memory.complete_attempt("shared", outcome=Outcome.SUCCESS)


def test_concurrent_writers_lose_nothing(memory: Episodes, tmp_path: Path) -> None:
    memory.init_task("together", task_id="shared")
    memory.start_attempt("shared")
    ready = multiprocessing.Barrier(3)
    workers = [multiprocessing.Process(target=_work, args=(tmp_path, ready, 4)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    folder = TaskFolder.of(ProjectPaths(tmp_path), "shared")
    assert len(list((tmp_path / TASKS).glob("task-*"))) == 12
    index = json.loads((tmp_path / ".aiwg/ralph/index/by-status.json").read_bytes())
    assert len(set(index["running"])) == len(index["running"]) == 13
    assert not folder.reflections.exists(), "a success without a failed check leaves nothing to reflect on"
    log = [json.loads(line)["params"]["command"] for line in folder.attempts()[1].actions.read_bytes().splitlines()]
    assert len(log) == len(set(log)) == 12
    assert json.loads((folder.attempts()[1].attempt).read_bytes())["execution"]["actions_performed"] == 12


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


@pytest.mark.parametrize("refused", [b"actions_performed", b"milestones"])
def test_call_on_a_full_disk_logs_nothing_and_can_be_repeated(memory: Episodes, tmp_path: Path, refused: bytes) -> None:
    task_id = start_first_attempt(memory)
    before = memory.log_action(task_id, bash_action("ls", True))

    def full(handle: int, data: bytes) -> int:
        if refused in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data)

    write = os.write
    with mock.patch("os.write", full), pytest.raises(Unwritable):
        memory.log_actions(task_id, [bash_action("make", True)], milestones=[{"event": "built"}])
    logged = memory.log_actions(task_id, [bash_action("make", True)], milestones=[{"event": "built"}])
    assert logged.actions == before.actions + 1
    assert (tmp_path / TASKS / task_id / "attempts/001/actions.jsonl").read_bytes().count(b"make") == 1


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
    monkeypatch.setattr("core.tasks.task_files.RETRY_SECONDS", ())
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


DRAFTS = ".aiwg/ralph/index/.drafts"
LONG_AGO = 1_000_000_000


def half_written(project: Path, pid: int, *, name: str = "task-009", modified: float | None = None) -> Path:
    draft = project / DRAFTS / f"{name}.{pid}-0123abcd"
    draft.mkdir(parents=True)
    (draft / "metadata.json").write_text('{"id": "task-0')
    if modified is not None:
        os.utime(draft, (modified, modified))
    return draft


@pytest.fixture
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


def test_next_writer_removes_the_folder_of_a_killed_init(tmp_path: Path, dead_pid: int) -> None:
    memory = make_episodes(tmp_path)
    task_id = memory.init_task("Add OAuth")
    left = half_written(tmp_path, dead_pid)
    memory.start_attempt(task_id)
    assert not left.exists()
    left = half_written(tmp_path, dead_pid)
    memory.log_actions(task_id, [{"type": "bash", "tool": "Bash", "params": {}, "success": True}])
    assert not left.exists()


def test_folder_with_a_reused_process_id_is_removed(tmp_path: Path) -> None:
    make_episodes(tmp_path)
    left = half_written(tmp_path, os.getpid(), modified=LONG_AGO)
    task_files.remove_abandoned(ProjectPaths(tmp_path))
    assert not left.exists()


def test_folder_of_a_running_process_stays(tmp_path: Path) -> None:
    make_episodes(tmp_path)
    new = half_written(tmp_path, os.getpid())
    slow = half_written(tmp_path, os.getpid(), name="task-010", modified=LONG_AGO)
    handle = os.open(slow, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        task_files.remove_abandoned(ProjectPaths(tmp_path))
    finally:
        os.close(handle)
    assert new.exists()
    assert slow.exists()


def test_unknown_names_and_links_stay(tmp_path: Path, dead_pid: int) -> None:
    make_episodes(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    drafts = tmp_path / DRAFTS
    (drafts / "notes").mkdir(parents=True)
    (drafts / f"task-009.{dead_pid}-0123abcd").symlink_to(outside)
    task_files.remove_abandoned(ProjectPaths(tmp_path))
    assert (drafts / "notes").is_dir()
    assert (outside / "kept.txt").read_text() == "kept"


def test_readers_ignore_half_written_folders(tmp_path: Path, dead_pid: int) -> None:
    memory = make_episodes(tmp_path)
    memory.init_task("Add OAuth")
    left = half_written(tmp_path, dead_pid)
    (left / "reflections.jsonl").write_text("{broken")
    index = Index(ProjectPaths(tmp_path), Settings(), clock=lambda: EPISODES_START, is_kept=False)
    snapshot = index.load()
    assert [task.id for task in snapshot.tasks.values()] == ["task-001"]
    assert snapshot.findings == ()
