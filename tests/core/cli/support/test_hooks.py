"""`inject --hook` and `task log --hook`: input from agents, output to agents, and errors that never stop an agent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.cli.support import hooks
from core.cli.support import process as event_input
from tests.core.cli.conftest import Call, Result

TASK = "Fix TypeScript type errors in user validation"
EVENTS = ".aiwg/ralph/shared/curation/events.jsonl"
BLOCK = "<unreviewed-"  # the start of a context without approved patterns
Hook = Callable[..., Result]


@pytest.fixture
def hook(call: Call) -> Iterator[Hook]:
    """Call `loop inject --hook FORM`, or another command, with an event on stdin."""
    stdin = os.dup(0)

    def hook_here(
        event: object, form: str = "claude-code", *args: str | Path, command: tuple[str, ...] = ("loop", "inject")
    ) -> Result:
        reader, writer = os.pipe()
        os.write(writer, event if isinstance(event, bytes) else json.dumps(event).encode())
        os.close(writer)
        os.dup2(reader, 0)
        os.close(reader)
        return call(*command, "--hook", form, *args)

    yield hook_here
    os.dup2(stdin, 0)
    os.close(stdin)


def is_quiet(result: Result, because: str) -> bool:
    return (result.code, result.out) == (0, "") and because in result.err and result.err.count("\n") == 1


def test_a_prompt_gets_the_context_of_its_task(examples: Path, hook: Hook, call: Call) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": TASK, "cwd": str(examples / ".aiwg"), "session_id": "s"}
    answer = hook(event)
    assert answer.document == {
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": call("loop", "inject", "--task", TASK).out,
        }
    }
    assert (answer.code, answer.err) == (0, "")


def test_a_session_gets_the_context_of_the_loop_that_is_named(examples: Path, hook: Hook) -> None:
    answer = hook(
        {"hook_event_name": "SessionStart", "source": "startup"}, "claude-code", "ralph-fix-validation-b2c3d4e5"
    )
    message = answer.document["hookSpecificOutput"]
    assert message["hookEventName"] == "SessionStart" and message["additionalContext"].startswith(BLOCK)
    events = (examples / EVENTS).read_text().splitlines()
    assert {json.loads(line)["kind"] for line in events} == {"injected"}


def test_a_session_without_a_name_gets_that_of_the_only_loop_at_work(examples: Path, hook: Hook) -> None:
    session = {"hook_event_name": "SessionStart", "cwd": str(examples)}
    assert is_quiet(hook(session), "no active loop; pass LOOP or --task")
    old = examples / ".aiwg/ralph/loops/ralph-old/state.json"
    old.parent.mkdir()
    old.write_text(json.dumps({"loopId": "ralph-old", "status": "running", "startTime": "2020-01-01T00:00:00Z"}))
    os.utime(old, (1_600_000_000, 1_600_000_000))
    assert is_quiet(hook(session), "no active loop; pass LOOP or --task")
    state = {"status": "running", "task": TASK, "startTime": datetime.now(UTC).isoformat()}
    for name in ("ralph-one", "ralph-two"):
        folder = examples / ".aiwg/ralph/loops" / name
        folder.mkdir()
        (folder / "state.json").write_text(json.dumps({**state, "loopId": name}))
        answer = hook(session)
        if name == "ralph-one":
            assert answer.document["hookSpecificOutput"]["additionalContext"].startswith(BLOCK)
            assert {json.loads(line)["loop_id"] for line in (examples / EVENTS).read_text().splitlines()} == {name}
        else:
            assert is_quiet(answer, "2 active loops; pass LOOP or --task")


def test_plain_takes_a_text_or_an_object_and_prints_the_bare_context(examples: Path, hook: Hook) -> None:
    text = hook(TASK.encode(), "plain")
    assert text.out.startswith(BLOCK) and text.err == ""
    assert hook({"task": TASK}, "plain").out == text.out
    assert hook({"prompt": TASK, "cwd": str(examples)}, "plain").out == text.out


def test_a_task_with_nothing_to_inject_prints_nothing(examples: Path, hook: Hook) -> None:
    for form in hooks.FORMS:
        nothing = hook({"prompt": "Translate the poem about winter"}, form)
        assert is_quiet(nothing, "ralphdeck gives no lesson: nothing in common with the task (")


def test_no_mistake_stops_the_agent(examples: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in ("--top-k many", "--no-such-option", "--json", "no-such-loop", "a --task b", "--task="):
        assert is_quiet(hook({}, "claude-code", *words.split()), "ralphdeck gives no lesson: ")
    monkeypatch.setattr("core.index.contexts.prepare_context", lambda *_, **__: 1 / 0)
    assert is_quiet(hook({"prompt": TASK}), "division by zero")


def test_no_event_stops_the_agent(examples: Path, hook: Hook) -> None:
    for event in (b"", b'{"broken', b"garbage", b"[1,2]", b"\xff\xfe", b'{"a":' * 99):
        assert is_quiet(hook(event), "stdin is not the JSON of an event")
    for fields in ({"prompt": 7}, {"cwd": ["x"]}, {"prompt": " "}):
        assert hook(fields).code == 0
    named = hook(b"garbage", "claude-code", "--task", TASK)
    assert named.document["hookSpecificOutput"]["hookEventName"] == "SessionStart", "the event is not needed"
    assert is_quiet(hook({"hook_event_name": "Stop", "prompt": TASK}), "Stop accepts no context")


def test_a_folder_without_a_project_or_an_unknown_form_is_reported(tmp_path: Path, hook: Hook) -> None:
    assert is_quiet(hook({"prompt": TASK, "cwd": str(tmp_path)}), "no .aiwg/ralph at or above")
    assert is_quiet(hook({}, "cobol"), "'cobol' is not one of claude-code, plain")


LOG = ("task", "log")
READ = {"tool_name": "Read", "tool_input": {"file_path": "a.ts"}, "tool_response": "x"}


@pytest.fixture
def attempt(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of an open attempt at the task that the environment names, in a project that is not the current one."""
    call("task", "init", "a", "--project", tmp_path)
    call("task", "start", "task-001", "--project", tmp_path)
    monkeypatch.setenv("RALPHDECK_TASK", "task-001")
    return tmp_path / ".aiwg/ralph/tasks/task-001/attempts/001/actions.jsonl"


def test_a_tool_call_becomes_an_action_of_the_task_that_the_agent_works_at(attempt: Path, hook: Hook) -> None:
    folder = attempt.parents[6] / "src"
    folder.mkdir()
    event = {**READ, "cwd": str(folder), "tool_input": {"file_path": str(folder / "a.ts")}}
    for args in ((), ("--iteration", "2")):
        assert hook(event, "claude-code", *args, command=LOG) == Result(0, "", "")
    first, second = map(json.loads, attempt.read_text().splitlines())
    assert first.pop("timestamp") and first == {
        "iteration": 1,
        "type": "read",
        "tool": "Read",
        "params": {"file_path": "src/a.ts"},
        "success": True,
        "output": "x",
    }
    assert second["iteration"] == 2


def test_a_tool_call_that_cannot_be_logged_stops_no_agent(
    attempt: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: tuple[tuple[object, str, str], ...] = (
        (b'{"broken', "", "stdin is not the JSON of an event"),
        ({**READ, "tool_name": "TodoWrite"}, "", "TodoWrite does not affect the work"),
        (READ, "no-such-task", "no task no-such-task"),
        (READ, "--attempt 7", "attempt 7"),
        ({**READ, "cwd": ["x"], "hook_event_name": 7}, "", "7 is not a tool event"),
        (READ, "--type read", "--hook allows only --attempt, --iteration and --project"),
        (READ, "--no-such-option", "No such option"),
        (READ, "--success --failure", "give either --success or --failure"),
    )
    for event, words, because in cases:
        refused = hook(event, "claude-code", *words.split(), "--project", attempt.parents[6], command=LOG)
        assert is_quiet(refused, because) and refused.err.startswith("ralphdeck logs nothing: ")
    monkeypatch.delenv("RALPHDECK_TASK")
    assert is_quiet(hook(READ, "claude-code", command=LOG), "Name the task, or set RALPHDECK_TASK")
    assert not attempt.exists()


def test_a_stdin_that_stays_open_and_silent_is_given_up(
    examples: Path, hook: Hook, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_input, "_TIMEOUT_SECONDS", 0.05)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    assert call("loop", "inject", "--hook", "plain", "--task", TASK).out.startswith(BLOCK)
    os.close(reader)
    os.close(writer)
