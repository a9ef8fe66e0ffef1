"""Removal of unfinished task folders."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.tasks import folders
from tests.factories import EPISODES_START, make_episodes

DRAFTS = ".aiwg/ralph/index/.drafts"
LONG_AGO = 1_000_000_000


def half_written(project: Path, pid: int, *, name: str = "task-009", modified: float | None = None) -> Path:
    draft = project / DRAFTS / f"{name}.{pid}-0123abcd"
    draft.mkdir(parents=True)
    (draft / "metadata.json").write_text('{"id": "task-0')
    if modified is not None:
        os.utime(draft, (modified, modified))
    return draft


@pytest.fixture
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


def test_next_writer_removes_the_folder_of_a_killed_init(tmp_path: Path, dead_pid: int) -> None:
    memory = make_episodes(tmp_path)
    task_id = memory.init_task("Add OAuth")
    left = half_written(tmp_path, dead_pid)
    memory.start_attempt(task_id)
    assert not left.exists()
    left = half_written(tmp_path, dead_pid)
    memory.log_actions(task_id, [{"type": "bash", "tool": "Bash", "params": {}, "success": True}])
    assert not left.exists()


def test_folder_with_a_reused_process_id_is_removed(tmp_path: Path) -> None:
    make_episodes(tmp_path)
    left = half_written(tmp_path, os.getpid(), modified=LONG_AGO)
    folders.remove_abandoned(ProjectPaths(tmp_path))
    assert not left.exists()


def test_folder_of_a_running_process_stays(tmp_path: Path) -> None:
    make_episodes(tmp_path)
    new = half_written(tmp_path, os.getpid())
    slow = half_written(tmp_path, os.getpid(), name="task-010", modified=LONG_AGO)
    handle = os.open(slow, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        folders.remove_abandoned(ProjectPaths(tmp_path))
    finally:
        os.close(handle)
    assert new.exists()
    assert slow.exists()


def test_unknown_names_and_links_stay(tmp_path: Path, dead_pid: int) -> None:
    make_episodes(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    drafts = tmp_path / DRAFTS
    (drafts / "notes").mkdir(parents=True)
    (drafts / f"task-009.{dead_pid}-0123abcd").symlink_to(outside)
    folders.remove_abandoned(ProjectPaths(tmp_path))
    assert (drafts / "notes").is_dir()
    assert (outside / "kept.txt").read_text() == "kept"


def test_readers_ignore_half_written_folders(tmp_path: Path, dead_pid: int) -> None:
    memory = make_episodes(tmp_path)
    memory.init_task("Add OAuth")
    left = half_written(tmp_path, dead_pid)
    (left / "reflections.jsonl").write_text("{broken")
    index = Index(ProjectPaths(tmp_path), Settings(), clock=lambda: EPISODES_START, is_kept=False)
    snapshot = index.load()
    assert [task.id for task in snapshot.tasks.values()] == ["task-001"]
    assert snapshot.findings == ()
