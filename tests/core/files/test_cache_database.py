"""SQLite files in the user's cache folder."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from core.base.errors import DamagedError
from core.files.cache_database import connect, use

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
