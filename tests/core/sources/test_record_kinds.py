"""Record kinds: the collections that a path belongs to."""

from __future__ import annotations

import pytest

from core.sources.record_kinds import can_contain_sessions, kind_of


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
