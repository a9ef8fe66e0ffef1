from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from core.records.loops import Outcome
from core.records.reflections import MemoryTask
from core.sources.reflections import MEMORY_INDEX, join_memory, read_memory

MTIME = datetime(2026, 5, 1, 12, tzinfo=UTC)
FILE = ".aiwg/ralph/memory/tasks/t1.json"


def read(file: str, value: Any) -> tuple[MemoryTask, ...]:
    tasks, findings = read_memory(file, value, MTIME)
    assert findings == ()
    return tasks


def test_a_task_file_is_read_completely() -> None:
    value = {
        "task_id": "t1",
        "task_description": "d",
        "task_type": "debugging",
        "timestamp": "2026-04-30T10:00:00Z",
        "outcome": "partial",
        "iterations": 3,
        "final_quality": 0.92,
        "key_learnings": ["### Iteration 1", "one", "two"],
        "tags": ["a", "b"],
    }
    (task,) = read(FILE, value)
    assert (task.id, task.description, task.task_type, task.outcome) == (
        "t1",
        "d",
        "debugging",
        Outcome.PARTIAL,
    )
    assert (task.iterations, task.quality, task.learnings) == (3, 0.92, ("one", "two"))
    assert (task.at, task.file, task.indexed) == (datetime(2026, 4, 30, 10, tzinfo=UTC), FILE, False)


def test_the_task_file_wins_over_the_index() -> None:
    index = read(MEMORY_INDEX, {"tasks": [{"task_id": "t1", "outcome": "failure"}, {"task_id": "gone"}]})
    files = read(FILE, {"outcome": "success"}) + read(".aiwg/ralph/memory/tasks/t2.json", {})
    for parsed in ((*index, *files), (*files, *index)):
        joined = join_memory(parsed)
        assert {task.id: (task.file == MEMORY_INDEX, task.indexed) for task in joined.values()} == {
            "t1": (False, True),
            "gone": (True, True),
            "t2": (False, False),
        }
        assert joined["t1"].outcome is Outcome.SUCCESS


def test_wrong_entries_of_the_index_are_findings() -> None:
    tasks, findings = read_memory(MEMORY_INDEX, {"tasks": [{"outcome": "success"}, 7, {"task_id": "t"}]}, MTIME)
    assert [task.id for task in tasks] == ["t"]
    assert [(one.code, one.pointer) for one in findings] == [
        ("missing-id", "/tasks/0"),
        ("wrong-type", "/tasks/1"),
    ]


KEYS = ["tasks", "task_id", "outcome", "iterations", "final_quality", "key_learnings", "tags", "timestamp"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


@given(st.sampled_from([FILE, MEMORY_INDEX]), VALUES)
def test_any_json_gives_typed_tasks(file: str, value: Any) -> None:
    tasks, _ = read_memory(file, value, MTIME)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(tasks), type=tuple[MemoryTask, ...]) == tasks
    assert all(task.id for task in tasks)
    assert set(join_memory(tasks)) == {task.id for task in tasks}
