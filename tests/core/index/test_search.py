"""Searches of the task memory, with and without the index."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import BadInput, UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.user_files import index_file
from core.index.database import Database
from core.index.refresh import Index
from core.index.search import SearchResult, TaskView, WordFiller, indexed_text, match_expression, search, search_indexed
from core.index.search_words import SearchFilters, SearchPlace, SearchWords, parse_search
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from tests.copying import copy_folder
from tests.core.cli.conftest import TREES

PATHS = ProjectPaths(TREES / "spec-examples")
NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


def test_filters_are_taken_out_of_the_words() -> None:
    for text, filters in (
        ("oauth", {}),
        ("in:errors oauth", {"places": {SearchPlace.ERRORS}}),
        ("oauth in:err,act", {"places": {SearchPlace.ERRORS, SearchPlace.ACTIONS}}),
        ("task:task-001.2 oauth", {"task_id": "task-001", "attempt": 2}),
        ("status:completed oauth", {"statuses": {TaskStatus.COMPLETED}}),
        ("outcome:fail oauth", {"outcomes": {Outcome.FAILURE}}),
        ('agent:"software implementer" oauth', {"agent": "software implementer"}),
        ("tool:Bash oauth", {"tool": "Bash"}),
        ("since:2026-02-01 oauth", {"since": datetime(2026, 2, 1, tzinfo=UTC)}),
        ("in: oauth", {}),
    ):
        words, found = parse_search(text, PATHS, NOW)
        assert (words.folded, found) == (("oauth",), SearchFilters(**filters)), text


def test_what_is_not_a_filter_is_a_word_and_an_invalid_filter_or_filters_alone_are_refused() -> None:
    for text in ("http://in:errors", '"in:errors"', "-in:errors", "login:errors", "colour:red"):
        words, found = parse_search(text, PATHS, NOW)
        assert (words.folded, found) == ((text.strip('"'),), SearchFilters()), text
    for text in ("in:nowhere x", "since:soon x", "status:xyz x", "task:unknown x", ""):
        with pytest.raises((BadInput, UnknownRecord)):
            parse_search(text, PATHS, NOW)
    for text in ("in:errors", " tool:bash since:7d ", "in:"):
        with pytest.raises(BadInput, match="add a word: filters alone find nothing"):
            parse_search(text, PATHS, NOW)


def test_a_tool_selects_its_actions() -> None:
    every, of_tool = (search(PATHS, *parse_search(text, PATHS, NOW)) for text in ("green", "tool:BASH green"))
    assert {hit.tool for hit in of_tool.hits} == {"Bash"}
    assert set(of_tool.hits) == {hit for hit in every.hits if hit.tool.lower() == "bash"}


QUERIES = (
    "oauth AuthConfig",
    "exit 1 bash",
    "tsc exits",
    "big bang",
    '"exit 1"',
    "green",
    "ts",
    "1",
    "a",
    "task-001.2",
)
KEY = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """A copy of the documented examples."""
    return ProjectPaths(copy_folder(TREES / "spec-examples", tmp_path / "project"))


@pytest.fixture
def indexed(paths: ProjectPaths) -> ProjectPaths:
    """The same, with a complete index."""
    update(paths)
    return paths


def fill(paths: ProjectPaths) -> int:
    """Index all tasks; returns the number of those that are not."""
    with closing(Database.open(paths.project)) as database:
        filler = WordFiller(paths)
        while filler.fill(database, 1.0):
            pass
        with closing(TaskView(database.read(), paths, checks_all=True)) as view:
            return len(view.outdated)


def update(paths: ProjectPaths) -> None:
    assert fill(paths) == 0


def find(paths: ProjectPaths, query: str, limit: int | None = None, **filters: Any) -> SearchResult:
    """Search with the index, and leave it as it is."""
    found = search_indexed(paths, SearchWords(query), SearchFilters(**filters), limit)
    found.end(0)
    return found.result


def log(paths: ProjectPaths, **action: Any) -> None:
    """Append an action to the log of the third attempt."""
    with (paths.tasks / "task-001/attempts/003/actions.jsonl").open("a") as file:
        file.write(json.dumps(action) + "\n")


def same(paths: ProjectPaths, query: str, **filters: Any) -> SearchResult:
    """The result with the index, which must be that of a scan."""
    words, only = SearchWords(query), SearchFilters(**filters)
    found, expected = find(paths, query, **filters), search(paths, words, only)
    assert (found.hits, found.total) == (expected.hits, expected.total), query
    return found


def same_for_all(paths: ProjectPaths) -> None:
    """Assert that the index finds what a scan finds: several words, a phrase, and a letter."""
    for query in ("oauth AuthConfig", '"exit 1"', "a"):
        same(paths, query)


@pytest.mark.parametrize("query", QUERIES)
def test_the_index_finds_what_a_scan_finds(indexed: ProjectPaths, query: str) -> None:
    same(indexed, query)
    at = datetime(2026, 2, 1, 10, 2, tzinfo=UTC)
    filters: list[dict[str, Any]] = [
        {"places": {SearchPlace.ERRORS}},
        {"places": {SearchPlace.ACTIONS}},
        {"places": {SearchPlace.TASKS}},
        {"task_id": "task-001", "attempt": 2},
        {"statuses": {TaskStatus.COMPLETED}},
        {"outcomes": {Outcome.FAILURE, Outcome.TIMEOUT}},
        {"agent": "Software-Implementer"},
        {"tool": "bash"},
        {"since": at},
        {"until": at},
    ]
    for one in filters:
        same(indexed, query, **one)


def test_a_search_with_a_complete_index_reads_no_task(indexed: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.index.search.scan_task", lambda *_: pytest.fail("a task was read"))
    assert find(indexed, "oauth").total


TEXTS = st.text(
    st.characters(codec="utf-8", include_characters='éßİ日本"*\x00\n\\') | st.sampled_from("abAB 1"), max_size=12
)


@pytest.mark.slow
@settings(max_examples=25)
@given(texts=st.lists(TEXTS, max_size=8), query=TEXTS | st.text("abAB1 日本", min_size=1, max_size=4), edited=TEXTS)
def test_any_text_is_found_as_by_a_scan(texts: list[str], query: str, edited: str) -> None:
    with TemporaryDirectory() as folder:
        paths = ProjectPaths(Path(folder))
        for number, text in enumerate(texts):
            task = paths.tasks / f"task-{number % 3}"
            (task / "attempts/001").mkdir(parents=True, exist_ok=True)
            (task / "metadata.json").write_text(json.dumps({"description": text}))
            (task / "summary.json").write_text(json.dumps({"digest": [text, edited]}))
            (task / "trajectory.json").write_text(json.dumps({"attempts": [{"attempt_id": 1, "plan": text}]}))
            (task / "attempts/001/plan.md").write_text(texts[0])
            with (task / "attempts/001/actions.jsonl").open("a") as file:
                file.write(json.dumps({"type": "bash", "output": text, "success": bool(number % 2)}) + "\n")
        update(paths)
        for asked in {query, *texts}:
            if asked.split():
                same(paths, asked)
        if texts:
            (paths.tasks / "task-0/metadata.json").write_text(json.dumps({"description": edited}))
            if edited.split():
                same(paths, edited)
            update(paths)
            if query.split():
                same(paths, query)


def test_changed_files_are_read_until_they_are_indexed(indexed: ProjectPaths) -> None:
    log(indexed, type="bash", output="needle")
    (indexed.tasks / "task-new").mkdir()
    (indexed.tasks / "task-new/metadata.json").write_text('{"description": "another needle"}')
    shutil.rmtree(indexed.tasks / "task-002")
    assert same(indexed, "needle").total == 2
    assert {hit.task_id for hit in same(indexed, "task-002").hits} == {"task-001"}
    assert find(indexed, "needle").missing == (2, 2)
    update(indexed)
    assert same(indexed, "needle").total == 2
    with closing(Database.open(indexed.project)) as database:
        view = TaskView(database.read(), indexed, checks_all=True)
        (indexed.tasks / "task-001/metadata.json").write_text('{"description": "something else"}')
        with closing(view):  # a hit changed after the files were compared
            words = SearchWords("oauth")
            assert search(indexed, words, view=view).hits == search(indexed, words).hits


LOG = "task-001/attempts/003/actions.jsonl"


@pytest.mark.parametrize("name", [LOG, "task-001/metadata.json", "task-001/attempts/003/attempt.json"])
def test_a_file_that_could_not_be_read_and_the_target_of_a_broken_link_are_indexed_later(
    paths: ProjectPaths, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, target, real = paths.tasks / name, paths.aiwg / "ralph" / "elsewhere", os.open

    def refuse(path: str | Path, *rest: Any, **more: Any) -> int:
        if str(path) == str(file):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        for _ in range(2):
            assert fill(paths) == 1
            same_for_all(paths)
    update(paths)
    same_for_all(paths)
    content = file.read_bytes()
    file.unlink()
    file.symlink_to(target)
    update(paths)
    target.write_bytes(content)
    same_for_all(paths)
    update(paths)
    same_for_all(paths)
    target.unlink()
    same_for_all(paths)


@pytest.mark.parametrize("name", ["task-001/attempts", "task-001/attempts/003/results"])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_folder_that_cannot_be_listed_for_a_moment_hides_nothing_later(
    paths: ProjectPaths, name: str, monkeypatch: pytest.MonkeyPatch, *, is_indexed: bool
) -> None:
    folder = paths.tasks / name
    (paths.tasks / "task-001/attempts/003/results").mkdir(exist_ok=True)
    (paths.tasks / "task-001/attempts/003/results/report.txt").write_text("oauth exit 1")
    if is_indexed:
        update(paths)
    real = os.scandir

    def refuse(path: str | Path) -> Any:
        if Path(path) == folder:
            raise OSError(24, "Too many open files")
        return real(path)

    (paths.tasks / "task-001/metadata.json").touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert fill(paths) == 1
    same_for_all(paths)
    update(paths)
    same_for_all(paths)


def test_tasks_that_cannot_be_listed_for_a_moment_stay_indexed(
    indexed: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def refuse(path: str | Path) -> Any:
        if Path(path) == indexed.tasks:
            raise OSError(24, "Too many open files")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert find(indexed, "oauth").missing is None
    monkeypatch.setattr("core.index.search.scan_task", lambda *_: pytest.fail("a task was read"))
    assert find(indexed, "oauth").total


def test_logs_that_were_too_large_are_indexed_when_they_have_changed(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("core.index.search.MAX_PATTERN_BYTES", 10)
        update(paths)
    for file in paths.tasks.glob("*/attempts/*/actions.jsonl"):
        os.utime(file, (1, 1))
    same_for_all(paths)
    update(paths)
    same(paths, "tsc exits")


def test_only_new_lines_of_a_log_are_indexed_and_a_rewritten_one_again(indexed: ProjectPaths) -> None:
    def numbers() -> set[int]:
        with closing(sqlite3.connect(index_file(indexed.project))) as connection:
            return {number for (number,) in connection.execute("SELECT id FROM search_block")}

    before = numbers()
    log(indexed, type="bash", output="needle")
    update(indexed)
    assert before < numbers()
    assert len(numbers() - before) == 1
    [hit] = same(indexed, "needle").hits
    assert (hit.action, hit.pointer) == (5, "line 5")
    file = indexed.tasks / LOG
    file.write_text(file.read_text().replace("exit 1", "exit 2") + '{"output": "needle"}\n')
    update(indexed)
    assert same(indexed, '"exit 2"').total and same(indexed, "needle").total == 2
    same(indexed, '"exit 1"')


def test_a_long_log_is_indexed_in_parts(indexed: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.index.search._PIECE_BYTES", 100)
    for number in range(9):
        log(indexed, type="bash", output=f"needle {number}")
    with closing(Database.open(indexed.project)) as database:
        filler = WordFiller(indexed)
        steps = 0
        while filler.fill(database, 1e-3 if steps else 1.0):
            assert same(indexed, "needle").total == 9
            steps += 1
    update(indexed)
    assert [hit.action for hit in same(indexed, '"needle 8"').hits] == [13]
    assert same(indexed, "needle").total == 9


def test_of_many_hits_the_newest_are_counted(indexed: ProjectPaths) -> None:
    for number in range(1100):
        log(indexed, type="bash", output=f"needle {number}")
    update(indexed)
    found = find(indexed, "needle", 3)
    assert (len(found.hits), found.total, found.is_exact) == (3, 1000, False)
    assert find(indexed, "needle", 2000).total == 1100
    assert find(indexed, "needle 1099", 3).is_exact


def test_no_query_is_parsed_as_full_text_syntax(indexed: ProjectPaths) -> None:
    queries = ('"', "a*", "NEAR(a b)", "a AND b", "-a", "^oauth", "text:oauth", '""', "x'); DROP", "((")
    for query in queries:
        log(indexed, type="bash", output=f"before {query} after")
    update(indexed)
    for query in queries:
        assert same(indexed, query).total, query


def test_secrets_are_masked_in_the_index_and_found_in_the_files(indexed: ProjectPaths) -> None:
    log(indexed, type="bash", output=f"token {KEY} used by needle")
    update(indexed)
    for file in index_file(indexed.project).parent.iterdir():
        assert KEY.encode() not in file.read_bytes()
    [hit] = find(indexed, "needle").hits
    assert KEY not in hit.text
    assert find(indexed, KEY).total == 1


@pytest.mark.slow
def test_damage_anywhere_changes_no_text(indexed: ProjectPaths) -> None:
    file = index_file(indexed.project)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = file.read_bytes()
    known = {hit.text for query in QUERIES for hit in search(indexed, SearchWords(query)).hits}
    for at in range(0, len(whole), 8189):
        for journal in file.parent.glob(f"{file.name}-*"):
            journal.unlink()
        file.write_bytes(whole[:at] + bytes(255 - byte for byte in whole[at : at + 40]) + whole[at + 40 :])
        for query in ("green", "ts"):
            assert {hit.text for hit in find(indexed, query).hits} <= known, at


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE search_words_data SET block = substr(block, 1, 60) || x'41' || substr(block, 62)"
        " WHERE length(block) > 100",
        "DELETE FROM search_words_data WHERE length(block) > 100",
        "UPDATE search_words_idx SET pgno = pgno + 2",
        "UPDATE search_block SET data = substr(data, 2)",
    ],
)
def test_damage_of_the_index_is_found(indexed: ProjectPaths, damage: str) -> None:
    with closing(sqlite3.connect(index_file(indexed.project), isolation_level=None)) as connection:
        assert connection.execute(damage).rowcount
    same_for_all(indexed)
    update(indexed)
    same_for_all(indexed)


def test_an_index_whose_update_was_stopped_or_that_is_locked_is_not_damaged(indexed: ProjectPaths) -> None:
    with closing(Database.open(indexed.project)) as database:
        before = database.file.stat().st_ino
        log(indexed, type="bash", output=f"oauth {'x' * 20_000}")
        assert WordFiller(indexed).fill(database, 1.0)
    same(indexed, "oauth")
    with closing(Database.open(indexed.project)) as database, database.transaction() as connection:
        connection.execute("DELETE FROM search_unit")
        same(indexed, "oauth")
    assert index_file(indexed.project).stat().st_ino == before


def test_a_full_disk_means_a_scan(indexed: ProjectPaths) -> None:
    with closing(Database.open(indexed.project)) as database:
        pages = database.writer.execute("PRAGMA page_count").fetchone()[0]
        database.writer.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(100):
            log(indexed, type="bash", output=" ".join(f"{number}-{part}" for part in range(100)))
        with pytest.raises(sqlite3.OperationalError, match="full"):
            WordFiller(indexed).fill(database, 1.0)
        same(indexed, "oauth")
    update(indexed)


KILLED = """
import os, sys
from pathlib import Path
from core.base.paths import ProjectPaths
from core.index import search
from core.index.database import Database
paths = ProjectPaths(Path(sys.argv[1]))
insert, calls = search._insert, 0
def kill(*arguments):
    global calls
    insert(*arguments)
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
search._insert = kill
filler, database = search.WordFiller(paths), Database.open(paths.project)
while filler.fill(database, 1e-9 if calls else 1.0):
    pass
"""


@pytest.mark.crash
@pytest.mark.parametrize("calls", [1, 2, 4])
def test_a_killed_update_leaves_an_index_that_can_be_used(paths: ProjectPaths, calls: int) -> None:
    command = [sys.executable, "-c", KILLED, str(paths.project), str(calls)]
    assert subprocess.run(command, check=False).returncode == -9
    same_for_all(paths)
    update(paths)
    same_for_all(paths)


def test_short_words_are_looked_up_by_the_trigrams_that_begin_with_them_and_ideographs_one_by_one(
    indexed: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(indexed, type="bash", output='xq q% "')
    update(indexed)
    for query in ("xq", "x", "q", "q%", "%", '"', "x q", "q% xq", "é", "zz"):
        same(indexed, query)
    monkeypatch.setattr("core.index.search.unpack_block", lambda *_: pytest.fail("a block was read"))
    assert not find(indexed, "zz").total
    text = indexed_text(["an 日本語 text"])
    for word in ("日", "本語", "日本語"):
        [*parts] = match_expression([word], lambda start: pytest.fail(start)).split(" ")
        assert parts
        assert all(part.strip('"') in text for part in parts)


def test_names_that_are_not_unicode_do_not_spoil_the_index(paths: ProjectPaths) -> None:
    folder = os.fsdecode(os.fsencode(paths.tasks) + b"/task-\xff")
    Path(folder, "attempts/001/results").mkdir(parents=True)
    Path(folder, "metadata.json").write_text('{"description": "quetzal"}')
    results = paths.tasks / "task-001/attempts/002/results"
    results.mkdir(exist_ok=True)
    (results / os.fsdecode(b"\xff.txt")).write_text("quetzal")
    update(paths)
    file = index_file(paths.project).stat().st_ino
    same(paths, "quetzal")
    assert same(paths, "oauth").total
    assert index_file(paths.project).stat().st_ino == file


RESULT = "task-001/attempts/002/results/report.txt"


@pytest.fixture
def index(paths: ProjectPaths) -> Iterator[Index]:
    """The index of an open project, whose tasks it has not read yet; one has a result."""
    (paths.tasks / RESULT).parent.mkdir()
    (paths.tasks / RESULT).write_text("quokka")
    with closing(Index(paths, Settings(), clock=lambda: NOW)) as index:
        index.load()
        yield index


def fill_words(index: Index) -> None:
    while index.fill_words():
        pass


def find_open(index: Index, text: str, *, reads_files: bool = False) -> SearchResult:
    return index.search(SearchWords(text), SearchFilters(), None, go_on=lambda: reads_files, snapshot=index.snapshot)


def test_tasks_of_an_open_project_are_read_until_they_are_indexed_in_steps(paths: ProjectPaths, index: Index) -> None:
    assert find_open(index, "quokka").missing == (2, 2)
    assert find_open(index, "quokka", reads_files=True).total == 1
    fill_words(index)
    assert find_open(index, "quokka").missing == (0, 2)
    assert find_open(index, "quokka").total == 1
    log(paths, type="bash", output="quetzal")
    index.refresh([paths.tasks / LOG])
    assert find_open(index, "quetzal").missing == (1, 2)
    assert find_open(index, "quetzal", reads_files=True).total == 1
    fill_words(index)
    found = find_open(index, "quetzal")
    assert (found.total, found.missing) == (1, (0, 2))
    (paths.tasks / "task-001").rename(paths.aiwg / "elsewhere")
    index.refresh([paths.tasks / "task-001"])
    assert find_open(index, "quokka", reads_files=True).total == 0
    fill_words(index)
    found = find_open(index, "quokka")
    assert (found.total, found.missing) == (0, (0, 1))


def test_files_without_records_are_compared_after_a_sweep_and_when_they_are_hits(
    paths: ProjectPaths, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_words(index)
    (paths.tasks / RESULT).write_text("quetzal")
    assert find_open(index, "quokka", reads_files=True).total == 0, "the hit is read again"
    fill_words(index)
    assert find_open(index, "quetzal").total == 0
    monkeypatch.setattr("core.index.search._CHECK_SECONDS", 0.0)
    index.refresh()
    fill_words(index)
    assert find_open(index, "quetzal").total == 1


def test_an_unreadable_file_is_not_tried_again_at_once(
    paths: ProjectPaths, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_words(index)
    log(paths, type="bash", output="quetzal")
    index.refresh([paths.tasks / LOG])
    with monkeypatch.context() as failing:
        failing.setattr("core.index.search._are_readable", lambda findings: False)
        fill_words(index)
    fill_words(index)
    assert find_open(index, "quetzal").missing == (1, 2)
    monkeypatch.setattr("core.index.search._CHECK_SECONDS", 0.0)
    fill_words(index)
    assert find_open(index, "quetzal").missing == (0, 2)
