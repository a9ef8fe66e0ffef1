"""Files of the user: state and caches."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from tinydb import where

from core.base.errors import BadInput, DamagedError, Unwritable
from core.files import user_files
from core.files.cache_database import connect, use
from core.files.user_files import UserStore, code_digest, damaged_files, read_tables


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package."""
    package = tmp_path / "sources"
    (package / "tables").mkdir(parents=True)
    monkeypatch.setattr(user_files, "_CORE", tmp_path)
    return package


@pytest.mark.parametrize("name", ["module.py", "words.toml", "kinds.yaml", "vocabulary.txt", "tables/rules.yaml"])
def test_a_change_of_any_installed_file_changes_the_digest(package: Path, name: str) -> None:
    before = code_digest(["sources"])
    (package / name).write_text("one")
    created = code_digest(["sources"])
    (package / name).write_text("other")
    assert len({before, created, code_digest(["sources"])}) == 3


def test_compiled_modules_and_other_packages_do_not_change_the_digest(package: Path) -> None:
    before = code_digest(["sources"])
    for folder in (package / "__pycache__", package.parent / "search"):
        folder.mkdir()
        (folder / "module.cpython-311.pyc").write_bytes(b"compiled")
    assert code_digest(["sources"]) == before


def names(path: Path, table: str = "views") -> list[str]:
    return [row["name"] for row in read_tables(path).rows(table)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.json"


def test_a_transaction_is_seen_by_other_stores(path: Path) -> None:
    store, other = UserStore(path), UserStore(path)
    with store.transaction() as tables:
        tables.table("views").insert_multiple([{"name": "mine", "place": "log"}, {"name": "old", "place": "loops"}])
    with other.transaction() as tables:
        tables.table("views").remove(where("name") == "old")
        tables.table("views").upsert({"name": "mine", "place": "review"}, where("name") == "mine")
    found = store.table("views").search(where("place") == "review")
    assert [row["name"] for row in found] == ["mine"]
    assert names(path) == ["mine"]


def test_nothing_is_written_after_an_error_outside_of_a_transaction_or_through_a_link(
    path: Path, tmp_path: Path
) -> None:
    store = UserStore(path)
    with pytest.raises(ZeroDivisionError), store.transaction() as tables:
        tables.table("views").insert({"name": "mine"})
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="transaction"):
        store.table("views").insert({"name": "mine"})
    assert not path.exists()
    (tmp_path / "other.json").write_text("{}")
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "other.json")
    for place in (path, tmp_path / "other.json" / "state.json"):
        with pytest.raises(Unwritable), UserStore(place).transaction():
            pass
    assert (tmp_path / "other.json").read_text() == "{}"


def test_only_the_user_can_read_the_file_and_its_folder(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    path.write_text("{}")
    path.chmod(0o644)
    with UserStore(path).transaction() as tables:
        tables.table("views").insert({"name": "mine"})
    assert (stat.S_IMODE(path.parent.stat().st_mode), stat.S_IMODE(path.stat().st_mode)) == (0o700, 0o600)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff", b'{"x": "\\ud800"}', b"[" * 100_000, b'{"views": {}} x']
)
def test_a_damaged_file_is_moved_aside_with_the_next_change(path: Path, data: bytes) -> None:
    for number in (1, 2):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        assert read_tables(path).damage and not UserStore(path).table("views").all()
        assert len(damaged_files(path)) == number - 1, "reading changes nothing"
        with UserStore(path).transaction() as tables:
            tables.table("views").insert({"name": f"mine {number}"})
        assert [one.read_bytes() for one in damaged_files(path)] == [data] * number
        assert names(path) == [f"mine {number}"] and not read_tables(path).damage


def test_tables_and_values_of_later_versions_are_kept(path: Path) -> None:
    path.parent.mkdir()
    later = '{"version": 9, "views": {"1": {"name": "mine"}}, "goals": {"1": {"n": 1}}, "odd": {"x": [1]}}'
    path.write_text(later)
    with UserStore(path).transaction() as tables:
        tables.table("views").insert({"name": "other"})
    assert names(path) == ["mine", "other"]
    assert '"odd":{"x": [1]}' in path.read_text()
    kept = read_tables(path)
    assert kept.rows("goals") == [{"n": 1}] and kept.others["version"] == msgspec.Raw(b"9")


def test_a_value_under_the_name_of_a_written_table_is_moved_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"views": ["mine"]}')
    with UserStore(path).transaction() as tables:
        tables.table("views").insert({"name": "other"})
    assert names(path) == ["other"]
    assert [one.read_text() for one in damaged_files(path)] == ['{"views": ["mine"]}']


def test_a_text_that_is_not_unicode_is_refused_and_nothing_changes(path: Path) -> None:
    with UserStore(path).transaction() as tables:
        tables.table("views").insert({"name": "mine"})
    before = path.read_bytes()
    with pytest.raises(BadInput, match="not valid Unicode"), UserStore(path).transaction() as tables:
        tables.table("views").insert({"name": "\ud800"})
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir() if "tmp" in one.name] == []


TABLES = ("CREATE TABLE one (value)",)


def test_a_second_connection_releases_no_locks_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "cache.sqlite3"
    with closing(connect(file, 1, (), TABLES)) as first:
        first.execute("BEGIN IMMEDIATE")
        connect(file, 1, (), TABLES).close()
        code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        other = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False)
        assert "database is locked" in other.stderr


def test_only_the_user_may_read_a_database(tmp_path: Path) -> None:
    file = tmp_path / "cache.sqlite3"
    sqlite3.connect(file).close()
    file.touch(0o644)
    connect(file, 1, (), TABLES).close()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("error", "calls", "exists"),
    [(DamagedError("of another program"), 2, False), (ValueError("not as written"), 2, False), (OSError(), 1, True)],
)
def test_a_damaged_database_is_removed_and_used_once_more(
    tmp_path: Path, error: Exception, calls: int, exists: bool
) -> None:
    file, used = tmp_path / "cache.sqlite3", Mock(side_effect=error)
    file.touch()
    assert use(file, used) is None
    assert (used.call_count, file.exists()) == (calls, exists)
