"""Records of sessions beside their events: transcripts, calls that are not logged yet, first prompts, deadlines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.agents.agent_table import Moment
from core.agents.hooks import deadline
from core.agents.hooks.deadline import (
    ANSWER_SECONDS,
    OTHER_SECONDS,
    PROCESSOR_SECONDS,
    PROMPT_SECONDS,
    Deadline,
    count_give_ups,
    record_give_up,
)
from core.agents.hooks.events import (
    MAX_TAIL,
    HookEvent,
    digest,
    find_copilot_text,
    find_last_text,
    find_text_before,
    parse_event,
)
from core.agents.hooks.sessions import MAX_FIRST_PROMPTS as MAX_PROMPTS
from core.agents.hooks.sessions import (
    MAX_SPOOLED,
    PromptTask,
    find_prompt_task,
    remember_prompt_task,
    spool_call,
    spooled_calls,
)
from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from core.base.prompt_text import render_blocks
from tests.core.agents.hooks.agents import START


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


def codex(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def codex_text(text: str) -> dict[str, Any]:
    return codex("message", role="assistant", content=[{"type": "output_text", "text": text}])


CODEX = [
    codex("message", role="user", content=[{"type": "input_text", "text": "Fix it."}]),
    codex_text("The slice is one short."),
    codex("custom_tool_call", call_id="call-1", name="apply_patch"),
    codex("custom_tool_call_output", call_id="call-1", output="ok"),
    codex("function_call", call_id="call-2", name="shell"),
    codex("function_call_output", call_id="call-2", output="ok"),
    codex_text("Pages start at 1 now."),
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


def test_damaged_and_other_files_have_no_texts(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    for content in (
        b"",
        b"{",
        b"[]",
        b"null\n",
        b'{"message": 3}\n',
        b'{"message": {"content": [1, {}]}}\n',
        b'{"type": {}, "message": {"role": [], "content": [{"type": {}}, {"type": []}]}}\n',
        "".join(f"{json.dumps(entry)}\n" for entry in CLAUDE[:6]).encode(),  # a turn that ends with a call
    ):
        file.write_bytes(content)
        assert find_last_text(str(file)) == find_text_before(str(file), "call-7") == "", content
    (tmp_path / "notes.txt").write_text(json.dumps(CLAUDE[-1]))
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("missing.jsonl", "notes.txt", "folder.jsonl", "a\0.jsonl"):
        assert find_last_text(str(tmp_path / name)) == ""


def test_a_context_that_the_agent_repeats_is_not_its_text(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    entry = claude({"type": "text", "text": "Context:\n" + render_blocks("- guard\n", "- retry\n") + "So I guard."})
    file.write_text(json.dumps(entry) + "\n")
    assert find_last_text(str(file)) == "Context:\nSo I guard."


def event(command: str = "make", session: str = "s1") -> HookEvent:
    tool = {"tool_name": "Bash", "tool_input": {"command": command}}
    parsed = parse_event(
        "claude", json.dumps({"hook_event_name": "PostToolUse", "session_id": session, **tool}).encode()
    )
    assert parsed is not None
    return parsed


def test_calls_are_read_once_oldest_first(project: ProjectPaths) -> None:
    for minutes in (2, 1):
        assert spool_call(project, event(f"make {minutes}"), START + timedelta(minutes=minutes))
    spool_call(project, event(session="s2"), START)
    calls = list(spooled_calls(project, "s1"))
    assert [call.event for call in calls] == [event("make 1"), event("make 2")]
    assert not list(spooled_calls(project, "s1"))


def test_damaged_and_foreign_files_are_dropped(project: ProjectPaths) -> None:
    spool_call(project, event(), START)
    [file] = project.sessions.glob("*.calls/*")
    foreign = file.read_text().replace('"session":"s1"', '"session":"s2"')
    for name, content in {"1.call": "{", "2.call": "", "3.call": foreign}.items():
        file.with_name(name).write_text(content)
    assert [call.event for call in spooled_calls(project, "s1")] == [event()]
    assert not list(project.sessions.glob("*.calls"))


def test_the_number_and_the_size_of_calls_are_limited(project: ProjectPaths) -> None:
    assert not spool_call(project, event("x" * (2 << 20)), START)
    assert [spool_call(project, event(), START) for _ in range(MAX_SPOOLED + 1)].count(True) == MAX_SPOOLED


def test_nothing_is_written_through_a_linked_folder(project: ProjectPaths, tmp_path: Path) -> None:
    spool_call(project, event(), START)
    [folder] = project.sessions.glob("*.calls")
    list(spooled_calls(project, "s1"))
    folder.symlink_to(tmp_path)
    with pytest.raises(BadInput):
        spool_call(project, event(), START)


def test_a_prompt_is_remembered_after_the_clock_was_years_ahead(project: ProjectPaths) -> None:
    task = PromptTask("task-001", "s1", START)
    remember_prompt_task(project, digest("a"), task)
    remember_prompt_task(project, digest("b"), PromptTask("task-002", "s2", START.replace(year=2099)))
    remember_prompt_task(project, digest("c"), PromptTask("task-003", "s3", START))
    assert find_prompt_task(project, digest("a"), START + timedelta(hours=1)) == task
    assert find_prompt_task(project, digest("a"), START + timedelta(hours=25)) is None, "forgotten after a day"
    assert find_prompt_task(project, digest("b"), START) is None


def test_the_newest_prompts_are_kept_if_long_ids_of_sessions_fill_the_file(project: ProjectPaths) -> None:
    file = project.sessions / "prompts.json"
    project.sessions.mkdir()
    old = {digest(str(n)): {"task": f"task-{n}", "session": "s" * 430, "at": START} for n in range(MAX_PROMPTS)}
    file.write_bytes(msgspec.json.encode(old))
    newest = PromptTask("task-new", "\0" * 500, START)
    remember_prompt_task(project, digest("new"), newest)
    assert find_prompt_task(project, digest("new"), START) == newest
    assert find_prompt_task(project, digest(str(MAX_PROMPTS - 1)), START) is not None
    assert file.stat().st_size < 1 << 18


@dataclass
class Clocks:
    """A deadline whose clocks are set by the test."""

    elapsed: float = 100.0
    processor: float = 0.2
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.reasons.append, elapsed=lambda: self.elapsed, processor=lambda: self.processor)


def test_a_busy_machine_delays_a_prompt_longer_than_other_events() -> None:
    for moment, seconds in ((Moment.PROMPT, PROMPT_SECONDS), (Moment.TOOL, OTHER_SECONDS)):
        clocks = Clocks()
        clocks.deadline.set_moment(moment)
        clocks.elapsed += seconds - 0.1
        clocks.deadline.check()
        assert not clocks.reasons
        clocks.elapsed += 0.1
        clocks.deadline.check()
        assert len(clocks.reasons) == 1 and "busy" in clocks.reasons[0]


def test_processor_time_is_limited_whatever_time_has_passed() -> None:
    clocks = Clocks(processor=PROCESSOR_SECONDS)
    clocks.deadline.check()
    clocks.deadline.check()
    assert len(clocks.reasons) == 1 and "too much processor time" in clocks.reasons[0]


def test_an_answer_that_is_complete_gets_time_to_be_sent() -> None:
    clocks = Clocks()
    clocks.elapsed += PROMPT_SECONDS - 0.1
    clocks.deadline.begin_answer()
    clocks.processor = PROCESSOR_SECONDS
    clocks.elapsed += ANSWER_SECONDS - 0.1
    clocks.deadline.check()
    assert not clocks.reasons
    clocks.elapsed += 0.2
    clocks.deadline.check()
    assert clocks.reasons


def test_hooks_that_gave_up_are_counted_by_reason_for_a_week(project: ProjectPaths) -> None:
    assert count_give_ups(project, START) == {}
    record_give_up(project, "claude", "Stop", "long ago", START - timedelta(days=8))
    for seconds in (6.1, 6.2):
        record_give_up(project, "claude", "UserPromptSubmit", f"the machine is busy ({seconds} s)", START)
    record_give_up(project, "codex", "Stop", "locked", START)
    assert count_give_ups(project, START) == {"the machine is busy": 2, "locked": 1}


def test_the_log_keeps_the_newest_lines_and_ignores_damaged_ones(
    project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "_MAX_BYTES", 1000)
    for number in range(100):
        record_give_up(project, "claude", "Stop", f"reason {number}", START)
    (log,) = project.sessions.glob("*.jsonl")
    assert log.stat().st_size < 1100
    log.write_bytes(b"{\n\xff\n[]\n" + log.read_bytes())
    counts = count_give_ups(project, START)
    assert "reason 99" in counts and "reason 0" not in counts
