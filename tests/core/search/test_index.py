"""The full-text index of the task memory."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config.paths import ProjectPaths
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.search import store
from core.search.index import SearchIndex
from core.search.search import SearchResult, search
from core.search.trigrams import indexed_text, match_expression
from core.search.words import SearchFilters, SearchPlace, SearchWords
from tests.copying import copy_folder
from tests.core.cli.conftest import TREES

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


def later() -> int:
    """A clock on which all files have long been unchanged."""
    return time.time_ns() + 10**12


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """A copy of the documented examples."""
    return ProjectPaths(copy_folder(TREES / "spec-examples", tmp_path / "project"))


@pytest.fixture
def index(paths: ProjectPaths, tmp_path: Path) -> SearchIndex:
    """A complete index."""
    made = SearchIndex(paths, tmp_path / "cache/search.sqlite3", clock=later)
    update(made)
    return made


def update(index: SearchIndex) -> None:
    fresh = index.check()
    assert fresh is not None
    assert index.update(fresh)
    checked = index.check()
    assert checked is not None
    assert checked.is_complete


def log(paths: ProjectPaths, **action: Any) -> None:
    """Append an action to the log of the third attempt."""
    with (paths.tasks / "task-001/attempts/003/actions.jsonl").open("a") as file:
        file.write(json.dumps(action) + "\n")


def same(paths: ProjectPaths, index: SearchIndex, query: str, **filters: Any) -> SearchResult:
    """The result with the index, which must be that of a scan."""
    words, only = SearchWords(query), SearchFilters(**filters)
    found, expected = search(paths, words, only, index=index), search(paths, words, only)
    assert (found.hits, found.total) == (expected.hits, expected.total), query
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_the_index_finds_what_a_scan_finds(paths: ProjectPaths, index: SearchIndex, query: str) -> None:
    same(paths, index, query)
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
        same(paths, index, query, **one)


def test_a_search_with_a_complete_index_reads_no_task(
    paths: ProjectPaths, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.search.search.scan_task", lambda *_: pytest.fail("a task was read"))
    assert search(paths, SearchWords("oauth"), index=index).total


TEXTS = st.text(
    st.characters(codec="utf-8", include_characters='éßİ日本"*\x00\n\\') | st.sampled_from("abAB 1"), max_size=12
)


@pytest.mark.slow
@settings(max_examples=40)
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
        index = SearchIndex(paths, paths.project / "search.sqlite3", clock=later)
        update(index)
        for asked in {query, *texts}:
            if asked.split():
                same(paths, index, asked)
        if texts:
            (paths.tasks / "task-0/metadata.json").write_text(json.dumps({"description": edited}))
            if edited.split():
                same(paths, index, edited)
            update(index)
            if query.split():
                same(paths, index, query)
        index.close()


def test_changed_files_are_read_until_they_are_indexed(paths: ProjectPaths, index: SearchIndex) -> None:
    log(paths, type="bash", output="needle")
    (paths.tasks / "task-new").mkdir()
    (paths.tasks / "task-new/metadata.json").write_text('{"description": "another needle"}')
    shutil.rmtree(paths.tasks / "task-002")
    assert same(paths, index, "needle").total == 2
    assert {hit.task_id for hit in same(paths, index, "task-002").hits} == {"task-001"}
    update(index)
    assert same(paths, index, "needle").total == 2


def test_a_file_that_has_just_changed_is_not_indexed(paths: ProjectPaths, tmp_path: Path) -> None:
    index = SearchIndex(paths, tmp_path / "search.sqlite3", clock=lambda: 0)
    fresh = index.check()
    assert fresh is not None
    index.update(fresh)
    checked = index.check()
    assert checked is not None
    assert len(checked.tasks) == len(list(paths.tasks.iterdir()))


LOG = "task-001/attempts/003/actions.jsonl"


@pytest.mark.parametrize("name", [LOG, "task-001/metadata.json", "task-001/attempts/003/attempt.json"])
def test_a_file_that_could_not_be_read_is_indexed_later(
    paths: ProjectPaths, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(paths.tasks / name)
    made = SearchIndex(paths, tmp_path / "search.sqlite3", clock=later)
    real = os.open

    def refuse(path: str | Path, *rest: Any, **more: Any) -> int:
        if str(path) == file:
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        for _ in range(2):
            fresh = made.check()
            assert fresh is not None
            assert made.update(fresh)
            assert not fresh.is_complete
            for query in QUERIES:
                same(paths, made, query)
    for query in QUERIES:
        same(paths, made, query)
    update(made)
    for query in QUERIES:
        same(paths, made, query)


@pytest.mark.parametrize("name", ["", "task-001/attempts", "task-001/attempts/003/results"])
def test_a_folder_that_cannot_be_listed_for_a_moment_hides_nothing_later(
    paths: ProjectPaths, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = paths.tasks / name
    (paths.tasks / "task-001/attempts/003/results").mkdir(exist_ok=True)
    (paths.tasks / "task-001/attempts/003/results/report.txt").write_text("oauth exit 1")
    made, indexed = (SearchIndex(paths, tmp_path / f"{one}.sqlite3", clock=later) for one in ("new", "complete"))
    update(indexed)
    real = os.scandir

    def refuse(path: str | Path) -> Any:
        if Path(path) == folder:
            raise OSError(24, "Too many open files")
        return real(path)

    for index in (made, indexed):
        (paths.tasks / "task-001/metadata.json").touch()
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", refuse)
            fresh = index.check()
            assert (fresh is None) is (name == "")
            assert fresh is None or (index.update(fresh) and not fresh.is_complete)
        for query in QUERIES:
            same(paths, index, query)
        update(index)
        for query in QUERIES:
            same(paths, index, query)


@pytest.mark.parametrize("name", [LOG, "task-001/metadata.json", "task-001/attempts/003/attempt.json"])
def test_the_target_of_a_link_that_led_nowhere_is_indexed(paths: ProjectPaths, tmp_path: Path, name: str) -> None:
    file, target = paths.tasks / name, paths.aiwg / "ralph" / "elsewhere"
    content = file.read_bytes()
    file.unlink()
    file.symlink_to(target)
    made = SearchIndex(paths, tmp_path / "search.sqlite3", clock=later)
    update(made)
    target.write_bytes(content)
    for query in QUERIES:
        same(paths, made, query)
    update(made)
    for query in QUERIES:
        same(paths, made, query)
    target.unlink()
    for query in QUERIES:
        same(paths, made, query)


def test_logs_that_were_too_large_are_indexed_when_they_have_changed(
    paths: ProjectPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SearchIndex(paths, tmp_path / "search.sqlite3", clock=later)
    with monkeypatch.context() as patch:
        patch.setattr("core.search.writer.MAX_PATTERN_BYTES", 10)
        update(made)
    for file in paths.tasks.glob("*/attempts/*/actions.jsonl"):
        os.utime(file, (1, 1))
    for query in QUERIES:
        same(paths, made, query)
    update(made)
    same(paths, made, "tsc exits")


def test_only_new_lines_of_a_log_are_indexed(paths: ProjectPaths, index: SearchIndex) -> None:
    def numbers() -> set[int]:
        with sqlite3.connect(index.file) as connection:
            return {number for (number,) in connection.execute("SELECT id FROM block")}

    before = numbers()
    log(paths, type="bash", output="needle")
    update(index)
    assert before < numbers()
    assert len(numbers() - before) == 1
    [hit] = same(paths, index, "needle").hits
    assert (hit.action, hit.pointer) == (5, "line 5")


def test_a_rewritten_log_is_indexed_again(paths: ProjectPaths, index: SearchIndex) -> None:
    file = paths.tasks / "task-001/attempts/003/actions.jsonl"
    file.write_text(file.read_text().replace("exit 1", "exit 2") + '{"output": "needle"}\n')
    update(index)
    assert same(paths, index, '"exit 2"').total
    same(paths, index, '"exit 1"')


def test_an_earlier_check_hides_no_change_of_a_hit(paths: ProjectPaths, index: SearchIndex) -> None:
    fresh = index.check()
    (paths.tasks / "task-001/metadata.json").write_text('{"description": "something else"}')
    words = SearchWords("oauth")
    assert search(paths, words, index=index, fresh=fresh).hits == search(paths, words).hits


def test_of_many_hits_the_newest_are_counted(paths: ProjectPaths, index: SearchIndex) -> None:
    for number in range(1100):
        log(paths, type="bash", output=f"needle {number}")
    update(index)
    found = search(paths, SearchWords("needle"), limit=3, index=index)
    assert (len(found.hits), found.total, found.is_exact) == (3, 1000, False)
    assert search(paths, SearchWords("needle"), limit=2000, index=index).total == 1100
    assert search(paths, SearchWords("needle 1099"), limit=3, index=index).is_exact


@pytest.mark.parametrize(
    "query", ['"', "a*", "NEAR(a b)", "a AND b", "-a", "^oauth", "text:oauth", '""', "x'); DROP", "(("]
)
def test_no_query_is_parsed_as_full_text_syntax(paths: ProjectPaths, index: SearchIndex, query: str) -> None:
    log(paths, type="bash", output=f"before {query} after")
    update(index)
    assert same(paths, index, query).total


def test_secrets_are_masked_in_the_index_and_found_in_the_files(paths: ProjectPaths, index: SearchIndex) -> None:
    log(paths, type="bash", output=f"token {KEY} used by needle")
    update(index)
    index.close()
    for file in index.file.parent.iterdir():
        assert KEY.encode() not in file.read_bytes()
    assert search(paths, SearchWords("needle"), index=index).total == 1
    assert KEY not in search(paths, SearchWords("needle"), index=index).hits[0].text
    assert search(paths, SearchWords(KEY), index=index).total == 1


def test_only_the_user_may_read_the_index(index: SearchIndex) -> None:
    assert {stat.S_IMODE(file.stat().st_mode) for file in index.file.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("content", [b"", b"nonsense" * 200, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_foreign_file_is_replaced(paths: ProjectPaths, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "search.sqlite3"
    file.write_bytes(content)
    index = SearchIndex(paths, file, clock=later)
    update(index)
    assert same(paths, index, "oauth").total


@pytest.mark.slow
def test_damage_anywhere_changes_no_text(paths: ProjectPaths, index: SearchIndex, tmp_path: Path) -> None:
    with sqlite3.connect(index.file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    index.close()
    whole = index.file.read_bytes()
    known = {hit.text for query in QUERIES for hit in search(paths, SearchWords(query)).hits}
    for at in range(0, len(whole), 1021):
        file = tmp_path / f"damaged-{at}.sqlite3"
        file.write_bytes(whole[:at] + bytes(255 - byte for byte in whole[at : at + 40]) + whole[at + 40 :])
        damaged = SearchIndex(paths, file, clock=later)
        for query in ("green", "ts"):
            found = search(paths, SearchWords(query), index=damaged)
            assert {hit.text for hit in found.hits} <= known, at
        fresh = damaged.check()
        if fresh is not None:
            damaged.update(fresh)
        damaged.close()
        file.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE words_data SET block = substr(block, 1, 60) || x'41' || substr(block, 62) WHERE length(block) > 100",
        "DELETE FROM words_data WHERE length(block) > 100",
        "UPDATE words_idx SET pgno = pgno + 2",
    ],
)
def test_a_damaged_word_index_is_built_again(paths: ProjectPaths, index: SearchIndex, damage: str) -> None:
    identity = index.identity()
    index.close()
    with closing(sqlite3.connect(index.file, isolation_level=None)) as connection:
        assert connection.execute(damage).rowcount
    fresh = index.check()
    assert fresh is not None
    assert not fresh.is_complete
    assert index.identity() != identity
    for query in QUERIES:
        same(paths, index, query)
    update(index)
    for query in QUERIES:
        same(paths, index, query)


def test_an_update_that_was_stopped_is_not_damage(paths: ProjectPaths, index: SearchIndex) -> None:
    identity = index.identity()
    for number in range(3):
        log(paths, type="bash", output=f"oauth {number} {'x' * 20_000}")
        fresh = index.check()
        assert fresh is not None
        index.update(fresh, lambda _: False)
    assert index.check() is not None
    assert index.identity() == identity


def test_a_locked_index_is_left_alone(paths: ProjectPaths, index: SearchIndex) -> None:
    index.close()
    with sqlite3.connect(index.file, isolation_level=None) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("DELETE FROM unit")
        same(paths, index, "oauth")
        connection.execute("ROLLBACK")
    assert index.file.exists()


def test_an_unwritable_folder_means_a_scan(paths: ProjectPaths, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    index = SearchIndex(paths, tmp_path / "taken/search.sqlite3")
    assert index.check() is None
    assert same(paths, index, "oauth").total


def test_a_full_disk_means_a_scan(paths: ProjectPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = store.connect

    def connect_to_full_disk(file: Path) -> sqlite3.Connection:
        connection = connect(file)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    index = SearchIndex(paths, tmp_path / "search.sqlite3", clock=later)
    assert index.check()
    index.close()
    monkeypatch.setattr(store, "connect", connect_to_full_disk)
    for number in range(100):
        log(paths, type="bash", output=" ".join(f"{number}-{part}" for part in range(100)))
    fresh = index.check()
    assert fresh
    assert not index.update(fresh)
    assert same(paths, index, "oauth").total
    monkeypatch.undo()
    index.close()
    update(index)


KILLED = """
import os, sys, time
from pathlib import Path
from core.config.paths import ProjectPaths
from core.search import store
from core.search.index import SearchIndex
from tests.copying import copy_folder
calls = 0
def clock():
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
    return time.time_ns() + 10**12
index = SearchIndex(ProjectPaths(Path(sys.argv[1])), Path(sys.argv[2]), clock=clock)
index.update(index.check())
"""


@pytest.mark.crash
@pytest.mark.parametrize("calls", [1, 2, 4])
def test_a_killed_update_leaves_an_index_that_can_be_used(paths: ProjectPaths, tmp_path: Path, calls: int) -> None:
    file = tmp_path / "search.sqlite3"
    command = [sys.executable, "-c", KILLED, str(paths.project), str(file), str(calls)]
    assert subprocess.run(command, check=False).returncode == -9
    index = SearchIndex(paths, file, clock=later)
    for query in QUERIES:
        same(paths, index, query)
    update(index)
    for query in QUERIES:
        same(paths, index, query)


def test_ideographs_are_looked_up_from_one_character_on() -> None:
    text = indexed_text(["an 日本語 text"])
    for word in ("日", "本語", "日本語"):
        [*parts] = match_expression([word], lambda start: pytest.fail(start)).split(" ")
        assert parts
        assert all(part.strip('"') in text for part in parts)


def test_short_words_are_looked_up_by_the_trigrams_that_begin_with_them(
    paths: ProjectPaths, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(paths, type="bash", output='xq q% "')
    update(index)
    for query in ("xq", "x", "q", "q%", "%", '"', "x q", "q% xq", "é", "zz"):
        same(paths, index, query)
    monkeypatch.setattr("core.search.index.unpack", lambda *_: pytest.fail("a block was read"))
    assert not search(paths, SearchWords("zz"), index=index).total


def test_names_that_are_not_unicode_do_not_spoil_the_index(paths: ProjectPaths, tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(paths.tasks) + b"/task-\xff")
    Path(folder, "attempts/001/results").mkdir(parents=True)
    Path(folder, "metadata.json").write_text('{"description": "quetzal"}')
    results = paths.tasks / "task-001/attempts/002/results"
    results.mkdir(exist_ok=True)
    (results / os.fsdecode(b"\xff.txt")).write_text("quetzal")
    index = SearchIndex(paths, tmp_path / "search.sqlite3", clock=later)
    fresh = index.check()
    assert fresh
    assert index.update(fresh)
    file = index.file.stat().st_ino
    same(paths, index, "quetzal")
    assert same(paths, index, "oauth").total
    assert index.file.stat().st_ino == file
