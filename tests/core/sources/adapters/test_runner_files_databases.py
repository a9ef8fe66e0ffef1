"""Databases and first lines of files of runners: read without changes beside them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.sources.adapters import runner_files
from core.sources.adapters.contract import Folders
from core.sources.adapters.runner_files import MAX_FIRST_LINE, MAX_QUERIES, RunnerFiles

QUERY = "SELECT a FROM t ORDER BY a"


@pytest.fixture
def files(tmp_path: Path) -> RunnerFiles:
    return RunnerFiles(Folders(project=tmp_path), "codex")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        yield connection


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_no_file_appears_beside_a_closed_database(
    files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path
) -> None:
    writer.close()
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [(1,)]
    assert names(tmp_path) == {"a.sqlite"}


def test_changes_of_an_open_database_are_read(files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path) -> None:
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [(1,)]
    writer.execute("INSERT INTO t VALUES (2)")
    writer.commit()
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [(1,), (2,)]
    assert not files.findings


def test_a_log_without_its_index_is_a_finding(files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("a.sqlite", "a.sqlite-wal"):
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    assert files.rows(copy / "a.sqlite", QUERY) == []
    assert [one.code for one in files.findings] == ["unreadable-database"]
    assert names(copy) == {"a.sqlite", "a.sqlite-wal"}


def test_a_locked_database_gives_the_last_good_rows(files: RunnerFiles, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "b.sqlite", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        assert files.rows(tmp_path / "b.sqlite", QUERY) == [(1,)]
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("INSERT INTO t VALUES (2)")
        assert files.rows(tmp_path / "b.sqlite", QUERY) == [(1,)]
    assert "locked" in files.findings[0].message


@pytest.mark.parametrize("data", [b"", b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_database_has_no_rows(files: RunnerFiles, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "c.sqlite").write_bytes(data)
    assert files.rows(tmp_path / "c.sqlite", QUERY) == []
    assert len(files.findings) == 1


def test_texts_that_are_not_utf_8_are_read(files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path) -> None:
    writer.execute("UPDATE t SET a = CAST(x'61ff' AS TEXT)")
    writer.commit()
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [("a\N{REPLACEMENT CHARACTER}",)]


def test_a_limited_number_of_queries_is_kept(files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(2 * MAX_QUERIES):
        assert files.rows(tmp_path / "a.sqlite", "SELECT ?", (number,)) == [(number,)]
    assert len(files._databases._rows) == MAX_QUERIES


def test_a_missing_database_has_no_rows_and_no_finding(files: RunnerFiles, tmp_path: Path) -> None:
    assert files.rows(tmp_path / "none.sqlite", QUERY) == []
    assert not files.findings


def test_an_unchanged_database_is_opened_once(
    files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.close()
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [(1,)]
    monkeypatch.setattr(sqlite3, "connect", None)
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [(1,)]


@pytest.mark.parametrize(
    ("data", "line"),
    [(b"one\ntwo\n", b"one"), (b"torn", b""), (b"", b""), (b"x" * (MAX_FIRST_LINE + 1) + b"\n", b"")],
)
def test_only_a_complete_first_line_is_returned(files: RunnerFiles, tmp_path: Path, data: bytes, line: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    assert files.first_line(tmp_path / "a.jsonl") == line


def test_the_index_of_the_log_of_a_crashed_owner_is_not_changed(
    files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path
) -> None:
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"copy.sqlite{ending}").write_bytes((tmp_path / f"a.sqlite{ending}").read_bytes())
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.glob("copy.*")}
    assert files.rows(tmp_path / "copy.sqlite", QUERY) == [(1,)]
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.glob("copy.*")} == before


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_pipe_beside_a_database_is_a_finding(
    files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path, ending: str
) -> None:
    writer.close()
    os.mkfifo(tmp_path / f"a.sqlite{ending}")
    assert files.rows(tmp_path / "a.sqlite", QUERY) == []
    assert "not a regular file" in files.findings[0].message


def test_a_query_that_never_ends_is_stopped_once(
    files: RunnerFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_files, "MAX_STEPS", 2)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS a FROM c WHERE x < 0"
    with closing(sqlite3.connect(tmp_path / "v.sqlite")) as connection:
        connection.execute(f"CREATE VIEW t AS {endless}")
    assert files.rows(tmp_path / "v.sqlite", QUERY) == []
    monkeypatch.setattr(sqlite3, "connect", None)
    assert files.rows(tmp_path / "v.sqlite", QUERY) == []
    assert [one.message for one in files.findings] == [
        "cannot be read: interrupted",
        "cannot be read: a query takes too long",
    ]


def test_rows_that_would_fill_the_memory_are_not_read(
    files: RunnerFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_files, "MAX_BYTES", 1 << 20)
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT zeroblob(1000) AS a FROM c"
    with closing(sqlite3.connect(tmp_path / "v.sqlite")) as connection:
        connection.execute(f"CREATE VIEW t AS {many}")
    assert files.rows(tmp_path / "v.sqlite", "SELECT a FROM t") == []
    assert "too large" in files.findings[0].message
