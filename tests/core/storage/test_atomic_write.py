from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import core.storage.atomic_write
from core.base.errors import Conflict, Unwritable
from core.config.paths import ProjectPaths
from core.sources.pattern_text import insert, merge_records
from core.storage.atomic_write import curation_lock, rewrite
from core.storage.json_editor import BadJson, JsonText

PAUSES = (0.001, 0.001)
real_exchange = core.storage.atomic_write._exchange


def add(identifier: str) -> Callable[[bytes | None], bytes | None]:
    """Adds a record, if it is not there."""

    def change(data: bytes | None) -> bytes | None:
        document = JsonText(b"[]" if data is None else data)
        if {"pattern_id": identifier} not in document.value:
            insert(document, "error", {"pattern_id": identifier})
        return document.encode()

    return change


def ids(path: Path) -> list[str]:
    return [record["pattern_id"] for record in json.loads(path.read_bytes())]


def put(path: Path, *names: str) -> None:
    """Another program's atomic write."""
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


def test_the_change_is_made_and_nothing_else_is_left(path: Path) -> None:
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    rewrite(tmp_path / "new.json", add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(tmp_path / "new.json") == ["ours"]


def test_a_change_that_is_there_already_writes_nothing(path: Path) -> None:
    before = path.stat()
    rewrite(path, add("a"), merge=merge_records, retry_seconds=PAUSES)
    after = path.stat()  # reading it may have set its time of access
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_the_mode_of_the_file_is_kept(path: Path) -> None:
    path.chmod(0o640)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert path.stat().st_mode & 0o777 == 0o640


def test_who_writes_between_reading_and_comparing_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = core.storage.atomic_write._write_draft
    moves = moving(lambda: put(path, "a", "theirs"))

    def racing(*args: Any) -> Path:
        moves()
        return real(*args)

    monkeypatch.setattr(core.storage.atomic_write, "_write_draft", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "theirs", "ours"]


def test_who_writes_in_the_last_instant_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = moving(lambda: put(path, "a", "theirs"))

    def racing(one: Path, other: Path) -> bool:
        moves()
        return real_exchange(one, other)

    monkeypatch.setattr(core.storage.atomic_write, "_exchange", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "theirs", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_who_built_on_our_version_while_theirs_was_out_loses_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writes just before our swap; B reads ours, which lacks A's record, and writes it back with its own."""
    moves = moving(lambda: put(path, "a", "from A"), lambda: put(path, "a", "ours", "from B"))

    def racing(one: Path, other: Path) -> bool:
        moves()
        return real_exchange(one, other)

    monkeypatch.setattr(core.storage.atomic_write, "_exchange", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert sorted(ids(path)) == ["a", "from A", "from B", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_slow_writer_who_puts_the_old_version_back_is_followed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = moving(lambda: put(path, "a", "slow"))
    monkeypatch.setattr(time, "sleep", lambda _seconds: moves())
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "slow", "ours"]


def test_a_file_system_that_cannot_swap_still_gets_the_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.storage.atomic_write, "_renameat2", None)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "ours"]


def test_a_half_written_file_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"")
    moves = moving(lambda: None, lambda: put(path, "a", "late"))
    monkeypatch.setattr(time, "sleep", lambda _seconds: moves())
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "late", "ours"]


@pytest.mark.parametrize("torn", [b"", b'[{"pattern_id": "a"'])
def test_a_file_that_stays_broken_is_left_as_it_is(path: Path, torn: bytes) -> None:
    path.write_bytes(torn)
    with pytest.raises(Conflict, match="cannot be parsed"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert path.read_bytes() == torn


def test_writers_that_never_rest_are_given_up_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10**9))
    monkeypatch.setattr(core.storage.atomic_write, "_TIMEOUT_SECONDS", 0.2)
    real = core.storage.atomic_write._write_draft

    def racing(*args: Any) -> Path:
        put(path, "a", f"theirs-{next(numbers)}")
        return real(*args)

    monkeypatch.setattr(core.storage.atomic_write, "_write_draft", racing)
    with pytest.raises(Conflict, match="changes faster"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path)[1].startswith("theirs-")


@pytest.mark.parametrize("call", ["write", "fsync", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_leaves_everything_as_it_was(
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


def test_a_link_or_a_pipe_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "target.json").write_text("[]")
    (tmp_path / "link.json").symlink_to("target.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link.json", "pipe.json"):
        with pytest.raises(Unwritable):
            rewrite(tmp_path / name, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert (tmp_path / "target.json").read_text() == "[]"


def test_a_change_that_cannot_be_made_says_why(path: Path) -> None:
    def change(_data: bytes | None) -> bytes | None:
        raise BadJson("no place for it")

    with pytest.raises(Conflict, match="no place for it"):
        rewrite(path, change, merge=merge_records, retry_seconds=PAUSES)


def test_the_curation_lock_is_a_lease_that_others_can_read(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    lock = paths.patterns / ".curation.lock"
    with curation_lock(paths):
        content = json.loads(lock.read_bytes())
        assert content["pid"] == os.getpid()
        assert content["leaseExpiry"] == content["timestamp"] + 30_000
        assert abs(content["timestamp"] / 1000 - time.time()) < 60
    assert list(paths.patterns.iterdir()) == []
