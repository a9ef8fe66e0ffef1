from __future__ import annotations

import pytest

from core.sources.record_kinds import (
    ANALYTICS,
    ARCHIVE,
    BEST_OUTPUT,
    CRASH_LOG,
    CURRENT,
    EXTERNAL,
    EXTERNAL_ARCHIVE,
    EXTERNAL_REGISTRY,
    EXTERNAL_STATE,
    HEARTBEAT,
    LAUNCHER,
    LOOPS,
    REGISTRY,
    can_contain_sessions,
    kind_of,
    loop_directory,
    loop_home,
    loop_source,
)


@pytest.mark.parametrize(
    "file",
    [
        "ralph/debug-memory/reflections/a.json",
        "ralph/debug-memory/agent/reflections/a.json",
        "ralph-external/shared/debug-memory/reflections/a.json",
        "ralph/reflections/debug-memory/a.yaml",
        "ralph/memory/reflections/debug-memory/a.jsonl",
    ],
)
def test_reflections_and_debug_sessions_may_share_a_folder(file: str) -> None:
    kind = kind_of(f".aiwg/{file}")
    assert kind is not None and set(kind.collections) == {"reflections", "debug_sessions"}
    assert can_contain_sessions(f".aiwg/{file}")


@pytest.mark.parametrize(
    "file",
    [
        "ralph/loops/x/session-state.json",
        "ralph/reflections/x/index.yaml",
        "ralph/reflections/x/a.jsonl",
        "ralph/memory/reflections/x/index.json",
        "ralph/tasks/x/attempts/draft/attempt.json",
    ],
)
def test_documents_without_records_are_still_checked(file: str) -> None:
    kind = kind_of(f".aiwg/{file}")
    assert kind is not None and kind.collections == ()


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


@pytest.mark.parametrize(("file", "source"), FILES.items())
def test_loop_files_are_recognized_by_path(file: str, source: str) -> None:
    assert loop_source(file) == source


@pytest.mark.parametrize("file", OTHER_FILES)
def test_other_files_are_not_loop_files(file: str) -> None:
    assert loop_source(file) == ""


def test_a_file_has_at_most_one_loop_directory() -> None:
    assert loop_directory(STATE) == ".aiwg/ralph/loops/ralph-a-00000001"
    assert loop_directory(".aiwg/ralph-external/archive/x/outputs/deep/y") == ".aiwg/ralph-external/archive/x"
    for outside in (".aiwg/ralph/loops", ".aiwg/ralph/loops/", ".aiwg/ralph/shared/patterns/x", "loops/x", ""):
        assert loop_directory(outside) == loop_home(loop_directory(outside)) == ""
    assert loop_home(".aiwg/ralph/archive/x") == ARCHIVE
    assert loop_home(".aiwg/ralph-external/loops/x") == EXTERNAL
