"""Read one task or attempt from its files."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec.structs
import pytest

from core.base.errors import BadInput, RalphdeckError, UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.loops import Outcome
from core.tasks.history import MAX_COUNTED, filter_history, read_attempt, read_history, read_whole_history
from core.tasks.task_lookup import find_attempt, find_task, task_ids
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
