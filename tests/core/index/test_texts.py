"""What texts are found by: stored and updated, they give the same contexts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.contexts import prepare_delivery, prepare_task_injection
from core.index.database import Database
from core.index.project_state import ProjectState
from core.index.records import Kind, Reader
from core.index.similarity import extend_similarity
from core.index.snapshot import IndexedSnapshot, ProjectFiles
from core.index.texts import Texts, fill_texts, settle_texts, update_texts
from core.learning.evidence import find_origin
from core.learning.experiments import Coin, Experiment
from core.learning.scoreboard import Scoreboard
from core.project.error_advice import on_failure
from core.project.project import Project
from core.records.debug_sessions import DebugSession, Failure
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import Loop, LoopStatus, Outcome
from core.records.patterns import Pattern, PatternType
from core.records.reflections import MemoryTask, Reflection
from core.records.snapshot import Delta, Snapshot
from core.retrieval.injection import HELD_OUT
from core.retrieval.relevance import TAG, TYPES, WORD, PatternIndex, Term, pattern_terms
from core.retrieval.task import analyse_task
from core.tasks.debug_index import KEYS, DebugIndex
from core.trust.origins import Origins
from tests.conftest import WriteSample
from tests.factories import (
    NOW,
    learn_weights,
    make_lesson,
    make_pattern,
    make_run,
    make_session,
    make_source,
    make_use,
)

TOKEN = "0123456789abcdef"
TASKS = (
    "Fix the TypeError in the login cache of the python service",
    "Migrate the OAuth login, then retry the parser",
    "Bake bread",
)
COLLECTIONS = ("patterns", "loops", "reflections", "memory_tasks", "tasks", "attempts", "debug_sessions")
ERRORS = ("TypeError", "SyntaxError")
FAILURE = Failure(error_type="TypeError", message="TypeError here", file="src/a.ts")


class Indexed:
    """An index of a snapshot that is replaced by others."""

    def __init__(self, folder: Path, snapshot: Snapshot) -> None:
        self.database = Database.open(folder, is_kept=False)
        self.snapshot = snapshot
        self.board = Scoreboard.build(snapshot, NOW, Settings())
        with self.database.transaction() as connection:
            writer = Reader(connection, {})
            self._write_records(writer)
            fill_texts(writer, snapshot, self.board)
            extend_similarity(writer, snapshot.patterns, 3)

    def change(self, snapshot: Snapshot) -> None:
        before, delta = self._view(self.reader()), find_delta(self.snapshot, snapshot)
        self.snapshot = snapshot
        self.board = self.board.updated(snapshot, delta, NOW)
        with self.database.transaction() as connection:
            writer = Reader(connection, {})
            self._write_records(writer)
            update_texts(before, self._view(writer), delta, self.board, self.board.inputs.changed_work)
        before.reader.connection.close()

    def _view(self, reader: Reader) -> IndexedSnapshot:
        paths = ProjectPaths(self.database.file.parent)
        view = IndexedSnapshot(reader, ProjectFiles(paths, Origins(paths.project)))
        for name in COLLECTIONS:
            object.__setattr__(view, name, getattr(self.snapshot, name))
        return view

    def settle(self) -> int:
        """Do all that no change waits for; returns the number of steps."""
        for steps in count(1):
            with self.database.transaction() as connection:
                if settle_texts(Reader(connection, {}), self.snapshot.patterns):
                    return steps
        raise AssertionError

    def _write_records(self, writer: Reader) -> None:
        """Write the places of patterns and loops."""
        known = {id for (id,) in writer.rows("SELECT id FROM pattern")}
        writer.connection.executemany("DELETE FROM pattern WHERE id = ?", ((id,) for id in known - {*self.ids}))
        writer.connection.executemany(
            "INSERT INTO pattern (id) VALUES (?)", ((id,) for id in self.ids if id not in known)
        )
        writer.connection.execute("DELETE FROM record")
        rows = ((Kind.LOOP, id, "", -number, 0, b"") for number, id in enumerate(self.snapshot.loops))
        sql = "INSERT INTO record (kind, id, key, place, is_open, data) VALUES (?, ?, ?, ?, ?, ?)"
        writer.connection.executemany(sql, rows)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.snapshot.patterns)

    def reader(self) -> Reader:
        return Reader(self.database.read(), {})

    def states(self) -> tuple[ProjectState, ProjectState]:
        """The state with its texts in memory, and from the index."""
        texts: tuple[Texts, Texts] = Texts(self.snapshot, board=self.board), Texts(self.snapshot, self.reader())
        in_memory, stored = (ProjectState(self.snapshot, self.board, one, (), Settings(), NOW, {}) for one in texts)
        return in_memory, stored


def find_delta(before: Snapshot, after: Snapshot) -> Delta:
    delta = Delta()
    for name in COLLECTIONS:
        delta |= Delta(**{name: changed_ids(getattr(before, name), getattr(after, name))})  # type: ignore[arg-type]
    return delta


def changed_ids(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(id for id in {*before, *after} if before.get(id) != after.get(id))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


_WORDS = st.sampled_from(
    ["cache", "login", "OAuth", "retry", "parser", "null", "schema", "修复", "python", "the", "IndexError", "\ud800"]
)
_TEXT = st.lists(_WORDS, max_size=5).map(" ".join)
_PATTERN_IDS = [f"pat-error-{letter}-001" for letter in "abcdef"]
_LOOP_IDS, _TASK_IDS = ["ralph-a", "ralph-b", "ralph-c", "ralph-d"], ["task-001", "task-002"]


def _pattern_of(id: str, drawn: tuple[str, list[str], PatternType, str, str, str]) -> Pattern:
    title, tags, kind, error, regex, loop_id = drawn
    sources = (make_source(loop_id),) if loop_id else ()
    return make_pattern(
        id, kind, title=title, tags=tuple(tags), error_type=error, error_pattern=regex, source_loops=sources
    )


_PATTERNS = st.dictionaries(
    st.sampled_from(_PATTERN_IDS),
    st.tuples(
        _TEXT,
        st.lists(st.sampled_from(["python", "Auth", "null-safety", " ", "\udfff"]), max_size=3),
        st.sampled_from(list(PatternType)),
        st.sampled_from(["", "TypeError"]),
        st.sampled_from(["", "TypeError here"]),
        st.sampled_from(["", *_LOOP_IDS, *_TASK_IDS]),
    ),
).map(lambda drawn: {id: _pattern_of(id, one) for id, one in drawn.items()})
_USES = st.lists(st.tuples(st.sampled_from([*_PATTERN_IDS, "pat-unknown-001"]), st.booleans()), max_size=3)
_LOOPS = st.dictionaries(st.sampled_from(_LOOP_IDS), st.tuples(_TEXT, st.sampled_from(list(LoopStatus)), _USES)).map(
    lambda drawn: {
        id: Loop(id=id, task=text, status=status, injected=tuple(make_use(*use) for use in uses))
        for id, (text, status, uses) in sorted(drawn.items())
    }
)
_TASKS = st.dictionaries(st.sampled_from(_TASK_IDS), st.tuples(_TEXT, st.sampled_from(list(TaskStatus)))).map(
    lambda drawn: {id: Task(id=id, description=text, status=status) for id, (text, status) in drawn.items()}
)
_ATTEMPTS = st.dictionaries(st.sampled_from(_TASK_IDS), st.sampled_from(list(Outcome))).map(
    lambda drawn: {f"{id}.1": Attempt(task_id=id, number=1, outcome=outcome) for id, outcome in drawn.items()}
)
_MEMORY = st.dictionaries(st.sampled_from([*_TASK_IDS, "task-009"]), st.tuples(_TEXT, st.lists(_TEXT, max_size=3))).map(
    lambda drawn: {
        id: MemoryTask(id=id, description=text, learnings=tuple(learnings), file="memory.json")
        for id, (text, learnings) in drawn.items()
    }
)
_REFLECTIONS = st.dictionaries(
    st.sampled_from([f"refl-{number}" for number in range(6)]),
    st.tuples(_TEXT, st.sampled_from(["", *_TASK_IDS]), st.sampled_from(["", *_LOOP_IDS]), st.booleans()),
).map(
    lambda drawn: {
        id: Reflection(
            id=id,
            shape="episodic",
            file="f",
            learning=text,
            task_id=task_id,
            loop_id=loop_id,
            attempt=1,
            superseded=old,
        )
        for id, (text, task_id, loop_id, old) in drawn.items()
    }
)
_SESSIONS = st.dictionaries(
    st.sampled_from(["dm-001", "dm-002", "dm-003"]),
    st.tuples(
        st.lists(st.tuples(st.sampled_from(ERRORS), st.sampled_from([None, True, False])), max_size=2),
        st.sampled_from([0.0, 1.0]),
        st.lists(st.sampled_from(["p", "q"]), max_size=2),
        st.sampled_from(["", *_TASK_IDS]),
    ),
).map(lambda drawn: {id: _session_of(id, *one) for id, one in drawn.items()})


def _session_of(
    id: str, runs: list[tuple[str, bool | None]], days: float, lessons: list[str], task_id: str
) -> DebugSession:
    category = "null_undefined_access"
    made = (make_run(error, fixed=fixed, category=category) for error, fixed in runs)
    known = tuple(make_lesson(pattern) for pattern in lessons)
    return make_session(id, *made, days=days, lessons=known, task_id=task_id, attempt=1 if task_id else None)


_SNAPSHOTS = st.builds(
    Snapshot,
    patterns=_PATTERNS,
    loops=_LOOPS,
    reflections=_REFLECTIONS,
    memory_tasks=_MEMORY,
    tasks=_TASKS,
    attempts=_ATTEMPTS,
    debug_sessions=_SESSIONS,
)


def index_content(index: PatternIndex, patterns: Iterable[Pattern]) -> object:
    """What an index has of the terms of these patterns."""

    def named(term: Term) -> list[str]:
        rows = index.terms.get(*term)
        return sorted(index.ids[row] for row in rows.tolist()) if rows is not None else []

    terms = set().union(*map(pattern_terms, patterns))
    facts = {id: (TYPES[index.types[row]], int(index.tag_counts[row])) for row, id in enumerate(index.ids) if id}
    words = sorted(text for kind, text in terms if kind == WORD)
    return (
        facts,
        {term: named(term) for term in terms},
        index.rarities([*words, "unknown"]),
        {word: sorted(tag for tag in index.terms.find_tags(word) if named((TAG, tag))) for word in words},
        {id: index.ids[index.rows[id]] == id for id in index.rows},
    )


def debug_content(index: DebugIndex) -> object:
    results, category = index.fix_results, "null_undefined_access"
    return (
        {key: [(value, index.find(key, value)) for value in index.values(key)] for key in KEYS},
        [index.find_similar(name, file) for name in ERRORS for file in ("src/%", "src/b%")],
        [results.of_cause(category), results.of_pattern(category, "p"), results.of_fix("Guard the access.")],
        results.usual_pattern(category),
    )


def answers(state: ProjectState) -> Iterator[object]:
    """What is found by texts in a state."""
    yield index_content(state.index, state.snapshot.patterns.values())
    yield tuple(state.past_tasks.tasks)
    yield debug_content(state.debug)
    learned = {one.id for one in state.learnings.learnings if one is not None}
    yield {id: state.learnings.find(id) for id in learned}
    for task in TASKS:
        yield state.learnings.find_matches(analyse_task(task))
        yield prepare_task_injection(state, task, token=TOKEN)
    yield state.similarity.pairs(0.3)
    for pattern in state.snapshot.patterns.values():
        yield state.similarity.nearest(pattern, 0.3)
        yield state.similarity.some_nearest(pattern, 0.3)
    yield on_failure(state, FAILURE).fixes
    yield on_failure(state, FAILURE, session=state.snapshot.debug_sessions.get("dm-001")).patterns


@settings(max_examples=20)
@given(st.lists(_SNAPSHOTS, min_size=1, max_size=4))
def test_texts_of_the_index_equal_those_in_memory_after_any_changes(folder: Path, snapshots: list[Snapshot]) -> None:
    first, *later = snapshots
    indexed = Indexed(folder, first)
    for snapshot in later:
        indexed.change(snapshot)
    indexed.settle()
    in_memory, stored = indexed.states()
    for expected, found in zip(answers(in_memory), answers(stored), strict=True):
        assert found == expected


@settings(max_examples=20)
@given(_SNAPSHOTS, _SNAPSHOTS)
def test_a_change_leaves_what_nothing_from_before_is_in(folder: Path, first: Snapshot, second: Snapshot) -> None:
    indexed = Indexed(folder, first)
    indexed.change(second)
    indexed.change(Snapshot())
    reader = indexed.reader()
    for table in ("term", "tag_word", "learning", "learning_need", "work", "worked", "debug_value", "debug_fix"):
        assert reader.rows(f"SELECT * FROM {table}") == []


@settings(max_examples=20)
@given(_SNAPSHOTS, _SNAPSHOTS)
def test_a_dry_run_changes_the_texts_of_the_index_as_those_in_memory(
    folder: Path, first: Snapshot, second: Snapshot
) -> None:
    indexed = Indexed(folder, first)
    in_memory, stored = indexed.states()
    after = replace(first, patterns=second.patterns, loops=second.loops)
    delta = find_delta(first, after)
    board = indexed.board.updated(after, delta, NOW)
    supposed, expected = (one.texts.suppose(after, delta, board) for one in (stored, in_memory))
    known = [*first.patterns.values(), *second.patterns.values()]
    assert index_content(supposed.index, known) == index_content(expected.index, known)
    assert list(supposed.past_tasks.tasks) == list(expected.past_tasks.tasks)


def many_tasks() -> Snapshot:
    """Patterns of ten topics, each with tasks in which they worked."""
    topics = ("cache", "login", "parser", "schema", "retry", "queue", "mail", "price", "route", "lock")
    patterns = {f"pat-error-{topic}-001": make_pattern(f"pat-error-{topic}-001", title=topic) for topic in topics}
    loops = {}
    for number in range(60):
        topic = topics[number % len(topics)]
        uses = (make_use(f"pat-error-{topic}-001", True),)
        loops[f"ralph-{number:02}"] = Loop(
            id=f"ralph-{number:02}", task=f"Repair the {topic} of service {'abcdef'[number // 10] * 3}", injected=uses
        )
    return Snapshot(patterns=patterns, loops=loops)


def test_stored_weights_equal_those_fitted_in_memory_and_are_fitted_once_until_a_text_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed = Indexed(folder, many_tasks())
    indexed.settle()
    in_memory, stored = indexed.states()
    assert in_memory.word_weights.tasks == 60
    with monkeypatch.context() as patch:
        patch.setattr("core.retrieval.past_tasks.FitInputs.fit", None)
        assert stored.word_weights == in_memory.word_weights
    first, *_ = indexed.snapshot.patterns.values()
    changed = make_pattern(first.id, title=first.title, tags=("service", "repair"), content_hash="another")
    indexed.change(replace(indexed.snapshot, patterns={**indexed.snapshot.patterns, first.id: changed}))
    in_memory, stored = indexed.states()
    expected = learn_weights(in_memory.past_tasks, indexed.snapshot.patterns)
    assert stored.word_weights == in_memory.word_weights == expected


def test_views_with_the_same_learnings_and_past_tasks_know_it(folder: Path) -> None:
    reflection = Reflection(id="refl-1", shape="episodic", file="f", learning="cache", task_id="task-001")
    indexed = Indexed(folder, replace(many_tasks(), reflections={reflection.id: reflection}))
    _, first = indexed.states()
    indexed.change(replace(indexed.snapshot, patterns={**indexed.snapshot.patterns, "pat-a": make_pattern("pat-a")}))
    _, second = indexed.states()
    assert second.learnings.has_same(first.learnings) and second.past_tasks.has_same(first.past_tasks)
    loops = dict(list(indexed.snapshot.loops.items())[1:])
    indexed.change(replace(indexed.snapshot, loops=loops, reflections={}))
    _, third = indexed.states()
    assert not third.learnings.has_same(second.learnings) and not third.past_tasks.has_same(second.past_tasks)


def test_frequent_words_are_compared_by_stored_hashes_and_before_texts_are_indexed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("cache", "login", "parser", "schema", "retry", "queue", "mail", "price", "route", "lock", "token", "page")
    patterns = {
        id: make_pattern(id, description=" ".join(words[number % 5 : number % 5 + 7]), error_pattern=words[number % 3])
        for number, id in enumerate(f"pat-error-x-{number:03}" for number in range(40))
    }
    indexed = Indexed(folder, Snapshot(patterns=patterns))
    in_memory, stored = indexed.states()
    assert stored.similarity.pairs(0.99) == in_memory.similarity.pairs(0.99) != ()
    indexed.change(Snapshot(patterns={id: one for id, one in patterns.items() if id != "pat-error-x-007"}))
    indexed.settle()
    in_memory, stored = indexed.states()
    monkeypatch.setattr("core.index.similarity._MAX_READ", 0)
    assert in_memory.similarity.pairs(0.5)
    assert stored.similarity.pairs(0.5) == in_memory.similarity.pairs(0.5)
    for pattern in indexed.snapshot.patterns.values():
        assert stored.similarity.nearest(pattern, 0.5) == in_memory.similarity.nearest(pattern, 0.5)


def test_nothing_takes_the_place_of_what_is_held_out(tmp_path: Path, write_sample: WriteSample) -> None:
    write_sample(tmp_path, NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    state = project.load()
    patterns, removed = state.snapshot.patterns, 0
    for number, task in enumerate(dict.fromkeys(loop.task for loop in state.snapshot.loops.values() if loop.task)):
        coin = Coin(Experiment(0.5, b"%d" % number), "t")
        whole, rest = prepare_task_injection(state, task), prepare_task_injection(state, task, coin=coin)
        given = prepare_delivery(state, task, coin=coin)
        assert (given.pattern_ids, given.reflection_ids) == (rest.pattern_ids, rest.reflection_ids)
        held_out = {one.pattern_id for one in rest.assigned if one.is_held_out}
        assert set(rest.pattern_ids) == set(whole.pattern_ids) - held_out
        assert held_out == {one.pattern_id for one in rest.left_out if one.reason == HELD_OUT}
        works = {origin.loop_id for id in held_out if (origin := find_origin(patterns[id])) is not None}
        kept = [one.id for one in whole.reflections.chosen if works.isdisjoint(one.sources)]
        assert list(rest.reflection_ids) == kept
        removed += len(whole.reflection_ids) - len(kept)
    assert removed
