from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Conflict, Unwritable
from core.storage.locks import LEASE_SECONDS, file_lock, lease
from tests.factories import leave_draft

NOW = 1_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".curation.lock"


def take(path: Path, now: float = NOW) -> Any:
    return lease(path, path.with_name("guard"), seconds=0.05, clock=lambda: now)


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        return process.pid


def leave(path: Path, content: Any, modified: float = NOW) -> None:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (modified, modified))


def test_a_lease_excludes_others_until_released(path: Path) -> None:
    with take(path), pytest.raises(Conflict, match="another program has held"), take(path):
        raise AssertionError("both hold it")
    with take(path):
        assert path.exists()
    assert not path.exists()


@pytest.mark.parametrize(
    ("pid", "expiry", "modified"),
    [
        ("dead", NOW + 10, NOW),
        ("mine", NOW - 1, NOW),
        ("mine", NOW + 1e9, NOW - LEASE_SECONDS - 1),
        ("mine", float("nan"), NOW - LEASE_SECONDS - 1),
        ("mine", NOW + 1e9, NOW + 1e6),
        (None, None, NOW - LEASE_SECONDS - 1),
        (None, None, NOW + 1e6),
    ],
)
def test_a_dead_lease_is_taken_over(path: Path, pid: str | None, expiry: float, modified: float) -> None:
    if pid is None:
        leave(path, '{"pid":', modified)
    else:
        number = dead_pid() if pid == "dead" else os.getpid()
        leave(path, {"pid": number, "timestamp": 0, "leaseExpiry": expiry * 1000}, modified)
    with take(path):
        assert json.loads(path.read_text())["timestamp"] == NOW * 1000


@pytest.mark.parametrize(
    "content",
    ["", '{"pid":', "[]", "7", '{"pid": null, "leaseExpiry": 1}', '{"pid": 1, "leaseExpiry": 1e999}', "[" * 4000],
)
def test_an_unreadable_lease_is_valid_for_the_usual_time(path: Path, content: str) -> None:
    leave(path, content)
    with pytest.raises(Conflict), take(path):
        raise AssertionError("took over a lock that is being written")


def test_releasing_a_lost_lease_leaves_the_new_one(path: Path) -> None:
    with take(path):
        path.unlink()
        leave(path, {"pid": os.getpid()})
    assert path.exists()


def test_the_guard_outlives_an_expired_lease(path: Path) -> None:
    late = NOW + LEASE_SECONDS + 1
    with take(path), pytest.raises(Conflict, match=r"another program has held .*; try again"), take(path, late):
        raise AssertionError("two are in")


def test_taking_a_lease_removes_drafts_of_dead_processes(path: Path) -> None:
    left = leave_draft(path.with_name("error-patterns.json"))
    with take(path):
        assert not left.exists()


def test_a_full_disk_leaves_no_draft(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(Unwritable, match="No space left"), take(path):
            raise AssertionError("holds a lease that was not written")
    assert [file.name for file in path.parent.iterdir()] == ["guard"]


def test_only_one_thread_at_a_time_holds_the_lease(path: Path) -> None:
    held, most = 0, 0

    def work() -> None:
        nonlocal held, most
        for _ in range(5):
            with lease(path, path.with_name("guard"), seconds=30):
                held += 1
                most = max(most, held)
                held -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_file_lock_timeout_names_the_file(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    with file_lock(lock), pytest.raises(Unwritable, match="another process"), file_lock(lock, 0.01):
        raise AssertionError("both hold it")


def test_an_impossible_folder_is_one_line_of_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match="cannot lock"), file_lock(tmp_path / "file" / "x.lock"):
        raise AssertionError("locked nothing")
