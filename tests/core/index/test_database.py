"""The file of the index may be damaged, deleted, replaced or impossible at any moment; no one sees a wrong record."""

from __future__ import annotations

import gc
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import DamagedError
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files import cache_database
from core.files.user_files import cache_path
from core.index import database as database_module
from core.index import refresh
from core.index.database import Database, get_meta, pack, set_meta, unpack
from core.index.records import COLLECTIONS, Decoder, LookUp, Reader, encode
from core.index.refresh import Index
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot
from core.sources.adapters.contract import AdapterRecords
from tests.copying import copy_folder


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with closing(Database.open(tmp_path / "project")) as opened:
        yield opened


def test_a_stored_value_is_returned_or_found_damaged() -> None:
    stored = pack(b"a value")
    assert bytes(unpack(stored)) == b"a value"
    for bit in range(8 * len(stored)):
        flipped = bytearray(stored)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedError):
            unpack(bytes(flipped))
    for other in (None, "text", b"", 7, stored[:-1]):
        with pytest.raises(DamagedError):
            unpack(other)


def test_a_record_with_a_huge_integer_is_returned() -> None:
    at = datetime(2026, 5, 3, 10, tzinfo=UTC)
    decision = Decision(id="d", at=at, by="x", verb=Verb.NOTE, subject="p", after={"n": 10**30})
    assert Decoder(Decision)(encode(decision)) == decision


def test_each_project_has_its_own_index_that_only_the_user_may_read(database: Database, tmp_path: Path) -> None:
    assert {file.stat().st_mode & 0o077 for file in database.file.parent.iterdir()} == {0}
    with closing(Database.open(tmp_path / "other")) as other:
        assert other.file != database.file


def test_a_transaction_that_fails_writes_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction() as connection:
        set_meta(connection, "name", b"value")
        raise ZeroDivisionError
    assert get_meta(database.writer, "name") is None


def test_a_view_stays_the_same_while_the_index_is_written(database: Database) -> None:
    with database.transaction() as connection:
        set_meta(connection, "name", b"before")
    with closing(database.read()) as view:
        with database.transaction() as connection:
            set_meta(connection, "name", b"after")
        assert get_meta(view, "name") == b"before"
    with closing(database.read()) as view:
        assert get_meta(view, "name") == b"after"


def test_a_long_log_is_emptied_when_the_index_is_opened_unless_a_view_reads_it(
    database: Database, tmp_path: Path
) -> None:
    log = database.file.with_name(f"{database.file.name}-wal")
    with database.transaction() as connection:
        set_meta(connection, "name", bytes(2 << 20))
    with closing(database.read()) as view:
        with database.transaction() as connection:
            set_meta(connection, "name", b"new")
        with closing(Database.open(tmp_path / "project")) as other:
            assert get_meta(other.writer, "name") == b"new"
        assert get_meta(view, "name") == bytes(2 << 20)
    assert log.stat().st_size > 1 << 20
    with closing(Database.open(tmp_path / "project")) as other:
        assert log.stat().st_size == 0
        assert get_meta(other.writer, "name") == b"new"


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(Database.open(tmp_path / "project", is_kept=False)) as used:
        left = tmp_path / "ralphdeck-index-left"
        new = tmp_path / "ralphdeck-index-new"
        for folder in (left, new):
            folder.mkdir()
        for folder in (left, used.file.parent):
            os.utime(folder, (0, 0))
        with closing(Database.open(tmp_path / "other", is_kept=False)):
            assert not left.exists()
            assert new.exists()
            assert used.file.exists()


FEW, MANY = 3, 300
"""Numbers of keys: the first are looked up one by one, the others at once."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("CREATE TABLE pair (kind INTEGER, name TEXT, value INTEGER)")
        made.executemany("INSERT INTO pair VALUES (1, ?, ?)", ((f"n{number}", number) for number in range(2 * MANY)))
        made.execute("INSERT INTO pair VALUES (2, 'other', 7)")
        yield made


def look_up(connection: sqlite3.Connection, order: str = "") -> LookUp:
    return LookUp(Reader(connection, {}), "SELECT name, value FROM pair WHERE kind = ?", "name", 1, order=order)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_value_is_found_by_its_key_and_what_was_added_or_removed_counts(
    connection: sqlite3.Connection, count: int
) -> None:
    values = look_up(connection)
    assert [values.get(f"n{number}") for number in range(count)] == [*range(count)]
    assert values.get("nothing") is None and values.get("other") is None, "of another kind"
    values = look_up(connection)
    values.add("n1", None)
    values.add("n2", -2)
    values.add("new", 5)
    for number in range(count):
        values.get(f"n{number}")
    assert [values.get(name) for name in ("n0", "n1", "n2", "new")] == [0, None, -2, 5]
    assert {"n0", "n599", "new"} <= {*values} and "other" not in {*values}
    values.forget()
    assert [values.get(name) for name in ("n1", "n2", "new")] == [1, 2, None]


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize(("order", "first"), [("value", 0), ("value DESC", 99)])
def test_of_several_values_of_a_key_the_first_in_the_order_counts(
    connection: sqlite3.Connection, order: str, first: int, count: int
) -> None:
    connection.executemany("INSERT INTO pair VALUES (1, 'twice', ?)", ((99,), (0,), (50,)))
    values = look_up(connection, f" ORDER BY {order}")
    for number in range(count):
        values.get(f"n{number}")
    assert values.get("twice") == first


ROOT = Path(__file__).parents[3]
TREE = ROOT / "tests/trees/spec-examples"
NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
LOOP = "ralph-a-00000001"
PAGE = 8192
LIST_LOOPS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
index = Index(ProjectPaths(Path(sys.argv[1])), Settings(), clock=lambda: datetime(2026, 11, 21, 20, 30, tzinfo=UTC))
print(dict(index.load().loops))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectPaths:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copy_folder(TREE, tmp_path / "project")
    write_state(tmp_path / "project", "completed")
    return ProjectPaths(tmp_path / "project")


def write_state(folder: Path, status: str, loop: str = LOOP) -> Path:
    file = folder / f".aiwg/ralph/loops/{loop}/state.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"loopId": loop, "status": status, "startTime": "2026-11-21T20:00:00Z"}))
    return file


def open_index(project: ProjectPaths, *, is_kept: bool = True) -> Index:
    return Index(project, Settings(), clock=lambda: NOW, is_kept=is_kept)


def file_of(project: ProjectPaths) -> Path:
    return cache_path(project.project, "index")


def build(project: ProjectPaths) -> bytes:
    """Make the index of a project, and return its main file, which contains everything."""
    open_index(project).load()
    gc.collect()  # closes the view
    with closing(sqlite3.connect(file_of(project))) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return file_of(project).read_bytes()


def damage(project: ProjectPaths, change: str, *values: object) -> None:
    """Change the file of the index as no program would."""
    with closing(sqlite3.connect(file_of(project), isolation_level=None)) as connection:
        connection.execute(change, values)


def content(snapshot: Snapshot) -> dict[str, Any]:
    found: dict[str, Any] = {name: list(getattr(snapshot, name).items()) for name in COLLECTIONS}
    return found | {"findings": snapshot.findings, "curation": snapshot.curation, "complete": snapshot.complete}


def is_right(project: ProjectPaths, snapshot: Snapshot) -> bool:
    """Return whether a snapshot shows what the files say."""
    return content(snapshot) == content(open_index(project, is_kept=False).load())


def is_consistent(pages: bytes) -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(pages[:18] + b"\1\1" + pages[20:])  # without write-ahead log, which needs a file
        found: tuple[str] = connection.execute("PRAGMA integrity_check").fetchone()
        return found == ("ok",)


class TestDamage:
    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE record SET data = zeroblob(20)",
            "UPDATE record SET data = 'text'",
            "UPDATE record SET data = substr(data, 1, 9)",
            "UPDATE part SET data = x'00'",
            "UPDATE finding SET data = x'00'",
            "UPDATE meta SET value = x'00'",
            "UPDATE folder SET files = 7",
            "UPDATE file SET size = 'text'",
            "DROP TABLE record",
            "DROP TABLE meta",
        ],
    )
    def test_damaged_rows_are_an_error_once_and_then_made_again(self, project: ProjectPaths, change: str) -> None:
        build(project)
        damage(project, change)
        write_state(project.project, "failed")
        try:
            assert is_right(project, open_index(project).load())
        except DamagedError:
            assert not file_of(project).exists()
        assert is_right(project, open_index(project).load())

    @pytest.mark.parametrize("name", ["curation", "foreign", "team"])
    def test_without_what_was_decided_an_index_is_damaged(self, project: ProjectPaths, name: str) -> None:
        build(project)
        damage(project, "UPDATE meta SET name = 'x' WHERE name = ?", name)
        with pytest.raises(DamagedError):
            getattr(open_index(project).load(), name)
        assert not file_of(project).exists()
        assert is_right(project, open_index(project).load())

    def test_a_record_with_a_flipped_bit_is_never_shown(self, project: ProjectPaths) -> None:
        build(project)
        whole = file_of(project).read_bytes()
        with closing(sqlite3.connect(file_of(project))) as connection:
            rows = connection.execute("SELECT number, data FROM record WHERE kind < 3").fetchall()
        assert len(rows) > 5
        right = content(open_index(project, is_kept=False).load())
        for number, data in rows:
            cache_database.remove(file_of(project))
            file_of(project).write_bytes(whole)
            at = number % len(data)
            flipped = data[:at] + bytes([data[at] ^ 1 << number % 8]) + data[at + 1 :]
            damage(project, "UPDATE record SET data = ? WHERE number = ?", flipped, number)
            try:
                assert content(open_index(project).load()) == right
            except DamagedError:
                assert not file_of(project).exists()

    def test_an_index_whose_pages_contradict_each_other_is_deleted_by_the_daily_check(
        self, project: ProjectPaths
    ) -> None:
        whole, name = build(project), LOOP.encode()
        places = [match.start() for match in re.finditer(name, whole)]
        flipped = (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in places)
        file_of(project).write_bytes(next(pages for pages in flipped if not is_consistent(pages)))
        open_index(project).check_pages()
        assert not file_of(project).exists()
        index = open_index(project)
        assert is_right(project, index.load())
        index.check_pages()
        assert file_of(project).exists()

    @pytest.mark.parametrize("junk", [b"", b"nonsense" * 200, b"SQLite format 3\0" + b"\xff" * 5000, None])
    def test_a_file_that_is_not_an_index_is_replaced_and_a_pipe_is_not_opened(
        self, project: ProjectPaths, junk: bytes | None
    ) -> None:
        file_of(project).parent.mkdir(parents=True)
        if junk is None:
            os.mkfifo(file_of(project))
            assert database_module.read_existing(project.project) is None
            return
        file_of(project).write_bytes(junk)
        assert is_right(project, open_index(project).load())
        assert database_module.read_existing(project.project) is not None

    def test_its_log_does_not_grow_while_a_view_is_open(
        self, project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        most, log = 50_000, file_of(project).with_name(f"{file_of(project).name}-wal")
        monkeypatch.setattr(database_module, "_LONG_LOG", most)
        monkeypatch.setattr(refresh, "_TRIM_SECONDS", 0.0)
        index = open_index(project)
        index.load()
        assert log.stat().st_size <= most
        for number in range(10):
            index.refresh([write_state(project.project, "failed", f"ralph-b-{number:08x}")])
            index.settle()
            assert log.stat().st_size <= most

    @pytest.mark.parametrize("is_cut_off", [False, True])
    def test_pages_that_are_lost_while_the_index_is_open_are_made_again(
        self, project: ProjectPaths, *, is_cut_off: bool
    ) -> None:
        whole = build(project)
        index = open_index(project)
        index.load()
        os.truncate(file_of(project), PAGE)
        if not is_cut_off:
            os.truncate(file_of(project), len(whole))
        assert is_right(project, index.refresh([write_state(project.project, "failed")])[0])

    def test_a_record_found_damaged_by_what_reads_an_update_is_made_again(self, project: ProjectPaths) -> None:
        build(project)
        opened = Project(project, Settings(), by="ana", clock=lambda: NOW)
        opened.index.load()
        damage(project, "UPDATE record SET data = zeroblob(20)")
        view, delta = opened.apply([write_state(project.project, "failed")])
        assert LOOP in delta.loops
        assert view.snapshot.loops[LOOP].status is LoopStatus.FAILED
        assert is_right(project, view.snapshot)


class TestOtherProcesses:
    def test_an_index_that_is_deleted_while_it_is_open_is_made_again(self, project: ProjectPaths) -> None:
        index = open_index(project)
        before = index.load()
        file_of(project).unlink()
        assert before.loops[LOOP].status is LoopStatus.COMPLETED, "open views still work"
        after, delta = index.refresh([write_state(project.project, "failed")])
        assert LOOP in delta.loops and delta.findings and after.number > before.number
        assert is_right(project, after)
        assert file_of(project).exists(), "for the next run"
        index.replace_adapted(AdapterRecords(loops=(Loop(id="codex:1", runner="codex"),)))
        file_of(project).unlink()
        assert "codex:1" in index.refresh([write_state(project.project, "completed")])[0].loops

    def test_an_index_that_another_process_replaces_is_used_from_then_on(self, project: ProjectPaths) -> None:
        index, other = open_index(project), open_index(project)
        index.load()
        cache_database.remove(file_of(project))
        other.load()
        changed = write_state(project.project, "failed")
        assert is_right(project, index.refresh([changed])[0])
        assert is_right(project, other.refresh([changed])[0])
        assert index.snapshot.number == other.snapshot.number

    def test_an_index_of_another_version_is_replaced(
        self, project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        older = open_index(project)
        older.load()
        monkeypatch.setattr(database_module, "code_version", lambda packages: 1)
        assert database_module.read_existing(project.project) is None
        assert is_right(project, open_index(project).load())
        assert database_module.read_existing(project.project) is not None
        assert is_right(project, older.refresh([write_state(project.project, "failed")])[0])

    @pytest.mark.parametrize("is_symbolic", [True, False])
    def test_a_database_of_another_program_is_replaced_and_not_written_and_no_link_is_followed(
        self, project: ProjectPaths, tmp_path: Path, *, is_symbolic: bool
    ) -> None:
        foreign = tmp_path / "foreign"
        with closing(sqlite3.connect(foreign)) as connection:
            connection.execute("CREATE TABLE meta (precious)")
        before = foreign.read_bytes()
        file_of(project).parent.mkdir(parents=True)
        (file_of(project).symlink_to if is_symbolic else file_of(project).hardlink_to)(foreign)
        assert is_right(project, open_index(project).load())
        assert foreign.read_bytes() == before

    def test_processes_that_make_the_index_at_the_same_time_end_with_the_same_one(self, project: ProjectPaths) -> None:
        for number in range(40):
            write_state(project.project, "failed", f"ralph-b-{number:08x}")
        command = [sys.executable, "-c", LIST_LOOPS, str(project.project)]
        made = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
        printed = {process.communicate()[0] for process in made}
        assert len(printed) == 1 and b"ralph-b-00000027" in printed.pop()
        assert is_right(project, open_index(project).load())


class TestUnusableFolders:
    @pytest.mark.parametrize("occupy", [Path.mkdir, lambda file: (file.parent.rmdir(), file.parent.touch())])
    def test_an_index_that_cannot_be_in_the_cache_is_temporary(
        self,
        project: ProjectPaths,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        occupy: Callable[[Path], object],
    ) -> None:
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        file_of(project).parent.mkdir(parents=True)
        occupy(file_of(project))
        index = open_index(project)
        assert is_right(project, index.load())
        assert is_right(project, index.refresh([write_state(project.project, "failed")])[0])
        index.close()
        gc.collect()
        assert not list((tmp_path / "temporary").iterdir())

    def test_no_index_is_written_to_a_network(self, project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database_module, "_NETWORK_SYSTEMS", ("",))
        assert is_right(project, open_index(project).load())
        assert not file_of(project).exists()

    def test_a_full_disk_leaves_the_last_index_and_the_records_are_right(
        self, project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pages = len(build(project)) // PAGE
        connect = cache_database.connect

        def connect_to_full_disk(file: Path, *given: Any) -> sqlite3.Connection:
            connection = connect(file, *given)
            if file == file_of(project):
                connection.execute(f"PRAGMA max_page_count = {pages}")
            return connection

        for number in range(200):
            write_state(project.project, "failed", f"ralph-b-{number:08x}")
        with monkeypatch.context() as patch:
            patch.setattr(cache_database, "connect", connect_to_full_disk)
            index = open_index(project)
            assert is_right(project, index.load())
            assert is_right(project, index.refresh([write_state(project.project, "failed")])[0])
        reader = database_module.read_existing(project.project)
        assert reader is not None
        assert reader.execute("SELECT count(*) FROM record WHERE id LIKE 'ralph-b-%'").fetchone() == (0,)

    def test_a_disk_without_any_room_is_one_line(self, project: ProjectPaths) -> None:
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)); "
        run = "from core.cli.program import main; main(['loop', 'list', '--project', __import__('sys').argv[1]])"
        command = [sys.executable, "-c", limit + run, str(project.project)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert ended.stderr.startswith("Error: cannot write the index of the project in ")
        assert ended.stderr.count("\n") == 1
