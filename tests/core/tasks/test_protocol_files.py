"""The agent protocol: foreign, damaged and linked files, and concurrent writers."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import BadInput, Conflict, RalphdeckError, Refused
from core.base.paths import ProjectPaths
from core.files.file_reader import MAX_BYTES
from core.records.loops import Outcome
from core.tasks.folders import TaskFolder
from core.tasks.protocol import Episodes
from tests.factories import (
    NO_FSYNC,
    NO_RETRIES,
    TASKS,
    bash_action,
    edit_action,
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
    monkeypatch.setattr("core.tasks.json_files.RETRY_SECONDS", ())
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
    monkeypatch.setattr("core.tasks.json_files.RETRY_SECONDS", ())
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
    monkeypatch.setattr("core.tasks.json_files._LAST_BYTES", 4096)
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
IMPATIENT = mock.patch("core.tasks.json_files.RETRY_SECONDS", ())


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
@settings(max_examples=30)
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
