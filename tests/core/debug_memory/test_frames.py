"""Frames of stack traces, and whose they are."""

from __future__ import annotations

import pytest

from core.config.paths import relative_to_project
from core.debug_memory.error_messages import StackFrame, is_same_file, is_test_file, parse_frames


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("    at async Order.settle [as run] (file:///p/src/a.ts:7:1)", StackFrame("src/a.ts", 7, "Order.settle")),
        ("    at new Order (C:\\app\\a.ts:7:1)", StackFrame("C:/app/a.ts", 7, "Order")),
        ("    at src/a.ts:7:1", StackFrame("src/a.ts", 7)),
        ('  File "/p/a.py", line 7, in <module>', StackFrame("a.py", 7)),
        ("    at node:internal/process/task_queues:95:5", None),
        ("    at eval (<anonymous>:1:1)", None),
        ("    at webpack://a/b.ts:1:1", None),
        ('  File "<string>", line 1, in f', None),
        ("at all times", None),
    ],
)
def test_frame_files_are_relative_to_the_project(line: str, frame: StackFrame | None) -> None:
    assert parse_frames(line, "/p") == ([] if frame is None else [frame])


def test_test_files_are_recognized_by_name() -> None:
    tests = ["tests/a.py", "src/__tests__/a.ts", "src/a.test.ts", "a_spec.rb", "test_a.py", "conftest.py"]
    assert all(map(is_test_file, tests))
    assert not any(map(is_test_file, ["src/a.ts", "src/latest.py", "contest.py", "testing/a.py"]))
    assert relative_to_project("./a.ts", "/p") == relative_to_project("/p/a.ts", "/p/") == "a.ts"
    assert (
        is_same_file("/app/src/a.ts", "src/a.ts") and not is_same_file("/app/a.ts", "a.ts") and not is_same_file("", "")
    )
