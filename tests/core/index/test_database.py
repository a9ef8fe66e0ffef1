"""The file of the index: values with checksums, transactions, views."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import DamagedError
from core.index.database import Database, get_meta, pack, set_meta, unpack
from core.index.records import Decoder, encode
from core.records.decisions import Decision, Verb


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


def test_only_the_user_may_read_the_index(database: Database) -> None:
    assert {file.stat().st_mode & 0o077 for file in database.file.parent.iterdir()} == {0}


def test_each_project_has_its_own_index(database: Database, tmp_path: Path) -> None:
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


def test_two_processes_write_one_after_the_other(database: Database, tmp_path: Path) -> None:
    with closing(Database.open(tmp_path / "project")) as other:
        for number, writer in enumerate((database, other, database)):
            with writer.transaction() as connection:
                assert get_meta(connection, "number") == (b"%d" % (number - 1) if number else None)
                set_meta(connection, "number", b"%d" % number)


def test_a_long_log_is_emptied_when_the_index_is_opened(database: Database, tmp_path: Path) -> None:
    log = database.file.with_name(f"{database.file.name}-wal")
    with closing(database.read()), database.transaction() as connection:
        set_meta(connection, "name", bytes(2 << 20))
        set_meta(connection, "other", b"value")
    assert log.stat().st_size > 1 << 20
    with closing(Database.open(tmp_path / "project")) as other:
        assert log.stat().st_size == 0
        assert get_meta(other.writer, "other") == b"value"


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


def test_a_long_log_that_a_view_reads_does_not_delay_the_next_process(database: Database, tmp_path: Path) -> None:
    with database.transaction() as connection:
        set_meta(connection, "name", bytes(2 << 20))
    with closing(database.read()) as view:
        with database.transaction() as connection:
            set_meta(connection, "name", b"new")
        with closing(Database.open(tmp_path / "project")) as other:
            assert get_meta(other.writer, "name") == b"new"
        assert get_meta(view, "name") == bytes(2 << 20)
