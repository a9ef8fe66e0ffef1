"""Which files differ from the index, and what they say."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.file_reader import Stamp
from core.index import parse as parse_module
from core.index.parse import FileParts, parse, parse_all
from core.index.refresh import Index
from core.index.sweep import sweep
from core.sources.record_kinds import scan
from tests.copying import copy_folder
from tests.core.sources.test_sweep import CHANGES, LOOP, OTHER, make

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
MANY = [f".aiwg/ralph/loops/many-{number:08}" for number in range(120)]


def link_root(project: Path) -> None:
    (project / ".aiwg/ralph").rename(project / "elsewhere")
    (project / ".aiwg/ralph").symlink_to(project / "elsewhere")


def link_loops(project: Path) -> None:
    (project / ".aiwg/ralph/loops").rename(project / "elsewhere")
    (project / ".aiwg/ralph/loops").symlink_to(project / "elsewhere")


def replace_by_folder(project: Path) -> None:
    (project / LOOP / "state.json").unlink()
    (project / LOOP / "state.json").mkdir()


def replace_by_file(project: Path) -> None:
    (project / LOOP / "state.json").unlink()
    (project / LOOP / "reflections/reflection-1.json").unlink()
    (project / LOOP / "reflections").rmdir()
    (project / LOOP / "reflections").write_bytes(b"{}")


MORE: dict[str, Callable[[Path], object]] = {
    "root replaced by a link": link_root,
    "folder of all loops replaced by a link": link_loops,
    "folder replaced by a file": replace_by_file,
    "file replaced by a folder": replace_by_folder,
    "changes in a folder and one below": lambda project: make(
        project, f"{LOOP}/analytics.json", f"{LOOP}/reflections/reflection-2.json"
    ),
    "new root": lambda project: make(project, ".aiwg/ralph-external/loops/c/session-state.json"),
    "changes in many folders": lambda project: make(project, *(f"{folder}/analytics.json" for folder in MANY)),
}


@pytest.mark.parametrize("name", [*CHANGES, *MORE])
def test_a_sweep_finds_what_a_listing_of_all_folders_finds(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [f"{LOOP}/state.json", f"{LOOP}/reflections/reflection-1.json", f"{OTHER}/state.json"]
    paths = make(tmp_path, *files, *(f"{folder}/state.json" for folder in MANY))
    (tmp_path / ".aiwg/ralph/registry.json").symlink_to("loops/ralph-b-00000002/state.json")
    monkeypatch.setattr("time.time_ns", lambda: 2**62)  # every folder changed long ago
    index = Index(paths, Settings(), clock=lambda: NOW, is_kept=False)
    index.load()
    act, touched = CHANGES[name] if name in CHANGES else (MORE[name], ())
    act(tmp_path)
    for number, folder in enumerate(touched, 1):  # a clock that is precise enough
        os.utime(tmp_path / folder, (number, number))
    connection = index.database.writer
    expected = sweep(paths, connection, lists_all=True)
    found = sweep(paths, connection)
    assert (found.changed, found.removed, found.unreadable) == (
        expected.changed,
        expected.removed,
        expected.unreadable,
    )
    assert set(found.left) == set(expected.left)
    assert bool(found.changed or found.removed) is (name != "nothing")
    index.close()


TREES = Path(__file__).parents[2] / "trees"
_Files = Sequence[tuple[str, Stamp]]


def parse_unless_killed(project: str, files: _Files) -> list[FileParts]:
    return _parse(project, files, lambda: os.kill(os.getpid(), signal.SIGKILL))


def parse_unless_stuck(project: str, files: _Files) -> list[FileParts]:
    return _parse(project, files, signal.pause)


def parse_unless_raising(project: str, files: _Files) -> list[FileParts]:
    return _parse(project, files, lambda: int("x"))


def _parse(project: str, files: _Files, fail: Callable[[], object]) -> list[FileParts]:
    if multiprocessing.parent_process() is not None:
        fail()
    return [parse(project, *file) for file in files]


@pytest.fixture
def project(tmp_path: Path) -> ProjectPaths:
    for tree in ("upstream", "spec-examples"):
        copy_folder(TREES / tree, tmp_path)
    for number, data in enumerate((b"", b"{", b"\xff", b'{"loopId": 123456789012345678901234567890}')):
        file = tmp_path / f".aiwg/ralph/loops/damaged-{number}/state.json"
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
    return ProjectPaths(tmp_path)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers for any number of files, in small batches."""
    monkeypatch.setattr(parse_module, "POOL_FROM", 0)
    monkeypatch.setattr(parse_module, "_BATCH_FILES", 9)
    monkeypatch.setattr(parse_module, "_count_workers", lambda: 2)


def parts(project: ProjectPaths) -> dict[str, FileParts]:
    files = sorted(scan(project).items())
    found = list(parse_all(str(project.project), files))
    assert len(found) == len(files) > 50
    return {file.path: file for file in found}


@pytest.mark.parametrize("batch", [None, parse_unless_killed, parse_unless_stuck, parse_unless_raising])
def test_workers_that_end_hang_or_fail_do_not_change_the_result(
    project: ProjectPaths, workers: None, monkeypatch: pytest.MonkeyPatch, batch: Callable[..., object] | None
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(parse_module, "_count_workers", lambda: 0)
        alone = parts(project)
    if batch is not None:
        monkeypatch.setattr(parse_module, "_parse_batch", batch)
        monkeypatch.setattr(parse_module, "_ANSWER_SECONDS", 1.0)
    assert parts(project) == alone
    assert not multiprocessing.active_children()


def test_a_worker_ends_if_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    program = """
import os, signal
from core.index import parse
from core.files.file_reader import Stamp

def kill_parent(project, files):
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()

if __name__ == "__main__":
    parse.POOL_FROM, parse._BATCH_FILES, parse._parse_batch, parse._count_workers = 0, 1, kill_parent, lambda: 1
    list(parse.parse_all("", [("one.json", Stamp(1, 1, 1, 1)), ("two.json", Stamp(1, 1, 1, 1))]))
"""
    file = tmp_path / "killed.py"
    file.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, file], capture_output=True, timeout=30, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL  # its output was closed, so no process is left that holds it
