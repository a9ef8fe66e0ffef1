from __future__ import annotations

import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.errors import Conflict, ReadOnly, Unwritable
from core.files.append_log import AppendLog
from core.files.atomic_write import put, rewrite, take_theirs, write_file
from core.files.file_access import (
    file_lock,
    make_draft_path,
    make_folder,
    open_regular,
    protect,
    release,
    remove_drafts,
)
from tests.factories import leave_draft


def test_only_old_drafts_of_dead_processes_are_removed(tmp_path: Path) -> None:
    left = leave_draft(tmp_path / "a.json")
    young = leave_draft(tmp_path / "b.json")
    os.utime(young, (time.time(), time.time()))
    own = make_draft_path(tmp_path / "c.json")
    others = [
        tmp_path / name for name in ("d.json.tmp-4194305-0123abcd", ".d.json.tmp-4194305-abcd", f"{left.name}.bak")
    ]
    for path in (own, *others):
        path.touch()
        os.utime(path, (0, 0))
    folder = left.with_name(left.name.replace("a.json", "e.json"))
    folder.mkdir()
    remove_drafts(tmp_path)
    assert {*tmp_path.iterdir()} == {young, own, *others, folder}


def rewrite_as(file: Path, data: bytes) -> None:
    rewrite(file, lambda _: data, merge=take_theirs, retry_seconds=())


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("write", [rewrite_as, put, write_file])
def test_each_write_removes_the_drafts_in_its_folder(
    tmp_path: Path, write: Callable[[Path, bytes], None], is_new: bool
) -> None:
    file = tmp_path / ".aiwg" / "a.json"
    file.parent.mkdir()
    if not is_new:
        file.write_bytes(b"1")
    left = leave_draft(file.with_name("b.json"))
    write(file, b"2")
    assert not left.exists() and file.read_bytes() == b"2"


@pytest.mark.parametrize("write", [rewrite_as, put, write_file])
def test_a_write_in_a_folder_of_the_user_removes_only_drafts_of_its_file(
    tmp_path: Path, write: Callable[[Path, bytes], None]
) -> None:
    file = tmp_path / "CLAUDE.md"
    left, other = leave_draft(file), leave_draft(tmp_path / "notes.md")
    write(file, b"2")
    assert other.exists() and not left.exists()


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return tmp_path / "shop/.aiwg/ralph/tasks"


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}


def test_a_private_folder_and_its_files_are_readable_by_the_user_alone(tasks: Path) -> None:
    make_folder(tasks / "task-001")
    put(tasks / "task-001/metadata.json", b"{}")
    AppendLog(tasks / "task-001/actions.jsonl").append([b"{}", b"{}"])
    with file_lock(tasks / "task-002/.lock"):
        pass
    assert set(modes(tasks).values()) == {"0o700", "0o600"}
    assert {"metadata.json", "actions.jsonl", "actions.jsonl.lock", ".lock", ".gitignore"} < modes(tasks).keys()


def test_folders_above_and_beside_keep_their_permissions(tasks: Path) -> None:
    make_folder(tasks)
    make_folder(tasks.with_name("shared") / "patterns")
    put(tasks.with_name("shared") / "patterns/error-patterns.json", b"{}")
    assert {tasks.parent.stat().st_mode & 0o777, tasks.parents[1].stat().st_mode & 0o777} == {0o777 & ~umask()}
    assert modes(tasks.with_name("shared")) == {
        "shared": oct(0o777 & ~umask()),
        "patterns": oct(0o777 & ~umask()),
        "error-patterns.json": oct(0o666 & ~umask()),
    }


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("write", ["replace", "append"])
def test_a_write_tightens_what_an_earlier_version_made(tasks: Path, write: str) -> None:
    file = tasks / "task-001/log.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1\n")
    for path in (tasks, file.parent):
        path.chmod(0o755)
    file.chmod(0o644)
    if write == "replace":
        rewrite(file, lambda _: b"2\n", merge=take_theirs, retry_seconds=())
    else:
        AppendLog(file).append([b"2"])
    assert b"2\n" in file.read_bytes()
    assert {modes(tasks)[name] for name in ("tasks", "task-001")} == {"0o700"} and modes(tasks)["log.jsonl"] == "0o600"


def test_reading_changes_no_permissions(tasks: Path) -> None:
    file = tasks / "metadata.json"
    tasks.mkdir(parents=True)
    file.write_bytes(b"{}")
    before = modes(tasks)
    os.close(open_regular(file, os.O_RDONLY))
    assert modes(tasks) == before


def test_a_git_ignore_file_of_the_user_is_kept(tasks: Path) -> None:
    tasks.mkdir(parents=True)
    (tasks / ".gitignore").write_text("")
    put(tasks / "index.json", b"{}")
    assert (tasks / ".gitignore").read_text() == ""


def test_a_killed_writer_leaves_no_empty_git_ignore_file(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    make_folder(tasks.parent)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="full"):
            make_folder(tasks)
    assert not (tasks / ".gitignore").exists()
    make_folder(tasks)
    assert "*" in (tasks / ".gitignore").read_text().splitlines()


def test_nothing_is_written_in_a_read_only_folder(tasks: Path) -> None:
    tasks.mkdir(parents=True)
    protect(tasks.parents[1])
    try:
        with pytest.raises(ReadOnly):
            make_folder(tasks / "task-001")
    finally:
        release(tasks.parents[1])
    assert list(tasks.iterdir()) == []


@pytest.mark.skipif(not shutil.which("git"), reason="git is missing")
def test_git_adds_lessons_of_the_debug_memory_but_no_sessions(tasks: Path) -> None:
    memory, project = tasks.with_name("debug-memory"), tasks.parents[2]
    for name in ("session.json", "archive/2026-01/session.json", "patterns/learned.json", "patterns/auth/learned.json"):
        make_folder((memory / name).parent)
        put(memory / name, b"{}")
    for command in (["init", "-q", "."], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=project, check=True, capture_output=True, text=True).stdout
    assert listed.split() == [
        ".aiwg/ralph/debug-memory/patterns/auth/learned.json",
        ".aiwg/ralph/debug-memory/patterns/learned.json",
    ]


@pytest.mark.parametrize("error", [Unwritable, Conflict])
def test_a_file_lock_timeout_names_the_file(tmp_path: Path, error: type[Unwritable | Conflict]) -> None:
    lock = tmp_path / "x.lock"
    with (
        file_lock(lock),
        pytest.raises(error, match=r"another process has kept .*x\.lock"),
        file_lock(lock, 0.01, timeout=error),
    ):
        raise AssertionError("both hold it")


def test_an_impossible_folder_is_one_line_of_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match="cannot lock"), file_lock(tmp_path / "file" / "x.lock"):
        raise AssertionError("locked nothing")


def test_only_one_thread_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    held, most = 0, 0

    def work() -> None:
        nonlocal held, most
        for _ in range(5):
            with file_lock(tmp_path / "x.lock", 30):
                held += 1
                most = max(most, held)
                held -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
