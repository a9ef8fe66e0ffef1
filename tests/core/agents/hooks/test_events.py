"""Events of several agents become one form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.agent_table import AGENTS, Moment
from core.agents.hooks.events import HookEvent, encode_answer, parse_event
from core.base.context_blocks import render_blocks
from core.base.errors import BadInput
from core.tasks.tool_events import FAILED, SUCCEEDED, parse_tool_event


def parse(agent: str, **fields: Any) -> HookEvent:
    event = parse_event(agent, json.dumps(fields).encode())
    assert event is not None
    return event


@pytest.mark.parametrize("agent", [name for name, agent in AGENTS.items() if agent.events])
def test_every_event_of_every_agent_has_its_moment(agent: str) -> None:
    for name, moment in AGENTS[agent].events.items():
        assert parse(agent, hook_event_name=name, session_id="s").moment is moment


def test_events_without_a_use_are_ignored() -> None:
    assert parse_event("claude", b'{"hook_event_name": "PreCompact"}') is None
    assert parse_event("claude", b"{}") is None


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"not json", b'{"a":', b"\xff\xfe", b"[" * 10_000])
def test_other_input_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match="not the JSON of an event"):
        parse_event("claude", data)


def test_the_name_of_the_event_may_be_an_option() -> None:
    event = parse_event("copilot", b'{"prompt": "Fix it", "sessionId": "s"}', "UserPromptSubmit")
    assert event is not None
    assert (event.moment, event.prompt, event.session) == (Moment.PROMPT, "Fix it", "s")


def test_cursor_runs_hooks_that_were_written_for_claude_code() -> None:
    event = parse(
        "claude", hook_event_name="beforeSubmitPrompt", conversation_id="c", workspace_roots=["/w"], prompt="a"
    )
    assert (event.moment, event.session, event.folder) == (Moment.PROMPT, "c", "/w")


TOOL_EVENTS = {
    "claude, failed": (
        "claude",
        {
            "hook_event_name": "PostToolUseFailure",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "error": "no",
        },
        (FAILED, "make"),
    ),
    "codex, exit code in the metadata of a JSON text": (
        "codex",
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "shell",
            "tool_input": {"command": ["bash", "-lc", "make test"]},
            "tool_response": json.dumps({"output": "1 failed", "metadata": {"exit_code": 2}}),
        },
        (FAILED, "make test"),
    ),
    "codex, exit code in the text": (
        "codex",
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_response": "Exit code: 1\nWall time: 2 s\nOutput:\n1 failed",
        },
        (FAILED, "make"),
    ),
    "codex, success": (
        "codex",
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": ["make", "a b"]},
            "tool_response": {"output": "done", "exit_code": 0},
        },
        (SUCCEEDED, "make 'a b'"),
    ),
    "gemini, exit code in the text for the model": (
        "gemini",
        {
            "hook_event_name": "AfterTool",
            "tool_name": "run_shell_command",
            "tool_input": {"command": "npm test"},
            "tool_response": {"llmContent": "Command: npm test\nOutput: 1 failed\nError: (none)\nExit Code: 1"},
        },
        (FAILED, "npm test"),
    ),
    "cursor, failed": (
        "cursor",
        {
            "hook_event_name": "postToolUseFailure",
            "tool_name": "Shell",
            "tool_input": {"command": "npm test"},
            "error_message": "1 failed",
            "failure_type": "error",
        },
        (FAILED, "npm test"),
    ),
    "cursor, exit code in a JSON text": (
        "cursor",
        {
            "hook_event_name": "postToolUse",
            "tool_name": "Shell",
            "tool_input": {"command": "npm test"},
            "tool_output": '{"output": "1 failed", "exitCode": 1}',
        },
        (FAILED, "npm test"),
    ),
    "copilot, result type": (
        "copilot",
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "bash",
            "tool_input": '{"command": "npm test"}',
            "tool_result": {"result_type": "failure", "text_result_for_llm": "1 failed"},
        },
        (FAILED, "npm test"),
    ),
}


@pytest.mark.parametrize("name", TOOL_EVENTS)
def test_tool_events_of_all_agents_become_actions_with_their_result(name: str) -> None:
    agent, fields, (expected, command) = TOOL_EVENTS[name]
    event = parse(agent, **fields)
    assert event.tool["hook_event_name"] == expected
    action = parse_tool_event(event.tool)
    assert (action["type"], action["params"]["command"], action["success"]) == ("bash", command, expected == SUCCEEDED)
    if expected == FAILED:
        assert action["error"]


def test_a_patch_names_its_file() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"
    event = parse("codex", hook_event_name="PostToolUse", tool_name="apply_patch", tool_input={"command": patch})
    action = parse_tool_event(event.tool)
    assert (action["type"], action["params"]["file_path"]) == ("edit", "src/a.py")


def test_a_call_without_an_id_is_identified_only_with_a_time() -> None:
    fields = {"hook_event_name": "AfterTool", "tool_name": "read_file", "tool_input": {}}
    assert parse("gemini", **fields).call == ""
    first, second = (parse("gemini", **fields, timestamp=at).call for at in ("2026-11-20T09:00", "2026-11-20T09:01"))
    assert first and second and first != second


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "hook_event_name",
                "session_id",
                "cwd",
                "prompt",
                "tool_name",
                "tool_input",
                "tool_response",
                "error",
                "workspace_roots",
                "tool_use_id",
                "metadata",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["PostToolUse", "Stop"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_no_event_raises_another_error(fields: dict[str, Any]) -> None:
    for agent in AGENTS:
        event = parse_event(agent, json.dumps(fields).encode(), "PostToolUse")
        if event is not None and event.moment is Moment.TOOL:
            try:
                parse_tool_event(event.tool)
            except BadInput:
                continue


def test_each_agent_gets_its_own_form() -> None:
    claude = parse("claude", hook_event_name="UserPromptSubmit")
    assert json.loads(encode_answer(claude, "text")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "text"}
    }
    assert json.loads(encode_answer(parse("cursor", hook_event_name="sessionStart"), "text")) == {
        "additional_context": "text"
    }
    assert json.loads(encode_answer(parse("copilot", hook_event_name="UserPromptSubmit"), "text")) == {
        "additionalContext": "text"
    }
    assert encode_answer(claude, "") == b""


@pytest.mark.parametrize(
    "prompt",
    [
        "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>",
        "<system-reminder>The file changed.</system-reminder>",
        "<local-command-stdout>ok</local-command-stdout>",
        "[Request interrupted by user]",
        "/compact",
        "/fix-issue 123",
    ],
)
def test_notices_and_slash_commands_are_not_taken_for_prompts(prompt: str) -> None:
    assert parse("claude", hook_event_name="UserPromptSubmit", prompt=prompt).is_notice


@pytest.mark.parametrize("prompt", ["", "Fix it", "/usr/bin/env fails", "<div> is not closed", "a /compact test"])
def test_other_prompts_are_prompts(prompt: str) -> None:
    assert not parse("claude", hook_event_name="UserPromptSubmit", prompt=prompt).is_notice


def test_the_last_message_and_the_transcript_of_a_turn_are_known() -> None:
    claude = parse("claude", hook_event_name="Stop", last_assistant_message="Fixed.", transcript_path="/t.jsonl")
    assert (claude.message, claude.transcript) == ("Fixed.", "/t.jsonl")
    assert parse("gemini", hook_event_name="AfterAgent", prompt="Fix it", prompt_response="Done.").message == "Done."


def test_a_context_in_a_prompt_or_message_is_not_part_of_it() -> None:
    context = render_blocks("", "- retry\n")
    event = parse("claude", hook_event_name="UserPromptSubmit", prompt=f"{context}\nFix the login")
    assert event.prompt == "Fix the login"
    ended = parse("claude", hook_event_name="Stop", last_assistant_message=f"Done.\n{context}")
    assert ended.message == "Done."
