"""Prompts, plans and actions are readable by the user alone, and ignored by Git."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from core.base.errors import ReadOnly
from core.storage.append_log import AppendLog
from core.storage.atomic_write import put, rewrite, take_theirs
from core.storage.locks import file_lock, make_folder, open_regular, protect, release


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
