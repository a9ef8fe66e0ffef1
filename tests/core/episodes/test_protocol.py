from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import BadInput, Conflict, RalphdeckError, Refused, UnknownRecord
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.episodes.folders import TaskFolder
from core.episodes.protocol import Episodes
from core.episodes.strict_reader import StrictReader
from core.project.index import Library
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.records.snapshot import Snapshot
from core.sources.actions import Actions
from core.storage.file_reader import MAX_BYTES
from tests.core.episodes.making import QUICK, UNSYNCED, bash, edit, make_episodes, read_json, tree

EXAMPLES = Path(__file__).parents[2] / "trees/spec-examples"
TASKS = ".aiwg/ralph/tasks"


@pytest.fixture
def memory(tmp_path: Path) -> Episodes:
    return make_episodes(tmp_path)


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", symlinks=True))


def library(project: Path) -> Snapshot:
    found = Library(ProjectPaths(project), Settings(), clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), cache=False)
    return found.load()


def begun(memory: Episodes, **fields: Any) -> str:
    task_id = memory.init_task("Add OAuth")
    memory.start_attempt(task_id, **fields)
    return task_id


def test_files_have_the_documented_layout_and_shapes(memory: Episodes, tmp_path: Path) -> None:
    task_id = memory.init_task("Add OAuth", criteria="tsc passes", tags=["auth"], related=["task-000"])
    memory.start_attempt(task_id, approach="types first", steps=["interface", "tsc"], estimated_iterations=3)
    memory.log_actions(
        task_id,
        [edit("a.ts"), bash("tsc", False, error="2 errors", reasoning="see", expected_outcome="green")],
        quality=0.3,
        results={"out.txt": b"red"},
    )
    memory.log_actions(task_id, [bash("tsc", True, iteration=2, output="ok")], iteration=2, quality=0.9)
    memory.complete_attempt(
        task_id,
        reason="green",
        completion_percent=100,
        worked=["types first"],
        milestones=[{"event": "types_green", "details": "tsc exits 0"}],
        task_done=True,
    )
    assert sorted(tree(tmp_path)) == [
        ".aiwg/ralph/index/by-agent.json",
        ".aiwg/ralph/index/by-status.json",
        f"{TASKS}/task-001/attempts/001/actions.jsonl",
        f"{TASKS}/task-001/attempts/001/attempt.json",
        f"{TASKS}/task-001/attempts/001/outcome.json",
        f"{TASKS}/task-001/attempts/001/plan.md",
        f"{TASKS}/task-001/attempts/001/results/iter-001/out.txt",
        f"{TASKS}/task-001/metadata.json",
        f"{TASKS}/task-001/reflections.jsonl",
        f"{TASKS}/task-001/summary.json",
        f"{TASKS}/task-001/trajectory.json",
    ]
    ended = "2026-02-01T09:05:00.000Z"
    assert read_json(tmp_path, "metadata.json") == {
        "id": "task-001",
        "description": "Add OAuth",
        "completion_criteria": "tsc passes",
        "created": "2026-02-01T09:01:00.000Z",
        "updated": ended,
        "status": "completed",
        "current_attempt": 1,
        "total_attempts": 1,
        "tags": ["auth"],
        "related_tasks": ["task-000"],
        "agent": "implementer",
        "completed": ended,
    }
    lists = {"what_worked": ["types first"], "what_didnt_work": [], "suggestions_for_next_time": []}
    result = {"status": "success", "reason": "green", "final_quality": 0.9, "completion_percent": 100}
    assert read_json(tmp_path, "attempts/001/attempt.json") == {
        "id": 1,
        "task_id": "task-001",
        "started": "2026-02-01T09:02:00.000Z",
        "plan": {"approach": "types first", "steps": ["interface", "tsc"], "estimated_iterations": 3},
        "execution": {
            "agent": "implementer",
            "iterations": 2,
            "actions_performed": 3,
            "quality_history": [
                {"iteration": 1, "quality": 0.3, "delta": 0},
                {"iteration": 2, "quality": 0.9, "delta": 0.6},
            ],
        },
        "ended": ended,
        "outcome": result,
        **lists,
    }
    milestones = [{"timestamp": ended, "event": "types_green", "details": "tsc exits 0"}]
    outcome = read_json(tmp_path, "attempts/001/outcome.json")
    assert outcome == {**result, **lists, "ended": ended, "milestones": milestones, "task_status": "completed"}
    assert read_json(tmp_path, "trajectory.json") == {
        "task_id": "task-001",
        "attempts": [
            {
                "attempt_id": 1,
                "started": "2026-02-01T09:02:00.000Z",
                "ended": ended,
                "outcome": "success",
                "plan": "types first",
                "actions": 3,
                "iterations": 2,
                "milestones": milestones,
                "final_quality": 0.9,
                "completion_percent": 100,
                "agent": "implementer",
                "errors": 1,
            }
        ],
    }
    log = (tmp_path / TASKS / "task-001/attempts/001/actions.jsonl").read_text().splitlines()
    assert json.loads(log[1]) == {
        "timestamp": "2026-02-01T09:03:00.000Z",
        "iteration": 1,
        "type": "bash",
        "tool": "Bash",
        "params": {"command": "tsc"},
        "success": False,
        "error": "2 errors",
        "reasoning": "see",
        "expected_outcome": "green",
    }
    summary = read_json(tmp_path, "summary.json")
    assert (summary["actions"], summary["errors"], summary["best_quality"]) == (3, 1, 0.9)
    assert summary["duration_ms"] == 180_000
    index = tmp_path / ".aiwg/ralph/index"
    assert json.loads((index / "by-status.json").read_bytes()) == {
        "running": [],
        "paused": [],
        "completed": ["task-001"],
        "failed": [],
    }
    assert json.loads((index / "by-agent.json").read_bytes()) == {"implementer": ["task-001"]}
    snapshot = library(tmp_path)
    assert snapshot.findings == ()
    assert snapshot.tasks["task-001"].status is TaskStatus.COMPLETED
    assert not snapshot.attempts["task-001.1"].is_open
    assert {one.kind for one in snapshot.reflections.values()} == {"success_pattern", "process_improvement"}


def test_task_ids_are_consecutive_and_unique(memory: Episodes, tmp_path: Path) -> None:
    for name in ("task-007", "task-20260202", "other"):
        (tmp_path / TASKS / name).mkdir(parents=True)
    assert memory.init_task("a") == "task-008"
    assert memory.init_task("b", task_id="mine") == "mine"
    assert memory.init_task("b", task_id="mine", agent="another") == "mine"
    assert "another" not in json.loads((tmp_path / ".aiwg/ralph/index/by-agent.json").read_bytes())
    with pytest.raises(Refused, match="mine exists already"):
        memory.init_task("another", task_id="mine")
    for bad in ("../out", "a/b", "", "x" * 65):
        with pytest.raises(BadInput):
            memory.init_task("b", task_id=bad)


def test_index_adds_missing_tasks(memory: Episodes, tmp_path: Path) -> None:
    for agent in ("ada", "bob"):
        memory.init_task("a", agent=agent)
    index = tmp_path / ".aiwg/ralph/index"
    for file in index.glob("*.json"):
        file.unlink()
    memory.start_attempt("task-002", agent="eve")
    assert json.loads((index / "by-status.json").read_bytes())["running"] == ["task-002", "task-001"]
    by_agent = json.loads((index / "by-agent.json").read_bytes())
    assert by_agent == {"bob": ["task-002"], "eve": ["task-002"], "ada": ["task-001"]}


def test_index_by_agent_is_rebuilt_and_drops_removed_tasks(memory: Episodes, tmp_path: Path) -> None:
    for agent in ("ada", "bob", "eve"):
        memory.start_attempt(memory.init_task("a", agent=agent), agent=f"{agent} too")
    index = tmp_path / ".aiwg/ralph/index"
    (index / "by-agent.json").unlink()
    shutil.rmtree(tmp_path / TASKS / "task-003")
    memory.pause_task("task-002")
    assert json.loads((index / "by-status.json").read_bytes())["running"] == ["task-001"]
    by_agent = json.loads((index / "by-agent.json").read_bytes())
    assert by_agent == {"ada": ["task-001"], "ada too": ["task-001"], "bob": ["task-002"], "bob too": ["task-002"]}


def test_tasks_with_unreadable_metadata_are_indexed_without_retries(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / TASKS / f"torn-{number}").mkdir(parents=True)
        (tmp_path / TASKS / f"torn-{number}/metadata.json").write_bytes(b'{"id":')
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    memory.init_task("a")
    assert sum(pauses) < 0.1
    monkeypatch.setattr("core.episodes.task_indexes.read_file", pytest.fail)
    memory.init_task("b")
    by_status = json.loads((tmp_path / ".aiwg/ralph/index/by-status.json").read_bytes())
    assert by_status["running"] == ["task-001", "task-002"]
    assert by_status["unknown"] == ["torn-0", "torn-1", "torn-2"]


@pytest.mark.parametrize("name", ["by-status.json", "by-agent.json"])
@pytest.mark.parametrize("damaged", [b'{"running": {}, "ada": ', b"[]", None])
def test_damaged_index_is_rebuilt_and_the_old_file_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damaged: bytes | None
) -> None:
    monkeypatch.setattr("core.episodes.json_files._RETRY_SECONDS", ())
    warnings: list[str] = []
    memory = make_episodes(tmp_path, warn=warnings.append)
    for description in "ab":
        memory.init_task(description)
    index = tmp_path / ".aiwg/ralph/index" / name
    sound = index.read_bytes()
    if damaged is None:
        index.unlink()
        os.mkfifo(index)
    else:
        index.write_bytes(damaged)
    memory.start_attempt("task-001")
    assert [name in text for text in warnings] == [True]
    if damaged is None:
        assert index.is_fifo()
        other = {"by-status.json": "by-agent.json", "by-agent.json": "by-status.json"}[name]
        assert "task-001" in (index.parent / other).read_text()
        memory.pause_task("task-001")
        memory.complete_attempt("task-001", outcome=Outcome.FAILURE)
        index.unlink()
        assert memory.init_task("c") == "task-003"
    else:
        [kept] = index.parent.glob(f"{name}.damaged-*")
        assert (kept.read_bytes(), kept.name in warnings[0]) == (damaged, True)
        assert {key: sorted(ids) for key, ids in json.loads(index.read_bytes()).items()} == json.loads(sound)


def test_plan_prefers_written_reflections_to_drafts(memory: Episodes) -> None:
    task_id = begun(memory)
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE, reason="red")
    memory.reflect(task_id, learning="types first", action_items=["update the interface"])
    started = memory.start_attempt(task_id, similar=[("task-007", "mock it")])
    assert "- Learning: types first\n- Action item: update the interface" in started.plan
    assert "drafted" not in started.plan
    assert "- task-007: mock it" in started.plan
    assert [lesson.attempt.number for lesson in started.learnings] == [1]


def test_reflection_takes_missing_parts_from_the_draft(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    memory.log_action(task_id, bash("tsc", False, error="TS2322"))
    [draft] = memory.complete_attempt(task_id, suggestions=["run tsc"]).reflections
    made = memory.reflect(task_id, learning="types first")
    assert (made.learning, made.draft) == ("types first", False)
    assert (made.observation, made.actions) == (draft.observation, draft.actions)
    assert made.analysis and draft.analysis.startswith(f"{made.analysis} Drafted from the action log")
    memory.reflect(task_id, learning="types first")
    lines = (tmp_path / TASKS / task_id / "reflections.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert memory.reflect(task_id, analysis="the interface came last").learning == ""


def test_trajectory_counts_of_an_open_attempt_are_updated_at_its_end(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    trajectory = tmp_path / TASKS / task_id / "trajectory.json"
    entry = {"attempt_id": 1, "outcome": "running", "actions": 1, "iterations": 1, "note": "mine"}
    trajectory.write_text(json.dumps({"attempts": [entry]}))
    memory.log_actions(task_id, [edit("a.ts"), bash("npm test", False, iteration=2)], iteration=3)
    memory.complete_attempt(task_id)
    [recorded] = json.loads(trajectory.read_bytes())["attempts"]
    assert (recorded["actions"], recorded["errors"], recorded["iterations"], recorded["note"]) == (2, 1, 3, "mine")


def test_draft_on_a_task_names_what_made_the_difference(memory: Episodes) -> None:
    task_id = begun(memory, approach="big bang")
    memory.log_action(task_id, edit("a.ts"))
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE, reason="red")
    memory.start_attempt(task_id, approach="types first")
    memory.log_action(task_id, edit("types.ts"))
    *_, whole = memory.complete_attempt(task_id, outcome=Outcome.SUCCESS, task_done=True).reflections
    assert whole.analysis.startswith("Attempt 1 did not reach the goal: red.")
    assert whole.learning == '"types first" reached the goal; "big bang" did not. Unlike attempt 1 it changed types.ts.'


def test_failed_task_gets_a_draft_on_the_whole_task(memory: Episodes) -> None:
    task_id = begun(memory, approach="big bang")
    *_, whole = memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=False).reflections
    assert whole.observation.startswith("The task was given up after attempt 1.")
    assert (whole.trigger, whole.learning) == ("failure", 'Did not reach the goal: "big bang".')


def test_draft_without_learning_does_not_count_as_learning(memory: Episodes) -> None:
    task_id = begun(memory)
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    assert memory.reflect(task_id, observation="nobody worked at it").learning == ""


def test_an_open_attempt_is_completed_abandoned_or_resumed(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory, approach="first")
    with pytest.raises(Refused, match="attempt 1 at task-001 is still open"):
        memory.start_attempt(task_id)
    memory.pause_task(task_id)
    assert read_json(tmp_path, "metadata.json")["status"] == "paused"
    resumed = memory.start_attempt(task_id)
    assert (resumed.number, resumed.resumed) == (1, True)
    assert "## Approach\n\nfirst" in resumed.plan
    assert memory.start_attempt(task_id, abandon=True).number == 2
    assert read_json(tmp_path, "attempts/001/outcome.json")["reason"] == "left unfinished"
    left = [one for one in library(tmp_path).reflections.values() if one.attempt == 1]
    assert [(one.kind, one.trigger) for one in left] == [("process_improvement", "timeout")]


def test_task_ends_only_on_request(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    assert memory.complete_attempt(task_id, outcome=Outcome.SUCCESS).status is TaskStatus.RUNNING
    assert memory.complete_attempt(task_id, task_done=True).status is TaskStatus.COMPLETED
    with pytest.raises(Refused, match="reopen"):
        memory.start_attempt(task_id)
    memory.start_attempt(task_id, reopen=True)
    assert "completed" not in read_json(tmp_path, "metadata.json")
    assert read_json(tmp_path, "summary.json")["status"] == "running"
    memory.pause_task(task_id)
    assert read_json(tmp_path, "summary.json")["status"] == "paused"
    with pytest.raises(Refused, match="can only be completed by a success"):
        memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=True)
    assert memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=False).status is TaskStatus.FAILED
    with pytest.raises(Refused, match="failed already"):
        memory.pause_task(task_id)


def test_outcome_is_neither_guessed_nor_changed(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    memory.log_action(task_id, edit("a.ts"))
    with pytest.raises(BadInput, match="--success, --failure or --timeout"):
        memory.complete_attempt(task_id)
    memory.log_action(task_id, bash("npm test", False))
    completed = memory.complete_attempt(task_id)
    assert (completed.outcome, completed.derived) == (Outcome.FAILURE, True)
    before = tree(tmp_path)
    memory.complete_attempt(task_id, reason="other")
    assert tree(tmp_path) == before
    with pytest.raises(Refused, match="ended in failure already"):
        memory.complete_attempt(task_id, outcome=Outcome.SUCCESS)
    with pytest.raises(Refused, match=r"has ended; start another one: ralphdeck task start task-001$"):
        memory.log_action(task_id, edit("a.ts"))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"type": "browse"}, "type must be read or write"),
        ({"tool": "Bash"}, "type must be"),
        ({"type": "bash", "reason": "x"}, "no field 'reason'"),
        ({"type": "bash", "params": []}, "params must be an object"),
        ({"type": "bash", "params": {str(n): "" for n in range(9000)}}, "in 9,000 parameters; at most 65,536"),
        ({"type": "bash", "reasoning": "x" * 70_000}, "reasoning has 70,000 characters"),
        ({"type": "bash", "output": ["x"]}, "output must be a text"),
        ({"type": "bash", "tool": "\ud800"}, "not valid Unicode"),
        ({"type": "bash", "success": "yes"}, "success must be true or false"),
        ({"type": "bash", "iteration": 0}, "iteration counts from 1"),
        ({"type": "bash", "quality": 7}, "quality must be"),
        ({"type": "bash", "timestamp": "soon"}, "timestamp must be a time"),
        (["bash"], "an action must be an object"),
        (None, "an action must be an object"),
        ({1: 2, "type": "bash", "a": 1}, "no field 1"),
    ],
)
def test_invalid_call_writes_nothing(memory: Episodes, tmp_path: Path, action: dict[str, Any], message: str) -> None:
    task_id = begun(memory)
    before = tree(tmp_path)
    with pytest.raises(BadInput, match=message):
        memory.log_actions(task_id, [edit("a.ts"), action])
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("call", "wrong", "message"),
    [
        ("start_attempt", {"task_id": None}, "task_id must be a text"),
        ("start_attempt", {"similar": [1]}, "similar must be texts"),
        ("start_attempt", {"approach": "x", "steps": ["é" * 4096] * 200}, "approach and steps have .* shorten"),
        ("log_actions", {"actions": "bash"}, "actions must be a list"),
        ("log_actions", {"attempt": []}, "attempt must be a whole number"),
        ("log_actions", {"attempt": True}, "attempt must be a whole number"),
        ("log_actions", {"milestones": [1]}, "a milestone must be an object"),
        ("log_actions", {"milestones": {"event": "a"}}, "milestones must be a list"),
        ("log_actions", {"milestones": [{"event": "x" * 4096}] * 300}, "milestones have .* shorten"),
        ("log_actions", {"results": {"a": None}}, "result 'a' must be bytes"),
        ("log_actions", {"results": {"a": bytes(MAX_BYTES + 1)}}, "result 'a' has 8,388,609 bytes"),
        ("complete_attempt", {"worked": ["é" * 4096] * 200}, "what worked.* shorten"),
        ("complete_attempt", {"milestones": [{"event": "x"}] * 1001}, "milestones has 1,001 entries"),
        ("reflect", {"learning": "x", "action_items": ["x" * 4096] * 300}, "a reflection have .* shorten"),
        ("reflect", {"learning": "x", "reflection_type": "mood"}, "reflection_type must be"),
    ],
)
def test_invalid_or_too_long_value_writes_nothing(
    memory: Episodes, tmp_path: Path, call: str, wrong: dict[str, Any], message: str
) -> None:
    task_id = begun(memory)
    before = tree(tmp_path)
    recorded: dict[str, Any] = (
        {"outcome": Outcome.SUCCESS} if call == "complete_attempt" else {"abandon": True} if "start" in call else {}
    )
    recorded |= {"actions": [edit("a.ts")]} if call == "log_actions" else {}
    with pytest.raises(BadInput, match=message):
        getattr(memory, call)(**{"task_id": task_id, **recorded, **wrong})
    assert tree(tmp_path) == before


def test_milestones_leave_room_for_later_attempts(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.episodes.lifecycle.trajectory._MAX_MILESTONE_BYTES", 9_000)
    monkeypatch.setattr("core.episodes.lifecycle.trajectory._MAX_PLAN_BYTES", 8_000)
    task_id = begun(memory, approach="types first")
    reached = [{"event": "x" * 4000}]
    memory.log_actions(task_id, [], milestones=[*reached, {"event": "y" * 4000}])
    before = tree(tmp_path)
    for call in (
        lambda: memory.log_actions(task_id, [edit("a.ts")], milestones=reached),
        lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, milestones=reached),
    ):
        with pytest.raises(BadInput, match="bytes in its trajectory; at most 9,000 are kept"):
            call()
        assert tree(tmp_path) == before
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    [entry] = read_json(tmp_path, "trajectory.json")["attempts"]
    assert ("plan" in entry, len(entry["milestones"]), entry["outcome"]) == (False, 2, "failure")
    assert memory.start_attempt(task_id).number == 2


def test_attempt_with_many_foreign_milestones_can_end(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    many = [{"event": "x" * 4096}] * 300
    file = tmp_path / TASKS / task_id / "trajectory.json"
    file.write_text(json.dumps({"attempts": [{"attempt_id": 1, "milestones": many}]}))
    memory.start_attempt(task_id, abandon=True)
    assert read_json(tmp_path, "trajectory.json")["attempts"][0]["milestones"] == many
    assert "milestones" not in read_json(tmp_path, "attempts/001/outcome.json")


def test_deeply_nested_parameter_is_stored_as_json_text(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    deep: Any = "end"
    for _ in range(70):
        deep = {"a": [deep]}
    memory.log_action(task_id, {"type": "bash", "params": {"command": "ls", "deep": deep}})
    [action] = Actions(ProjectPaths(tmp_path), f"{TASKS}/{task_id}/attempts/001/actions.jsonl")
    assert action.command == "ls"
    assert json.loads(dict(action.params)["deep"]) == deep


def test_attempt_started_while_waiting_for_the_lock_ends_after_its_start(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = memory.init_task("Add OAuth")
    locked = TaskFolder.locked

    def slow(folder: TaskFolder) -> Any:
        monkeypatch.setattr(TaskFolder, "locked", locked)
        memory.start_attempt(task_id)
        return locked(folder)

    monkeypatch.setattr(TaskFolder, "locked", slow)
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    attempt = read_json(tmp_path, "attempts/001/attempt.json")
    assert attempt["started"] < attempt["ended"]


@pytest.mark.parametrize("meanwhile", [False, True])
def test_log_is_summarized_before_the_lock_unless_it_grows(
    meanwhile: bool, memory: Episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = begun(memory)
    memory.log_action(task_id, bash("npm test", True))
    done: list[str] = []
    locked, log = TaskFolder.locked, StrictReader.log

    def waited(folder: TaskFolder) -> Any:
        done.append("locked")
        monkeypatch.setattr(TaskFolder, "locked", locked)
        if meanwhile:
            memory.log_action(task_id, bash("npm test", False))
        return locked(folder)

    def read(reader: StrictReader, place: Any) -> Any:
        done.append("read")
        return log(reader, place)

    monkeypatch.setattr(TaskFolder, "locked", waited)
    monkeypatch.setattr(StrictReader, "log", read)
    assert memory.complete_attempt(task_id).outcome is (Outcome.FAILURE if meanwhile else Outcome.SUCCESS)
    assert done == ["read", "locked", *(["read"] if meanwhile else [])]


def test_repeated_log_call_adds_nothing(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    actions = [{**edit("a.ts"), "timestamp": "2026-02-01T09:00:00Z"}, {**bash("ls", True), "timestamp": 1769937000000}]
    assert memory.log_actions(task_id, actions).added == 2
    again = memory.log_actions(task_id, actions)
    assert (again.added, again.actions) == (0, 2)
    assert memory.log_actions(task_id, actions[:1]).actions == 3
    mixed = [{**edit("b.ts"), "timestamp": "2026-02-01T09:10:00Z", "iteration": 12}, bash("ls", True)]
    for added in (2, 0):
        assert memory.log_actions(task_id, mixed).added == added
    assert memory.log_actions(task_id, mixed[1:]).actions == 6


@pytest.mark.parametrize("at", [{}, {"timestamp": "2026-02-01T10:00:00Z"}])
@pytest.mark.parametrize("written", [0, 60, 110, 250])
def test_actions_cut_off_by_a_kill_are_logged_once_on_repetition(
    memory: Episodes, tmp_path: Path, at: dict[str, str], written: int
) -> None:
    task_id = begun(memory)
    memory.log_action(task_id, bash("ls", True))
    log = tmp_path / TASKS / task_id / "attempts/001/actions.jsonl"
    before = log.read_bytes()
    actions = [bash(f"make {number}", True, **at) for number in range(3)]

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
    task_id = begun(memory)
    log = tmp_path / TASKS / task_id / "attempts/001/actions.jsonl"
    memory.log_action(task_id, bash("npm test", False))
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
    monkeypatch.setattr("core.episodes.json_files._RETRY_SECONDS", ())
    task_id = begun(memory)
    place = tmp_path / TASKS / task_id / "attempts/001"
    (place / "attempt.json").write_text(json.dumps({"id": 1, "execution": execution}))
    with pytest.raises(Conflict, match="was not changed"):
        memory.log_actions(task_id, [bash("ls", True)], quality=0.5, results={"a.txt": b"a"})
    assert sorted(file.name for file in place.iterdir()) == ["attempt.json", "plan.md"]


def test_quality_history_grows_and_keeps_its_entries(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    file = tmp_path / TASKS / task_id / "attempts/001/attempt.json"
    file.write_text('{"id": 1, "execution": {"quality_history": [7, {"iteration":2,"quality":"50%","by":"me"}]}}')
    actions = [bash("ls", True, iteration=at, quality=value) for at, value in ((3, 0.7), (2, 0.4), (4, 0.9), (3, 0.8))]
    memory.log_actions(task_id, actions, iteration=5, quality=1)
    history = read_json(tmp_path, "attempts/001/attempt.json")["execution"]["quality_history"]
    assert [(one["iteration"], one["quality"], one["delta"]) for one in history[1:]] == [
        (2, 0.4, 0), (3, 0.8, 0.4), (4, 0.9, 0.1), (5, 1, 0.1)
    ]  # fmt: skip
    assert history[0] == 7 and history[1]["by"] == "me"
    with mock.patch("core.episodes.action_log.MAX_QUALITIES", 5), pytest.raises(BadInput, match="of 6 iterations"):
        memory.log_actions(task_id, [], iteration=5, quality=1)
        memory.log_actions(task_id, [], iteration=6, quality=1)


def test_both_ends_of_a_long_output_are_kept(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    printed = "first" + "x" * 70_000 + "3 failed"
    for _ in range(2):
        memory.log_action(task_id, bash("npm test", False, output=printed, timestamp="2026-02-01T09:00:00Z"))
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
    task_id = begun(memory)
    memory.log_action(task_id, {"type": "write", "params": params})
    [line] = (tmp_path / TASKS / task_id / "attempts/001/actions.jsonl").read_text().splitlines()
    kept = json.loads(line)["params"]
    spelled = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    assert 60_000 < len(spelled.encode()) <= 65_536
    assert "characters left out …]" in spelled and "first" in spelled[:30] and "last" in spelled[-40:]
    assert kept.get("file_path") == params.get("file_path")


@pytest.mark.parametrize("left", [False, True])
def test_milestones_are_recorded_at_once_and_stay(left: bool, memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    reached = [{"event": "interface", "timestamp": "2026-02-01T09:30:00.000Z"}]
    for _ in range(2):
        memory.log_actions(task_id, [], milestones=reached)
    [entry] = read_json(tmp_path, "trajectory.json")["attempts"]
    assert entry == {"attempt_id": 1, "started": "2026-02-01T09:02:00.000Z", "milestones": reached}
    found = library(tmp_path)
    assert found.findings == () and found.attempts["task-001.1"].is_open
    if left:
        memory.start_attempt(task_id, abandon=True)
    else:
        memory.complete_attempt(task_id, outcome=Outcome.SUCCESS, milestones=[{"event": "green"}])
    recorded = [one["event"] for one in read_json(tmp_path, "attempts/001/outcome.json")["milestones"]]
    assert recorded == ["interface", *([] if left else ["green"])]
    [entry] = read_json(tmp_path, "trajectory.json")["attempts"]
    assert (entry["milestones"][0], entry["outcome"]) == (reached[0], "timeout" if left else "success")


def test_logging_after_a_lost_record_creates_another_one(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    (tmp_path / TASKS / task_id / "attempts/001/attempt.json").unlink()
    memory.log_actions(task_id, [bash("ls", True)], quality=0.5)
    history = [{"iteration": 1, "quality": 0.5, "delta": 0}]
    execution = {"iterations": 1, "actions_performed": 1, "quality_history": history}
    recorded = {"id": 1, "task_id": task_id, "execution": execution}
    assert read_json(tmp_path, "attempts/001/attempt.json") == recorded


def test_results_have_safe_names_and_are_not_replaced(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    for _ in range(2):
        memory.log_actions(task_id, [], iteration=2, results={"out.txt": b"1"})
    with pytest.raises(BadInput, match="exists with other content"):
        memory.log_actions(task_id, [], iteration=2, results={"out.txt": b"2"})
    with pytest.raises(BadInput, match="cannot be part of a path"):
        memory.log_actions(task_id, [], results={"../x": b"1"})
    assert (tmp_path / TASKS / task_id / "attempts/001/results/iter-002/out.txt").read_bytes() == b"1"


def test_next_write_removes_leftovers_of_killed_writers(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    results = tmp_path / TASKS / task_id / "attempts/001/results/iter-001"
    memory.log_actions(task_id, [], results={"a.txt": b"a"})
    left = [results.parents[1] / f".{name}.tmp-2147483647-0123abcd" for name in ("b.txt", "attempt.json")]
    for draft in left:
        draft.touch()
    memory.log_actions(task_id, [], quality=0.5, results={"b.txt": b"b"})
    assert not any(draft.exists() for draft in left)


def test_half_written_result_is_not_listed(memory: Episodes, tmp_path: Path) -> None:
    task_id = begun(memory)
    results = tmp_path / TASKS / task_id / "attempts/001/results/iter-001"
    link, seen = os.link, []

    def linked(source: Path, target: Path, **options: Any) -> None:
        if target.parent == results:
            seen.append(list(results.iterdir()))
        link(source, target, **options)

    with mock.patch("os.link", linked):
        memory.log_actions(task_id, [], results={"a.txt": b"a"})
    assert seen == [[]]


def test_unknown_tasks_and_attempts_are_named_in_the_error(memory: Episodes) -> None:
    with pytest.raises(UnknownRecord, match="no task nope"):
        memory.start_attempt("nope")
    task_id = memory.init_task("a")
    with pytest.raises(Refused, match="has no attempt yet"):
        memory.log_action(task_id, edit("a"))
    memory.start_attempt(task_id)
    with pytest.raises(UnknownRecord, match="no attempt 7"):
        memory.reflect(task_id, 7, learning="x")


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
    entries = read_json(examples, "trajectory.json")["attempts"]
    recorded = [(one["attempt_id"], one["outcome"], one["actions"], one["errors"]) for one in entries]
    assert recorded == [(1, "timeout", 4, 1), (2, "failure", 4, 1), (3, "success", 4, 1)]
    assert not any(one.draft for one in library(examples).reflections.values())


@pytest.mark.parametrize("name", ["metadata.json", "trajectory.json", "attempts/001/attempt.json"])
@pytest.mark.parametrize("content", [b'{"id": "task-0', b"[]", b""])
def test_unparsable_file_is_named_and_not_changed(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr("core.episodes.json_files._RETRY_SECONDS", ())
    task_id = begun(memory)
    file = tmp_path / TASKS / task_id / name
    file.write_bytes(content)
    before = tree(tmp_path)
    with pytest.raises(Conflict, match=name):
        memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    assert tree(tmp_path) == before


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
    monkeypatch.setattr("core.episodes.json_files._RETRY_SECONDS", ())
    task_id = begun(memory)
    (tmp_path / file).unlink(missing_ok=True)
    if content is None:
        (tmp_path / file).mkdir()
    else:
        (tmp_path / file).write_bytes(content)
    before = tree(tmp_path)
    for call in (
        lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=False),
        lambda: memory.start_attempt(task_id, abandon=True),
    ):
        with pytest.raises(Conflict, match=f"{Path(file).name}.*nothing was changed"):
            call()
        assert tree(tmp_path) == before


@pytest.mark.parametrize("shape", [{"execution": []}, {"execution": "long"}, {"outcome": ""}, {"outcome": []}])
def test_attempt_record_of_an_unknown_shape_keeps_it_at_its_end(memory: Episodes, tmp_path: Path, shape: Any) -> None:
    task_id = begun(memory)
    file = tmp_path / TASKS / task_id / "attempts/001/attempt.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | shape))
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE, reason="red")
    assert json.loads(file.read_bytes()).items() >= shape.items()
    assert read_json(tmp_path, "trajectory.json")["attempts"][0]["outcome"] == "failure"
    assert memory.start_attempt(task_id).number == 2


def test_full_reflections_file_does_not_stop_drafts(
    memory: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.episodes.json_files._LAST_BYTES", 4096)
    task_id = begun(memory)
    file = tmp_path / TASKS / task_id / "reflections.jsonl"
    old = json.dumps({"attempt_id": 77, "learning": "old" * 50}).encode() + b"\n"
    file.write_bytes(old * 100)
    done = memory.complete_attempt(task_id, outcome=Outcome.FAILURE, reason="red")
    assert [one.attempt for one in done.reflections] == [1]
    assert file.read_bytes().startswith(old * 100)
    monkeypatch.setattr("core.episodes.lifecycle.reflection._MAX_FILE_BYTES", 4096)
    with pytest.raises(BadInput, match="the reflections on task-001 have"):
        memory.reflect(task_id, learning="x")


@pytest.mark.parametrize("name", ["", "attempts", "attempts/001", "metadata.json", "attempts/001/actions.jsonl"])
def test_links_out_of_the_project_are_not_followed(memory: Episodes, tmp_path: Path, name: str) -> None:
    task_id = begun(memory)
    memory.log_action(task_id, edit("a.ts"))
    outside = tmp_path / "outside"
    place = tmp_path / TASKS / task_id / name
    place.rename(outside)
    place.symlink_to(outside)
    before = {file: file.read_bytes() for file in outside.rglob("*") if file.is_file()} or outside.read_bytes()
    for call in (
        lambda: memory.log_action(task_id, edit("b.ts")),
        lambda: memory.complete_attempt(task_id, outcome=Outcome.FAILURE, task_done=False),
        lambda: memory.start_attempt(task_id, abandon=True),
    ):
        with suppress(RalphdeckError):
            call()
    after = {file: file.read_bytes() for file in outside.rglob("*") if file.is_file()} or outside.read_bytes()
    assert after == before


@pytest.mark.parametrize("name", ["", "attempts", "attempts/001/results", "attempts/001/results/iter-001"])
def test_links_inside_the_project_are_not_followed(memory: Episodes, tmp_path: Path, name: str) -> None:
    task_id = begun(memory)
    memory.log_action(task_id, edit("a.ts"), attempt=1)
    loop = tmp_path / ".aiwg/ralph/loops/ralph-x"
    place = tmp_path / TASKS / task_id / name
    loop.parent.mkdir()
    place.mkdir(parents=True, exist_ok=True)
    place.rename(loop)
    place.symlink_to(loop)
    before = {file: file.read_bytes() for file in loop.rglob("*") if file.is_file()}
    with pytest.raises(BadInput, match="is a link; nothing is written through it"):
        memory.log_actions(task_id, [edit("b.ts")], results={"error-patterns.json": b"{}"})
    assert {file: file.read_bytes() for file in loop.rglob("*") if file.is_file()} == before


def test_folders_that_are_not_attempts_are_ignored(memory: Episodes, tmp_path: Path) -> None:
    task_id = memory.init_task("a")
    attempts = tmp_path / TASKS / task_id / "attempts"
    (attempts / "999999999").mkdir(parents=True)
    assert memory.start_attempt(task_id).number == 1
    (attempts / "1").mkdir()
    assert memory.log_action(task_id, edit("a.ts")).number == 1
    assert memory.complete_attempt(task_id, outcome=Outcome.SUCCESS, task_done=True).number == 1
    assert [list((attempts / name).iterdir()) for name in ("999999999", "1")] == [[], []]
    (attempts / "999999").mkdir()
    memory.complete_attempt(task_id, outcome=Outcome.FAILURE)
    with pytest.raises(Refused, match="the highest possible number"):
        memory.start_attempt(task_id, reopen=True)


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 10**400, 1e300, "x", "9" * 40, [], [[]], {}, {"a": []}, [None, 7, {"b": {}}]]
)
IMPATIENT = mock.patch("core.episodes.json_files._RETRY_SECONDS", ())
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


@settings(max_examples=30, deadline=None)
@given(PLACES, JUNK, st.sampled_from(["", "iterations", "quality_history", "quality"]))
def test_wrong_types_raise_only_ralphdeck_errors(place: tuple[str, str], junk: Any, inner: str) -> None:
    with tempfile.TemporaryDirectory() as folder, QUICK, UNSYNCED, IMPATIENT:
        memory = make_episodes(Path(folder))
        task_id = begun(memory)
        memory.log_actions(task_id, [edit("a.ts")], quality=0.5)
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
            lambda: memory.log_actions(task_id, [edit("b.ts")], quality=0.6),
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
        memory.log_action("shared", bash(f"{os.getpid()} {number}", True))
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
    assert len(folder.reflections.read_bytes().splitlines()) == 1
    log = [json.loads(line)["params"]["command"] for line in folder.attempts()[1].actions.read_bytes().splitlines()]
    assert len(log) == len(set(log)) == 12
    assert json.loads((folder.attempts()[1].attempt).read_bytes())["execution"]["actions_performed"] == 12
