"""Files and databases of runners are read without changes beside them; torn ones keep their last good content."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.base.masking import clip
from core.sources.adapters import runner_files
from core.sources.adapters.folders import Folders, find_folders, find_worktrees
from core.sources.adapters.runner_files import (
    FAILED_SECONDS,
    MAX_FIRST_LINE,
    MAX_QUERIES,
    RETRY_SECONDS,
    RunnerFiles,
    cut,
    head_of,
)

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


def test_changes_of_an_open_database_are_read_and_an_unchanged_one_is_opened_once(
    files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.rows(tmp_path / "none.sqlite", QUERY) == [] and not files.findings
    assert files.rows(tmp_path / "a.sqlite", QUERY) == [(1,)]
    writer.execute("INSERT INTO t VALUES (CAST(x'61ff' AS TEXT))")
    writer.commit()
    expected = [(1,), ("a\N{REPLACEMENT CHARACTER}",)]
    assert files.rows(tmp_path / "a.sqlite", QUERY) == expected, "a text that is not UTF-8"
    writer.close()
    assert files.rows(tmp_path / "a.sqlite", QUERY) == expected and not files.findings
    assert names(tmp_path) == {"a.sqlite"}, "no file appears beside a closed database"
    monkeypatch.setattr(sqlite3, "connect", None)
    assert files.rows(tmp_path / "a.sqlite", QUERY) == expected


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


def test_a_limited_number_of_queries_is_kept(files: RunnerFiles, writer: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(2 * MAX_QUERIES):
        assert files.rows(tmp_path / "a.sqlite", "SELECT ?", (number,)) == [(number,)]
    assert len(files._databases._rows) == MAX_QUERIES


@pytest.mark.parametrize(
    ("data", "line"), [(b"one\ntwo\n", b"one"), (b"torn", b""), (b"", b""), (b"x" * (MAX_FIRST_LINE + 1) + b"\n", b"")]
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


class Reader:
    """A file that is written in place, and a clock that the test advances."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self.now = 0.0
        self.pauses: list[float] = []
        self.during_pause: Callable[[], object] = lambda: None
        self.files = RunnerFiles(Folders(project=folder), "fake", clock=lambda: self.now, pause=self._pause)

    def write(self, text: str) -> None:
        self.path.write_text(text)
        os.utime(self.path, (1e9, 1e9))  # so long ago that it does not change again at the same time

    def look(self, seconds: float = 0.0) -> object:
        self.now += seconds
        self.files.start_look()
        return self.files.json(self.path)

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.files.findings]

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.during_pause()


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_a_torn_file_is_read_once_more_after_a_moment(reader: Reader) -> None:
    reader.write('{"a": ')
    reader.during_pause = lambda: reader.write('{"a": 1}')
    assert reader.look() == {"a": 1}
    assert reader.pauses == [RETRY_SECONDS]


def test_the_last_good_content_stays_while_a_file_is_torn(reader: Reader) -> None:
    reader.write('{"a": 1}')
    reader.look()
    reader.write('{"a": ')
    assert reader.look() == {"a": 1}
    assert not reader.files.findings
    assert reader.files.has_failures
    reader.write('{"a": 2}')
    assert reader.look(FAILED_SECONDS) == {"a": 2}
    assert not reader.files.has_failures


def test_a_file_that_stays_damaged_is_reported_after_two_seconds(reader: Reader) -> None:
    reader.write('{"a": ')
    assert reader.look() is None
    reader.look(FAILED_SECONDS - 0.1)
    assert not reader.codes
    reader.look(0.1)
    first = reader.codes
    assert len(first) == 1
    count = len(reader.pauses)
    reader.look(60)
    assert reader.codes == first, "reported as long as it lasts"
    assert len(reader.pauses) == count, "not read again until it changes"


def test_a_file_that_is_torn_at_each_look_is_reported(reader: Reader) -> None:
    for second in range(4):
        reader.write('{"a": ' + "1" * second)
        reader.look(1.0)
    assert len(reader.codes) == 1


def test_a_missing_file_has_no_content(reader: Reader) -> None:
    reader.write('{"a": 1}')
    reader.look()
    reader.path.unlink()
    assert reader.look() is None
    assert not reader.files.findings


def test_a_clock_that_jumps_back_does_not_hide_a_damaged_file(reader: Reader) -> None:
    reader.write('{"a": ')
    reader.now = 1e6
    reader.look()
    reader.look(-1e6)
    assert len(reader.codes) == 1


def test_a_change_without_another_time_is_noticed(reader: Reader) -> None:
    reader.write('{"a": 1}')
    reader.look()
    before = reader.path.stat()
    reader.path.write_text('{"a": 2}')
    os.utime(reader.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reader.look() == {"a": 2}


@pytest.mark.parametrize("kind", ["fifo", "link outside", "folder", "device", "link of a folder"])
def test_only_regular_files_inside_are_read(
    reader: Reader, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "state.json").write_text('{"a": 1}')
    path = reader.path
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link outside":
        path.symlink_to(outside / "state.json")
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        (path.parent / "link").symlink_to(outside)
        reader.path = path.parent / "link/state.json"
    assert reader.look() is None
    assert reader.files.text(reader.path) == ""
    assert reader.files.head(reader.path, 10) == head_of(reader.path.parent, reader.path.parent) == b""
    assert reader.files.names(reader.path.parent, "*.json") == (
        [] if kind.startswith("link") or kind == "device" else [path]
    )


def test_nothing_outside_of_the_project_is_read_without_a_home_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/a.json").write_text("{}")
    project = tmp_path / "project"
    project.mkdir()
    files = RunnerFiles(Folders(project=project), "codex")
    assert files.json(home / ".codex/a.json") is None
    assert files.names(home / ".codex") == []
    assert not files.exists(home / ".codex/a.json")
    files = RunnerFiles(Folders(project=project, home=home), "codex")
    assert files.json(home / ".codex/a.json") == {}


def test_a_link_may_not_leave_the_private_folder_of_an_agent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh/id.json").write_text('{"key": 1}')
    (home / ".codex/a.json").symlink_to(home / ".ssh/id.json")
    files = RunnerFiles(Folders(project=tmp_path / "project", home=home), "codex")
    assert files.json(home / ".codex/a.json") is None
    assert files.names(home / ".codex") == []


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with the working trees `one` and `two`, as Git writes them."""
    main = tmp_path / "main"
    for name in ("one", "two"):
        entry, tree = main / ".git/worktrees" / name, tmp_path / name
        entry.mkdir(parents=True)
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {entry}\n")
        (entry / "gitdir").write_text(f"{tree / '.git'}\n")
    return main


def test_the_working_trees_of_a_repository_are_found(main: Path, tmp_path: Path) -> None:
    assert find_worktrees(tmp_path) == (), "no repository"
    assert find_worktrees(main) == (tmp_path / "one", tmp_path / "two")
    assert find_worktrees(tmp_path / "one") == (main, tmp_path / "two")
    for target in ("/", "/etc", "../one/.git", "", "\0", "/missing/.git"):
        (main / ".git/worktrees/one/gitdir").write_text(f"{target}\n")
        assert find_worktrees(main) == (tmp_path / "two",), "a tree that does not refer to the repository"


def test_without_home_no_private_folder_is_known(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "agent"), "PATH": "/bin"}
    folders = find_folders(tmp_path, environment, has_home=False)
    assert folders.private("CLAUDE_CONFIG_DIR", ".claude") is None
    folders = find_folders(tmp_path, environment, has_home=True)
    assert folders.private("CLAUDE_CONFIG_DIR", ".claude") == tmp_path / "agent"
    assert folders.private("CODEX_HOME", ".codex") == tmp_path / ".codex"


TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.parametrize("limit", [30, 44, 48, 80])
def test_a_secret_that_a_cut_would_divide_is_masked(limit: int) -> None:
    text = f"{'x' * 40} {TOKEN} {'y' * 200}"
    for made in (clip(text, limit), cut(text, limit)):
        assert len(made) == limit
        assert TOKEN[:6] not in made


def test_a_text_that_is_not_cut_stays_as_it_is() -> None:
    assert clip(TOKEN, len(TOKEN)) == TOKEN
