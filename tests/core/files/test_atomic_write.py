from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import core.files.atomic_write
from core.base.errors import Conflict, Unwritable
from core.base.paths import ProjectPaths
from core.files.atomic_write import curation_lock, rewrite
from core.files.file_access import file_lock
from core.files.json_editor import BadJson, JsonText
from core.sources.pattern_text import insert, merge_records

PAUSES = (0.001, 0.001)
real_exchange = core.files.atomic_write._exchange


def add(identifier: str) -> Callable[[bytes | None], bytes | None]:
    """Add a record unless it exists."""

    def change(data: bytes | None) -> bytes | None:
        document = JsonText(b"[]" if data is None else data)
        if {"pattern_id": identifier} not in document.value:
            insert(document, "error", {"pattern_id": identifier})
        return document.encode()

    return change


def ids(path: Path) -> list[str]:
    return [record["pattern_id"] for record in json.loads(path.read_bytes())]


def put(path: Path, *names: str) -> None:
    """Write atomically, as another program does."""
    draft = path.with_name("theirs")
    draft.write_text(json.dumps([{"pattern_id": name} for name in names]))
    draft.rename(path)


def moving(*moves: Callable[[], None]) -> Callable[[], None]:
    """Makes one more of `moves` whenever it is called, while there are any."""
    left = iter(moves)

    def move() -> None:
        for one in left:
            one()
            break

    return move


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "patterns.json"
    put(path, "a")
    return path


def test_a_change_leaves_no_other_files(path: Path) -> None:
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_file_is_created(tmp_path: Path) -> None:
    rewrite(tmp_path / "new.json", add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(tmp_path / "new.json") == ["ours"]


def test_a_change_without_effect_writes_nothing(path: Path) -> None:
    before = path.stat()
    rewrite(path, add("a"), merge=merge_records, retry_seconds=PAUSES)
    after = path.stat()  # reading it may have set its time of access
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_a_replaced_file_keeps_its_mode(path: Path) -> None:
    path.chmod(0o640)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_write_between_reading_and_comparing_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = core.files.atomic_write._write_draft
    moves = moving(lambda: put(path, "a", "theirs"))

    def racing(*args: Any) -> Path:
        moves()
        return real(*args)

    monkeypatch.setattr(core.files.atomic_write, "_write_draft", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "theirs", "ours"]


def test_a_write_at_the_last_moment_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = moving(lambda: put(path, "a", "theirs"))

    def racing(one: Path, other: Path) -> bool:
        moves()
        return real_exchange(one, other)

    monkeypatch.setattr(core.files.atomic_write, "_exchange", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "theirs", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_write_based_on_a_displacing_version_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writes just before our swap; B reads ours, which lacks A's record, and writes it back with its own."""
    moves = moving(lambda: put(path, "a", "from A"), lambda: put(path, "a", "ours", "from B"))

    def racing(one: Path, other: Path) -> bool:
        moves()
        return real_exchange(one, other)

    monkeypatch.setattr(core.files.atomic_write, "_exchange", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert sorted(ids(path)) == ["a", "from A", "from B", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_change_is_repeated_after_a_slow_writer_undid_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = moving(lambda: put(path, "a", "slow"))
    monkeypatch.setattr(time, "sleep", lambda _seconds: moves())
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "slow", "ours"]


def test_a_file_system_that_cannot_swap_still_gets_the_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.files.atomic_write, "_renameat2", lambda: None)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "ours"]


def test_a_half_written_file_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"")
    moves = moving(lambda: None, lambda: put(path, "a", "late"))
    monkeypatch.setattr(time, "sleep", lambda _seconds: moves())
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "late", "ours"]


@pytest.mark.parametrize("torn", [b"", b'[{"pattern_id": "a"'])
def test_a_broken_file_is_not_changed(path: Path, torn: bytes) -> None:
    path.write_bytes(torn)
    with pytest.raises(Conflict, match="cannot be parsed"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert path.read_bytes() == torn


def test_rewriting_gives_up_against_busy_writers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10**9))
    monkeypatch.setattr(core.files.atomic_write, "_TIMEOUT_SECONDS", 0.2)
    real = core.files.atomic_write._write_draft

    def racing(*args: Any) -> Path:
        put(path, "a", f"theirs-{next(numbers)}")
        return real(*args)

    monkeypatch.setattr(core.files.atomic_write, "_write_draft", racing)
    with pytest.raises(Conflict, match="changes faster"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path)[1].startswith("theirs-")


@pytest.mark.parametrize("call", ["write", "fsync", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_error_leaves_the_file_unchanged(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    before = path.read_bytes()
    real = getattr(os, call)

    def refusing(*args: Any) -> Any:
        if call == "open" and not args[1] & os.O_CREAT:
            return real(*args)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refusing)
        with pytest.raises(Unwritable, match=os.strerror(code)) as caught:
            rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_rewriting_refuses_links_and_pipes(tmp_path: Path) -> None:
    (tmp_path / "target.json").write_text("[]")
    (tmp_path / "link.json").symlink_to("target.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link.json", "pipe.json"):
        with pytest.raises(Unwritable):
            rewrite(tmp_path / name, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert (tmp_path / "target.json").read_text() == "[]"


def test_an_impossible_change_reports_the_reason(path: Path) -> None:
    def change(_data: bytes | None) -> bytes | None:
        raise BadJson("no place for it")

    with pytest.raises(Conflict, match="no place for it"):
        rewrite(path, change, merge=merge_records, retry_seconds=PAUSES)


def test_curators_exclude_each_other(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    with (
        curation_lock(paths),
        pytest.raises(Unwritable, match="another process"),
        file_lock(paths.curation / "curation.lock", 0.01),
    ):
        raise AssertionError("both hold it")
    assert list(paths.patterns.iterdir()) == []
