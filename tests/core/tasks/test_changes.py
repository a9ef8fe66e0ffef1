"""Changes of files by tools and shell commands, and tool events as actions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from core.base.errors import BadInput
from core.files.file_reader import decode_json
from core.records.episodes import ACTION_TYPES
from core.records.times import parse_time
from core.tasks.changes import MAX_DIFF, describe_change, edits_files, find_shell_hunks, parse_diff
from core.tasks.validation import FAILED, SUCCEEDED, classify_tool, parse_tool_event, validate_action

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


def test_a_command_that_writes_files_edits_them() -> None:
    for command in (
        "sed -i 's/a/b/' app.py",
        "sed -i '' -e 's/a/b/' app.py",
        "cd app && sed -i.bak 's/a/b/' app.py",
        "perl -pi -e 's/a/b/' app.py",
        "cat > app.py <<'EOF'\nx = 1\nEOF",
        "tee app.py <<EOF\nx = 1\nEOF\n",
        'echo "x = 1" >> app.py',
        "git apply fix.patch",
        "mv a.py b.py",
        "python - <<'EOF'\nfrom pathlib import Path\nPath('a.py').write_text('x')\nEOF",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF",
    ):
        assert edits_files(command), command


def test_other_commands_edit_nothing() -> None:
    for command in (
        "",
        "sed -n 1,5p app.py",
        "cat app.py",
        "grep x app.py",
        "pytest -q > log.txt",
        "npm test | tee log.txt",
        "git status",
    ):
        assert not edits_files(command), command


def test_the_substitutions_of_sed_are_changes() -> None:
    (hunk,) = find_shell_hunks(r"sed -i 's/items\[0\]/items.get(0)/' src/app.py && make")
    assert (hunk.file, hunk.lines) == ("src/app.py", ("-items[0]", "+items.get(0)"))
    assert len(find_shell_hunks("sed -i -e 's|a|b|' -e 's|c|d|g' app.py")) == 2


def test_a_here_document_is_the_new_content() -> None:
    (hunk,) = find_shell_hunks("cat > app.sh <<'EOF'\nset -u\necho hi\nEOF\nchmod +x app.sh")
    assert (hunk.file, hunk.lines) == ("app.sh", ("+set -u", "+echo hi"))


AT = parse_time("2026-02-01T09:00:00Z")


def used(tool: str, given: object = None, response: object = None, **event: object) -> dict[str, Any]:
    """Convert the event of a tool into an action."""
    result = {"hook_event_name": SUCCEEDED, "tool_name": tool, "tool_input": given, "tool_response": response}
    found = parse_tool_event({**result, **event}, "/srv/app")
    assert AT is not None
    validate_action(found, AT, 1)
    return found


def test_every_tool_has_the_nearest_action_type() -> None:
    for tools, type_ in (
        ("Read NotebookRead WebFetch mcp__files__read_text_file mcp__jira__getIssue", "read"),
        ("Write mcp__files__write_file mcp__serena__create_text_file", "write"),
        ("Edit MultiEdit NotebookEdit StrReplace mcp__files__edit_file", "edit"),
        ("Bash BashOutput KillShell mcp__github__create_issue mcp__x__updateGetter mcp__ __ mcp__x__", "bash"),
        ("Grep WebSearch mcp__serena__find_symbol", "grep"),
        ("Glob LS mcp__files__list_directory", "glob"),
        ("Task Agent", "task"),
    ):
        assert {classify_tool(tool) for tool in tools.split()} == {type_} <= set(ACTION_TYPES), tools


def test_command_event_has_output_and_reasoning() -> None:
    given = {"command": "npm test", "description": "Run the tests"}
    printed = {"stdout": "6 passed\n", "stderr": "deprecated", "interrupted": False, "isImage": False}
    assert used("Bash", given, printed) == {
        "type": "bash",
        "tool": "Bash",
        "params": given,
        "success": True,
        "output": "6 passed\ndeprecated",
        "reasoning": "Run the tests",
    }
    nothing = {"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"}
    assert used("Bash", {"command": "grep x ."}, nothing)["output"] == "No matches found"
    failed = used("Bash", given, None, hook_event_name=FAILED, error="Exit code 1\n3 failing")
    assert (failed["success"], failed["error"], "output" in failed) == (False, "Exit code 1\n3 failing", False)


def test_failures_are_found_in_any_member_of_the_response() -> None:
    rows: list[tuple[str, object, dict[str, Any], str | None]] = [
        ("Bash", {"stdout": "a", "stderr": "killed", "interrupted": True}, {}, "killed"),
        ("Bash", {"stdout": "a", "stderr": "", "interrupted": True}, {}, "interrupted"),
        ("BashOutput", {"stdout": "a", "stderr": "no", "status": "completed", "exitCode": 1}, {}, "no"),
        ("TaskOutput", {"task": {"output": "a", "status": "failed", "error": "no"}}, {}, "no"),
        ("Write", {"filePath": "a", "success": False}, {}, None),
        ("NotebookEdit", {"error": "no such cell"}, {}, "no such cell"),
        ("mcp__x__run", {"isError": True, "content": "a"}, {}, None),
        ("Read", {}, {"is_error": True}, None),
        ("Edit", None, {"hook_event_name": FAILED, "error": "<tool_use_error>not found</tool_use_error>"}, "not found"),
        ("Bash", None, {"hook_event_name": FAILED, "is_interrupt": True}, "interrupted"),
    ]
    for tool, response, event, error in rows:
        failed = used(tool, {}, response, **event)
        assert (failed["success"], failed.get("error")) == (False, error), tool
        assert failed.get("output", "a") == "a", tool


@pytest.mark.parametrize(
    ("tool", "given", "response"),
    [
        ("Bash", {"command": "npm test", "run_in_background": True}, {"stdout": ""}),
        ("Bash", {"command": "npm test"}, {"stdout": "", "backgroundTaskId": "b1"}),
        ("BashOutput", {"bash_id": "b1"}, {"status": "running", "exitCode": None}),
        ("Task", {"prompt": "look"}, {"status": "async_launched"}),
    ],
)
def test_running_command_has_no_result(tool: str, given: object, response: object) -> None:
    assert "success" not in used(tool, given, response)


def test_output_contains_only_members_not_recorded_elsewhere() -> None:
    rows: list[tuple[str, object, str]] = [
        (
            "Read",
            {"type": "text", "file": {"content": "x", "startLine": 5, "numLines": 3, "totalLines": 9}},
            "5 to 7 of",
        ),
        ("Read", {"type": "image", "file": {"base64": "x"}}, "image"),
        ("Write", {"type": "create", "filePath": "a", "content": "x", "originalFile": "y"}, "create"),
        ("Grep", {"mode": "files_with_matches", "filenames": ["a", "b"]}, "a\nb"),
        ("Grep", {"mode": "content", "filenames": [], "content": "a:1:b"}, "a:1:b"),
        ("Task", {"content": [{"type": "text", "text": "two callers"}, {"type": "image"}]}, "two callers\n[image]"),
        ("WebFetch", {"code": 200, "result": "It says so."}, "It says so."),
        ("mcp__x__run", [{"type": "text", "text": "done"}], "done"),
        ("mcp__x__run", {"number": 7, "q": "told already", "empty": ""}, '{"number":7}'),
    ]
    for tool, response, output in rows:
        assert output in used(tool, {"q": "told already"}, response)["output"], tool


def test_project_files_are_named_relative_to_the_project() -> None:
    for name in ("file_path", "notebook_path", "path"):
        assert used("Edit", {name: "/srv/app/src/a.ts"})["params"] == {name: "src/a.ts"}
    for other in ("/srv/application/a.ts", "/srv/app", "a.ts"):
        assert used("Edit", {"path": other})["params"] == {"path": other}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"hook_event_name": "PreToolUse", "tool_name": "Bash"}, "PreToolUse is not a tool event"),
        ({"hook_event_name": ["x"], "tool_name": "Bash"}, "x is not a tool event"),
        ({"tool_input": {}}, "has no tool_name"),
        ({"tool_name": "TodoWrite"}, "TodoWrite does not affect the work"),
    ],
)
def test_unusable_event_raises_an_error_with_the_reason(event: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_tool_event(event)


_JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=5,
)
_RESPONSE = ("stdout", "stderr", "interrupted", "error", "status", "task", "content", "file", "type", "exitCode")


@settings(max_examples=25)
@given(
    strategies.fixed_dictionaries(
        {"tool_name": strategies.sampled_from(["Bash", "Read", "TaskOutput", "mcp__a__b"])},
        optional={
            "hook_event_name": strategies.sampled_from([SUCCEEDED, FAILED]),
            "tool_input": strategies.dictionaries(strategies.sampled_from(["path", "description"]), _JSON) | _JSON,
            "tool_response": strategies.dictionaries(strategies.sampled_from(_RESPONSE), _JSON) | _JSON,
            "error": _JSON,
        },
    )
)
def test_any_tool_event_becomes_an_action(event: dict[str, Any]) -> None:
    result = decode_json(json.dumps(event).encode()).value
    assert AT is not None
    assert validate_action(parse_tool_event(result, "/srv/app"), AT, 1)[0]["tool"] == event["tool_name"]
