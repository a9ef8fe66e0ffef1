"""Loops of tasks, and similar tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Loop, Outcome
from core.records.reflections import MemoryTask, Reflection
from core.records.snapshot import Snapshot
from core.retrieval.embeddings import Closeness, ComparableWork, Embeddings
from core.tasks.task_links import (
    BY_DESCRIPTION,
    BY_ID,
    BY_METADATA,
    BY_TAG,
    SIMILAR,
    Coverage,
    SimilarTask,
    find_similar_tasks,
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


def task(id: str, description: str, **recorded: Any) -> Task:
    return Task(**{"id": id, "description": description, **recorded})


def reflection(task_id: str, attempt: int, learning: str, **recorded: Any) -> Reflection:
    values = {"id": f"{task_id}.{attempt} {learning}", "shape": "episodic", "file": "f", "task_id": task_id}
    return Reflection(**{**values, "attempt": attempt, "learning": learning, **recorded})


def snapshot(
    *tasks: Task,
    memory: Sequence[MemoryTask] = (),
    attempts: Sequence[Attempt] = (),
    recorded: Sequence[Reflection] = (),
) -> Snapshot:
    return Snapshot(
        tasks={task.id: task for task in tasks},
        memory_tasks={task.id: task for task in memory},
        attempts={attempt.id: attempt for attempt in attempts},
        reflections={reflection.id: reflection for reflection in recorded},
    )


def ids(found: Sequence[SimilarTask]) -> list[str]:
    return [one.task_id for one in found]


OTHERS = (task("other-1", "Paginate the invoices endpoint"), task("other-2", "Document how to install the tool"))


class FakeEmbeddings(Embeddings[ComparableWork]):
    """Returns given cosines; NaN for an unknown task."""

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self._cosines = cosines

    def closeness(self, text: str, ids: Sequence[str], records: Mapping[str, ComparableWork]) -> Closeness | None:
        return np.array([self._cosines.get(id, np.nan) for id in ids], np.float32)


def test_words_find_similar_descriptions_only() -> None:
    known = snapshot(task("t-1", "Fix null crash in the OAuth login"), *OTHERS)
    found = find_similar_tasks("OAuth login crashes on a null session", known)
    assert ids(found) == ["t-1"]
    assert SIMILAR <= found[0].score < 1 and found[0].matched_by == "words"
    assert find_similar_tasks("Bake bread", known) == find_similar_tasks("", known) == ()


def test_task_is_not_similar_to_itself_and_a_copy_scores_one() -> None:
    one, copy = task("t-1", "Fix null crash in login"), task("t-2", "Fix null crash in login")
    found = find_similar_tasks(one, snapshot(one, copy, *OTHERS))
    assert ids(found) == ["t-2"] and found[0].score == pytest.approx(1)


def test_embeddings_are_used_where_available_and_words_elsewhere() -> None:
    known = snapshot(
        task("near", "Throttle requests"), task("far", "Rate limits on the API"), task("new", "API rate limit")
    )
    found = find_similar_tasks("Rate limits on the API", known, FakeEmbeddings({"near": 0.6, "far": 0.15}))
    assert {one.task_id: one.matched_by for one in found} == {"near": "meaning", "new": "words"}
    assert {one.task_id: one.score for one in found}["near"] == pytest.approx(0.5 / 0.55, abs=1e-3)


def test_similar_tasks_are_sorted_by_score_then_id_and_limited() -> None:
    known = snapshot(*(task(f"t-{number}", "x") for number in (3, 1, 2)))
    found = find_similar_tasks("y", known, FakeEmbeddings({"t-1": 0.6, "t-2": 0.7, "t-3": 0.7}), limit=2)
    assert ids(found) == ["t-2", "t-3"]


def test_learnings_of_successes_come_first_and_drafts_last() -> None:
    tasks = task("t-1", "Fix login"), task("t-2", "Fix login", status=TaskStatus.COMPLETED)
    attempts = (
        Attempt(task_id="t-1", number=1, outcome=Outcome.FAILURE),
        Attempt(task_id="t-1", number=2, outcome=Outcome.SUCCESS),
    )
    recorded = (
        reflection("t-1", 1, "look at the loader"),
        reflection("t-1", 3, "newest"),
        reflection("t-1", 2, "types first"),
        reflection("t-1", 4, "drafted", draft=True),
        reflection("t-1", 4, "types first"),
        reflection("t-1", 5, ""),
        reflection("t-2", 1, "only drafted", draft=True),
        reflection("t-2", 2, "", draft=True),
    )
    one, two = find_similar_tasks("Fix login", snapshot(*tasks, attempts=attempts, recorded=recorded))
    assert one.learnings == ((2, "types first"), (3, "newest"), (1, "look at the loader"))
    assert two.learnings == ((1, "only drafted"),)
    assert (one.outcome, two.outcome) == (Outcome.UNKNOWN, Outcome.SUCCESS)


def test_cross_task_memory_contributes_key_learnings() -> None:
    kept = MemoryTask(id="m-1", description="Fix login", outcome=Outcome.SUCCESS, learnings=("Guard at entry",))
    (found,) = find_similar_tasks("Fix login", snapshot(memory=[kept]))
    assert (found.task_id, found.outcome, found.learnings) == ("m-1", Outcome.SUCCESS, ((None, "Guard at entry"),))


def test_hostile_descriptions_are_returned_unchanged() -> None:
    wild = task("t-1", "login \x1b[31m[/]\n" + "word " * 200_000, tags=("\ud800",) * 1000)
    (found,) = find_similar_tasks("login word", snapshot(wild))
    assert found.description == wild.description


_WORDS = st.lists(st.sampled_from(["login", "cache", "null", "order", "types"]), max_size=5).map(" ".join)


@given(st.dictionaries(st.sampled_from("abcdefgh"), _WORDS, max_size=8), _WORDS, st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_tasks(known: dict[str, str], asked: str, random: Random) -> None:
    tasks = [task(id, text) for id, text in known.items()]
    found = find_similar_tasks(asked, snapshot(*tasks))
    random.shuffle(tasks)
    again = find_similar_tasks(asked, snapshot(*tasks))
    assert {one.task_id: round(one.score, 9) for one in again} == {one.task_id: round(one.score, 9) for one in found}
    assert all(SIMILAR <= one.score <= 1 for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
