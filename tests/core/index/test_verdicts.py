from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.user_files import cache_path
from core.index import verdicts
from core.index.refresh import Index
from core.index.verdicts import IndexVerdicts
from tests.factories import CURATION_NOW


def opened(project: Path, settings: bytes = b"") -> IndexVerdicts:
    index = Index(ProjectPaths(project), Settings(), clock=lambda: CURATION_NOW)
    return IndexVerdicts(index, ("questions",), settings)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.usefixtures("cache")
def test_verdicts_are_kept_for_the_next_run(tmp_path: Path) -> None:
    many = {f"key-{number}": b"%d" % number for number in range(1200)}
    opened(tmp_path).put("offer", many)
    again = opened(tmp_path)
    assert again.get("offer", [*many, "unknown"]) == many
    assert again.get("broad", many) == {}
    again.put("offer", {"key-0": b"new"})
    assert again.get("offer", ["key-0", "key-1"]) == {"key-0": b"new", "key-1": b"1"}


@pytest.mark.usefixtures("cache")
def test_verdicts_of_other_settings_are_not_used_and_replaced(tmp_path: Path) -> None:
    opened(tmp_path).put("offer", {"a": b"1"})
    other = opened(tmp_path, b"other")
    assert other.get("offer", ["a"]) == {}
    other.put("offer", {"b": b"2"})
    assert opened(tmp_path).get("offer", ["a"]) == {}


@pytest.mark.usefixtures("cache")
def test_a_damaged_verdict_counts_as_not_stored(tmp_path: Path) -> None:
    opened(tmp_path).put("offer", {"a": b"text", "b": b"text"})
    connection = sqlite3.connect(cache_path(tmp_path, "index"))
    connection.execute("UPDATE verdict SET data = x'0000000074657374' WHERE key = 'a'")
    connection.commit()
    connection.close()
    assert opened(tmp_path).get("offer", ["a", "b"]) == {"b": b"text"}


@pytest.mark.usefixtures("cache")
def test_too_many_verdicts_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "_MOST", 3)
    stored = opened(tmp_path)
    stored.put("offer", dict.fromkeys("abcd", b"old"))
    stored.put("broad", {"a": b"other"})
    stored.put("offer", {"e": b"new"})
    assert stored.get("offer", "abcde") == {"e": b"new"}
    assert stored.get("broad", ["a"]) == {"a": b"other"}


def test_verdicts_are_in_memory_if_the_cache_folder_cannot_be_used(cache: Path, tmp_path: Path) -> None:
    cache.write_text("a file")
    stored = opened(tmp_path)
    stored.put("offer", {"a": b"1"})
    assert stored.get("offer", ["a"]) == {"a": b"1"}, "in a temporary folder of this process"
    assert opened(tmp_path).get("offer", ["a"]) == {}
