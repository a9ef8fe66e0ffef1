"""The parse cache: unusable files behave like an empty cache."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.records.decisions import Decision, Verb
from core.records.events import Event
from core.records.findings import Finding, Severity
from core.records.loops import Iteration, LoopStatus
from core.records.patterns import Pattern, PatternType, RecordedCounts, SourceLoop
from core.records.reflections import Reflection
from core.sources import parse_cache as cache_module
from core.sources.loop_facts import LoopFact
from core.sources.parse_cache import CachedFile, ParseCache, decode_cached
from core.sources.parsed_file import ParsedFile
from core.sources.shared_values import SharedValues
from core.storage import cache_database
from core.storage.file_reader import Stamp
from core.storage.user_cache import parse_cache_file

AT = datetime(2026, 5, 3, 10, tzinfo=UTC)
STAMP = Stamp(2**64 - 1, 2, 3, 4)
PARSED = ParsedFile(
    patterns=(
        Pattern(
            id="p",
            type=PatternType.ANTI,
            title="\x1b[2J \N{GRINNING FACE}",
            placeholders=(("a", "b"),),
            source_loops=(SourceLoop(loop_id="l", at=AT),),
            recorded_counts=RecordedCounts(rate=0.5, uses=3),
        ),
    ),
    loops=(LoopFact(source="loops", file="f", status=LoopStatus.LIMIT, iterations=(Iteration(number=1, at=AT),)),),
    reflections=(Reflection(id="r", shape="hook", file="f", at=AT, actions=("x",)),),
    events=(Event(id="e", at=AT, kind="applied", success=False),),
    findings=(Finding("f", "/0", Severity.INFO, "code", "message"),),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "project.sqlite3"


def load_all(cache: ParseCache, stamps: dict[str, Stamp]) -> dict[str, CachedFile]:
    """Decode everything that the cache returns for these stamps."""
    found = {path: decode_cached(value, SharedValues()) for path, value in cache.load(stamps).items()}
    return {
        path: CachedFile(stamps[path], parsed_file) for path, parsed_file in found.items() if parsed_file is not None
    }


def test_cached_files_are_loaded_back(file: Path) -> None:
    ParseCache(file).save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(ParseCache(file), {"a": STAMP}) == {"a": CachedFile(STAMP, PARSED)}


def test_a_file_with_many_patterns_is_loaded_back(file: Path) -> None:
    patterns = tuple(replace(PARSED.patterns[0], id=f"p{number}") for number in range(2_500))
    saved = {"a": CachedFile(STAMP, replace(PARSED, patterns=patterns))}
    ParseCache(file).save(saved, ())
    assert load_all(ParseCache(file), {"a": STAMP}) == saved


def test_a_changed_file_is_not_loaded(file: Path) -> None:
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED), "b": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": Stamp(2**64 - 1, 2, 3, 5)}) == {}


def test_save_updates_changed_and_deletes_removed_files(file: Path) -> None:
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED), "b": CachedFile(STAMP, PARSED)}, ())
    newer = CachedFile(Stamp(1, 1, 1, 1), ParsedFile())
    cache.save({"a": newer}, ["b"])
    assert load_all(cache, {"a": newer.stamp, "b": STAMP}) == {"a": newer}


@pytest.mark.parametrize("content", [b"", b"nonsense" * 200, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_cache_is_created_again(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    cache = ParseCache(file)
    assert load_all(cache, {"a": STAMP}) == {}
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP}) == {"a": CachedFile(STAMP, PARSED)}


def test_damaged_values_are_skipped(file: Path) -> None:
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED), "b": CachedFile(STAMP, PARSED)}, ())
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE contribution SET value = x'c1ff' WHERE path = 'a'")
    connection.close()
    assert load_all(cache, {"a": STAMP, "b": STAMP}) == {"b": CachedFile(STAMP, PARSED)}


@pytest.mark.parametrize(
    "damage",
    [
        "value = replace(value, x'a170', x'a171')",
        "value = CAST(value AS TEXT)",
        "checksum = NULL",
        "checksum = checksum + 1",
        "path = 'c' WHERE path = 'b'; UPDATE contribution SET path = 'b' WHERE path = 'a'",
    ],
)
def test_rows_that_differ_from_what_was_saved_are_skipped(file: Path, damage: str) -> None:
    cache = ParseCache(file)
    other = CachedFile(STAMP, ParsedFile(findings=PARSED.findings))
    cache.save({"a": CachedFile(STAMP, PARSED), "b": other}, ())
    with sqlite3.connect(file) as connection:
        connection.executescript(f"UPDATE contribution SET {damage}")
    connection.close()
    assert cache.load({"a": STAMP, "b": STAMP}) == {}
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP}) == {"a": CachedFile(STAMP, PARSED)}


def test_any_flipped_bit_gives_the_saved_records_or_none(file: Path) -> None:
    cache = ParseCache(file)
    saved = {name: CachedFile(STAMP, PARSED) for name in "abcdefgh"}
    cache.save(saved, ())
    good = file.read_bytes()
    stamps = dict.fromkeys(saved, STAMP)
    for at in range(0, len(good), 41):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        assert load_all(cache, stamps).items() <= saved.items()
        cache_database.remove(file)


def test_a_cache_damaged_after_its_first_page_is_created_again(file: Path) -> None:
    cache = ParseCache(file)
    saved = {f"file-{number}": CachedFile(STAMP, PARSED) for number in range(200)}
    cache.save(saved, ())
    good = file.read_bytes()
    stamps = dict.fromkeys(saved, STAMP)
    file.write_bytes(good[:4096] + bytes(len(good) - 4096))
    cache.save(saved, ())
    assert load_all(cache, stamps) == saved
    file.write_bytes(good[:4096] + bytes(len(good) - 4096))
    assert load_all(cache, stamps) == {}
    cache.save(saved, ())
    assert load_all(cache, stamps) == saved


def test_a_link_at_its_path_is_not_followed(file: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE contribution (precious)")
    connection.close()
    before = foreign.read_bytes()
    file.parent.mkdir()
    file.symlink_to(foreign)
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP}) == {}
    assert foreign.read_bytes() == before


def test_a_database_of_another_program_is_replaced_and_not_written(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE contribution (precious)")
    connection.close()
    other_name = tmp_path / "foreign"
    other_name.hardlink_to(file)
    before = other_name.read_bytes()
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP}) == {"a": CachedFile(STAMP, PARSED)}
    assert other_name.read_bytes() == before


def test_a_pipe_at_its_path_is_not_an_error(file: Path) -> None:
    file.parent.mkdir()
    os.mkfifo(file)
    assert load_all(ParseCache(file), {"a": STAMP}) == {}


def test_values_of_other_code_versions_are_ignored(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ParseCache(file).save({"a": CachedFile(STAMP, PARSED)}, ())
    monkeypatch.setattr(cache_module, "code_version", lambda packages: 1)
    assert load_all(ParseCache(file), {"a": STAMP}) == {}


def test_a_locked_cache_behaves_as_empty(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_database, "_BUSY_SECONDS", 0.0)
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert load_all(cache, {"a": STAMP}) == {}
    cache.save({"b": CachedFile(STAMP, PARSED)}, ())
    other.execute("ROLLBACK")
    other.close()
    assert load_all(cache, {"a": STAMP}) == {"a": CachedFile(STAMP, PARSED)}


def test_an_impossible_folder_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    cache = ParseCache(tmp_path / "taken" / "project.sqlite3")
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP}) == {}


def test_a_folder_at_its_path_is_not_an_error(file: Path) -> None:
    file.mkdir(parents=True)
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP}) == {}


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-23, minutes=-59))), 1),
        (AT, 10**30),
        (AT, "\ud800"),
    ],
)
def test_values_that_cannot_be_encoded_are_left_out(file: Path, at: datetime, value: object) -> None:
    decision = Decision(id="d", at=at, by="x", verb=Verb.NOTE, subject="p", after={"n": value})
    cache = ParseCache(file)
    cache.save({"a": CachedFile(STAMP, PARSED)}, ())
    cache.save({"a": CachedFile(STAMP, ParsedFile(decisions=(decision,))), "b": CachedFile(STAMP, PARSED)}, ())
    assert load_all(cache, {"a": STAMP, "b": STAMP}) == {"b": CachedFile(STAMP, PARSED)}


def test_each_project_has_its_own_cache(tmp_path: Path) -> None:
    assert parse_cache_file(tmp_path / "a") != parse_cache_file(tmp_path / "b")
