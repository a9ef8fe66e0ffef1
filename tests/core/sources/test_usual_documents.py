"""Documents in the usual spelling give the same records as by the tolerant readers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sources import parsed_file
from core.sources.parsed_file import parse_file
from core.sources.record_kinds import kind_of
from core.sources.usual_documents import read_usual
from core.storage.file_reader import RawFile, Stamp

LOOP = ".aiwg/ralph/loops/ralph-fix-login-1a2b3c4d"
STATE, ANALYTICS = f"{LOOP}/state.json", f"{LOOP}/analytics/ralph-fix-login-1a2b3c4d.json"
REFLECTION = f"{LOOP}/reflections/reflection-1.json"
MODIFIED = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
STAMP = Stamp(1, 1, int(MODIFIED.timestamp()) * 10**9, 0)
TREES = Path(__file__).parents[2] / "trees"

ITERATION = {
    "number": 1,
    "timestamp": "2026-11-20T10:00:00Z",
    "action": "Add a guard",
    "result": "1 failing",
    "verified": False,
    "learnings": "### Iteration 1\nCheck for null\n",
    "duration_ms": 61000,
}
DOCUMENTS: dict[str, dict[str, Any]] = {
    STATE: {
        "loopId": "ralph-fix-login-1a2b3c4d",
        "active": False,
        "task": "Fix the login",
        "completion": "npm test passes",
        "maxIterations": 10,
        "startTime": "2026-11-20T09:00:00.5Z",
        "startTimeMs": 1794255770257,
        "currentIteration": 2,
        "currentPid": 4711,
        "branch": None,
        "status": "completed",
        "iterations": [ITERATION, ITERATION | {"number": 2, "verified": True, "learnings": ["One", "Two"]}],
        "lastResult": "All tests pass",
        "learnings": "### Iteration 2\nCheck for null",
        "endTime": "2026-11-20T11:00:00+01:00",
        "cross_loop_learning": {
            "injected_patterns": [
                {"pattern_id": "pat-error-null-001", "applied": True, "successful": True, "iteration_used": 2},
                {"pattern_id": "pat-error-null-002", "successful": False},
            ],
            "extracted_patterns": [{"pattern_id": "pat-error-null-003", "new": False}],
        },
    },
    ANALYTICS: {
        "loop_id": "ralph-fix-login-1a2b3c4d",
        "task_description": "Fix the login",
        "start_time": "2026-11-20T09:00:00Z",
        "iterations": [
            {
                "iteration_number": 1,
                "timestamp": "2026-11-20T10:00:00Z",
                "quality_score": 25,
                "reflections": ["A", " "],
            },
            {"iteration_number": 2, "timestamp": None, "quality_score": 250, "tokens_used": {"in": 1}},
        ],
        "total_iterations": 2,
        "total_time_ms": 366000.5,
    },
    REFLECTION: {
        "iteration": 1,
        "content": "Run the tests first. ",
        "type": "error_analysis",
        "effectiveness": "harmful",
        "timestamp": "2026-11-20T10:00:00Z",
    },
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["", " ", "2026-11-20", "2026-11-20T10:00:00+02:00", "10", "failed", 10**15, 10**30, 1e308, -0.0, 2.0]
    ),
    st.lists(st.text(max_size=4), max_size=2),
    st.dictionaries(st.sampled_from(["pattern_id", "x"]), st.text(max_size=3), max_size=2),
)
KEYS = ("id", "loopId", "loop_id", "number", "iteration", "tags", "error", "task_id", "self_reflection", "progress")


def parse(file: str, data: bytes) -> Any:
    kind = kind_of(file)
    assert kind is not None
    return parse_file(file, kind, RawFile(data, STAMP))


def parse_tolerantly(file: str, data: bytes) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsed_file, "read_usual", lambda *_: None)
        return parse(file, data)


def is_usual(file: str, data: bytes) -> bool:
    kind = kind_of(file)
    assert kind is not None
    return read_usual(file, kind, data, MODIFIED) is not None


@st.composite
def changed_documents(draw: st.DrawFn) -> tuple[str, bytes]:
    """A document in which some values are changed, some keys added or removed, and some bytes damaged."""
    file = draw(st.sampled_from(sorted(DOCUMENTS)))
    document = json.loads(json.dumps(DOCUMENTS[file]))
    for _ in range(draw(st.integers(0, 3))):
        value = document
        while True:
            key = draw(st.sampled_from([*value, *KEYS] if isinstance(value, dict) else range(len(value))))
            inner = value.get(key) if isinstance(value, dict) else value[key]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                value = inner
                continue
            if isinstance(value, dict) and draw(st.integers(0, 3)) == 0:
                value.pop(key, None)
            else:
                value[key] = draw(VALUES)
            break
    text = json.dumps(document, ensure_ascii=draw(st.booleans()))
    return file, draw(st.sampled_from([text, text.replace("1", "2", 1), text.replace(": ", ":")])).encode(
        "utf-8", "replace"
    )


@given(changed_documents())
def test_any_document_gives_the_same_records_and_findings(changed: tuple[str, bytes]) -> None:
    assert parse(*changed) == parse_tolerantly(*changed)


@pytest.mark.parametrize("file", sorted(DOCUMENTS))
def test_the_usual_spelling_is_read_by_the_typed_decoder(file: str) -> None:
    data = json.dumps(DOCUMENTS[file]).encode()
    assert is_usual(file, data)
    assert parse(file, data) == parse_tolerantly(file, data)
    assert not parse(file, data).findings


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"{", b'{"extra": 1, ', 1),  # the readers may know the key
        lambda data: data.replace(b"2026-11-20T10", b"2026-13-20T10", 1),
        lambda data: data.replace(b"{", b'{"iterations": [], "iterations": [], ', 1),  # a key that occurs twice
        lambda data: data.replace(b": 1", b": 123456789012345678901234567890"),
        lambda data: data[:-5],
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"e", b"\xff", 3),
    ],
)
@pytest.mark.parametrize("file", sorted(DOCUMENTS))
def test_anything_else_is_left_to_the_tolerant_readers(file: str, change: Any) -> None:
    data = change(json.dumps(DOCUMENTS[file]).encode())
    assert not is_usual(file, data)
    assert parse(file, data) == parse_tolerantly(file, data)


def test_most_documents_of_the_agents_are_usual() -> None:
    found = [
        is_usual(str(path.relative_to(TREES / "upstream")), path.read_bytes())
        for path in (TREES / "upstream/.aiwg/ralph").rglob("*.json")
        if path.name == "state.json" or path.parent.name in ("analytics", "reflections")
    ]
    assert found.count(True) > 0.8 * len(found)
