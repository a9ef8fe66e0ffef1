"""Clusters of similar learnings in reflections of several loops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz, process

from core.base.record_text import strip_label
from core.base.steps import run_all
from core.index.verdicts import VerdictsInMemory
from core.questions.extraction.learnings import Cluster, cluster_reflections, cluster_snapshot_in_steps
from core.records.episodes import Task
from core.records.loops import Loop
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.retrieval.contradiction import MIN_SIMILARITY
from core.retrieval.similarity import sorted_words
from tests.factories import record_calls

START = datetime(2026, 2, 2, tzinfo=UTC)
SETTLE = "Settle the shared types before any file that uses them"


def reflection(loop: str, learning: str, day: int | None = 0, **fields: Any) -> Reflection:
    at = None if day is None else START + timedelta(days=day)
    values = {"id": f"{loop} {day} {learning[:80]}", "shape": "state", "file": "f", "loop_id": loop, "at": at}
    return Reflection(**{**values, "learning": learning, **fields})


def texts(clusters: tuple[Cluster, ...]) -> list[list[str]]:
    return [[member.reflection.learning for member in cluster.members] for cluster in clusters]


def find_clusters(snapshot: Snapshot, stored: VerdictsInMemory) -> tuple[Cluster, ...]:
    return run_all(cluster_snapshot_in_steps(snapshot, stored))


def test_a_learning_recurs_if_two_loops_recorded_it() -> None:
    other = "Settle the shared types before the first file that uses them."
    (found,) = cluster_reflections(
        [reflection("b", other, 2), reflection("a", SETTLE, 1), reflection("c", "Lock in order", 3)], {}
    )
    assert texts((found,)) == [[SETTLE, other]]
    assert found.sources == ("a", "b")
    assert (found.first_at, found.last_at) == (START + timedelta(days=1), START + timedelta(days=2))
    assert cluster_reflections([reflection("a", SETTLE, 1), reflection("a", SETTLE, 2)], {}) == ()


def test_labels_case_and_order_of_words_make_no_difference() -> None:
    one = reflection("a", "Iteration 1: test first, then make the minimal change")
    two = reflection("b", "Attempt 2: make the minimal change, then TEST FIRST")
    assert len(cluster_reflections([one, two], {})) == 1


def test_a_chain_of_small_differences_is_not_one_cluster() -> None:
    words = [f"word{number}" for number in range(30)]
    steps = [reflection(f"loop-{n}", " ".join(words[n * 2 : n * 2 + 8])) for n in range(11)]
    for cluster in cluster_reflections(steps, {}):
        central = sorted_words(cluster.text)
        for member in cluster.members:
            assert fuzz.ratio(central, sorted_words(member.reflection.learning)) > MIN_SIMILARITY * 100


def test_opposites_with_the_same_words_are_different() -> None:
    asked = ["Mock the gateway in unit tests", "Always mock the gateway in unit tests."]
    negated_texts = ["Never mock the gateway in unit tests.", "Don't mock the gateway in unit tests"]
    turned = ["Write the migration before the model", "Write the model before the migration"]
    reflections = [reflection(f"loop-{n}", text) for n, text in enumerate(asked + negated_texts + turned)]
    assert sorted(map(sorted, texts(cluster_reflections(reflections, {})))) == sorted(
        map(sorted, (asked, negated_texts))
    )


def test_learnings_in_a_language_without_spaces_recur() -> None:
    reflections = [
        reflection("a", "先に型定義を更新してから実装する"),
        reflection("b", "先に型定義を更新してから実装すること"),
    ]
    assert (
        len(cluster_reflections([*reflections, reflection("c", "先に型定義を更新してから実装しない")], {})[0].members)
        == 2
    )


def test_the_most_similar_learning_is_central() -> None:
    endings = ("at once", "and tests", "in one step")
    near = [reflection(f"loop-{n}", f"{SETTLE} {extra}") for n, extra in enumerate(endings)]
    (found,) = cluster_reflections([*near, reflection("z", SETTLE, 9)], {})
    assert found.text == SETTLE and len(found.members) == 4


def test_the_id_is_stable_while_reflections_join() -> None:
    first = [reflection("a", SETTLE, 1), reflection("b", f"{SETTLE} too", 2)]
    (before,) = cluster_reflections(first, {})
    (after,) = cluster_reflections([*first, *(reflection(f"c{n}", SETTLE, 3) for n in range(3))], {})
    assert before.id == after.id and before.text != after.text
    assert before.id.startswith("recurring-") and before.id.removeprefix("recurring-").isalnum()


def test_a_task_and_its_loop_are_one_source() -> None:
    of_loop = reflection("", SETTLE, 1, task_id="task-001", id="1")
    loops = {"a": Loop(id="a", task="Migrate", aliases=("a-alias",))}
    tasks = {"task-001": Task(id="task-001", loop_id="a"), "task-002": Task(id="task-002")}
    of_task = reflection("", SETTLE, 2, task_id="task-002", id="2")
    same = Snapshot(loops=loops, tasks=tasks, reflections={"1": of_loop, "3": reflection("a", SETTLE, 3)})
    assert find_clusters(same, VerdictsInMemory()) == ()
    two = Snapshot(loops=loops, tasks=tasks, reflections={"1": of_loop, "2": of_task})
    (found,) = find_clusters(two, VerdictsInMemory())
    assert found.sources == ("a", "task-002")


def test_learnings_that_were_grouped_before_are_compared_again_only_after_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnings = (
        SETTLE,
        f"{SETTLE} too",
        "Lock the rows before the update of a stock",
        "Lock the rows before an update",
    )
    reflections = {str(n): reflection(f"loop-{n}", text, n) for n, text in enumerate(learnings)}
    stored = VerdictsInMemory()
    first = find_clusters(Snapshot(reflections=reflections), stored)
    assert len(first) == 2
    calls = record_calls(monkeypatch, process, "cdist")
    assert find_clusters(Snapshot(reflections=dict(reversed(reflections.items()))), stored) == first
    assert not calls
    more = Snapshot(reflections=reflections | {"9": reflection("loop-9", f"Always {SETTLE}", 9)})
    assert find_clusters(more, stored) == find_clusters(more, VerdictsInMemory()) != first


def test_thousands_of_similar_learnings_need_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    cdist = process.cdist

    def counted(queries: list[str], choices: list[str], **options: Any) -> Any:
        compared.append(len(choices))
        return cdist(queries, choices, **options)

    monkeypatch.setattr(process, "cdist", counted)
    reflections = [
        reflection(f"loop-{n}", f"When adding part p{n} update number n{n * 7919} of m{n % 97}") for n in range(2000)
    ]
    (found,) = cluster_reflections(reflections, {})
    assert len(found.members) == 2000
    assert max(compared) <= 64 and len(compared) <= 2 * len(reflections)


def test_small_groups_are_found_among_many_that_share_words() -> None:
    random = Random(5)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(300)]
    groups = [" ".join(random.sample(words, 10)) for _ in range(400)]
    reflections = [
        reflection(f"loop-{n}-{m}", f"{text} {random.choice(words)}") for n, text in enumerate(groups) for m in "ab"
    ]
    assert sorted(len(cluster.members) for cluster in cluster_reflections(reflections, {})) == [2] * len(groups)


def test_drafts_reflections_without_source_and_short_ones_are_ignored() -> None:
    drafts = [reflection(loop, "The approach carried at once.", draft=True) for loop in "ab"]
    homeless = [reflection("", SETTLE, day) for day in (1, 2)]
    short = [reflection(loop, "tests failed") for loop in "ab"]
    silent = [reflection(loop, "", observation=SETTLE) for loop in "ab"]
    assert cluster_reflections([*drafts, *homeless, *short, *silent], {}) == ()


def test_hostile_texts_are_truncated_and_not_dropped() -> None:
    wild = "\x1b]0;x\x07 \ud800 [/] \u202e " + "word and another " * 100_000
    (found,) = cluster_reflections([reflection("\ud800", wild), reflection("b", wild)], {})
    assert found.text == wild


_WORDS = ("types", "first", "lock", "order", "settle", "retry", "cache", "before", "tests", "shared")
_LEARNING = st.lists(st.sampled_from(_WORDS), min_size=0, max_size=7).map(" ".join)
_DRAWN = st.lists(st.tuples(st.sampled_from("abcd"), _LEARNING, st.none() | st.integers(0, 3)), max_size=14)


@given(_DRAWN, st.randoms(use_true_random=False))
def test_clusters_are_disjoint_and_independent_of_the_order_of_input(
    drawn: list[tuple[str, str, int | None]], random: Random
) -> None:
    reflections = [reflection(loop, text, day, id=f"{n}") for n, (loop, text, day) in enumerate(drawn)]
    clusters = cluster_reflections(reflections, {})
    members = [member.reflection.id for cluster in clusters for member in cluster.members]
    assert len(members) == len(set(members))
    assert len({cluster.id for cluster in clusters}) == len(clusters)
    for cluster in clusters:
        central = sorted_words(strip_label(cluster.text))
        assert cluster.central in {member.reflection for member in cluster.members}
        assert len(set(cluster.sources)) == len(cluster.sources) >= 2
        for member in cluster.members:
            words = sorted_words(strip_label(member.reflection.learning))
            assert words == central or fuzz.ratio(central, words) > MIN_SIMILARITY * 100
    random.shuffle(reflections)
    assert cluster_reflections(reflections, {}) == clusters
