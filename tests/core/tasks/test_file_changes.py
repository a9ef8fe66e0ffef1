"""Diffs of what tools change in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.tasks.changes import MAX_DIFF, describe_change, parse_diff

AFTER = "def a():\n    x = 1\n    return x\n"
EXPECTED = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n def a():\n-    x = 0\n+    x = 1\n     return x"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n def a():\n-    x = 0\n+    x = 1\n     return x\n*** End Patch\n"
HUNK = {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": EXPECTED.split("\n")[3:]}


@pytest.mark.parametrize(
    ("params", "response"),
    [
        ({"file_path": "a.py", "old_string": "x = 0", "new_string": "x = 1"}, {"structuredPatch": [HUNK]}),
        ({"file_path": "a.py", "old_string": "x = 0", "new_string": "x = 1"}, None),
        ({"path": "a.py", "old_str": "x = 0", "new_str": "x = 1"}, {}),
        ({"file_path": "a.py", "edits": [{"old_string": "x = 0", "new_string": "x = 1"}]}, {}),
        ({"file_path": "a.py", "content": AFTER}, {"originalFile": AFTER.replace("x = 1", "x = 0")}),
        ({"file_path": "a.py"}, {"fileDiff": f"Index: a.py\n===\n{EXPECTED}\n"}),
        ({"file_path": "a.py", "input": PATCH}, {}),
        ({"file_path": "a.py", "command": PATCH}, "Done"),
    ],
)
def test_the_change_of_each_form_of_tool_has_whole_lines(tmp_path: Path, params: dict[str, Any], response: Any) -> None:
    (tmp_path / "a.py").write_text(AFTER)
    assert describe_change(params, response, str(tmp_path)) == EXPECTED


def test_a_patch_of_several_files_has_them_all(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: b.py\n+y = 1\n*** Update File: a.py\n-x = 0\n+x = 1\n*** End Patch"
    (tmp_path / "a.py").write_text("x = 1\n")
    found = parse_diff(describe_change({"input": patch}, {}, str(tmp_path)))
    assert [(hunk.file, hunk.lines) for hunk in found] == [("b.py", ("+y = 1",)), ("a.py", ("-x = 0", "+x = 1"))]


def test_a_file_outside_of_the_project_is_not_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret.txt").write_text("before\nx = 1\nafter\n")
    (project / "link.txt").symlink_to(tmp_path / "secret.txt")
    for name in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt"):
        found = describe_change({"file_path": name, "old_string": "x = 0", "new_string": "x = 1"}, {}, str(project))
        assert "before" not in found and "+x = 1" in found


def test_a_long_change_is_cut_at_whole_hunks(tmp_path: Path) -> None:
    old = "\n".join(f"line {n} {'x' * 50}" for n in range(2_000))
    new = "\n".join(line.upper() if n % 20 == 0 else line for n, line in enumerate(old.split("\n")))
    found = describe_change({"file_path": "a.py", "content": new}, {"originalFile": old}, str(tmp_path))
    assert len(found) <= MAX_DIFF
    assert [len(hunk.lines) for hunk in parse_diff(found)][1:] == [4] * (len(parse_diff(found)) - 1)


def test_malformed_responses_are_ignored(tmp_path: Path) -> None:
    hunks = [None, 1, {}, {"lines": 3}, {"lines": ["+a"], "oldStart": "1", "newStart": None}]
    given = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
    assert "+b" in describe_change(given, {"structuredPatch": hunks}, str(tmp_path))
    assert describe_change({}, None, "") == ""
