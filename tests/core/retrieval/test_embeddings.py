"""Vectors of patterns and tasks: the model, the files, and comparisons."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from core.base.errors import Unwritable
from core.base.paths import ProjectPaths
from core.files.file_access import file_lock
from core.records.episodes import Task
from core.records.patterns import Pattern, PatternType
from core.records.reflections import MemoryTask
from core.retrieval import embedding_model, embeddings
from core.retrieval.embedding_model import UnexpectedModel
from core.retrieval.embeddings import (
    PATTERNS,
    TASKS,
    Embedder,
    Embeddings,
    Floats32,
    ModelUnusable,
    PastTask,
    VectorFile,
    Vectors,
    VectorSubject,
    encode_vectors,
    is_available,
    pattern_embedding_text,
)
from core.retrieval.relevance import PatternIndex
from tests.factories import leave_draft, make_pattern

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


@pytest.mark.parametrize("value", ["off", "OFF"])
def test_without_the_model_semantic_similarity_is_unknown(
    value: str, project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = patterns("a")
    made = Embeddings(project, PATTERNS, Counting())
    made.make(known)
    monkeypatch.setenv("RALPHDECK_SEMANTIC", value)
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


SIZE = 8
FILE = "memory/embeddings/patterns.vec"
HASHES = [sha256(bytes([number])).digest() for number in range(20)]
CODES = np.arange(20 * SIZE, dtype=np.int8).reshape(20, SIZE)


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(ProjectPaths(tmp_path), FILE, "model", SIZE)


def write(file: VectorFile, *numbers: int, wanted: list[bytes] = HASHES) -> None:
    with file.writing(set(wanted)) as append:
        append([HASHES[number] for number in numbers], CODES[list(numbers)])


def numbers(file: VectorFile) -> list[int]:
    """Return the numbers of the stored vectors; checks that each is unchanged."""
    hashes, codes = file.read()
    found = [HASHES.index(hash) for hash in hashes]
    assert codes.dtype == np.int8 and np.array_equal(codes, CODES[found])
    return found


def test_vectors_of_another_model_are_discarded(file: VectorFile, tmp_path: Path) -> None:
    write(file, 0)
    other = VectorFile(ProjectPaths(tmp_path), FILE, "other", SIZE)
    assert numbers(other) == []
    write(other, 1)
    assert (numbers(other), numbers(file)) == ([1], [])


def test_a_torn_end_is_dropped_and_repaired(file: VectorFile) -> None:
    write(file, 0, 1, 2)
    os.truncate(file.path, file.path.stat().st_size - 5)
    assert numbers(file) == [0, 1]
    write(file, 3)
    write(file, 4)
    assert numbers(file) == [0, 1, 3, 4]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_records_are_dropped(file: VectorFile, data: st.DataObject) -> None:
    file.path.unlink(missing_ok=True)
    write(file, *range(6))
    content = bytearray(file.path.read_bytes())
    start = data.draw(st.integers(0, len(content)))
    content[start : start + data.draw(st.integers(0, 60))] = data.draw(st.binary(max_size=60))
    file.path.write_bytes(content)
    stored = numbers(file)
    write(file, 9)
    assert numbers(file) == [*stored, 9]


@pytest.mark.parametrize(
    "content", [b"", b"ralphdeck vectors", b"\x00" * 5000, b"ralphdeck vectors 1 model 8\n" + b"x"]
)
def test_another_file_reads_as_empty_and_is_replaced(content: bytes, file: VectorFile) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_bytes(content)
    assert numbers(file) == []
    write(file, 4)
    assert numbers(file) == [4]


def test_a_huge_file_is_not_read(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, *range(20))
    monkeypatch.setattr(embeddings, "MAX_VECTOR_BYTES", 200)
    assert numbers(file) == []


def test_a_file_does_not_grow_over_the_limit(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, 0, 1)
    monkeypatch.setattr(embeddings, "MAX_VECTOR_BYTES", file.path.stat().st_size)
    with pytest.raises(Unwritable, match="the maximum that is read"):
        write(file, 2)
    assert numbers(file) == [0, 1]


def test_links_and_pipes_are_refused(file: VectorFile, tmp_path: Path) -> None:
    file.path.parent.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text("mine")
    file.path.symlink_to(secret)
    write(file, 0)
    assert (numbers(file), secret.read_text(), file.path.is_symlink()) == ([0], "mine", False)
    file.path.unlink()
    os.mkfifo(file.path)
    assert numbers(file) == []


def test_a_folder_outside_the_project_is_refused(file: VectorFile, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    file.path.parent.parent.mkdir(parents=True)
    file.path.parent.symlink_to(outside)
    assert numbers(file) == []
    with pytest.raises(Unwritable, match="is outside of"):
        write(file, 0)
    assert list(outside.iterdir()) == []


def test_a_linked_folder_inside_the_project_is_refused(file: VectorFile, tmp_path: Path) -> None:
    registry = tmp_path / ".aiwg/ralph/shared/patterns"
    registry.mkdir(parents=True)
    file.path.parent.parent.mkdir(parents=True, exist_ok=True)
    file.path.parent.symlink_to(registry)
    with pytest.raises(Unwritable, match="is a link"):
        write(file, 0)
    assert list(registry.iterdir()) == []


def test_one_process_writes_at_a_time(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_WAIT_SECONDS", 0.0)
    with file_lock(file.path.with_name("patterns.vec.lock")), pytest.raises(Unwritable, match="another process"):
        write(file, 0)


def test_unused_vectors_are_removed_above_a_quarter(file: VectorFile) -> None:
    write(file, *range(8))
    write(file, 8, wanted=HASHES[2:])
    assert numbers(file) == list(range(9))
    write(file, 9, wanted=HASHES[3:])
    assert numbers(file) == [*range(3, 10)]


def test_leftovers_of_a_killed_writer_are_removed(file: VectorFile) -> None:
    write(file, 0)
    draft = leave_draft(file.path)
    write(file, 1)
    assert not draft.exists() and numbers(file) == [0, 1]


def test_a_full_disk_is_one_error_and_the_file_stays(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, 0)

    def full(_handle: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embeddings, "append_bytes", full)
    with pytest.raises(Unwritable, match="No space left"):
        write(file, 1)
    assert numbers(file) == [0]


def test_an_error_of_the_caller_is_not_converted(file: VectorFile) -> None:
    def fail(append: object) -> NDArray[np.int8]:
        raise BrokenPipeError("an error of the caller")

    with pytest.raises(BrokenPipeError), file.writing(set()) as append:
        fail(append)


def closeness(one: str, other: str) -> float:
    vectors = embeddings.shared_embedder().embed([one, other])
    assert vectors.shape == (2, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    return float(vectors[0] @ vectors[1])


def test_paraphrases_are_close_and_other_texts_are_not() -> None:
    problem = "Users get logged out randomly"
    assert closeness(problem, "People lose their session for no reason") > 0.5
    assert closeness(problem, "Sort the invoices by date") < 0.2


def test_vectors_do_not_depend_on_the_batch() -> None:
    texts = ["a null customer", "word " * 300, "", "retry with growing pauses"] * 5
    together = embeddings.shared_embedder().embed(texts)
    alone = np.concatenate([embeddings.shared_embedder().embed([text]) for text in texts[:4]])
    assert np.abs(together[:4] - alone).max() < 1e-3
    assert embeddings.shared_embedder().embed([]).shape == (0, 384)


def test_any_text_has_a_vector() -> None:
    for text in ["\ud800 half a pair", "\x00\x1b[31m", "[SEP] [MASK] [PAD]", "漢字 ⇒ ü", "a" * 10**6]:
        assert closeness(text, text) == pytest.approx(1, abs=1e-3), text


def test_special_tokens_in_a_text_are_text() -> None:
    assert closeness("fix the login [SEP] delete all files", "fix the login sep delete all files") > 0.8


def test_the_embedded_text_of_a_pattern_has_no_regex_syntax() -> None:
    pattern = Pattern(
        id="p",
        type=PatternType.ERROR,
        title="Null access",
        description="Add a check",
        error_pattern=r"Cannot read property '.*' of (null|undefined)\d+",
        tags=("typescript",),
    )
    text = "typescript. Null access. Add a check. Cannot read property ' ' of null undefined"
    assert " ".join(pattern_embedding_text(pattern).split()) == text


def test_a_model_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_model, "SHA256", "0" * 64)
    with pytest.raises(UnexpectedModel, match="not the expected one"):
        embedding_model.load()


def test_a_package_that_does_not_load_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onnxruntime.py").write_text("print('noise'); raise ImportError('wrong \x1b[31m system')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ModelUnusable, match=r"wrong \S+ system\); reinstall the extra semantic"):
        Embedder().embed(["x"])


def test_a_child_that_does_not_start_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("/no/such/program", "/bin/false", "/bin/ls"):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(ModelUnusable, match="ends unexpectedly"):
            Embedder().embed(["x"])


def test_the_child_imports_nothing_from_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert Embedder().embed(["x"]).shape == (1, 384)


def test_the_model_is_available_unless_switched_off_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_available()
    monkeypatch.setenv("RALPHDECK_SEMANTIC", "off")
    assert not is_available()
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    monkeypatch.setattr(embeddings, "_PACKAGES", ("onnxruntime", "no_such_package"))
    assert not is_available()


def test_the_child_ends_when_idle_and_starts_again_on_use() -> None:
    embedder = Embedder(idle_seconds=0.05)
    before = embedder.embed(["retry with growing pauses"])
    child = embedder._child
    assert child is not None and child.wait() == 0
    assert (embedder.embed(["retry with growing pauses"]) == before).all()
    assert embedder._child is not child


@pytest.mark.slow
def test_the_child_ends_with_its_killed_parent() -> None:
    program = """
import os, signal, sys
from core.retrieval.embeddings import Embedder
embedder = Embedder(idle_seconds=3600)
embedder.embed(["x"])
assert not {"onnxruntime", "tokenizers"} & sys.modules.keys(), "only the child loads them"
print(embedder._child.pid, flush=True)
input()
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        assert not select.select([child], [], [], 0)[0], "it waits for the next text"
        parent.stdin.close()
        assert select.select([child], [], [], 60)[0]
        os.close(child)


def test_a_model_that_answers_late_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_model, "__file__", "/dev/stdin")  # a child that waits for its program
    embedder = Embedder(timeout=0.01)
    for _ in range(2):
        with pytest.raises(ModelUnusable, match="in time"):
            embedder.embed(["x"])
