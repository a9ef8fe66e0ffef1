"""Events of several agents become one form, and what their payloads prove about a command.

The payloads have the keys and the forms that the agents sent: Claude Code 2.1.331, Codex 0.169.0, Gemini CLI 0.61.0,
Copilot CLI 1.0.102. That of Cursor follows its documentation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.agents.agent_table import AGENTS, Moment
from core.agents.hooks import answer
from core.agents.hooks.events import HookEvent, encode_answer, parse_event
from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from core.base.prompt_text import render_blocks
from core.records.loops import Outcome
from core.tasks.history import read_history
from core.tasks.validation import FAILED, SUCCEEDED, parse_tool_event
from tests.core.agents.hooks.agents import SimulatedAgent


def parse(agent: str, **fields: Any) -> HookEvent:
    event = parse_event(agent, json.dumps(fields).encode())
    assert event is not None
    return event


def test_every_event_of_every_agent_has_its_moment() -> None:
    for agent in [name for name, agent in AGENTS.items() if agent.events]:
        for name, moment in AGENTS[agent].events.items():
            assert parse(agent, hook_event_name=name, session_id="s").moment is moment


def test_other_input_is_refused_and_events_without_a_use_are_ignored() -> None:
    rows: list[bytes] = [b"", b"[]", b"null", b"not json", b'{"a":', b"\xff\xfe", b"[" * 10_000]
    for data in rows:
        with pytest.raises(BadInput, match="not the JSON of an event"):
            parse_event("claude", data)
    assert parse_event("claude", b'{"hook_event_name": "PreCompact"}') is None
    assert parse_event("claude", b"{}") is None


def test_the_name_of_the_event_may_be_an_option() -> None:
    event = parse_event("copilot", b'{"prompt": "Fix it", "sessionId": "s"}', "UserPromptSubmit")
    assert event is not None
    assert (event.moment, event.prompt, event.session) == (Moment.PROMPT, "Fix it", "s")


def test_cursor_runs_hooks_that_were_written_for_claude_code() -> None:
    event = parse(
        "claude", hook_event_name="beforeSubmitPrompt", conversation_id="c", workspace_roots=["/w"], prompt="a"
    )
    assert (event.moment, event.session, event.folder) == (Moment.PROMPT, "c", "/w")


def tool_event(event: str, tool: str, given: object, **result: object) -> dict[str, Any]:
    return {"hook_event_name": event, "tool_name": tool, "tool_input": given, **result}


NPM: dict[str, Any] = {"command": "npm test"}
TOOL_EVENTS = {
    "an error": ("claude", tool_event("PostToolUseFailure", "Bash", NPM, error="no"), "npm test"),
    "an exit code in the metadata of a JSON text, and a command for a shell": (
        "codex",
        tool_event(
            "PostToolUse",
            "shell",
            {"command": ["bash", "-lc", "make test"]},
            tool_response=json.dumps({"output": "1 failed", "metadata": {"exit_code": 2}}),
        ),
        "make test",
    ),
    "an exit code in the text": (
        "codex",
        tool_event("PostToolUse", "Bash", NPM, tool_response="Exit code: 1\nWall time: 2 s\nOutput:\n1 failed"),
        "npm test",
    ),
    "a success, and a command of several words": (
        "codex",
        tool_event(
            "PostToolUse", "Bash", {"command": ["make", "a b"]}, tool_response={"output": "done", "exit_code": 0}
        ),
        "make 'a b'",
    ),
    "an exit code in the text for the model": (
        "gemini",
        tool_event("AfterTool", "run_shell_command", NPM, tool_response={"llmContent": "Output: no\nExit Code: 1"}),
        "npm test",
    ),
    "an error message": (
        "cursor",
        tool_event("postToolUseFailure", "Shell", NPM, error_message="1 failed"),
        "npm test",
    ),
    "an exit code in a JSON text": (
        "cursor",
        tool_event("postToolUse", "Shell", NPM, tool_output='{"output": "1 failed", "exitCode": 1}'),
        "npm test",
    ),
    "a type of the result, and a JSON text of the input": (
        "copilot",
        tool_event(
            "PostToolUse",
            "bash",
            json.dumps(NPM),
            tool_result={"result_type": "failure", "text_result_for_llm": "1 failed"},
        ),
        "npm test",
    ),
}


def test_tool_events_of_all_agents_become_actions_with_their_result() -> None:
    for name, (agent, fields, command) in TOOL_EVENTS.items():
        event, has_succeeded = parse(agent, **fields), name.startswith("a success")
        assert event.tool["hook_event_name"] == (SUCCEEDED if has_succeeded else FAILED), name
        action = parse_tool_event(event.tool)
        found = action["type"], action["params"]["command"], action["success"], "error" in action
        assert found == ("bash", command, has_succeeded, not has_succeeded), name


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


CALL_FIELDS = ["tool_name", "tool_input", "tool_response", "tool_use_id", "error", "metadata"]
OTHER_FIELDS = ["hook_event_name", "session_id", "cwd", "prompt", "workspace_roots"]


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.sampled_from(CALL_FIELDS + OTHER_FIELDS),
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


def test_notices_and_slash_commands_are_not_taken_for_prompts() -> None:
    for prompt in (
        "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>",
        "<system-reminder>The file changed.</system-reminder>",
        "<local-command-stdout>ok</local-command-stdout>",
        "[Request interrupted by user]",
        "/compact",
        "/fix-issue 123",
    ):
        assert parse("claude", hook_event_name="UserPromptSubmit", prompt=prompt).is_notice, prompt
    for prompt in ("", "Fix it", "/usr/bin/env fails", "<div> is not closed", "a /compact test"):
        assert not parse("claude", hook_event_name="UserPromptSubmit", prompt=prompt).is_notice, prompt


def test_the_last_message_and_the_transcript_of_a_turn_are_known() -> None:
    claude = parse("claude", hook_event_name="Stop", last_assistant_message="Fixed.", transcript_path="/t.jsonl")
    assert (claude.message, claude.transcript) == ("Fixed.", "/t.jsonl")
    assert parse("gemini", hook_event_name="AfterAgent", prompt="Fix it", prompt_response="Done.").message == "Done."
    context = render_blocks("", "- retry\n")  # is not part of a prompt or message
    event = parse("claude", hook_event_name="UserPromptSubmit", prompt=f"{context}\nFix the login")
    assert event.prompt == "Fix the login"
    ended = parse("claude", hook_event_name="Stop", last_assistant_message=f"Done.\n{context}")
    assert ended.message == "Done."


FAILURE = "F.                         [100%]\nE   TypeError: unsupported operand\n1 failed, 1 passed in 0.05s"
SUCCESS = "..                                          [100%]\n2 passed in 0.02s"
SILENT = "checked 4 files\n"
TEST = "python -m pytest -q"


def claude(output: str, code: int | None, command: str = TEST) -> dict[str, Any]:
    tool = {
        "transcript_path": "/home/user/.claude/projects/-shop/s.jsonl",
        "permission_mode": "acceptEdits",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Run the tests"},
        "tool_use_id": "toolu_01",
        "duration_ms": 812,
    }
    if code:
        return tool | {
            "hook_event_name": "PostToolUseFailure",
            "error": f"Exit code {code}\n{output}",
            "is_interrupt": False,
        }
    response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return tool | {"hook_event_name": "PostToolUse", "tool_response": response}


def codex(output: str, code: int | None, command: str = TEST) -> dict[str, Any]:
    text = output if code is None else f"Exit code: {code}\nWall time: 1 seconds\nOutput:\n{output}"
    return {
        "hook_event_name": "PostToolUse",
        "transcript_path": None,
        "model": "gpt-5.6-codex",
        "permission_mode": "bypassPermissions",
        "turn_id": "t1",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": text,
        "tool_use_id": "call_1",
    }


def gemini(output: str, code: int | None, command: str = TEST) -> dict[str, Any]:
    end = f"\nExit Code: {code}" if code else "" if code == 0 else "\nSignal: 9"
    start = "Output: " if code is not None else "Command was automatically cancelled. "
    return {
        "hook_event_name": "AfterTool",
        "transcript_path": "/home/user/.gemini/tmp/shop/chats/s.json",
        "timestamp": "2026-11-24T10:00:00.000Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": command, "description": "Run the tests"},
        "tool_response": {
            "llmContent": f"<untrusted_context>\n{start}{output}{end}\n</untrusted_context>",
            "returnDisplay": output,
        },
    }


def copilot(output: str, code: int | None, command: str = TEST) -> dict[str, Any]:
    end = "" if code is None else f"\n<shellId: 0 completed with exit code {code}>"
    return {
        "hook_event_name": "PostToolUse",
        "timestamp": "2026-11-24T10:00:00.000Z",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Run the tests", "mode": "sync"},
        "tool_result": {"result_type": "success", "text_result_for_llm": f"{output}{end}"},
    }


def cursor(output: str, code: int | None, command: str = TEST) -> dict[str, Any]:
    return {
        "hook_event_name": "postToolUse",
        "conversation_id": "c1",
        "workspace_roots": ["/shop"],
        "tool_name": "Shell",
        "tool_input": {"command": command},
        "tool_output": json.dumps({"output": output} | ({} if code is None else {"exitCode": code})),
        "tool_use_id": "t1",
    }


@pytest.fixture(autouse=True)
def _no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process, for which the sessions of these tests were abandoned long ago."""
    monkeypatch.setattr(answer, "start_background", lambda _paths: None)


PAYLOADS = {"claude": claude, "codex": codex, "gemini": gemini, "copilot": copilot, "cursor": cursor}


def parse_payload(agent: str, fields: dict[str, Any]) -> HookEvent:
    event = parse_event(agent, json.dumps({"session_id": "s1", "cwd": "/shop"} | fields).encode())
    assert event is not None
    return event


def result(agent: str, fields: dict[str, Any]) -> bool | None:
    action = parse_tool_event(parse_payload(agent, fields).tool)
    assert bool(action.get("error")) == (action.get("success") is False)
    return action.get("success")


def test_the_exit_code_of_each_agent_decides() -> None:
    for agent in PAYLOADS:
        assert result(agent, PAYLOADS[agent](SILENT, 1)) is False, agent
        assert result(agent, PAYLOADS[agent](SILENT, 0)) is True, agent


def test_without_an_exit_code_the_report_of_the_test_decides_and_silence_proves_nothing() -> None:
    for agent in [agent for agent in PAYLOADS if agent != "claude"]:
        assert result(agent, PAYLOADS[agent](FAILURE, None)) is False, agent
        assert result(agent, PAYLOADS[agent](SUCCESS, None)) is True, agent
        assert result(agent, PAYLOADS[agent](SILENT, None)) is None, agent


def test_the_exit_code_of_a_pipe_is_not_that_of_its_test() -> None:
    for agent in PAYLOADS:
        piped = f"{TEST} 2>&1 | tail -5"
        assert result(agent, PAYLOADS[agent](FAILURE, 0, piped)) is False, agent
        assert result(agent, PAYLOADS[agent](SUCCESS, 0, piped)) is True, agent
        assert result(agent, PAYLOADS[agent](SILENT, 0, piped)) is None, agent


@pytest.mark.parametrize("call", ["call_1", "exec-0b5c2f0e-6d35-4f0f-9a54-5d8c2a1b7e11"])
@pytest.mark.parametrize(("code", "expected"), [(1, False), (0, True)])
def test_codex_has_the_exit_code_in_its_transcript(tmp_path: Path, call: str, code: int, expected: bool) -> None:
    def record(id: str, code: int) -> str:
        item = {"type": "CommandExecution", "id": id, "command": ["bash"], "exit_code": code, "status": "completed"}
        return json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}})

    rollout = tmp_path / "rollout.jsonl"
    lines = [record("call_0", 1 - code), "x" * 300_000, record("call_0", 1 - code), record(call, code)]
    rollout.write_text("\n".join([*lines, json.dumps({"payload": call}), f'{{"half": "{call}"']))
    fields = codex(SILENT, None) | {"transcript_path": str(rollout), "tool_use_id": call}
    assert result("codex", fields) is expected
    assert result("codex", fields | {"tool_use_id": "call_2"}) is None


def test_a_transcript_that_cannot_be_read_proves_nothing() -> None:
    rows: list[Any] = ["", "\0", "/nowhere/rollout.jsonl", "/dev/zero", "/", 7, ["x"]]
    for path in rows:
        assert result("codex", codex(SILENT, None) | {"transcript_path": path}) is None, path


def test_an_edit_that_an_agent_reports_is_a_success() -> None:
    patch = "*** Begin Patch\n*** Update File: cart.py\n@@\n-a\n+b\n*** End Patch"
    applied = {"tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_response": "Exit code: 0\nSuccess."}
    assert result("codex", codex("", None) | applied) is True
    edited = {"tool_name": "Edit", "tool_input": {"path": "cart.py"}, "tool_result": {"text_result_for_llm": "updated"}}
    assert result("copilot", copilot("", None) | edited) is True


@pytest.mark.parametrize(("code", "outcome"), [(1, Outcome.FAILURE), (0, Outcome.SUCCESS)])
def test_the_last_test_of_a_session_of_cursor_is_its_outcome(
    project: ProjectPaths, code: int, outcome: Outcome
) -> None:
    """The recorded sessions below are of all other agents."""
    simulated = SimulatedAgent(project, agent="cursor")
    fields = cursor(FAILURE if code else SUCCESS, code)
    simulated.send(fields.pop("hook_event_name"), **fields)
    simulated.send("stop")
    assert read_history(project, "task-001").attempts[0].outcome is outcome


def test_a_test_of_unknown_result_proves_no_outcome(project: ProjectPaths) -> None:
    simulated = SimulatedAgent(project, agent="codex")
    for number, output in enumerate((FAILURE, SILENT)):
        fields = codex(output, None) | {"tool_use_id": f"call_{number}"}
        simulated.send(fields.pop("hook_event_name"), **fields)
    simulated.send("Stop")
    assert read_history(project, "task-001").attempts[0].outcome is Outcome.UNKNOWN


def test_copilot_is_recognized_when_it_runs_the_hooks_of_claude_code() -> None:
    events: dict[str, dict[str, Any]] = {
        "SessionStart": {"source": "new", "initial_prompt": "Fix it"},
        "UserPromptSubmit": {"prompt": "Fix it"},
        "PostToolUse": copilot(SUCCESS, 0),
        "PostToolUseFailure": {"tool_name": "Edit", "tool_input": {}, "error": "no match"},
        "Stop": {"transcript_path": "/home/user/.copilot/session-state/s1/events.jsonl", "stop_reason": "end_turn"},
    }
    for event, fields in events.items():
        sent = {"hook_event_name": event, "timestamp": "2026-11-24T10:00:00.000Z", **fields}
        assert parse_payload("claude", sent).agent == "copilot", event
    for code in (0, 1):
        assert parse_payload("claude", claude(SUCCESS, code)).agent == "claude"


OWN_TOOLS: dict[str, dict[str, Any]] = {
    "claude": {"tool_name": "mcp__ralphdeck__report_outcome"},
    "codex": {"tool_name": "mcp__ralphdeck__known_fix"},
    "gemini": {"tool_name": "mcp_ralphdeck_loop_context", "mcp_context": {"server_name": "ralphdeck"}},
    "copilot": {"tool_name": "ralphdeck-loop_context"},
    "cursor": {"tool_name": "MCP:propose_lesson"},
}


def test_calls_of_ralphdeck_are_not_logged(project: ProjectPaths) -> None:
    for agent, tool in OWN_TOOLS.items():
        simulated = SimulatedAgent(project, agent=agent)
        fields = PAYLOADS[agent]("", 0) | tool
        simulated.send(fields.pop("hook_event_name"), **fields)
        assert not project.tasks.exists(), agent
        assert not parse_payload(agent, PAYLOADS[agent]("", 0)).is_own_tool
    commands = {"ralphdeck loop inject --task 'Fix it'": True, "/usr/bin/ralphdeck doctor": True}
    commands |= {"ralphdeck doctor && pytest": False, "cat ralphdeck": False}
    for command, is_own in commands.items():
        assert parse_payload("claude", claude("", 0, command)).is_own_tool is is_own, command


RECORDED = sorted((Path(__file__).parent / "payloads").glob("*.jsonl"))
GIVEN_UP = 2  # number of the session that ends with a failing test, of all agents but Claude Code


def play(project: ProjectPaths, file: Path, number: int, folder: Path) -> SimulatedAgent:
    """Send the recorded events of one session; before each, its transcript grows up to the record of the call."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    records = [line for line in lines if "transcript" in line]
    named = file.stem.partition("-")[0]
    agent = SimulatedAgent(project, agent="claude" if file.stem == "copilot-with-claude-hooks" else named)
    for line in lines:
        if line.get("session") == number:
            event = dict(line["event"])
            agent.session = event.pop("session_id")
            if event.get("transcript_path"):
                transcript = folder / Path(event["transcript_path"]).name
                event["transcript_path"] = str(transcript)
                own = [line["record"] for line in records if line["transcript"] == transcript.name]
                ids = [record["payload"].get("item", {}).get("id") for record in own]
                call = event.get("tool_use_id")
                until = ids.index(call) + 1 if call in ids else 1 if "prompt" in event else len(own)
                transcript.write_text("".join(json.dumps(record) + "\n" for record in own[:until]))
            event.pop("cwd")
            agent.send(event.pop("hook_event_name"), **event)
    return agent


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_sessions_have_each_edit_once_and_end_as_their_last_test_did(
    project: ProjectPaths, tmp_path: Path, file: Path
) -> None:
    for number in (1, 2):
        has_failed = number == GIVEN_UP and file.stem != "claude"
        agent = play(project, file, number, tmp_path)
        attempt = read_history(project, agent.record.task).attempts[-1]
        assert attempt.outcome is (Outcome.FAILURE if has_failed else Outcome.SUCCESS)
        assert agent.record.agent == file.stem.partition("-")[0]
        if number == 1:
            log = project.tasks / agent.record.task / "attempts/001/actions.jsonl"
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            (edit,) = (action for action in actions if action["type"] == "edit")
            assert "discount or 0" in json.dumps(edit) and edit["success"] is True
            assert actions[-1]["type"] == "bash" and actions.index(edit) < len(actions) - 1


def test_an_edit_of_several_files_in_the_transcript_is_one_action_for_each(
    project: ProjectPaths, tmp_path: Path
) -> None:
    changes = {
        "/shop/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n"},
        "/shop/b.py": {"type": "add", "content": "one\ntwo\n"},
        "/shop/c.py": {"type": "delete", "content": "gone\n"},
        "/shop/d.py": {"type": "rename"},
        "/shop/e.py": 7,
    }
    item = {"type": "FileChange", "id": "call_9", "changes": changes, "status": "completed"}
    refused = {**item, "id": "call_8", "status": "failed"}
    rollout = tmp_path / "rollout.jsonl"
    records = [{"payload": {"type": "item_completed", "item": one}} for one in (item, refused)]
    rollout.write_text("\n".join(map(json.dumps, records)))
    agent = SimulatedAgent(project, agent="codex")
    for number in (1, 2):
        fields = codex(SUCCESS, 0) | {"transcript_path": str(rollout), "tool_use_id": f"call_{number}"}
        agent.send(fields.pop("hook_event_name"), **fields)
    log = project.tasks / "task-001/attempts/001/actions.jsonl"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    assert [action["type"] for action in actions] == ["edit", "edit", "edit", "bash", "bash"]
    assert "+one" in json.dumps(actions[1])
