from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.records.episodes import Task
from core.records.loops import Loop
from core.records.reflections import MemoryTask
from core.tasks.task_links import (
    BY_DESCRIPTION,
    BY_ID,
    BY_METADATA,
    BY_TAG,
    Coverage,
    link_tasks,
    measure_coverage,
)


def loops(*found: Loop) -> dict[str, Loop]:
    return {loop.id: loop for loop in found}


def found_by(known: dict[str, Loop], **fields: Any) -> tuple[str, str] | None:
    task = Task(id=fields.pop("id", "task-001"), **fields)
    link = link_tasks({task.id: task}, known).get(task.id)
    return (link.loop_id, link.how) if link else None


def test_most_specific_link_to_a_loop_is_used() -> None:
    known = loops(
        Loop(id="a", task="Fix it"),
        Loop(id="b", aliases=("uuid-b",)),
        Loop(id="c", aliases=("task-007",)),
        Loop(id="d", task="Add  OAuth settings."),
    )
    text: dict[str, Any] = {"tags": ("auth", "uuid-b"), "description": "add oauth settings"}
    assert found_by(known, id="task-007", loop_id="a", **text) == ("a", BY_METADATA)
    assert found_by(known, id="task-007", loop_id="gone", **text) == ("b", BY_TAG)
    assert found_by(known, id="task-007", description=text["description"]) == ("c", BY_ID)
    assert found_by(known, description=text["description"]) == ("d", BY_DESCRIPTION)
    assert found_by(known, description="something else") is None


def test_ambiguous_loop_is_not_linked() -> None:
    known = loops(Loop(id="a", task="Fix it", aliases=("x",)), Loop(id="b", task="fix it", aliases=("x", "a")))
    assert found_by(known, description="Fix it") is None
    assert found_by(known, loop_id="x") is None
    assert found_by(known, tags=("a", "b")) is None
    assert found_by(known, loop_id="a") == ("a", BY_METADATA)  # an id counts before an alias
    assert found_by(loops(Loop(id="a"), Loop(id="b", task="x")), description="") is None


def test_coverage_separates_loops_known_only_to_the_cross_task_memory() -> None:
    known = loops(*(Loop(id=id, task=f"Task {id}") for id in "abcd"))
    tasks = {"task-001": Task(id="task-001", loop_id="b")}
    memory = {
        "m1": MemoryTask(id="m1", tags=("external-ralph", "b")),
        "m2": MemoryTask(id="m2", description="task D"),
    }
    found = measure_coverage(tasks, memory, known)
    assert found == Coverage(tracked=("b",), remembered=("d",), missing=("a", "c"))
    assert (found.loops, found.share) == (4, 0.25)
    assert measure_coverage(tasks, memory, {}).share is None


names = st.sampled_from(["a", "b", "c", "", "x y"])
some_loops = st.dictionaries(
    st.sampled_from("abc"), st.builds(Loop, id=st.just(""), task=names, aliases=st.lists(names).map(tuple)), max_size=3
).map(lambda found: {id: Loop(id=id, task=one.task, aliases=one.aliases) for id, one in found.items()})
some_tasks = st.lists(st.builds(Task, id=names, loop_id=names, tags=st.lists(names).map(tuple), description=names))
some_memory = st.lists(st.builds(MemoryTask, id=names, tags=st.lists(names).map(tuple), description=names))


@given(some_loops, some_tasks, some_memory)
def test_every_loop_is_counted_once(known: dict[str, Loop], tasks: list[Task], memory: list[MemoryTask]) -> None:
    found = measure_coverage({task.id: task for task in tasks}, {task.id: task for task in memory}, known)
    assert sorted((*found.tracked, *found.remembered, *found.missing)) == sorted(known)
    assert set(found.tracked) == {link.loop_id for link in link_tasks({t.id: t for t in tasks}, known).values()}
