"""Texts of an agent in its transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.agents.hooks.transcripts import MAX_TAIL, find_copilot_text, find_last_text, find_text_before
from core.base.context_blocks import render_blocks


def claude(*blocks: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": list(blocks)}}


CLAUDE = [
    claude({"type": "text", "text": "Fix it."}, role="user"),
    claude({"type": "thinking", "thinking": "hidden"}),
    claude({"type": "text", "text": "The slice is one short."}),
    claude({"type": "tool_use", "id": "call-1", "name": "Edit", "input": {}}),
    claude({"type": "tool_result", "tool_use_id": "call-1", "content": "ok"}, role="user"),
    claude({"type": "tool_use", "id": "call-2", "name": "Edit", "input": {}}),
    claude({"type": "tool_result", "tool_use_id": "call-2", "content": "ok"}, role="user"),
    claude({"type": "text", "text": "Pages start at 1 now."}),
]
CODEX = [
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "The slice is one short."}],
        },
    },
    {"type": "response_item", "payload": {"type": "custom_tool_call", "call_id": "call-1", "name": "apply_patch"}},
    {"type": "response_item", "payload": {"type": "custom_tool_call_output", "call_id": "call-1", "output": "ok"}},
    {"type": "response_item", "payload": {"type": "function_call", "call_id": "call-2", "name": "shell"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "call-2", "output": "ok"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Pages start at 1 now."}],
        },
    },
]
COPILOT = [
    {"type": "user.message", "data": {"content": "Fix it."}},
    {
        "type": "assistant.message",
        "data": {"content": "The slice is one short.", "toolRequests": [{"toolCallId": "call-1"}]},
    },
    {"type": "tool.execution_complete", "data": {"toolCallId": "call-1"}},
    {"type": "assistant.message", "data": {"content": "", "toolRequests": [{"toolCallId": "call-2"}]}},
    {"type": "tool.execution_complete", "data": {"toolCallId": "call-2"}},
    {"type": "assistant.message", "data": {"content": "Pages start at 1 now."}},
]
GEMINI = [
    {"type": "user", "content": "Fix it."},
    {"type": "gemini", "content": "The slice is one short.", "toolCalls": [{"id": "call-1"}]},
    {"type": "user", "content": "ok"},
    {"type": "gemini", "content": "", "toolCalls": [{"id": "call-2"}]},
    {"type": "gemini", "content": "Pages start at 1 now."},
]


@pytest.mark.parametrize("entries", [CLAUDE, CODEX, COPILOT, GEMINI], ids=["claude", "codex", "copilot", "gemini"])
def test_the_text_before_a_call_and_the_last_one_are_found(tmp_path: Path, entries: list[dict[str, Any]]) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    assert find_text_before(str(file), "call-1") == "The slice is one short."
    assert find_text_before(str(file), "call-2") == ""
    assert find_text_before(str(file), "call-3") == find_text_before(str(file), "") == ""
    assert find_last_text(str(file)) == "Pages start at 1 now."


def test_the_text_before_a_call_from_a_script_of_codex_is_that_before_the_script(tmp_path: Path) -> None:
    script = {"type": "custom_tool_call", "call_id": "call-3", "name": "exec", "input": "await tools.apply_patch()"}
    change = {"type": "item_completed", "item": {"type": "FileChange", "id": "exec-1"}}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is one short."}]}
    entries = [{"payload": one} for one in (text, script, change, script | {"call_id": "call-4"})]
    file = tmp_path / "rollout.jsonl"
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    assert find_text_before(str(file), "exec-1") == "It is one short."


def test_the_text_before_the_newest_call_of_copilot_is_found_by_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    file = tmp_path / "session-state" / "s-1" / "events.jsonl"
    file.parent.mkdir(parents=True)
    place = next(n for n, entry in enumerate(COPILOT) if entry["type"] == "tool.execution_complete")
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in COPILOT[:place]))
    assert find_copilot_text("s-1") == "The slice is one short."
    assert find_copilot_text("s-2") == find_copilot_text("../session-state/s-1") == ""


def test_a_transcript_that_is_one_document_is_read(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(json.dumps({"sessionId": "s", "messages": GEMINI}))
    assert find_text_before(str(file), "call-1") == "The slice is one short."


def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    filler = f"{json.dumps(claude({'type': 'text', 'text': 'x' * 1000}))}\n" * (MAX_TAIL // 1000)
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in CLAUDE[2:4]) + filler)
    assert find_text_before(str(file), "call-1") == ""
    file.write_text(filler + "".join(f"{json.dumps(entry)}\n" for entry in CLAUDE[1:4]))
    assert find_text_before(str(file), "call-1").endswith("The slice is one short.")


def test_a_turn_that_ends_with_a_call_has_no_last_text(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in CLAUDE[:6]))
    assert find_last_text(str(file)) == ""


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null\n", b'{"message": 3}\n', b'{"message": {"content": [1, {}]}}\n']
)
def test_damaged_transcripts_have_no_texts(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(content)
    assert find_last_text(str(file)) == find_text_before(str(file), "call-1") == ""


def test_a_missing_file_a_folder_and_another_kind_of_file_have_no_texts(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(json.dumps(CLAUDE[-1]))
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("missing.jsonl", "notes.txt", "folder.jsonl", "a\0.jsonl"):
        assert find_last_text(str(tmp_path / name)) == ""


def test_a_context_that_the_agent_repeats_is_not_its_text(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    entry = claude({"type": "text", "text": "Context:\n" + render_blocks("- guard\n", "- retry\n") + "So I guard."})
    file.write_text(json.dumps(entry) + "\n")
    assert find_last_text(str(file)) == "Context:\nSo I guard."
