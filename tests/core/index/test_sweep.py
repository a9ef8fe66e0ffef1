"""A sweep with known folders finds exactly what one that lists every folder finds."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.settings import Settings
from core.index.refresh import Index
from core.index.sweep import sweep
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
