"""Reflections of every format and their copies, and the cross-task memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.file_reader import Line, RawFile, Stamp
from core.records.findings import Finding
from core.records.loops import Outcome
from core.records.reflections import MemoryTask, Reflection
from core.sources.loops import read_loops
from core.sources.parsed_file import ParsedFile, parse_file
from core.sources.record_kinds import kind_of, loop_source
from core.sources.reflections import (
    MEMORY_INDEX,
    join_memory,
    join_reflections,
    read_memory,
    read_reflections,
    reflection_key,
)

MTIME = datetime(2026, 5, 1, 12, tzinfo=UTC)
AT = datetime(2026, 4, 30, 10, tzinfo=UTC)
UUID = "f314cacf-fe09-49ac-91ed-56d8d456ffcb"
STATE = ".aiwg/ralph/loops/a/state.json"
MANAGED = ".aiwg/ralph/loops/a/reflections/reflection-2.json"
ANALYTICS = ".aiwg/ralph/analytics/a.json"
TASK = ".aiwg/ralph/memory/tasks/t.json"
UNNAMED = ".aiwg/ralph-external/reflections/reflection-2.json"


SHAPES = {
    ".aiwg/ralph/tasks/task-001/reflections.jsonl": "episodic",
    TASK: "cross-task",
    ".aiwg/ralph/reflections/loops/a/iteration-3.yaml": "hook",
    ".aiwg/ralph/reflections/a/001.json": "hook",
    MANAGED: "hook",
    ".aiwg/ralph/archive/a/reflections/reflection-10.json": "hook",
    UNNAMED: "hook",
    ANALYTICS: "analytics",
    ".aiwg/ralph/a/best-output-tracking.json": "best-output",
    STATE: "state",
    ".aiwg/ralph/current-loop.json": "state",
    ".aiwg/ralph-external/session-state.json": "state",
}


COUNTED = "The log alone shows nothing to do differently"


def read(file: str, value: Any) -> tuple[Reflection, ...]:
    reflections, findings = read_all(file, value)
    assert findings == ()
    return reflections


def read_all(file: str, value: Any) -> tuple[tuple[Reflection, ...], tuple[Finding, ...]]:
    """Reflections and findings of a file, with the reader of its kind."""
    if loop_source(file):
        records = read_loops(file, value, MTIME)
        return records.reflections, records.findings
    return read_reflections(file, value, MTIME)


def at(minutes: float = 0) -> str:
    return (AT + timedelta(minutes=minutes)).isoformat()


def test_shapes_are_recognized_by_path() -> None:
    others = ("reflections/index.yaml", "reflections/patterns/error.json", "registry.json", "heartbeats/a.json")
    more = ("tasks/task-001/trajectory.json", "loops/a/crash.log")
    for file, shape in {**SHAPES, **{f".aiwg/ralph/{name}": "" for name in (*others, *more)}}.items():
        kind = kind_of(file)
        assert (kind.shape if kind is not None else "") == shape, file


def test_reflections_of_each_format_are_mapped() -> None:
    content = {"iteration": 2, "content": "c", "type": "strategy-change", "effectiveness": "Helpful", "timestamp": at()}
    (one,) = read(MANAGED, content)
    assert (one.loop_id, one.iteration, one.at, one.at_approximate) == ("a", 2, AT, False)
    assert (one.kind, one.effectiveness, one.learning) == ("strategy_change", "helpful", "c")
    (one,) = read(".aiwg/ralph/reflections/a/010.json", {"reflection": "r"})
    assert (one.loop_id, one.iteration, one.at, one.at_approximate) == ("a", 10, MTIME, True)
    trial = {"trial_number": "3", "trajectory": ["did this", "did that"], "outcome": "partial"}
    hook = {**trial, "reflection": "why", "strategy_change": "so"}
    (one,) = read(".aiwg/ralph/reflections/loops/a/iteration-9.yaml", hook)
    assert (one.iteration, one.outcome) == (3, Outcome.PARTIAL)
    assert (one.observation, one.analysis, one.learning) == ("did this; did that", "why", "so")
    texts = {"reflection_text": "o", "causal_reasoning": "why", "lessons_learned": ["one", "two"]}
    reflexion = {"evaluator_output": {"passed": True}, "self_reflection": {**texts, "actionable_insights": ["do"]}}
    (one,) = read(".aiwg/ralph/reflections/a/001.json", reflexion)
    assert (one.shape, one.outcome) == ("reflexion", Outcome.SUCCESS)
    assert (one.observation, one.analysis, one.learning, one.actions) == ("o", "why", "one; two", ("do",))


def test_invalid_lines_of_a_task_are_findings() -> None:
    lines = [
        Line(1, {"attempt_id": 2, "learning": "l", "triggered_by": "Failure", "timestamp": at()}),
        Line(3, ["no"]),
        Line(4, {"attempt_id": {}, "analysis": "x"}),
    ]
    reflections, findings = read_reflections(".aiwg/ralph/tasks/task-001/reflections.jsonl", lines, MTIME)
    assert [(one.task_id, one.attempt, one.trigger) for one in reflections] == [
        ("task-001", 2, "failure"),
        ("task-001", None, ""),
    ]
    assert [(one.pointer, one.code) for one in findings] == [
        ("line 3", "wrong-type"),
        ("line 4/attempt_id", "wrong-type"),
    ]


def test_strings_beside_iterations_get_their_time() -> None:
    value = {"loop_id": "a", "iterations": [{"iteration_number": 2, "timestamp": at(), "reflections": ["x", "y"]}]}
    first, second = read(ANALYTICS, value)
    assert (first.iteration, first.at, first.at_approximate) == (2, AT, True)
    assert second.pointer == "/iterations/0/reflections/1"


def test_learnings_of_a_state_are_split_by_iteration_and_heading() -> None:
    value = {
        "iterations": [{"number": 1, "learnings": "one"}, {"number": 2, "learnings": ["two", "too"]}],
        "learnings": None,
        "accumulatedLearnings": "first\n### Iteration 3\nthree\n\n",
    }
    parsed = {one.learning: one.iteration for one in read(STATE, value)}
    assert parsed == {"one": 1, "two": 2, "too": 2, "first": None, "three": 3}


def test_each_defect_is_reported_once() -> None:
    _, findings = read_all(STATE, {"iterations": 7, "learnings": {"a": 1}})
    assert [one.pointer for one in findings] == ["/iterations", "/learnings"]
    _, findings = read_reflections(TASK, {"timestamp": "x", "reflections": [1]}, MTIME)
    assert [one.pointer for one in findings] == ["/reflections/0"]
    _, findings = read_reflections(MANAGED, "x", MTIME)
    assert [one.code for one in findings] == ["wrong-type"]


def state(text: str, iteration: int | None = 2, loop: str = "a", minutes: float = 0) -> Reflection:
    entries = [{"number": iteration, "learnings": text, "timestamp": at(minutes)}]
    (one,) = read(f".aiwg/ralph/loops/{loop}/state.json", {"iterations": entries})
    return one


def managed(text: str, file: str = MANAGED, minutes: float = 0) -> Reflection:
    content = {"iteration": 2, "content": text, "type": "error_analysis", "timestamp": at(minutes)}
    (one,) = read(file, content)
    return one


def test_one_sentence_in_three_files_is_one_reflection() -> None:
    iterations = [{"iteration_number": 2, "timestamp": at(), "reflections": ["A  sentence"]}]
    analytics = read(ANALYTICS, {"loop_id": "a", "iterations": iterations})
    whole = read(STATE, {"learnings": "a sentence."})
    (one,) = join_reflections([*whole, *analytics, state("a sentence"), managed("A sentence")], {}).values()
    assert (one.shape, one.loop_id, one.iteration) == ("memory-manager", "a", 2)
    assert one.also_in == (ANALYTICS, STATE)
    assert not one.at_approximate


def test_another_iteration_or_another_loop_is_another_reflection() -> None:
    joined = join_reflections([state("x", 1), state("x", 2), state("x", 2, "b"), state("y", 2)], {})
    assert len(joined) == 4
    assert all(one.id == key for key, one in joined.items())
    whole = read(STATE, {"learnings": "x"})
    joined = join_reflections([*whole, state("x", 1), state("x", 3)], {})
    assert sorted(one.iteration or 0 for one in joined.values()) == [1, 3], "that of the whole loop joins the last one"


def test_a_reflection_without_a_loop_joins_the_nearest_in_time() -> None:
    parsed = [managed("x", UNNAMED), state("x", 2, "far", minutes=3), state("x", 2, "near", minutes=0.5)]
    joined = join_reflections(parsed, {})
    assert {one.loop_id: one.shape for one in joined.values()} == {"far": "state", "near": "memory-manager"}
    parsed = [managed("x", UNNAMED), state("x", 2, "far", minutes=3), state("x", 2, "farther", minutes=5)]
    assert len(join_reflections(parsed, {})) == 3


class Compared(str):
    """A loop ID that counts comparisons of loop IDs."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)


def test_joining_a_common_sentence_is_fast() -> None:
    """Each of 1,000 loops has it with and without an iteration; 1,000 more have no loop."""
    parsed = []
    for number in range(1000):
        loop = Compared(f"loop-{number}")
        precise = state("x", 2, minutes=10 * number)
        parsed += [msgspec.structs.replace(precise, loop_id=loop)]
        parsed += [msgspec.structs.replace(precise, loop_id=loop, iteration=None)]
        parsed += [msgspec.structs.replace(precise, loop_id=Compared(""), task_id=f"task-{number}")]
    Compared.times = 0
    joined = join_reflections(parsed, {})
    assert {(one.loop_id, one.task_id) for one in joined.values()} == {
        (f"loop-{number}", f"task-{number}") for number in range(1000)
    }
    assert Compared.times < 50 * len(parsed)


def test_a_task_of_the_memory_that_names_its_loop_is_joined_to_it() -> None:
    value = {"tags": [UUID], "reflections": [{"iteration": 2, "content": "x"}], "task_id": "t"}
    (one,) = join_reflections([*read(TASK, value), state("x", 2, "row")], {UUID: "row"}).values()
    assert (one.loop_id, one.task_id, one.also_in) == ("row", "t", (".aiwg/ralph/loops/row/state.json",))


def test_ids_do_not_depend_on_order_or_on_other_groups() -> None:
    parsed = [state("x", 1), managed("x"), managed("z", UNNAMED), state("y")]
    whole = join_reflections(parsed, {})
    assert whole == join_reflections(reversed(parsed), {})
    for key in {reflection_key(one) for one in parsed}:
        part = join_reflections([one for one in parsed if reflection_key(one) == key], {})
        assert part.items() <= whole.items()


KEYS = [
    *("iterations", "reflections", "learnings", "accumulatedLearnings", "content", "reflection", "timestamp"),
    *("self_reflection", "reflection_text", "lessons_learned", "tags", "iteration", "number", "task_id", "type"),
]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from([at(), UUID, "x"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(list(SHAPES)), VALUES), max_size=5))
def test_any_json_gives_typed_reflections(parsed: list[tuple[str, Any]]) -> None:
    found: list[Reflection] = []
    for file, value in parsed:
        document = [Line(1, value)] if file.endswith(".jsonl") else value
        reflections, _ = read_all(file, document)
        found += reflections
    encoded = msgspec.msgpack.encode(found)
    assert msgspec.msgpack.decode(encoded, type=list[Reflection]) == found
    joined = join_reflections(found, {UUID: "a"})
    assert {reflection_key(one) for one in found} == {reflection_key(one) for one in joined.values()}
    files = {name for one in joined.values() for name in (one.file, *one.also_in)}
    assert files == {one.file for one in found}


def test_a_final_reflection_replaces_earlier_drafts() -> None:
    lines = [
        Line(1, {"attempt_id": 1, "learning": "drafted on 1", "draft": True, "timestamp": "2026-02-01T09:00:00Z"}),
        Line(2, {"attempt_id": 2, "learning": "drafted on 2", "draft": True}),
        Line(3, {"attempt_id": 1, "learning": "parsed_file on 1"}),
        Line(4, {"attempt_id": 1, "learning": "drafted anew on 1", "draft": True}),
    ]
    parsed = read(".aiwg/ralph/tasks/task-001/reflections.jsonl", lines)
    assert [(one.learning, one.draft) for one in parsed] == [
        ("drafted on 2", True),
        ("parsed_file on 1", False),
        ("drafted anew on 1", True),
    ]
    assert [one.drafted_at for one in parsed] == [None, datetime(2026, 2, 1, 9, tzinfo=UTC), None]


def test_a_draft_that_only_counts_is_ignored_and_the_last_reflection_counts() -> None:
    lines = [
        {"attempt_id": 1, "learning": f"{COUNTED}; put it into words.", "draft": True, "observation": "3 actions"},
        {"attempt_id": 1, "learning": '`npm test` failed with "red" until a.ts changed.', "draft": True},
        {"attempt_id": 2, "learning": "first", "reflection_type": "error-analysis"},
        {"attempt_id": 2, "learning": "of another kind", "reflection_type": "success-pattern"},
        {"attempt_id": 2, "learning": "better", "reflection_type": "error-analysis"},
        {"attempt_id": 2, "analysis": "only why", "reflection_type": "error-analysis"},
        {"attempt_id": 3, "learning": "of no kind"},
        {"attempt_id": 3, "learning": "of no kind either"},
    ]
    parsed = read(".aiwg/ralph/tasks/t/reflections.jsonl", [Line(at, value) for at, value in enumerate(lines, 1)])
    assert [one.attempt for one in parsed] == [2, 2, 2, 2, 3, 3]
    assert [one.text for one in parsed if one.superseded] == ["first"]


EPISODIC = {
    "timestamp": "2026-11-20T10:00:00Z",
    "attempt_id": 2,
    "observation": "Three type errors",
    "analysis": "The interface was not updated",
    "learning": "Update the interface first",
    "action_items": ["update AuthConfig"],
    "triggered_by": "failure",
    "reflection_type": "error-analysis",
}


MANAGED_RECORD = {
    "iteration": 4,
    "content": "Mock the clock",
    "type": "strategy_change",
    "timestamp": "2026-11-20T11:00:00Z",
}


YAML = b"""
- content: Pin the seed
  iteration: 3
  timestamp: "2026-11-20T12:00:00Z"
- content: Use a fixed clock
"""


def test_reflections_of_the_memory_are_read_from_each_kind_of_file_in_any_folder() -> None:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (EPISODIC, MANAGED_RECORD))
    files = {
        **{f"{folder}learned-7.jsonl": lines for folder in ("", "ralph-a/", "2026/ralph-b/")},
        "learned.yaml": YAML,
        "deep/er/learned.yml": YAML,
        "wrong.json": json.dumps([7, MANAGED_RECORD]).encode(),
        "list.json": json.dumps([EPISODIC, MANAGED_RECORD]).encode(),
        "object.json": json.dumps({"reflections": [EPISODIC, "Ask first"]}).encode(),
        "sub/reflection-5.json": json.dumps({"content": "Ask first"}).encode(),
    }
    memory = ".aiwg/ralph/memory/reflections"
    found: dict[str, list[Reflection]] = {}
    for name, data in files.items():
        kind = kind_of(f"{memory}/{name}")
        assert kind is not None
        parsed = parse_file(f"{memory}/{name}", kind, RawFile(data, Stamp(1, len(data), 1, 1)))
        assert isinstance(parsed, ParsedFile)
        found[name] = sorted(parsed.reflections, key=lambda one: one.learning)
        wrong = [("wrong-type", "/0")] if name == "wrong.json" else []
        assert [(one.code, one.pointer) for one in parsed.findings] == wrong
    for folder in ("", "ralph-a/", "2026/ralph-b/"):
        managed, episodic = found[f"{folder}learned-7.jsonl"]
        assert (managed.learning, managed.iteration, managed.pointer) == ("Mock the clock", 4, "line 2")
        assert (episodic.learning, episodic.attempt, episodic.trigger) == ("Update the interface first", 2, "failure")
        assert managed.loop_id == folder.rstrip("/").rpartition("/")[2]
    for name in ("learned.yaml", "deep/er/learned.yml"):
        pinned, fixed = found[name]
        assert (pinned.learning, pinned.iteration, fixed.at_approximate) == ("Pin the seed", 3, True)
    assert [len(found[name]) for name in ("list.json", "object.json", "wrong.json")] == [2, 2, 1]
    (one,) = found["sub/reflection-5.json"]
    assert (one.learning, one.iteration, one.loop_id) == ("Ask first", 5, "sub")


TASK_FILE = ".aiwg/ralph/memory/tasks/t1.json"


def read_tasks(file: str, value: Any) -> tuple[MemoryTask, ...]:
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
    (task,) = read_tasks(TASK_FILE, value)
    assert (task.id, task.description, task.task_type, task.outcome) == ("t1", "d", "debugging", Outcome.PARTIAL)
    assert (task.iterations, task.quality, task.learnings) == (3, 0.92, ("one", "two"))
    assert (task.at, task.file, task.indexed) == (datetime(2026, 4, 30, 10, tzinfo=UTC), TASK_FILE, False)


def test_the_task_file_wins_over_the_index() -> None:
    index = read_tasks(MEMORY_INDEX, {"tasks": [{"task_id": "t1", "outcome": "failure"}, {"task_id": "gone"}]})
    files = read_tasks(TASK_FILE, {"outcome": "success"}) + read_tasks(".aiwg/ralph/memory/tasks/t2.json", {})
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
    assert [(one.code, one.pointer) for one in findings] == [("missing-id", "/tasks/0"), ("wrong-type", "/tasks/1")]
