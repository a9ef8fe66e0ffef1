"""A sweep finds exactly the files that are read; their paths show their kinds."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.files.file_reader import Problem
from core.sources.record_kinds import (
    ANALYTICS,
    ARCHIVE,
    BEST_OUTPUT,
    CRASH_LOG,
    CURRENT,
    DEBUG_SESSIONS,
    EVENTS,
    EXTERNAL,
    EXTERNAL_ARCHIVE,
    EXTERNAL_REGISTRY,
    EXTERNAL_STATE,
    FOLDER,
    HEARTBEAT,
    KINDS,
    LAUNCHER,
    LOOPS,
    METRICS,
    PATTERN_COPIES,
    PATTERNS,
    REGISTRY,
    ROOT_FOLDERS,
    FolderWalk,
    RecordKind,
    can_contain_records,
    can_contain_sessions,
    kind_of,
    loop_directory,
    loop_home,
    loop_source,
    newest_states,
    scan,
    scan_path,
)

TREES = Path(__file__).parents[2] / "trees"
LOOP = ".aiwg/ralph/loops/ralph-a-00000001"


def make(project: Path, *names: str) -> ProjectPaths:
    for name in names:
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"{}")
    return ProjectPaths(project)


def test_kinds_are_recognized_by_path() -> None:
    rows: list[tuple[str, RecordKind | None]] = [
        (".aiwg/ralph/shared/patterns/error-patterns.json", PATTERNS),
        (".aiwg/ralph/shared/patterns/anything.jsonl", PATTERNS),
        (".aiwg/ralph/shared/patterns/effectiveness-metrics.json", METRICS),
        (".aiwg/ralph/shared/patterns/archive/2026-01-patterns.json", None),
        (".aiwg/ralph/shared/archive/2026-01-patterns.json", None),
        (".aiwg/ralph/memory/patterns/error-patterns.json", PATTERN_COPIES),
        (".aiwg/ralph/memory/patterns-index.json", PATTERN_COPIES),
        (".aiwg/ralph/debug-memory/patterns/learned-patterns.yaml", PATTERN_COPIES),
        (".aiwg/ralph/reflections/patterns/x.yaml", PATTERN_COPIES),
        (".aiwg/ralph/shared/curation/ledger.jsonl", KINDS["ledger"]),
        (".aiwg/ralph/shared/curation/events.jsonl", EVENTS),
        (".aiwg/ralph/debug-memory/sessions/session-1.yaml", DEBUG_SESSIONS),
        (f"{LOOP}/debug-memory/sessions/1.json", DEBUG_SESSIONS),
        (f"{LOOP}/", FOLDER),
        (f"{LOOP}/iterations/iteration-1.json", None),
        (f"{LOOP}/iterations/iteration-001/state.json", None),
        (f"{LOOP}/state.json.tmp", None),
        (f"{LOOP}/.state.json", None),
        (".aiwg/ralph/registry.json.lock", None),
        (".aiwg/ralph-external/session-state.json.bak", None),
        (".aiwg/ralph-external/outputs/parsed-events.json", None),
        (".aiwg/ralph/home/me/app/.aiwg/ralph/loops/x/state.json", None),
        (".aiwg/ralph/loops/\udcff/state.json", None),
        ("src/state.json", None),
    ]
    for name, kind in rows:
        assert kind_of(name) is kind, name


def test_an_empty_loop_folder_is_found_and_a_fifo_is_not(tmp_path: Path) -> None:
    closed: dict[str, Problem] = {}
    assert scan(ProjectPaths(tmp_path), closed) == {}
    (tmp_path / LOOP).mkdir(parents=True)
    os.mkfifo(tmp_path / LOOP / "state.json")
    assert set(scan(ProjectPaths(tmp_path), closed)) == {f"{LOOP}/"}
    assert closed == {}, "a missing folder is not unreadable"


def test_a_stamp_changes_with_the_file(tmp_path: Path) -> None:
    name = f"{LOOP}/state.json"
    paths = make(tmp_path, name)
    before = scan(paths)[name]
    (tmp_path / name).write_bytes(b"[]")
    os.utime(tmp_path / name, ns=(0, before.mtime_ns))
    assert scan(paths)[name] != before


def test_links_are_followed_only_to_files_inside(tmp_path: Path) -> None:
    name = ".aiwg/ralph-external/session-state.json"
    outside = make(tmp_path / "outside", "state.json").project
    paths = make(tmp_path / "in", ".aiwg/ralph-external/loops/a/session-state.json")
    (tmp_path / "in/.aiwg/ralph/loops").mkdir(parents=True)
    (tmp_path / "in" / LOOP).symlink_to(outside)
    assert not [found for found in scan(paths) if found.startswith(LOOP)], "a linked folder is not entered"
    assert scan_path(paths, f"{LOOP}/state.json") == scan_path(paths, LOOP) == {}
    for target, is_found in (("loops/a/session-state.json", True), (outside / "state.json", False), ("nowhere", False)):
        (tmp_path / "in" / name).symlink_to(target)
        assert (name in scan(paths)) is is_found
        (tmp_path / "in" / name).unlink()


def test_scanning_a_path_equals_the_sweep_there(tmp_path: Path) -> None:
    paths = make(tmp_path, f"{LOOP}/state.json", f"{LOOP}/reflections/reflection-1.json", ".aiwg/ralph/registry.json")
    everything = scan(paths)
    inside = {name: stamp for name, stamp in everything.items() if name.startswith(LOOP)}
    assert scan_path(paths, LOOP) == inside
    assert scan_path(paths, ".aiwg") == everything
    assert set(scan_path(paths, f"{LOOP}/state.json")) == {f"{LOOP}/state.json", f"{LOOP}/"}
    assert scan_path(paths, "src/main.py") == {}
    assert scan_path(paths, f"{LOOP}/../../registry.json") == {}


def test_folders_that_can_contain_records() -> None:
    names = (".aiwg", LOOP, f"{LOOP}/iterations", f"{LOOP}/state.json.tmp", "src")
    assert [can_contain_records(name) for name in names] == [True, True, False, False, False]


@pytest.mark.parametrize("id", ["analysis", "results", "node_modules", "notes.md", "v1.json"])
def test_an_id_may_be_an_ignored_name_or_look_like_a_file(tmp_path: Path, id: str) -> None:
    files = [
        f".aiwg/ralph/tasks/{id}/metadata.json",
        f".aiwg/ralph/tasks/{id}/attempts/001/attempt.json",
        f".aiwg/ralph/loops/{id}/state.json",
        f".aiwg/ralph-external/archive/{id}/session-state.json",
    ]
    paths = make(tmp_path, *files, f".aiwg/ralph/tasks/{id}/attempts/001/results/state.json")
    found = scan(paths)
    assert [name for name in sorted(found) if not name.endswith("/")] == sorted(files)
    assert can_contain_records(f".aiwg/ralph/tasks/{id}")
    assert set(scan_path(paths, f".aiwg/ralph/tasks/{id}")) == set(files[:2])
    assert not can_contain_records(f".aiwg/ralph/tasks/{id}/analysis")


def test_an_unreadable_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make(tmp_path, f"{LOOP}/state.json", ".aiwg/ralph/archive/b/state.json")
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("/archive"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    closed: dict[str, Problem] = {}
    assert set(scan(paths, closed)) == {f"{LOOP}/", f"{LOOP}/state.json"}
    assert {folder: problem.code for folder, problem in closed.items()} == {".aiwg/ralph/archive": "unreadable"}
    assert "Permission denied" in closed[".aiwg/ralph/archive"].message
    again: dict[str, Problem] = {}
    scan_path(paths, ".aiwg/ralph/archive", again)
    assert again == closed


OTHER = ".aiwg/ralph/loops/ralph-b-00000002"


def rename(project: Path) -> None:
    (project / LOOP).rename(project / f"{LOOP}-renamed")


def exchange(project: Path) -> None:
    rename(project)
    (project / OTHER).rename(project / LOOP)
    (project / f"{LOOP}-renamed").rename(project / OTHER)


def replace_by_link(project: Path) -> None:
    rename(project)
    (project / LOOP).symlink_to(f"{LOOP}-renamed")


CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "nothing": (lambda project: None, ()),
    "rewritten in place": (lambda project: (project / LOOP / "state.json").write_bytes(b"[]"), ()),
    "new file": (lambda project: make(project, f"{LOOP}/analytics.json"), (LOOP,)),
    "new folder": (lambda project: make(project, ".aiwg/ralph/loops/c/state.json"), (".aiwg/ralph/loops",)),
    "removed file": (lambda project: (project / LOOP / "state.json").unlink(), (LOOP,)),
    "removed folder": (lambda project: shutil.rmtree(project / OTHER), (".aiwg/ralph/loops",)),
    "renamed folder": (rename, (".aiwg/ralph/loops",)),
    "exchanged folders": (exchange, (".aiwg/ralph/loops",)),
    "folder replaced by a link": (replace_by_link, (".aiwg/ralph/loops",)),
    "target of a link rewritten": (lambda project: (project / OTHER / "state.json").write_bytes(b"[1]"), ()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_sweep_that_lists_only_changed_folders_finds_all_that_a_first_sweep_finds(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make(tmp_path, f"{LOOP}/state.json", f"{LOOP}/reflections/reflection-1.json", f"{OTHER}/state.json")
    (tmp_path / ".aiwg/ralph/registry.json").symlink_to("loops/ralph-b-00000002/state.json")
    for folder in tmp_path.glob(".aiwg/**/"):
        os.utime(folder, (0, 0))
    monkeypatch.setattr("time.time_ns", lambda: 2**62)
    first = FolderWalk(paths)
    first.run(ROOT_FOLDERS)
    assert first.changed == scan(paths)
    change, folders = CHANGES[name]
    change(tmp_path)
    for number, changed in enumerate(folders, 1):  # a clock that is precise enough
        os.utime(tmp_path / changed, (number, number))
    expected = scan(paths)
    again = FolderWalk(paths, folders=first.listed)
    again.run(ROOT_FOLDERS)
    assert again.changed == expected
    listed = list(again.listed)
    assert set(folders) <= set(listed)
    assert len(listed) < len(again.seen)
    assert name not in {"nothing", "rewritten in place"} or not listed


def test_a_folder_that_changed_a_moment_ago_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another change may have the same time, on a file system that rounds times."""
    paths = make(tmp_path, f"{LOOP}/state.json")
    now = (tmp_path / LOOP).stat().st_ctime_ns
    for later, is_kept in ((0, False), (1_900_000_000, False), (3_000_000_000, True)):
        monkeypatch.setattr("time.time_ns", lambda: now + later)  # noqa: B023
        walk = FolderWalk(paths)
        walk.run(ROOT_FOLDERS)
        assert (LOOP in walk.listed) is is_kept


def test_the_newest_states_are_found_without_links(tmp_path: Path) -> None:
    names = [LOOP, ".aiwg/ralph/archive/b", ".aiwg/ralph-external/loops/c"]
    files = [f"{name}/{'session-' * ('external' in name)}state.json" for name in names]
    paths = make(tmp_path, *files, "outside/state.json")
    for seconds, file in enumerate(files):
        os.utime(tmp_path / file, (seconds, seconds))
    (tmp_path / ".aiwg/ralph/loops/linked").symlink_to(tmp_path / "outside")
    (tmp_path / ".aiwg/ralph/loops/d").mkdir()
    (tmp_path / ".aiwg/ralph/loops/d/state.json").symlink_to(tmp_path / "outside/state.json")
    assert list(newest_states(paths, 2)) == [files[2], files[1]]
    assert newest_states(paths, 3) == {file: scan(paths)[file] for file in files}
    assert newest_states(paths, 4) == {}


def test_a_file_may_have_records_of_two_kinds_or_none() -> None:
    for file in (
        *("debug-memory/reflections/a.json", "debug-memory/agent/reflections/a.json"),
        *("reflections/debug-memory/a.yaml", "memory/reflections/debug-memory/a.jsonl"),
        "../ralph-external/shared/debug-memory/reflections/a.json",
    ):
        path = f".aiwg/ralph/{file}".replace("ralph/../", "")
        kind = kind_of(path)
        assert kind is not None and set(kind.collections) == {"reflections", "debug_sessions"}
        assert can_contain_sessions(path)
    for file in (
        *("loops/x/session-state.json", "reflections/x/index.yaml", "reflections/x/a.jsonl"),
        *("memory/reflections/x/index.json", "tasks/x/attempts/draft/attempt.json"),
    ):
        kind = kind_of(f".aiwg/ralph/{file}")
        assert kind is not None and kind.collections == (), "the document is still checked"


STATE = ".aiwg/ralph/loops/ralph-a-00000001/state.json"


FILES = {
    STATE: LOOPS,
    ".aiwg/ralph/archive/ralph-a-00000001/state.json": ARCHIVE,
    ".aiwg/ralph/registry.json": REGISTRY,
    ".aiwg/ralph/current-loop.json": CURRENT,
    ".aiwg/ralph/loop-state.json": CURRENT,
    ".aiwg/ralph-external/loops/x/session-state.json": EXTERNAL,
    ".aiwg/ralph-external/archive/x/session-state.json": EXTERNAL_ARCHIVE,
    ".aiwg/ralph-external/registry.json": EXTERNAL_REGISTRY,
    ".aiwg/ralph-external/session-state.json": EXTERNAL_STATE,
    ".aiwg/ralph-external/launcher-registry.json": LAUNCHER,
    ".aiwg/ralph/heartbeats/x.json": HEARTBEAT,
    ".aiwg/ralph/loops/x/crash.log": CRASH_LOG,
    ".aiwg/ralph/analytics/x.json": ANALYTICS,
    ".aiwg/ralph/loops/x/analytics/analytics.json": ANALYTICS,
    ".aiwg/ralph/archive/x/analytics/x.json": ANALYTICS,
    ".aiwg/ralph-external/analytics/x.json": ANALYTICS,
    ".aiwg/ralph/loops/x/best-output-tracking.json": BEST_OUTPUT,
    ".aiwg/ralph/x/best-output-tracking.json": BEST_OUTPUT,
}


OTHER_FILES = (
    ".aiwg/ralph-external/session-state.json.bak",
    ".aiwg/ralph/loops/x/session-state.json",
    ".aiwg/ralph/loops/x/iterations/iteration-1.json",
    ".aiwg/ralph/loops/state.json",
    ".aiwg/ralph/shared/patterns/error-patterns.json",
    ".aiwg/ralph/loops/x/analytics/x-report.md",
    "ralph/registry.json",
    "",
)


def test_loop_files_are_recognized_by_path() -> None:
    for file, source in {**FILES, **dict.fromkeys(OTHER_FILES, "")}.items():
        assert loop_source(file) == source, file


def test_a_file_has_at_most_one_loop_directory() -> None:
    assert loop_directory(STATE) == ".aiwg/ralph/loops/ralph-a-00000001"
    assert loop_directory(".aiwg/ralph-external/archive/x/outputs/deep/y") == ".aiwg/ralph-external/archive/x"
    for outside in (".aiwg/ralph/loops", ".aiwg/ralph/loops/", ".aiwg/ralph/shared/patterns/x", "loops/x", ""):
        assert loop_directory(outside) == loop_home(loop_directory(outside)) == ""
    assert loop_home(".aiwg/ralph/archive/x") == ARCHIVE
    assert loop_home(".aiwg/ralph-external/loops/x") == EXTERNAL
