"""Vectors of a project are computed once, stored and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.errors import Unwritable
from core.base.paths import ProjectPaths
from core.records.episodes import Task
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask
from core.retrieval import embeddings
from core.retrieval.embeddings import (
    PATTERNS,
    TASKS,
    Embedder,
    Embeddings,
    Floats32,
    ModelUnusable,
    PastTask,
    Vectors,
    VectorSubject,
    encode_vectors,
)
from core.retrieval.index import PatternIndex
from tests.factories import make_pattern

Patterns = dict[str, Pattern]


class Counting(Embedder):
    """Fake model: texts with the same first word have the same vector; counts texts."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def embed(self, texts: Sequence[str]) -> Floats32:
        self.read += texts
        vectors = np.zeros((len(texts), 384), np.float32)
        for row, text in enumerate(texts):
            vectors[row, sha256(text.split()[0].encode()).digest()[0]] = 1
        return vectors


class Broken(Embedder):
    def embed(self, texts: Sequence[str]) -> Floats32:
        raise ModelUnusable("it does not load")


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")


@pytest.fixture
def project(tmp_path: Path) -> ProjectPaths:
    return ProjectPaths(tmp_path)


def patterns(*titles: str) -> Patterns:
    # An ID without a dash has no name, so that the embedded text is the title.
    made = {title: make_pattern(f"pat{number}", title=title) for number, title in enumerate(titles)}
    return {p.id: replace(p, content_hash=sha256(title.encode()).hexdigest()) for title, p in made.items()}


def close(of: Embeddings[Pattern], task: str, known: Patterns) -> list[float | None]:
    """The rounded closeness of each pattern, None for one without a vector."""
    found = of.closeness(task, PatternIndex.build(known).ids, known)
    assert found is not None
    return [None if np.isnan(value) else abs(round(float(value))) for value in found]


def test_vectors_are_computed_once_and_stored(project: ProjectPaths) -> None:
    known = patterns("null user", "cache order")
    first = Embeddings(project, PATTERNS, Counting())
    assert (first.make(known), first.make(known)) == (2, 0)
    assert close(first, "null", known) == [1, 0]
    reader = Counting()
    again = Embeddings(project, PATTERNS, reader)
    assert again.missing(known) == {} and again.make(known) == 0
    assert close(again, "cache", known) == [0, 1]
    assert reader.read == ["cache"]


def test_a_changed_pattern_needs_a_new_vector_and_a_new_count_does_not(project: ProjectPaths) -> None:
    known = patterns("null user", "cache order")
    embedder = Counting()
    made = Embeddings(project, PATTERNS, embedder)
    made.make(known)
    edited = {"pat0": patterns("other words")["pat0"], "pat1": replace(known["pat1"], trend=())}
    assert close(made, "null", edited) == [None, 0]
    assert made.make(edited) == 1 and len(embedder.read) == 4
    assert close(made, "other", edited) == [1, 0]


def test_make_can_be_stopped_and_continued(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_WRITTEN_AT_ONCE", 2)
    known = patterns("a", "b", "c", "d", "e")
    calls: list[tuple[int, int]] = []
    made = Embeddings(project, PATTERNS, Counting())
    assert made.make(known, lambda *progress: calls.append(progress), stop=lambda: len(calls) == 2) == 4
    assert calls == [(0, 5), (2, 5), (4, 5)]
    again = Embeddings(project, PATTERNS, Counting())
    assert list(again.missing(known).values()) == ["e"]
    assert again.make(known) == 1


def test_vectors_of_another_process_are_reused(project: ProjectPaths) -> None:
    known = patterns("a", "b")
    embedder = Counting()
    here, there = Embeddings(project, PATTERNS, embedder), Embeddings(project, PATTERNS, Counting())
    assert len(here.missing(known)) == 2
    there.make(known)
    assert here.make(known) == 0 and embedder.read == []
    assert close(here, "a", known) == [1, 0]


def test_vectors_are_used_before_all_are_made(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_WRITTEN_AT_ONCE", 1)
    known = patterns(*map(str, range(40)))
    made, counts = Embeddings(project, PATTERNS, Counting()), list[int]()
    made.make(known, lambda done, total: counts.append(made.count(known)))
    assert all(done - 3 < count <= done for done, count in enumerate(counts)) and counts[-1] == 40


def test_rows_of_removed_patterns_have_no_vector(project: ProjectPaths) -> None:
    known = patterns("a", "b", "c", "d", "e", "f")
    made = Embeddings(project, PATTERNS, Counting())
    made.make(known)
    index = PatternIndex.build(known)
    fewer = {id: pattern for id, pattern in known.items() if id != "pat2"}
    found = made.closeness("a", index.updated(fewer, {"pat2"}).ids, fewer)
    assert found is not None and np.isnan(found).tolist() == [False, False, True, False, False, False]


def test_keys_are_computed_again_only_for_changed_patterns(project: ProjectPaths) -> None:
    keyed: list[str] = []

    def key(pattern: Pattern) -> bytes:
        keyed.append(pattern.id)
        return PATTERNS.key(pattern)

    subject = VectorSubject(PATTERNS.file, PATTERNS.form, PATTERNS.text, key)
    known = patterns("a", "b", "c")
    made = Embeddings(project, subject, Counting())
    made.make(known)
    assert close(made, "a", known) == [1, 0, 0]
    keyed.clear()
    changed = {**known, "pat1": patterns("c", "a")["pat1"], "pat3": patterns("", "", "", "c")["pat3"]}
    assert close(made, "c", changed) == [0, None, 1, None]
    assert keyed == ["pat1", "pat3"]


@pytest.mark.parametrize(
    ("variable", "value"), [("RALPHDECK_SEMANTIC", "off"), ("RALPHDECK_SEMANTIC", "OFF"), ("RALPHDECK_MEANING", "off")]
)
def test_without_the_model_semantic_similarity_is_unknown(
    variable: str, value: str, project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = patterns("a")
    made = Embeddings(project, PATTERNS, Counting())
    made.make(known)
    monkeypatch.setenv(variable, value)
    assert made.closeness("a", PatternIndex.build(known).ids, known) is None
    assert made.missing(patterns("b")) == {}


def test_without_vectors_the_model_is_not_loaded(project: ProjectPaths) -> None:
    embedder = Counting()
    known = patterns("a")
    assert Embeddings(project, PATTERNS, embedder).closeness("a", PatternIndex.build(known).ids, known) is None
    assert embedder.read == []


def test_a_model_that_does_not_load_is_reported_and_words_are_compared(project: ProjectPaths) -> None:
    known = patterns("a")
    Embeddings(project, PATTERNS, Counting()).make(known)
    broken = Embeddings(project, PATTERNS, Broken())
    assert broken.closeness("a", PatternIndex.build(known).ids, known) is None
    assert broken.problem == "it does not load"


def test_a_failed_write_is_an_error(project: ProjectPaths) -> None:
    project.ralph.mkdir(parents=True)
    (project.ralph / "memory").write_text("in the way")
    with pytest.raises(Unwritable):
        Embeddings(project, PATTERNS, Counting()).make(patterns("a"))


def test_a_vector_file_of_another_program_is_ignored(project: ProjectPaths) -> None:
    known: Mapping[str, Pattern] = patterns("a")
    Embeddings(project, PATTERNS, Counting()).make(known)
    file = project.ralph / "memory" / "embeddings" / "patterns.vec"
    file.write_bytes(file.read_bytes()[:-100] + b"\xff" * 5000)
    made = Embeddings(project, PATTERNS, Counting())
    assert len(made.missing(known)) == 1
    assert made.make(known) == 1 and close(made, "a", dict(known)) == [1]


def test_a_task_is_embedded_once_for_patterns_and_other_tasks(project: ProjectPaths) -> None:
    embedder = Counting()
    known, works = patterns("login"), {"task-001": Task(id="task-001", description="login crash")}
    of_patterns, of_tasks = Embeddings(project, PATTERNS, embedder), Embeddings(project, TASKS, embedder)
    assert of_patterns.make(known) == of_tasks.make(works) == 1
    embedder.read.clear()
    assert close(of_patterns, "login", known) == [1]
    found = of_tasks.closeness("login", list(works), works)
    assert found is not None and found.tolist() == pytest.approx([1])
    assert embedder.read == ["login"]


def test_tasks_of_both_memories_have_vectors_of_their_own(project: ProjectPaths) -> None:
    task = Task(id="task-001", description="login crash", criteria="tests pass", tags=("auth",))
    tasks: dict[str, PastTask] = {
        "task-001": task,
        "m-1": MemoryTask(id="m-1", description="cache order"),
        "bare": Task(id="bare"),
    }
    embedder = Counting()
    made = Embeddings(project, TASKS, embedder)
    assert made.make(tasks) == 2 and made.count(tasks) == 2
    assert embedder.read == ["login crash. tests pass. auth", "cache order"]
    assert (project.ralph / "index" / "embeddings" / "tasks.vec").is_file()
    found = made.closeness("login", tuple(tasks), tasks)
    assert found is not None and found.round().tolist()[:2] == [1, 0] and np.isnan(found[2])
    tagged = {"task-001": replace(task, tags=("other",))}
    assert len(made.missing(tagged)) == 1


def test_a_huge_task_is_cut_before_the_model_reads_it(project: ProjectPaths) -> None:
    huge = {"t": Task(id="t", description="word " * 1_000_000, tags=("x" * 100_000,) * 1000)}
    embedder = Counting()
    assert Embeddings(project, TASKS, embedder).make(huge) == 1
    assert len(embedder.read[0]) < 5000


def test_supposed_vectors_are_compared_and_not_written(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    known = patterns("null user", "cache order")
    embedder = Counting()
    real = Embeddings(project, PATTERNS, embedder)
    real.make(known)
    more = known | {"pat9": replace(patterns("retry user")["pat0"], id="pat9")}
    supposed = real.supposing(more)
    assert close(supposed, "retry", more) == [0, 0, 1] and close(real, "retry", more) == [0, 0, None]
    assert embedder.read.count("retry") == 1  # a task is read once for both
    assert real.coverage(more) == (2, 3) and supposed.coverage(more) is None
    assert Embeddings(project, PATTERNS, Counting()).coverage(more) == (2, 3)
    assert supposed.supposing(more) is supposed
    monkeypatch.setattr(embeddings, "MAX_ON_DEMAND", 0)
    assert real.supposing(more) is real and real.make_few(more) == 1


def test_without_a_working_model_no_vectors_are_supposed(project: ProjectPaths) -> None:
    broken = Embeddings(project, PATTERNS, Broken())
    assert broken.supposing(patterns("null user")) is broken
    assert broken.problem == "it does not load"


def directions(seed: int, count: int) -> Floats32:
    made = np.random.default_rng(seed).normal(size=(count, 384)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(1e-3, 1e3))
def test_the_cosine_survives_the_encoding(seed: int, count: int, length: float) -> None:
    made = directions(seed, count)
    stored = Vectors.of([b"%d" % number for number in range(count)], encode_vectors(made * np.float32(length)))
    seen = made - made.sum(axis=0) / (count + 30)
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    assert stored.closeness(made[0]) == pytest.approx(seen @ seen[0], abs=0.01)


def test_what_most_texts_share_makes_none_similar() -> None:
    shared, own = directions(1, 1)[0], directions(2, 100)
    made = 2 * shared + own
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    wanted = own[7] + own[:1] * 0.1  # the same subject, without the domain that the stored texts share
    cosines = Vectors.of([b"%d" % number for number in range(100)], encode_vectors(made)).closeness(wanted[0])
    assert int(cosines.argmax()) == 7 and np.median(cosines) < 0.2 < (made @ shared).min()


def test_many_rows_are_compared_in_chunks() -> None:
    made = directions(1, 9000)
    closeness = Vectors.of([b"%d" % number for number in range(9000)], encode_vectors(made)).closeness(made[8999])
    assert int(closeness.argmax()) == 8999 and closeness[8999] == pytest.approx(1, abs=0.001)


def test_a_zero_vector_has_no_cosine() -> None:
    stored = Vectors.of([b"a"], np.zeros((1, 384), np.int8))
    assert np.isnan(stored.closeness(directions(1, 1)[0])).all()


def test_the_last_vector_of_a_hash_counts() -> None:
    made = directions(2, 3)
    stored = Vectors.of([b"a", b"b"], encode_vectors(made[:2])).extended([b"a"], encode_vectors(made[2:]))
    assert stored.places == {b"a": 2, b"b": 1}
    assert len(Vectors.of([], encode_vectors(made[:0])).closeness(made[0])) == 0
