"""Record kinds: the collections that a path belongs to."""

from __future__ import annotations

import pytest

from core.sources.record_kinds import can_contain_sessions, encode_kinds, forget_kinds, kind_of, remember_kinds


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


def test_another_process_can_send_the_kinds_of_files() -> None:
    files = [".aiwg/ralph/registry.json", ".aiwg/ralph/loops/a/state.json", ".aiwg/ralph/loops/a/"]
    kinds = [kind_of(file) for file in files]
    encoded = encode_kinds(files)
    forget_kinds()
    remember_kinds(files, encoded)
    assert [kind_of(file) for file in files] == kinds
    assert None not in kinds


@pytest.mark.parametrize("encoded", [b"", b"\x00\x00", b"\xff"])
def test_kinds_of_other_files_are_refused(encoded: bytes) -> None:
    with pytest.raises(ValueError, match="kinds"):
        remember_kinds([".aiwg/ralph/registry.json"], encoded)
    with pytest.raises(ValueError, match="range"):
        encode_kinds(["README.md"])
